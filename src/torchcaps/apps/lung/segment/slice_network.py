"""A trained segmentation network, and what becomes of a CT slice before it sees one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from torchcaps.core import SegmentationOutput, UserError
from torchcaps.data import normalize
from torchcaps.train import Run


@dataclass(frozen=True)
class SliceNetwork:
    """Gives the probability of a nodule at each pixel of CT slices.

    Attributes:
        network: Takes normalised images whose sides are multiples of `step`.
        prepare: From grey values in [0, 1], as `window` gives them, to what the network was trained on.
        step: What the sides of an image must be multiples of.
        device: Where the network is.
    """

    network: Callable[..., SegmentationOutput]
    prepare: Callable[[Tensor], Tensor]
    step: int
    device: torch.device

    def __call__(self, grey: Float[Tensor, "batch 1 height width"]) -> Float[Tensor, "batch 1 height width"]:
        """Probabilities of grey images in [0, 1]."""
        found = self.network(self.prepare(grey)).activations
        if not bool(found.isfinite().all()):
            raise UserError("the network answers with numbers that are not finite; its weights are damaged")
        return found


def slice_network(run: Run) -> SliceNetwork:
    """The network of a run that segments one class in grey images at their own size."""
    check_run(run)
    info, settings = run.info(), run.recipe.data.preprocess

    def prepare(grey: Tensor) -> Tensor:
        return normalize(grey, settings, info)

    return SliceNetwork(run.model, prepare, 2 ** int(run.model.halvings), run.device)  # type: ignore[arg-type]


def check_run(run: Run) -> None:
    """Raise where a run cannot segment CT slices of any size."""
    run.expect_task("segmentation")
    config, settings = run.model.config, run.recipe.data.preprocess
    if config.num_classes != 1 or config.in_channels != 1:
        raise UserError(
            f"{run.folder} has {config.num_classes} classes in images of {config.in_channels} channels; "
            "the lung commands need one class, the nodule, in grey images"
        )
    if settings.resize or settings.pad or settings.center_crop:
        raise UserError(
            f"{run.folder} resizes, pads or crops its images (data.preprocess); slices of a scan are "
            "segmented at their own size: train without"
        )
    if settings.normalize == "image":
        raise UserError(
            f"{run.folder} normalises each image by itself, so windows of one slice would not fit together; "
            "train with data.preprocess.normalize=dataset"
        )
