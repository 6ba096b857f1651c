"""The experiments of the chapter on flights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from torchcaps.storage import read_json, write_json
from torchcaps.train import Machine, Watcher

from ..plan import Changes, Claim, Experiment, PlannedRun, register
from ..records import Budget
from . import claims
from .claims import (
    BASELINES,
    CHAPTER,
    DRAWN,
    FIGURE,
    HEADS,
    LIKELIHOODS,
    ROUTING,
    STORAGE,
    TABLE,
    TERRAIN,
    draw_curves,
    name_of,
)
from .setting import LEARNT, FlightSetting, Kind, localize_flights
from .world import APART

METRICS = (
    "converged_share",
    "updates_to_convergence",
    "converged_error",
    "found_share",
    "final_error",
    "inside_95_share",
    "test_recall_at_1",
    "update_ms",
    "map_mb",
)
_THESIS = {  # probability of convergence in percent, updates to it, error after it in metres
    "Caps, D=8, linear": (87.5, 60.9, 15.7),
    "Caps, D=16, linear": (87.5, 56.3, 13.3),
    "Caps, D=32, linear": (87.5, 58.9, 13.9),
    "FCN, D=8, linear": (75.0, 65.2, 21.1),
    "FCN, D=16, linear": (87.5, 61.1, 13.9),
    "FCN, D=32, linear": (87.5, 63.1, 12.9),
    "FCN, D=128, linear": (87.5, 62.3, 11.2),
    "Caps, D=8, bayesian": (100.0, 44.4, 18.3),
    "Caps, D=16, bayesian": (100.0, 35.2, 12.8),
    "Caps, D=32, bayesian": (100.0, 30.8, 15.0),
    "FCN, D=8, bayesian": (87.5, 43.0, 18.7),
    "FCN, D=16, bayesian": (100.0, 36.1, 14.6),
    "FCN, D=32, bayesian": (100.0, 33.2, 15.7),
    "FCN, D=128, bayesian": (100.0, 23.2, 12.6),
    "BRM, linear": (0.0,),
    "BRM, bayesian": (0.0,),
    "abBRIEF, linear": (62.5, 63.8, 4112.2),
    "abBRIEF, bayesian": (0.0,),
}
_LEARNING: Changes = {
    "data.name": f"folder:{LEARNT}",
    "data.validation": 0.15,
    "select_by": "recall_at_1",
    "optim.schedule": "cosine",
    "optim.floor": 1e-5,
}
_TRUNK_WIDTHS = [12, 8, 8, 32, 16, 16, 64]
_SMALL_HEADS: Mapping[str, Changes] = {
    "capsules": {"model.primary_types": 4, "model.primary_pose": 8, "model.capsules": 16, "model.pose": 8},
    "fcn": {"model.hidden": 128},
}
_BUDGETS: Mapping[Budget, Changes] = {
    "smoke": {"batch_size": 8, "data.images_per_place": 2, "epochs": 1, "select_by": "loss"},
    "quick": {"epochs": 12, "optim.learning_rate": 1e-3},
    "full": {"epochs": 60, "optim.learning_rate": 1e-4},
}


def _sides(pixels: int) -> Changes:
    return {"model.image_size": pixels, "data.preprocess.resize": pixels}


def _tiny(head: str, size: int) -> Changes:
    name = "descriptor_capsules_tiny_test" if head == "capsules" else "descriptor_tiny_test"
    return {"model": {"name": name, "image_size": 16, "descriptor": size}, "data.preprocess.resize": 16}


def _network(head: str, size: int, likelihood: str, **changes: object) -> FlightSetting:
    name = name_of(head, size, likelihood)
    figures = zip(METRICS, _THESIS.get(name, ()), strict=False)
    small = {"model.trunk": "resnet_tiny", "model.trunk_widths": _TRUNK_WIDTHS, **_SMALL_HEADS[head]}
    setting = FlightSetting(
        name=name,
        network=f"{HEADS[head]}, D={size}",
        variant=likelihood,
        recipe=f"retrieval/uav_{head}",
        changes={"model.descriptor": size, **_LEARNING, **_sides(64)},
        budgets={"smoke": _tiny(head, size), "quick": {**_sides(32), **small, "data.augment.motion_blur": 2}},
        thesis=dict(figures),
        likelihood=likelihood,
    )
    return replace(setting, **changes)  # type: ignore[arg-type]  # fields by their names


def _baseline(name: str) -> FlightSetting:
    title, _, likelihood = name.partition(", ")
    kinds: dict[str, Kind] = {"abBRIEF": "abbrief", "BRM": "building ratio", "odometry alone": "odometry"}
    return FlightSetting(
        name=name,
        network=title,
        variant=likelihood,
        recipe="retrieval/uav_capsules",
        changes=_sides(64),
        budgets={"smoke": _sides(16), "quick": _sides(32)},
        thesis=dict(zip(METRICS, _THESIS.get(name, ()), strict=False)),
        note="nothing is trained",
        kind=kinds[title],
        likelihood=likelihood or "bayesian",
        storage="int8",
    )


_NETWORKS = tuple(
    _network(head, size, likelihood)
    for size in (16, 8, 32, 128)
    for head in HEADS
    for likelihood in LIKELIHOODS
)
_FLIGHT_DEVIATIONS = (
    APART["naip"],
    "The thesis flew 8 real flights over Sweden, with maps of 1 m per pixel; ours are simulated over an "
    "orthophoto of North Dakota with 5 m per pixel (10 m in the quick budget), with the thesis's noise of "
    "odometry and compass. Figures cannot be compared, claims about their order can.",
    "A crop shows 320 m of ground, not 100 m: fields there are hundreds of metres wide. Trunks start from "
    "random weights, the thesis's from Places365.",
    "The quick budget has a small trunk, cells of 40 m and 24 headings; the full budget ResNet-50, cells of "
    "20 m and 36 headings. The thesis has cells of 10 m and 60 headings.",
    "The epoch with the best validation recall is kept; the thesis keeps that of the lowest loss. The mean "
    "over costly triplets rises while fewer triplets cost something.",
    "A flight is found where it converges and its last error is below 100 m. Errors after convergence are "
    "means over the flights that converge.",
    "abBRIEF and building ratios are our readings of their papers; buildings are found by colours. The "
    "thesis weighs abBRIEF as its authors do (Mantelli), our row beside it is linear.",
)
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
        budgets=_BUDGETS,
        perform=localize_flights,
        settings=(*map(_baseline, BASELINES), *_NETWORKS),
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
                claims.is_calibrated(TABLE, [name_of(head, 16, "bayesian") for head in HEADS]),
            ),
        ),
        deviations=_FLIGHT_DEVIATIONS,
    )
)


def take_over(run: PlannedRun, out: Path, machine: Machine, watcher: Watcher) -> None:
    """Copy the result of the table's run, which is made first where it is not there."""
    from ..plan import EXPERIMENTS

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
        budgets=_BUDGETS,
        perform=take_over,
        settings=tuple(
            replace(setting, thesis={}, reuses=setting.name)
            for setting in (*map(_baseline, BASELINES), *_NETWORKS)
            if setting.name in DRAWN
        ),
        draw=draw_curves,
        deviations=(
            f"The flights are those of {TABLE}. The thesis draws each of its 8 flights; ours are medians.",
            *_FLIGHT_DEVIATIONS,
        ),
    )
)
_CODED = "D=128 as 16 bytes"
register(
    Experiment(
        label=STORAGE,
        chapter=CHAPTER,
        title="Maps of long descriptors in few bytes",
        data=(),
        gpu_minutes=10,
        seeds=3,
        at_once=1,
        metrics=METRICS,
        budgets=_BUDGETS,
        perform=localize_flights,
        settings=(
            _network("fcn", 128, "bayesian", name=_CODED, storage="product", thesis={}),
            _network("fcn", 128, "bayesian", name="D=128 as int8", thesis={}),
            _network("fcn", 16, "bayesian", name="D=16 as int8", thesis={}),
            _network("fcn", 16, "bayesian", name="D=16 as float32", storage="float32", thesis={}),
        ),
        claims=(
            Claim(
                "D=128 in 16 bytes converges sooner than D=16 in as many.",
                claims.fewer(STORAGE, "updates_to_convergence", _CODED, "D=16 as int8"),
            ),
            Claim(
                "D=128 in 16 bytes is calibrated: the truth lies inside the 95 % region.",
                claims.is_calibrated(STORAGE, [_CODED]),
            ),
        ),
        deviations=("Not in the thesis. Networks with the FCN head.", *_FLIGHT_DEVIATIONS),
    )
)
register(
    Experiment(
        label=TERRAIN,
        chapter=CHAPTER,
        title="Convergence of flights over a drawn terrain in another season",
        data=(),
        gpu_minutes=20,
        seeds=3,
        at_once=1,
        metrics=METRICS,
        budgets=_BUDGETS,
        perform=localize_flights,
        settings=tuple(
            replace(setting, ground="terrain", thesis={})
            for setting in (
                *(_baseline(name) for name in BASELINES if "linear" not in name),
                *(_network(head, 16, likelihood) for head in HEADS for likelihood in LIKELIHOODS),
            )
        ),
        draw=draw_curves,
        claims=(
            Claim(
                "Both heads find more flights than the baselines.",
                claims.finds_more(
                    TERRAIN,
                    [name_of(head, 16, "bayesian") for head in HEADS],
                    [name for name in BASELINES if "linear" not in name],
                ),
            ),
        ),
        deviations=("Not in the thesis.", APART["terrain"], *_FLIGHT_DEVIATIONS[2:]),
    )
)


def _routed(name: str, changes: Changes) -> FlightSetting:
    setting = _network("capsules", 16, "bayesian", name=name, variant=name, thesis={})
    return replace(setting, changes={**setting.changes, **changes})


register(
    Experiment(
        label=ROUTING,
        chapter=CHAPTER,
        title="Routing annealing of the capsule head",
        data=(),
        gpu_minutes=40,
        seeds=3,
        at_once=1,
        metrics=METRICS,
        budgets=_BUDGETS,
        perform=localize_flights,
        settings=(
            _routed("three rounds", {}),
            _routed("annealed", {"annealing": {"r0": 1, "r_max": 5, "step": 1, "patience": 3}}),
        ),
        claims=(
            Claim(
                "Routing annealing makes flights converge sooner than three rounds.",
                claims.fewer(ROUTING, "updates_to_convergence", "annealed", "three rounds"),
            ),
        ),
        deviations=(
            "Not in the thesis.",
            "REM has no row: it cuts weights that the validation loss does not miss. Descriptors that are all "
            "the same cost the margin, about as much as early networks do, and a smoke run ended with such.",
            *_FLIGHT_DEVIATIONS,
        ),
    )
)
