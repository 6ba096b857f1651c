"""How often a descriptor finds places again, on the views that its training was tested on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from torchcaps.core import Plain
from torchcaps.data import FOLDER_PREFIX, PlacePlan, SeasonStack, write_map_folder
from torchcaps.storage import checksum_of
from torchcaps.train import Run, evaluate_run, provenance
from torchcaps.zoo import WEIGHTS


def evaluate_descriptor(run: Run, stacks: Sequence[SeasonStack], plan: PlacePlan | None = None) -> Plain:
    """Loss and recall of a run on the test views of maps, with what these views are, as plain data.

    Views follow from maps and plan alone: those of a training are those that it was tested on. No path of
    this machine is in the result.

    Args:
        run: A network that describes images.
        stacks: The maps, with pixels as its training had them.
        plan: How many places and views; the eastern fifth of each map tests.
    """
    run.expect_task("retrieval")
    plan = plan or PlacePlan()
    with TemporaryDirectory() as folder:
        write_map_folder(Path(folder), stacks, plan)
        found = evaluate_run(run, data_name=f"{FOLDER_PREFIX}{folder}")
    del found["data"]  # a folder that is gone
    return {
        **found,
        "run": run.folder.name,
        "weights": checksum_of(run.folder / WEIGHTS),
        "places": found["images"] // plan.views,
        "plan": asdict(plan),
        "maps": [_described(stack) for stack in stacks],
        **provenance(run.device),
    }


def _described(stack: SeasonStack) -> Plain:
    """Which ground, dates and pixels a map has."""
    return {
        "dates": list(stack.names),
        "west": stack.west,
        "north": stack.north,
        "crs": stack.crs,
        "width": stack.width,
        "height": stack.height,
        "metres_per_pixel": stack.pixel,
        "pixels_sha256": hashlib.sha256(stack.images.tobytes()).hexdigest(),
    }
