"""Chapter 4, the idea behind routing annealing: more iterations leave a capsule fewer parents."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torchcaps.inspection import parent_shares
from torchcaps.train import Machine, Run, Watcher, load_run, load_split, train
from torchcaps.train.annealing import set_iterations
from torchcaps.train.session import launch
from torchcaps.viz import draw_coupling_fans, to_png

from ..plan import Claim, Experiment, Finding, PlannedRun, Rows, RowsOf, Setting, leave_result, register
from .runs import CHAPTER, SMOKE

LABEL = "fig:annealing"
_ITERATIONS = (1, 2, 3, 5, 10, 20, 50)
_FANS = (1, 3, 50)
_IMAGES = 1000


def study_couplings(run: PlannedRun, folder: Path, machine: Machine, watcher: Watcher) -> dict[str, Any]:
    """Train a network, then route the same images with more and more iterations."""
    trained = train(run.recipe, folder / "training", machine, resume=True, watcher=watcher)
    device = launch(machine).device
    started = time.perf_counter()
    curve = couplings_by_iterations(load_run(folder / "training", device), machine.data_dir)
    metrics = {"parents": curve["parents"][-1], "largest_coupling": curve["largest"][-1]}
    result = {
        "metrics": {**trained["metrics"], **metrics},
        "curve": curve,
        "seconds": trained["seconds"] + round(time.perf_counter() - started, 3),
        **{key: trained[key] for key in ("parameters", "precision")},
    }
    return leave_result(run, folder, device, result=result)


@torch.no_grad()
def couplings_by_iterations(run: Run, data_dir: Path | None) -> dict[str, list[Any]]:
    """Couplings of the most active capsule of the first test image, and means over many, by iterations.

    `parents` is the exponential of the mean entropy: the number of equal parents that would leave a capsule
    as undecided.
    """
    device = next(run.model.parameters()).device
    data, pipeline = load_split(run.recipe.data, "test", data_dir, device)
    _, inputs = pipeline.for_evaluation(data.images[:_IMAGES])
    children = run.model(inputs, return_routing=True).layers[-1].children
    chosen = int(children.activations[0].argmax())
    curve: dict[str, list[Any]] = {"at": [], "capsule": [], "parents": [], "largest": []}
    for iterations in _ITERATIONS:
        set_iterations(run.model, iterations)
        shares = parent_shares(run.model.classes(children).coupling)  # type: ignore[operator]
        curve["at"].append(iterations)
        curve["capsule"].append(_rounded(shares[0, chosen]))
        curve["parents"].append(round(float(torch.special.entr(shares).sum(-1).mean().exp()), 4))
        curve["largest"].append(round(float(shares.amax(-1).mean()), 4))
    return curve


def _rounded(values: Tensor) -> list[float]:
    return [round(value, 4) for value in values.tolist()]


def draw_couplings_of_one(rows: Rows, path: Path) -> None:
    """The fans of the first seed."""
    curve = rows[0]["runs"][0]["curve"]
    couplings = dict(zip(curve["at"], curve["capsule"], strict=True))
    names = [str(number) for number in range(len(curve["capsule"][0]))]
    path.write_bytes(to_png(draw_coupling_fans(couplings, names, panels=_FANS)))


def couplings_polarise(rows_of: RowsOf) -> Finding:
    """An even split at one iteration, few parents at many."""
    runs = [run for row in rows_of(LABEL) for run in row["runs"] if "curve" in run]
    if not runs:
        return Finding("open", "no network has been trained")
    parents = runs[0]["curve"]["parents"]
    classes = len(runs[0]["curve"]["capsule"][0])
    is_so = abs(parents[0] - classes) < 1e-2 and parents == sorted(parents, reverse=True)
    because = (
        f"{parents[0]:.1f} parents at one iteration, {parents[2]:.1f} at three, {parents[-1]:.1f} at fifty"
    )
    return Finding("confirmed" if is_so else "not confirmed", f"{because}, mean over capsules and images")


register(
    Experiment(
        label=LABEL,
        chapter=CHAPTER,
        title="Coupling of one primary capsule to the classes as iterations are added",
        data=("mnist",),
        gpu_minutes=2,
        seeds=3,
        metrics=("parents", "largest_coupling", "test_accuracy"),
        budgets={
            "smoke": SMOKE,
            "quick": ("patience=3", "epochs=15"),
        },
        settings=(Setting(name="minimal network, trained with 3", recipe="mnist/dr_capsnet_minimal"),),
        perform=study_couplings,
        draw=draw_couplings_of_one,
        claims=(
            Claim(
                "With one iteration all couplings are equal; as iterations are added some survive and the "
                "others go to zero.",
                couplings_polarise,
            ),
        ),
        deviations=("The thesis draws a sketch; this is a trained network and a test image.",),
    )
)
