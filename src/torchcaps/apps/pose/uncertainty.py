"""How far off a predicted rotation may be: the spread of its votes, calibrated on validation images."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchcaps.core import (
    LayerTrace,
    MissingDataError,
    UserError,
    as_plain,
    build_dataclass,
)
from torchcaps.layers import cast_votes
from torchcaps.losses import SpreadRotationLoss, rotations_of
from torchcaps.models import EMPoseNet
from torchcaps.routing import EMRotationRouting
from torchcaps.storage import read_json, write_json
from torchcaps.train import Run, load_split
from torchcaps.train.tasks import symmetric_angle

CALIBRATION_FILE = "calibration.json"
COVERED_SHARE = 0.9  # of images whose error is within the stated angle
_BINS = 10
_FEWEST = 10  # images of a bin; fewer than 9 know no angle that nine in ten stay within
_AT_ONCE = 256


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What the spread of votes says of the error, found on validation images.

    Attributes:
        edges: Spreads that divide images into groups of equal size.
        median: Median error of each group in degrees; it does not fall as the spread grows.
        within: The angle within which a share of 0.9 of each group lies.
        images: How many were looked at.
        epoch: Of the weights; it tells whether a run was trained on since.
    """

    edges: tuple[float, ...]
    median: tuple[float, ...]
    within: tuple[float, ...]
    images: int
    epoch: int | None = None

    @property
    def is_enough(self) -> bool:
        """Whether the images were enough to know an angle that nine in ten stay within."""
        return self.images >= _FEWEST

    def at(self, spread: float) -> tuple[float, float]:
        """The usual error of images with votes so far apart, and what nine in ten stay within, in degrees."""
        group = sum(spread > edge for edge in self.edges)
        return self.median[group], self.within[group]


class Judged(NamedTuple):
    """Spreads of the votes and errors in degrees of some images."""

    spreads: Float[Tensor, " count"]
    errors: Float[Tensor, " count"]


def vote_spread(
    network: EMPoseNet, trace: LayerTrace, winners: Int[Tensor, " batch"]
) -> Float[Tensor, " batch"]:
    """The EM variance of the winning class capsules: of their votes around their means, over components."""
    poses, routed = trace.children.poses, trace.routed
    if routed.coupling is None:
        raise UserError("the spread of votes needs couplings; call the network with return_routing=True")
    batch = torch.arange(len(winners), device=winners.device)
    votes = cast_votes(poses, network.classes.weight)[batch, :, winners]
    means = routed.poses[batch, winners].unsqueeze(1)
    if isinstance(network.classes.routing, EMRotationRouting):  # there, votes of either sign agree
        votes = torch.where((votes * means).sum(-1, keepdim=True) < 0, -votes, votes)
    weights = routed.coupling[batch, :, winners] * trace.children.activations
    distances = (votes - means).square().mean(-1)
    return (weights * distances).sum(1) / weights.sum(1).clamp(min=1e-12)


def fit_calibration(judged: Judged) -> Calibration:
    """Groups of equal size by spread, whose errors do not fall as the spread grows."""
    count = len(judged.spreads)
    groups = max(1, min(_BINS, count // _FEWEST))
    order = judged.spreads.argsort()
    parts = torch.tensor_split(order, groups)
    edges = [float(judged.spreads[part[-1]]) for part in parts[:-1]]
    errors = [judged.errors[part].sort().values for part in parts]
    median = _rising([each.quantile(0.5) for each in errors])
    within = _rising([each[_place_within(len(each))] for each in errors])
    return Calibration(edges=tuple(edges), median=tuple(median), within=tuple(within), images=count)


def _rising(angles: list[Tensor]) -> list[float]:
    return torch.stack(angles).cummax(0).values.tolist()


def _place_within(count: int) -> int:
    """Which of the sorted errors of some images a share of 0.9 of new images stays within, on average.

    A new image is equally likely to come before, between or after them: the quantile of the images themselves
    would be too small.
    """
    return min(count, math.ceil(COVERED_SHARE * (count + 1))) - 1


def has_votes(run: Run) -> bool:
    """Whether the network of a run has class capsules that are voted for."""
    return isinstance(run.model, EMPoseNet)


def forgives_symmetries(run: Run) -> bool:
    """Whether the stated angles are those to the nearest rotation that looks the same."""
    loss = run.recipe.loss.task_loss
    return isinstance(loss, SpreadRotationLoss) and loss.knows_symmetries


@torch.no_grad()
def judge_run(run: Run, split: str, *, data_name: str | None = None, data_dir: Path | None = None) -> Judged:
    """Spreads and errors of a run on a split; known symmetries are forgiven."""
    network = run.model
    if not isinstance(network, EMPoseNet):
        raise UserError(f"{run.folder} has no votes, from whose spread uncertainty is read")
    examples, pipeline = load_split(run, split, data_name=data_name, data_dir=data_dir)
    spreads, errors = [], []
    for images, targets in examples.batches(_AT_ONCE):
        batch = pipeline.for_evaluation(images, targets)
        output = network(batch.inputs, return_routing=True)
        winners = output.activations.argmax(1)
        spreads.append(vote_spread(network, output.layers[0], winners))
        found, classes = rotations_of(output, winners), output.activations.shape[1]
        errors.append(symmetric_angle(run.recipe.loss.task_loss, found, targets, classes))
    return Judged(torch.cat(spreads).cpu(), torch.cat(errors).cpu())


def calibrate_run(run: Run, data_dir: Path | None = None) -> Calibration:
    """Calibrate a run on its validation images and keep the result in its folder."""
    found = replace(fit_calibration(judge_run(run, "validation", data_dir=data_dir)), epoch=run.epoch)
    write_json(run.folder / CALIBRATION_FILE, as_plain(found))
    return found


def read_calibration(run: Run) -> Calibration:
    """The calibration in the folder of a run."""
    found = _calibration_in(run)
    if found is None:
        raise MissingDataError(f"{run.folder} is not calibrated; torchcaps pose eval {run.folder} does it")
    return found


def _calibration_in(run: Run) -> Calibration | None:
    """The calibration in the folder of a run; None where there is none, or one of earlier weights."""
    path = run.folder / CALIBRATION_FILE
    if not path.is_file():
        return None
    found = build_dataclass(Calibration, read_json(path), str(path))
    if not len(found.median) == len(found.within) == len(found.edges) + 1:
        raise UserError(f"{path} is damaged; delete it and run torchcaps pose eval {run.folder}")
    return found if found.epoch in (None, run.epoch) else None


def known_calibration(run: Run, data_dir: Path | None = None) -> Calibration:
    """The calibration in the folder of a run, made now where there is none of its weights."""
    return _calibration_in(run) or calibrate_run(run, data_dir)


def coverage(calibration: Calibration, judged: Judged) -> float:
    """The share of images whose error is within the stated angle; 0.9 where the calibration holds."""
    limits = torch.tensor([calibration.at(float(spread))[1] for spread in judged.spreads])
    return float((judged.errors <= limits).float().mean())
