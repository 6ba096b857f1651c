"""Weights as float16, and how many answers that changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from torchcaps.core import MissingDataError, UserError, rotation_angle
from torchcaps.train import Run, evaluation_batch, load_split
from torchcaps.train.tasks import predicted_masks

Outputs = Mapping[str, Tensor]
_MOST_CHANGED = 0.001  # share of the answers that rounding may change
_MOST_IMAGES = 2000  # test images that are asked about
_TURNED = 1.0  # degrees from which on a rotation counts as another one


@dataclass(frozen=True, kw_only=True)
class Rounding:
    """How many answers differ between rounded and whole weights: of images, or of pixels of a mask."""

    answers: int
    changed: int

    def __str__(self) -> str:
        return f"{self.changed:,} of {self.answers:,} answers on test images differ from those of float32"


def halved(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights with float16 in place of float32."""
    return {key: value.half() if value.dtype == torch.float32 else value for key, value in state.items()}


def measure_rounding(run: Run, data: str | None = None, data_dir: Path | None = None) -> Rounding:
    """Compare the answers of a run with those of its rounded weights; too many changed ones are an error.

    Args:
        run: The run.
        data: The dataset of the test images; by default the run's own.
        data_dir: Folder of the datasets.
    """
    if run.task.name not in CHANGES:
        raise UserError(f"answers of {run.task.name} cannot be compared; pack without --half")
    try:
        before, after = _outputs_of_both(run, data, data_dir)
    except MissingDataError as error:
        raise MissingDataError(
            f"float16 is compared with float32 on the test images: {error}; say with --data and --data-dir "
            "where they are, or pack without --half"
        ) from error
    is_changed = CHANGES[run.task.name](before, after)
    found = Rounding(answers=is_changed.numel(), changed=int(is_changed.sum()))
    if found.changed > _MOST_CHANGED * found.answers:
        raise UserError(f"float16 changes what this network says ({found}); pack it without --half")
    return found


@torch.no_grad()
def _outputs_of_both(run: Run, data: str | None, data_dir: Path | None) -> tuple[Outputs, Outputs]:
    examples, pipeline = load_split(run, "test", data_name=data, data_dir=data_dir)
    examples = examples.subset(torch.arange(min(len(examples), _MOST_IMAGES)))
    rounded = deepcopy(run.model)
    rounded.load_state_dict(halved(run.model.state_dict()))
    found: list[list[Outputs]] = [[], []]
    for images, _ in examples.batches(evaluation_batch(examples)):
        inputs = pipeline.for_evaluation(images).inputs
        for network, outputs in zip((run.model, rounded), found, strict=True):
            outputs.append(run.task.outputs(run.task.call(network, inputs, None)))
    before, after = ({name: torch.cat([each[name] for each in part]) for name in part[0]} for part in found)
    return before, after


def _class_changes(before: Outputs, after: Outputs) -> Tensor:
    return before["activations"].argmax(1) != after["activations"].argmax(1)


def _pair_changes(before: Outputs, after: Outputs) -> Tensor:
    first, second = (each["activations"].topk(2).indices.sort(1).values for each in (before, after))
    return (first != second).any(1)


def _mask_changes(before: Outputs, after: Outputs) -> Tensor:
    return predicted_masks(before["activations"]) != predicted_masks(after["activations"])


def _pose_changes(before: Outputs, after: Outputs) -> Tensor:
    winners = before["activations"].argmax(1)
    rows = torch.arange(len(winners), device=winners.device)
    turned = rotation_angle(before["rotations"][rows, winners], after["rotations"][rows, winners])
    return _class_changes(before, after) | (turned > _TURNED)


def _nearest_changes(before: Outputs, after: Outputs) -> Tensor:
    """Whether the image nearest to each, of all others, is another one."""

    def nearest(outputs: Outputs) -> Tensor:
        distances = torch.cdist(outputs["descriptors"], outputs["descriptors"])
        return distances.fill_diagonal_(torch.inf).argmin(1)

    return nearest(before) != nearest(after)


CHANGES: dict[str, Callable[[Outputs, Outputs], Tensor]] = {
    "classification": _class_changes,
    "overlap": _pair_changes,
    "segmentation": _mask_changes,
    "pose": _pose_changes,
    "retrieval": _nearest_changes,
}
