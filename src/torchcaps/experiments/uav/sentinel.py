"""Do descriptors hold on satellite images? Networks of NAIP and of Sentinel-2, over pixels of 20 m."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..plan import our_claim, register
from . import claims
from .claims import SENTINEL
from .designs import DEVIATIONS, baseline_setting, network_setting, over_maps
from .figure import draw_curves
from .setting import FlightSetting
from .world import APART, Ground

_ALONE = "odometry alone"
_TAUGHT: dict[str, Ground] = {"NAIP": "naip", "Sentinel-2": "sentinel"}
_SEEN: dict[str, Ground] = {"clear": "sentinel", "haze": "sentinel haze"}


def _name(taught: str, seen: str) -> str:
    return f"learnt on {taught}, {seen}"


def _flown(taught: str, seen: str) -> FlightSetting:
    name = _name(taught, seen)
    return network_setting(
        "fcn", 16, "bayesian", name=name, variant=name, ground=_SEEN[seen], taught=_TAUGHT[taught]
    )


register(
    over_maps(
        label=SENTINEL,
        title="Flights over Sentinel-2 images with pixels of 20 m",
        gpu_minutes=33,
        settings=(
            *(_flown(taught, seen) for taught in _TAUGHT for seen in _SEEN),
            *(replace(baseline_setting(name), ground="sentinel") for name in ("abBRIEF, bayesian", _ALONE)),
        ),
        draw=partial(draw_curves, names=()),
        claims=(
            our_claim(
                "A network that never saw Sentinel-2 finds more flights on the clear date than odometry.",
                claims.finds_more(SENTINEL, [_name("NAIP", "clear")], [_ALONE]),
            ),
            our_claim(
                "Learning on another part of the area finds more flights on the clear date.",
                claims.finds_more(SENTINEL, [_name("Sentinel-2", "clear")], [_name("NAIP", "clear")]),
            ),
            our_claim(
                "Haze that was not learnt costs flights.",
                claims.finds_more(SENTINEL, [_name("Sentinel-2", "clear")], [_name("Sentinel-2", "haze")]),
            ),
        ),
        deviations=(
            "Not in the thesis. Networks with the FCN head, D=16.",
            APART["sentinel"],
            "Pixels of 20 m are coarser than any camera of a vehicle in flight would give: this tells "
            "whether descriptors hold on other images, not how well such a vehicle is found. All lengths "
            "grow with the pixels: in the quick budget crops of 640 m, cells of 80 m, an update every 320 "
            "m, and a belief counts as converged, and a flight as found, within 200 m.",
            "The network of NAIP learnt with pixels of 10 m in the quick budget, of 5 m in the full one, "
            "and is used as it is. The likelihood of all is measured on pairs of the two clear dates in "
            "the west of the area, which trains nothing.",
            DEVIATIONS[-1],
        ),
    )
)
