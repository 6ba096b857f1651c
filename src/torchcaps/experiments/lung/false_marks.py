"""What regions without a nodule change: the marks of a network beside the nodules of whole scans."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial

from torchcaps.apps.lung import evaluate_scans
from torchcaps.apps.lung.nodules import find_nodules
from torchcaps.apps.lung.phantom import Protocol, draw_patient, patient_name, read_patient, scan_patient
from torchcaps.apps.lung.prepare import Marked, split_patients
from torchcaps.train import Run

from ..plan import Changes, Job, Setting, register
from ..records import Budget
from .runs import TINY, learn_prepared, on_nodules, phantom_data, prepare_phantom

LABEL = "beyond:lung-negatives"
_SMALL: Changes = {
    "model": {"name": "unet_3", "base_width": 8},
    "batch_size": 4,
    "optim.learning_rate": 3e-3,
    "data.augment.crop": 96,  # a window that still shows the nodule
}
_NEGATIVES = {"regions with a nodule": 0.0, "as many without one": 1.0}
_PATIENTS: dict[Budget, int] = {"smoke": 3, "quick": 40, "full": 240}
_EPOCHS: dict[Budget, int] = {"smoke": 1, "quick": 12, "full": 40}
_SCANS: dict[Budget, Protocol] = {
    "smoke": Protocol(size=64, slices=8),
    "quick": Protocol(slices=8),
    "full": Protocol(slices=60),
}


def learn_and_scan(job: Job) -> None:
    """Train with or without regions that show no nodule, then segment whole scans of the test patients."""
    run = job.run
    prepare_phantom(job.folder.parent / "data", _PATIENTS[run.budget], _NEGATIVES[run.setting.variant])
    network, outcome = learn_prepared(job)
    job.leave_result(outcome.with_metrics(_marks(run.budget, network)))


def _marks(budget: Budget, network: Run) -> dict[str, float]:
    names = split_patients(map(patient_name, range(_PATIENTS[budget]))).test
    found = evaluate_scans(network, {name: partial(_scan, name, budget) for name in names})
    return {"false_marks": found["false_marks"]["mean"], "found_nodules_share": found["sensitivity"]["mean"]}


def _scan(name: str, budget: Budget) -> Iterator[Marked]:
    yield _draw_scan(int(name.rpartition("-")[2]), budget)


@lru_cache(maxsize=32)  # runs of one process look at the same scans
def _draw_scan(number: int, budget: Budget) -> Marked:
    protocol = _SCANS[budget]
    patient = draw_patient(number, 0, reach=protocol.reach)
    volume = scan_patient(patient, protocol, patient.name)
    return Marked(volume, find_nodules(read_patient(patient, protocol, patient.name), volume))


def _changes(budget: Budget, negatives: float) -> Changes:
    """As many steps with twice the regions."""
    epochs = max(1, round(_EPOCHS[budget] / (1 + negatives)))
    return {"data.name": phantom_data(_PATIENTS[budget], negatives), "epochs": epochs}


def _setting(variant: str) -> Setting:
    negatives = _NEGATIVES[variant]
    return Setting(
        name=f"U-Net 3, {variant}",
        network="U-Net 3",
        variant=variant,
        recipe="lung/unet_3",
        changes=_changes("full", negatives),
        budgets={
            "smoke": {**TINY, **_changes("smoke", negatives)},
            "quick": {**_SMALL, **_changes("quick", negatives)},
        },
    )


register(
    on_nodules(
        label=LABEL,
        title="False marks in whole scans after learning from regions with and without a nodule",
        gpu_minutes=30,
        metrics=("region_dice", "missed_share", "found_nodules_share", "false_marks"),
        settings=tuple(map(_setting, _NEGATIVES)),
        perform=learn_and_scan,
        deviations=(
            "Not in the thesis. Drawn patients; a nodule is found where one of its voxels is marked, and a "
            "mark that touches no nodule is false.",
            "Regions without a nodule show vessels, scars and walls. All runs take the same number of steps.",
            "Quick: an eighth of the width, 40 patients, windows of 96 pixels, scans of 8 slices. "
            "Full: the published width, 240 patients, scans of 60 slices.",
        ),
    )
)
