"""Segmentation: a class, or the background, for each pixel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from torchcaps.core import Metric, SegmentationOutput, register_metrics
from torchcaps.data import DatasetInfo, Examples, MaskedImages, undo_fit
from torchcaps.losses import class_masks

from ..objective import Objective
from .api import TASKS, Answer, Meter, Task
from .confusion import Confusion, accuracy, dice, intersection_over_union, plain, recall

register_metrics(
    Metric("dice", "Dice", "higher", digits=4),
    Metric("iou", "IoU", "higher", digits=4),
    Metric("pixel_accuracy", "pixel accuracy", "higher", "%", 100.0),
)

_THRESHOLD = 0.5  # a pixel whose largest activation is below it is background
_COLOURS = ((0, 210, 255), (255, 60, 200), (150, 230, 0), (255, 170, 0), (140, 90, 255), (255, 70, 60))
_OPACITY = 0.45


def predicted_masks(
    activations: Float[Tensor, "batch classes height width"],
) -> UInt8[Tensor, "batch height width"]:
    """Class numbers from 1 on where the largest activation reaches one half, elsewhere 0."""
    largest, winner = activations.max(1)
    return torch.where(largest >= _THRESHOLD, winner + 1, 0).to(torch.uint8)


class MaskMeter(Meter[SegmentationOutput, Tensor]):
    """Counts, over all pixels of a split, which class was taken for which."""

    def __init__(self, examples: Examples, objective: Objective) -> None:
        super().__init__(examples, objective)
        self._confusion = Confusion(len(examples.classes) + 1, examples.device)

    def measure(self, output: SegmentationOutput, targets: Tensor) -> None:
        """Count the pixels of a batch."""
        self._confusion.add(targets, predicted_masks(output.activations))

    def metrics(self) -> tuple[Mapping[str, float], Mapping[str, object]]:
        """Dice and IoU as means over the classes that occur, and accuracy over all pixels."""
        table = self._confusion.table()
        overlaps, unions = dice(table)[1:], intersection_over_union(table)[1:]
        found = {
            "dice": _mean(overlaps),
            "iou": _mean(unions),
            "pixel_accuracy": accuracy(table),
        }
        each = zip(
            self.examples.classes, plain(overlaps), plain(unions), plain(recall(table)[1:]), strict=True
        )
        rows = {name: {"dice": d, "iou": i, "pixel_accuracy": a} for name, d, i, a in each}
        return found, {"classes": rows, "confusion": table.tolist()}


def _mean(values: Tensor) -> float:
    """The mean of those that could be computed; 0 where none could, since nothing was found."""
    known = values[~values.isnan()]
    return float(known.mean()) if len(known) else 0.0


@TASKS.register("segmentation")
class Segmentation(Task[SegmentationOutput, Tensor]):
    """A class, or the background, for each pixel."""

    name: ClassVar[str] = "segmentation"
    examples: ClassVar[type[Examples]] = MaskedImages
    default_loss: ClassVar[str] = "dice_cross_entropy"
    metric_names: ClassVar[tuple[str, ...]] = ("dice", "iou", "pixel_accuracy")

    def decoded(self, model: Callable[..., SegmentationOutput], targets: Tensor) -> tuple[Tensor, ...]:
        """One mask for each class."""
        network: Any = getattr(model, "module", model)  # as Fabric wraps it, or as it is
        return (class_masks(targets, network.config.num_classes),)

    def drawn(self, images: Tensor, targets: Tensor) -> Tensor:
        """The images inside their masks: outside them the capsules are blanked (LaLonde 2018)."""
        return images * (targets > 0).unsqueeze(1)

    def meter(self, examples: Examples, objective: Objective) -> MaskMeter:
        """Counts of pixels."""
        return MaskMeter(examples, objective)

    def outputs(self, output: SegmentationOutput) -> dict[str, Tensor]:
        """Activations of all pixels, and the reconstruction where there is one."""
        found = {"activations": output.activations}
        return found if output.reconstruction is None else {**found, "reconstruction": output.reconstruction}

    def answer(self, outputs: Mapping[str, Tensor], info: DatasetInfo, picture: Image.Image) -> Answer:
        """The mask at the size of the picture, the picture under it, and the share of each class."""
        numbers = predicted_masks(outputs["activations"].float())[0].cpu().numpy()
        mask = undo_fit(Image.fromarray(numbers), picture.height, picture.width, info.fit)
        pixels = np.bincount(np.asarray(mask).ravel(), minlength=len(info.classes) + 1)
        shares = {
            name: round(int(count) / mask.width / mask.height, 6)
            for name, count in zip(info.classes, pixels[1:], strict=True)
        }
        words = ", ".join(f"{name} {share:.1%}" for name, share in shares.items()) + " of the image"
        pictures = {"mask": _coloured(mask), "overlay": _overlay(picture, mask)}
        return Answer({"size": [picture.height, picture.width], "share": shares}, words, pictures)


def _coloured(mask: Image.Image) -> Image.Image:
    """Class numbers as a palette image: programs read the numbers, people see colours."""
    palette = [0, 0, 0] + [part for number in range(255) for part in _COLOURS[number % len(_COLOURS)]]
    coloured = mask.copy()
    coloured.putpalette(palette)
    return coloured


def _overlay(picture: Image.Image, mask: Image.Image) -> Image.Image:
    """The picture with each class tinted, and outlined where its colour might be that of the object."""
    numbers = np.asarray(mask)
    colours = np.asarray(_coloured(mask).convert("RGB"), dtype=np.float32)
    pixels = np.asarray(picture.convert("RGB"), dtype=np.float32)
    opacity = np.where(_is_border(numbers), 1.0, np.where(numbers > 0, _OPACITY, 0.0))[:, :, None]
    return Image.fromarray(((1 - opacity) * pixels + opacity * colours).round().astype(np.uint8))


def _is_border(numbers: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether a pixel of a class has a neighbour above, below, left or right that is not of it."""
    padded = np.pad(numbers, 1)
    neighbours = (padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:])
    return (numbers > 0) & np.any([each != numbers for each in neighbours], axis=0)
