"""The table of the chapter on flights and its figure."""

from __future__ import annotations

from dataclasses import replace

from ..plan import Claim, larger, our_claim, register, take_over
from . import claims
from .claims import BASELINES, FIGURE, HEADS, TABLE, name_of
from .designs import DEVIATIONS, METRICS, OF_TABLE, over_maps
from .figure import DRAWN, draw_curves
from .setting import localize_flights

_FLOWN = register(
    over_maps(
        label=TABLE,
        title="Convergence of flights with networks, likelihoods and baselines",
        gpu_minutes=250,
        settings=OF_TABLE,
        draw=draw_curves,
        claims=(
            Claim(
                "Flights converge sooner with the Bayesian likelihood than with the linear one.",
                claims.bayesian_is_faster,
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
                claims.fewer_updates(
                    TABLE, name_of("fcn", 128, "bayesian"), name_of("fcn", 8, "bayesian"), any_budget=False
                ),
            ),
            Claim(
                "Capsules have a smaller error after convergence than fully connected layers (Bayesian, D=8, "
                "16 and 32).",
                larger(
                    TABLE,
                    "converged_error",
                    [
                        (name_of("fcn", size, "bayesian"), name_of("capsules", size, "bayesian"))
                        for size in (8, 16, 32)
                    ],
                    any_budget=False,
                ),
            ),
            Claim(
                "Both heads find more flights than the baselines.",
                claims.finds_more(
                    TABLE, [name_of(head, 16, "bayesian") for head in HEADS], BASELINES, any_budget=False
                ),
            ),
            our_claim(
                "The truth lies inside the 95 % region in more than 95 % of the updates after convergence.",
                claims.holds_the_truth(TABLE, [name_of(head, 16, "bayesian") for head in HEADS]),
            ),
        ),
        deviations=DEVIATIONS,
        other_data=METRICS,
    )
)


register(
    over_maps(
        label=FIGURE,
        title="Error and spread of the belief along flights",
        gpu_minutes=2,
        metrics=("final_error",),
        perform=take_over((_FLOWN,), localize_flights),
        settings=tuple(
            replace(setting, thesis={}, reuses=setting.name) for setting in OF_TABLE if setting.name in DRAWN
        ),
        draw=draw_curves,
        deviations=(
            f"The flights are those of {TABLE}. The thesis draws each of its 8 flights; ours are medians and "
            "percentiles.",
            *DEVIATIONS,
        ),
    )
)
