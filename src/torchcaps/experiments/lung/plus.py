"""What may make a SegCaps better: other routings of the deepest level, deep supervision, a border loss."""

from __future__ import annotations

from pathlib import Path

from torchcaps.apps.lung.splits import share_name
from torchcaps.train import Machine, Watcher

from ..plan import Changes, Experiment, PlannedRun, Setting, register
from ..records import Budget
from .claims import CHAPTER, METRIC
from .runs import TINY, learn_prepared, phantom_folder, prepare_phantom

LABEL = "beyond:lung-plus"
BASELINE = "SegCaps R3"
_ADDED: dict[str, Changes] = {
    BASELINE: {},
    "EM routing in the deepest level": {"model.bottom_routing": "em"},
    "self-attention routing in the deepest level": {"model.bottom_routing": "self_attention"},
    "deep supervision": {"model.deep_supervision": True},
    "pixels at borders count five times": {"loss.border_weight": 4.0},
}
_PATIENTS: dict[Budget, int] = {"smoke": 3, "quick": 40, "full": 240}
_SMALL = {  # what two cores train in a minute
    "name": "segcaps_r3",
    "stem_pose": 8,
    "primary": [2, 8],
    "down": [[[2, 8], [2, 16]], [[4, 16], [4, 16]]],
    "bottom": [4, 16],
    "up": [[[4, 16], [2, 16]], [[2, 8], [2, 8]]],
    "last_up": [2, 8],
    "class_pose": 8,
}
_TINY: Changes = {**TINY, "model": {"name": "segcaps_tiny_test", "image_size": 32, "reconstruction": False}}


def learn_plus(run: PlannedRun, out: Path, machine: Machine, watcher: Watcher) -> None:
    """Train on regions of drawn patients and measure the Dice of the test patients."""
    prepare_phantom(run.folder(out).parent / "data", _PATIENTS[run.budget])
    learn_prepared(run, out, machine, watcher, lambda network: {})


def _data(budget: Budget) -> Changes:
    return {"data.name": f"folder:{phantom_folder(_PATIENTS[budget])}/splits/{share_name(1.0)}"}


def _setting(name: str) -> Setting:
    added = _ADDED[name]
    small = {"model": _SMALL, "batch_size": 8, "epochs": 6, "data.augment.crop": 64}
    return Setting(
        name=name if name == BASELINE else f"{BASELINE}, {name}",
        network=BASELINE,
        variant="as published" if name == BASELINE else name,
        recipe="lung/segcaps_r3",
        changes={**_data("full"), **added},
        budgets={
            "smoke": {**_TINY, **_data("smoke"), **added},
            "quick": {**small, **_data("quick"), **added},
        },
    )


register(
    Experiment(
        label=LABEL,
        chapter=CHAPTER,
        title="SegCaps with other routings of its deepest level, deep supervision and a border loss",
        data=(),
        gpu_minutes=90,
        seeds=3,
        metrics=("test_dice", METRIC, "region_dice_low", "region_dice_high", "missed_share"),
        settings=tuple(map(_setting, _ADDED)),
        perform=learn_plus,
        deviations=(
            "Not in the thesis. Regions of drawn patients, 40 epochs; every setting changes one thing.",
            "Quick: half of the width, 40 patients, 6 epochs of windows of 64 pixels, on two cores.",
        ),
    )
)
