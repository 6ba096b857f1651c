"""Training a descriptor on maps: season stacks in the folder of the run, the trainer, then the likelihood."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from torchcaps.core import UserError
from torchcaps.data import PlacePlan, SeasonStack, write_map_folder
from torchcaps.train import Machine, Recipe, TrainResult, Watcher, require_no_run, train
from torchcaps.zoo import find_run

from .describe import load_describer
from .matching import measure_matching

_MAPS, _PLAN = "maps", "places.json"  # the plan is written last


def train_descriptor(
    stacks: Sequence[SeasonStack],
    out: Path,
    recipe: Callable[[str], Recipe],
    *,
    plan: PlacePlan | None = None,
    machine: Machine | None = None,
    resume: bool = False,
    watcher: Watcher | None = None,
) -> TrainResult:
    """Train on the western part of each map, measure matches on the eastern fifth, return the result.

    Args:
        stacks: The maps, each on several dates and all with pixels of one size.
        out: Folder of the run; the maps are kept in it.
        recipe: Gives the recipe for the dataset of a name.
        plan: How many places and views.
        machine: Where to compute.
        resume: Go on with the run in `out`.
        watcher: Is told of the progress.
    """
    if len({stack.pixel for stack in stacks}) != 1:
        raise UserError(
            "all maps must be read at the same number of metres per pixel: give --metres-per-pixel"
        )
    machine = machine or Machine()
    folder = out / _MAPS
    if not resume:
        require_no_run(out, "continue it with --resume or choose another --out")
    if not (resume and (folder / _PLAN).is_file()):
        _check_alone(folder, len(stacks))
        write_map_folder(folder, stacks, plan or PlacePlan())
    result = train(
        recipe(f"folder:{folder}"), out, machine, resume=resume, watcher=watcher, find_start=find_run
    )
    device = "cpu" if machine.device in ("auto", "cpu") else machine.device
    matching = measure_matching(load_describer(out, device), stacks)
    matching.save(out)
    return result


def _check_alone(folder: Path, count: int) -> None:
    """Raise where maps lie in the folder that are not written anew: all that are there train."""
    own = {f"map-{number}.npz" for number in range(count)}
    others = sorted({path.name for path in folder.glob("*.npz")} - own)
    if others:
        raise UserError(
            f"{folder} holds {', '.join(others)} too, which would train: remove it or choose another --out"
        )
