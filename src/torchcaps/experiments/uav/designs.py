"""The designs of the chapter on flights: networks, budgets, baselines, and what the thesis prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from ..plan import Changes, Experiment
from ..records import Budget
from .claims import BASELINES, CHAPTER, HEADS, LIKELIHOODS, name_of
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
BUDGETS: Mapping[Budget, Changes] = {
    "smoke": {
        "batch_size": 8,
        "data.images_per_place": 2,
        "epochs": 1,
        "select_by": "loss",
        "optim.learning_rate": 1e-3,
    },
    "quick": {"epochs": 12, "optim.learning_rate": 1e-3},
    "full": {"epochs": 60, "optim.learning_rate": 1e-4},
}


over_maps = partial(
    Experiment,
    chapter=CHAPTER,
    data=(),
    seeds=5,
    at_once=1,  # settings share networks and maps
    metrics=METRICS,
    budgets=BUDGETS,
    perform=localize_flights,
)


def _sides(pixels: int) -> Changes:
    return {"model.image_size": pixels, "data.preprocess.resize": pixels}


def _tiny(head: str, size: int) -> Changes:
    name = "descriptor_capsules_tiny_test" if head == "capsules" else "descriptor_tiny_test"
    return {"model": {"name": name, "image_size": 16, "descriptor": size}, "data.preprocess.resize": 16}


def network_setting(head: str, size: int, likelihood: str, **changes: object) -> FlightSetting:
    """A network with a likelihood on the real map; `changes` are of fields of the setting."""
    small = {"model.trunk": "resnet_tiny", "model.trunk_widths": _TRUNK_WIDTHS, **_SMALL_HEADS[head]}
    setting = FlightSetting(
        name=name_of(head, size, likelihood),
        network=f"{HEADS[head]}, D={size}",
        variant=likelihood,
        recipe=f"retrieval/uav_{head}",
        changes={"model.descriptor": size, **_LEARNING, **_sides(64)},
        budgets={"smoke": _tiny(head, size), "quick": {**_sides(32), **small, "data.augment.motion_blur": 2}},
        likelihood=likelihood,
    )
    return replace(setting, **changes)  # type: ignore[arg-type]  # fields by their names


def baseline_setting(name: str) -> FlightSetting:
    """A method that learns nothing, by its name in `BASELINES`."""
    title, _, likelihood = name.partition(", ")
    kinds: dict[str, Kind] = {"abBRIEF": "abbrief", "BRM": "building ratio", "odometry alone": "odometry"}
    return FlightSetting(
        name=name,
        network=title,
        variant=likelihood,
        recipe="retrieval/uav_capsules",
        changes=_sides(64),
        budgets={"smoke": _sides(16), "quick": _sides(32)},
        note="nothing is trained",
        kind=kinds[title],
        likelihood=likelihood or "bayesian",
        storage="int8",
    )


_NETWORKS = (
    network_setting(head, size, likelihood)
    for size in (16, 8, 32, 128)
    for head in HEADS
    for likelihood in LIKELIHOODS
)
OF_TABLE = tuple(  # with the figures that the thesis prints
    replace(setting, thesis=dict(zip(METRICS, _THESIS.get(setting.name, ()), strict=False)))
    for setting in (*map(baseline_setting, BASELINES), *_NETWORKS)
)
DEVIATIONS = (
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
    "An update comes every 160 m, half a crop, as the thesis's every 50 m with crops of 100 m; "
    "beyond:uav-steps tells what happens with crops that overlap more and less.",
    "The step was chosen after a look at flights of the table, while the filter still moved its belief by "
    "whole cells: with updates every 50 m it was often sure of a wrong place.",
    "Courses turn at the border of the map, and the filter takes the vehicle to stay inside: over a way of "
    "8 km this alone narrows a belief, as the row of odometry alone shows.",
    "The spread of a belief, which has to be below 100 m, is the root mean square distance from its mean. "
    "The thesis calls its own the weighted standard deviation of these distances; taken literally, that is "
    "less than half of ours for a round normal belief.",
    "A flight is found where it converges and its last error is below 100 m. Errors after convergence are "
    "means over all updates from the first converged one on, and over the flights that converge.",
    "Networks see 600 places with 12 views each in 12 epochs, at a rate of 1e-3 that falls along a cosine; "
    "in the full budget 2,250 places with 18 views in 60 epochs, at 1e-4. The thesis generates 45,000 "
    "samples, each a place with 5 images, in each of 500 epochs, and has a rate of 1e-6.",
    "abBRIEF and building ratios are our readings of their papers; buildings are found by colours. The "
    "thesis weighs abBRIEF as its authors do (Mantelli), our row beside it is linear.",
)
