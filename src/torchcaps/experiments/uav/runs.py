"""The table of the chapter on flights and its figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torchcaps.storage import read_json, write_json
from torchcaps.train import Machine, Watcher

from ..plan import EXPERIMENTS, Claim, Experiment, PlannedRun, register
from . import claims
from .claims import BASELINES, CHAPTER, DRAWN, FIGURE, HEADS, TABLE, draw_curves, name_of
from .designs import BUDGETS, DEVIATIONS, METRICS, NETWORKS, baseline_setting
from .setting import localize_flights

register(
    Experiment(
        label=TABLE,
        chapter=CHAPTER,
        title="Convergence of flights with networks, likelihoods and baselines",
        data=(),
        gpu_minutes=150,
        seeds=3,
        at_once=1,  # settings share networks and maps
        metrics=METRICS,
        budgets=BUDGETS,
        perform=localize_flights,
        settings=(*map(baseline_setting, BASELINES), *NETWORKS),
        draw=draw_curves,
        claims=(
            Claim(
                "Flights converge sooner with the Bayesian likelihood than with the linear one.",
                claims.bayesian_is_faster(),
            ),
            Claim(
                "The likelihood matters for the time to convergence.",
                claims.matters("updates to convergence", "likelihood"),
            ),
            *(
                Claim(f"{words} for the error after convergence.", claims.matters("converged error", effect))
                for words, effect in (
                    ("The dimension of the descriptor matters", "dimension"),
                    ("The head of the network matters", "head"),
                    ("The likelihood matters", "likelihood"),
                    ("Dimension and head together matter", "dimension and head"),
                    ("Dimension and likelihood together matter", "dimension and likelihood"),
                )
            ),
            Claim(
                "Larger descriptors converge sooner (FCN, D=128 and D=8).",
                claims.fewer(
                    TABLE,
                    "updates_to_convergence",
                    name_of("fcn", 128, "bayesian"),
                    name_of("fcn", 8, "bayesian"),
                    is_ours=False,
                ),
            ),
            Claim(
                "Both heads find more flights than the baselines.",
                claims.finds_more(
                    TABLE,
                    [name_of(head, 16, "bayesian") for head in HEADS],
                    BASELINES,
                    is_ours=False,
                ),
            ),
            Claim(
                "The truth lies inside the 95 % region in more than 95 % of the updates after convergence.",
                claims.holds_the_truth(TABLE, [name_of(head, 16, "bayesian") for head in HEADS]),
            ),
        ),
        deviations=DEVIATIONS,
    )
)


def take_over(run: PlannedRun, out: Path, machine: Machine, watcher: Watcher) -> None:
    """Copy the result of the table's run, which is made first where it is not there."""
    source = replace(run, experiment=EXPERIMENTS[TABLE], setting=replace(run.setting, reuses=""))
    if not (source.folder(out) / "result.json").is_file():
        localize_flights(source, out, machine, watcher)
    write_json(run.folder(out) / "result.json", read_json(source.folder(out) / "result.json"))


register(
    Experiment(
        label=FIGURE,
        chapter=CHAPTER,
        title="Error and spread of the belief along flights",
        data=(),
        gpu_minutes=1,
        seeds=3,
        at_once=1,
        metrics=("final_error",),
        budgets=BUDGETS,
        perform=take_over,
        settings=tuple(
            replace(setting, thesis={}, reuses=setting.name)
            for setting in (*map(baseline_setting, BASELINES), *NETWORKS)
            if setting.name in DRAWN
        ),
        draw=draw_curves,
        deviations=(
            f"The flights are those of {TABLE}. The thesis draws each of its 8 flights; ours are medians.",
            *DEVIATIONS,
        ),
    )
)
