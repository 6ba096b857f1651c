"""Chapter 4, the idea behind routing annealing: more iterations leave a capsule fewer parents."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from torchcaps.inspection import parent_shares
from torchcaps.routing import set_iterations
from torchcaps.train import Run, load_split
from torchcaps.viz import draw_coupling_fans, to_png

from ..plan import (
    Case,
    Claim,
    Experiment,
    Finding,
    Job,
    Mean,
    RowsOf,
    Setting,
    Verdict,
    decide_together,
    excess,
    register,
)
from ..records import Details, Rows, Series, details_of
from .runs import CHAPTER, SMOKE

LABEL = "fig:annealing"
_ITERATIONS = (1, 2, 3, 5, 10, 20, 50)
_FANS = (1, 3, 50)
_IMAGES = 1000
_FEW_PARENTS = 2.0  # at fifty iterations; with more, couplings have not gone to zero


def study_couplings(job: Job) -> None:
    """Train a network, then route the same images with more and more iterations."""
    network, trained = job.train_network()
    started = time.perf_counter()
    series = couplings_by_iterations(network, job.data_dir)
    metrics = {"parents": float(series["parents"][-1]), "largest_coupling": float(series["largest"][-1])}
    seconds = trained.seconds + round(time.perf_counter() - started, 3)
    outcome = replace(trained.with_metrics(metrics), seconds=seconds, details=Details(series=series))
    job.leave_result(outcome)


@torch.no_grad()
def couplings_by_iterations(run: Run, data_dir: Path | None) -> dict[str, Series]:
    """Couplings of the most active capsule of the first test image, and means over many, by iterations.

    `parents` is the exponential of the mean entropy: the number of equal parents that would leave a capsule
    as undecided.
    """
    data, pipeline = load_split(run, "test", data_dir=data_dir)
    inputs = pipeline.for_evaluation(data.images[:_IMAGES]).inputs
    children = run.model(inputs, return_routing=True).layers[-1].children
    chosen = int(children.activations[0].argmax())
    found = []
    for iterations in _ITERATIONS:
        set_iterations(run.model, iterations)
        shares = parent_shares(run.model.classes(children).coupling)  # type: ignore[operator]
        parents = torch.special.entr(shares).sum(-1).mean().exp()
        found.append((shares[0, chosen].tolist(), float(parents), float(shares.amax(-1).mean())))
    capsule, number, largest = (np.array(values).round(4) for values in zip(*found, strict=True))
    return {"at": np.array(_ITERATIONS), "capsule": capsule, "parents": number, "largest": largest}


def draw_couplings_of_one(rows: Rows) -> bytes:
    """Draw the couplings of the first seed as fans."""
    series = rows[0].runs[0].details.series
    couplings = dict(zip(series["at"].tolist(), series["capsule"].tolist(), strict=True))
    names = [str(number) for number in range(series["capsule"].shape[1])]
    return to_png(draw_coupling_fans(couplings, names, panels=_FANS))


def couplings_polarise(rows_of: RowsOf) -> Finding:
    """Couplings are an even split at one iteration, and leave few parents at many."""
    found = [details for of_setting in details_of(rows_of(LABEL)).values() for details in of_setting]
    if not found:
        return Finding("open", "no network has been trained")
    every = [details.series["parents"].tolist() for details in found]
    classes = found[0].series["capsule"].shape[1]
    falls = [
        abs(parents[0] - classes) < 1e-2 and parents == sorted(parents, reverse=True) for parents in every
    ]
    first, third, last = (float(np.mean([parents[at] for parents in every])) for at in (0, 2, -1))
    because = (
        f"{first:.1f} parents at one iteration, {third:.1f} at three, {last:.1f} at fifty, mean over "
        f"capsules and images, falling in {sum(falls)} of {len(falls)} networks"
    )
    fewer = excess(Mean.of_values([parents[-1] for parents in every]).times(-1), -_FEW_PARENTS)
    fall: Verdict = "confirmed" if all(falls) else "open" if any(falls) else "not confirmed"
    cases: dict[str, Case | Verdict] = {"the fall": fall, "the parents at fifty": Case(fewer)}
    return decide_together(cases, len(cases), because)


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
            "quick": {"patience": 3, "epochs": 15},
        },
        settings=(Setting(name="minimal network, trained with 3", recipe="mnist/dr_capsnet_minimal"),),
        perform=study_couplings,
        draw=draw_couplings_of_one,
        claims=(
            Claim(
                "With one iteration all couplings are equal; as iterations are added some survive and the "
                "others go to zero, by our rule to fewer than two parents at fifty.",
                couplings_polarise,
            ),
        ),
        deviations=("The thesis draws a sketch; this is a trained network and a test image.",),
    )
)
