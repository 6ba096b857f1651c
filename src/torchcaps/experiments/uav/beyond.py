"""Experiments on flights that go beyond the thesis: bytes of a map, a drawn terrain, routing, steps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..plan import Changes, Claim, Experiment, register
from . import claims
from .claims import (
    BASELINES,
    CHAPTER,
    HEADS,
    LIKELIHOODS,
    ROUTING,
    STEPS,
    STORAGE,
    TERRAIN,
    draw_curves,
    name_of,
)
from .designs import BUDGETS, DEVIATIONS, METRICS, baseline_setting, network_setting
from .setting import FlightSetting, localize_flights
from .world import APART

_CODED = "D=128 as 16 bytes"
_over_maps = partial(
    Experiment,
    chapter=CHAPTER,
    data=(),
    seeds=3,
    at_once=1,
    metrics=METRICS,
    budgets=BUDGETS,
    perform=localize_flights,
)
register(
    _over_maps(
        label=STORAGE,
        title="Maps of long descriptors in few bytes",
        gpu_minutes=10,
        settings=(
            network_setting("fcn", 128, "bayesian", name=_CODED, storage="product", thesis={}),
            network_setting("fcn", 128, "bayesian", name="D=128 as int8", thesis={}),
            network_setting("fcn", 16, "bayesian", name="D=16 as int8", thesis={}),
            network_setting("fcn", 16, "bayesian", name="D=16 as float32", storage="float32", thesis={}),
        ),
        claims=(
            Claim(
                "D=128 in 16 bytes converges sooner than D=16 in as many.",
                claims.fewer(STORAGE, "updates_to_convergence", _CODED, "D=16 as int8"),
            ),
            Claim(
                "With D=128 in 16 bytes the truth lies inside the 95 % region in over 95 % of the updates.",
                claims.holds_the_truth(STORAGE, [_CODED]),
            ),
        ),
        deviations=("Not in the thesis. Networks with the FCN head.", *DEVIATIONS),
    )
)
register(
    _over_maps(
        label=TERRAIN,
        title="Convergence of flights over a drawn terrain in another season",
        gpu_minutes=20,
        settings=tuple(
            replace(setting, ground="terrain", thesis={})
            for setting in (
                *(baseline_setting(name) for name in BASELINES if "linear" not in name),
                *(network_setting(head, 16, likelihood) for head in HEADS for likelihood in LIKELIHOODS),
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
        deviations=("Not in the thesis.", APART["terrain"], *DEVIATIONS[2:]),
    )
)


def _routed(name: str, changes: Changes) -> FlightSetting:
    setting = network_setting("capsules", 16, "bayesian", name=name, variant=name, thesis={})
    return replace(setting, changes={**setting.changes, **changes})


register(
    _over_maps(
        label=ROUTING,
        title="Routing annealing of the capsule head",
        gpu_minutes=40,
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
            "REM has no row: it cuts weights that the validation loss does not miss. Descriptors that are "
            "all the same cost the margin, about what early networks cost, and a smoke run ended with such.",
            *DEVIATIONS,
        ),
    )
)


def _stepped(metres: float) -> FlightSetting:
    return network_setting("fcn", 128, "bayesian", name=f"{metres:g} m", thesis={}, step=metres)


register(
    _over_maps(
        label=STEPS,
        title="Updates after shorter and longer ways, with crops of 320 m",
        gpu_minutes=5,
        settings=tuple(map(_stepped, (50.0, 100.0, 160.0, 320.0))),
        claims=(
            Claim(
                "Crops that overlap by most of their ground make the filter overconfident: the truth lies in "
                "the 95 % region more often with an update every 160 m than every 50 m.",
                claims.calibrates(STEPS, "160 m", "50 m"),
            ),
        ),
        deviations=(
            "Not in the thesis. Networks with the FCN head, D=128.",
            "The claim was made after a look at flights of seed 42; further seeds test it.",
            *DEVIATIONS,
        ),
    )
)
