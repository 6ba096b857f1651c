"""What stands in the `result.json` of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NotRequired, TypedDict

from torchcaps.core import Plain, UserError
from torchcaps.storage import read_mapping

from .provenance import Provenance, RunPart


class Whereabouts(TypedDict, total=False):
    """Where each part was trained, of a run that was stopped and went on elsewhere."""

    parts: list[RunPart]


class TrainResult(Provenance, Whereabouts):
    """The result of a training, as `result.json` holds it.

    Attributes:
        metrics: Those of the test images, of the kept weights on the validation images, and of techniques.
        annealing: Each number of iterations that was tried, where a run anneals.
        seconds: Of all epochs, without the test.
        devices: Processes that shared each batch.
    """

    recipe: Plain
    metrics: dict[str, Any]
    annealing: NotRequired[list[Plain]]
    parameters: int
    seed: int
    seconds: float
    precision: str
    devices: int


class Operations(TypedDict):
    """Multiply-adds of a trunk before and after its channels were removed."""

    before: int
    after: int


class PruneResult(Provenance):
    """The result of a search for channels to remove, as `result.json` holds it.

    Attributes:
        pruning: The settings of the search.
        search: The widths that were chosen, how they were drawn, and the score of each candidate.
    """

    recipe: Plain
    metrics: dict[str, float]
    pruning: Plain
    search: Plain
    macs: Operations
    parameters: int
    seed: int
    seconds: float
    precision: str


TRAINED = "trained.json"  # in a shrunk run: the result of the training that gave its network


def read_result(out: Path, *keys: str, file: str = "result.json") -> dict[str, Any]:
    """The content of result.json, which must have `keys`; "metrics.epochs" is a key inside a group.

    Args:
        out: Folder of the run.
        keys: What has to be there.
        file: Another file with a result in it.
    """
    path = out / file
    result = read_mapping(path)
    for key in keys:
        group, _, name = key.rpartition(".")
        place = result.get(group) if group else result
        if not isinstance(place, dict) or name not in place:
            raise UserError(f"{path} is damaged (no {key}); delete it and call the same command again")
    return result
