"""Experiments on flights that go beyond the thesis: bytes of a map, a drawn terrain, routing, steps."""

from __future__ import annotations

from dataclasses import replace

from ..plan import Changes, our_claim, register
from . import claims
from .claims import (
    BASELINES,
    HEADS,
    LIKELIHOODS,
    ROUTING,
    STEPS,
    STORAGE,
    TERRAIN,
    name_of,
)
from .designs import DEVIATIONS, METRICS, baseline_setting, network_setting, over_maps
from .figure import draw_curves
from .setting import FlightSetting
from .world import APART

_CODED = "D=128 as 16 bytes"
_STEPS = (50.0, 100.0, 160.0, 320.0)  # metres
register(
    over_maps(
        label=STORAGE,
        title="Maps of long descriptors in few bytes",
        gpu_minutes=17,
        settings=(
            network_setting("fcn", 128, "bayesian", name=_CODED, storage="product"),
            network_setting("fcn", 128, "bayesian", name="D=128 as int8"),
            network_setting("fcn", 16, "bayesian", name="D=16 as int8"),
            network_setting("fcn", 16, "bayesian", name="D=16 as float32", storage="float32"),
        ),
        claims=(
            our_claim(
                "D=128 in 16 bytes converges sooner than D=16 in as many.",
                claims.fewer_updates(STORAGE, _CODED, "D=16 as int8"),
            ),
            our_claim(
                "With D=128 in 16 bytes the truth lies inside the 95 % region in over 95 % of the updates.",
                claims.holds_the_truth(STORAGE, [_CODED]),
            ),
        ),
        deviations=("Not in the thesis. Networks with the FCN head.", *DEVIATIONS),
    )
)
register(
    over_maps(
        label=TERRAIN,
        title="Convergence of flights over a drawn terrain in another season",
        gpu_minutes=33,
        settings=tuple(
            replace(setting, ground="terrain")
            for setting in (
                *(baseline_setting(name) for name in BASELINES if "linear" not in name),
                *(network_setting(head, 16, likelihood) for head in HEADS for likelihood in LIKELIHOODS),
            )
        ),
        draw=draw_curves,
        claims=(
            our_claim(
                "Both heads find more flights than the baselines.",
                claims.finds_more(
                    TERRAIN,
                    [name_of(head, 16, "bayesian") for head in HEADS],
                    [name for name in BASELINES if "linear" not in name],
                ),
            ),
        ),
        deviations=("Not in the thesis.", APART["terrain"], *DEVIATIONS[2:]),
    )
)


# the cut is judged by the recall, and only once there is some
_REM: Changes = {
    "strength": 1e-4,
    "decay": 0.99,
    "judge": "metric",
    "min_metric": 0.4,
    "tolerance": 0.01,
    "search_images": 300,
}


def _routed(name: str, changes: Changes) -> FlightSetting:
    setting = network_setting("capsules", 16, "bayesian", name=name, variant=name)
    return replace(setting, changes={**setting.changes, **changes})


register(
    over_maps(
        label=ROUTING,
        title="Routing annealing and REM of the capsule head",
        gpu_minutes=100,
        settings=(
            _routed("three rounds", {}),
            _routed("annealed", {"annealing": {"r0": 1, "r_max": 5, "step": 1, "patience": 3}}),
            _routed("REM", {"pruning": _REM}),
        ),
        metrics=(*METRICS, "sparsity", "parameters_left"),
        claims=(
            our_claim(
                "Routing annealing makes flights converge sooner than three rounds.",
                claims.fewer_updates(ROUTING, "annealed", "three rounds"),
            ),
            our_claim(
                "With the weights that REM leaves, flights converge at most one update later than with all "
                "of them.",
                claims.fewer_updates(ROUTING, "REM", "three rounds", late=1.0),
            ),
        ),
        deviations=(
            "Not in the thesis.",
            "REM cuts what the validation recall does not miss, not what the loss does not miss: "
            "descriptors that are all the same cost the margin, about what trained networks cost, because "
            "the loss is a mean over the triplets that still cost something. It searches on 300 images.",
            *DEVIATIONS,
        ),
    )
)


def _stepped(metres: float) -> FlightSetting:
    return network_setting("fcn", 128, "bayesian", name=f"{metres:g} m", step=metres)


register(
    over_maps(
        label=STEPS,
        title="Updates after shorter and longer ways, with crops of 320 m",
        gpu_minutes=8,
        settings=tuple(map(_stepped, _STEPS)),
        claims=(
            our_claim(
                "However much crops overlap, the 95 % region holds the truth in over 95 % of the updates.",
                claims.holds_the_truth(STEPS, [f"{metres:g} m" for metres in _STEPS]),
            ),
        ),
        deviations=(
            "Not in the thesis. Networks with the FCN head, D=128.",
            "The claim was made after a look at flights of another network. Short steps once lost many "
            "flights, and overlapping crops were blamed: the filter moved its belief by whole cells.",
            *DEVIATIONS,
        ),
    )
)
