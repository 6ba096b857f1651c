"""The tabs beside the explorer: which have something to show, and how the others get it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torchcaps.core import EXTRAS

from ..given import Given, Kind


@dataclass(frozen=True)
class _Tab:
    title: str
    about: str
    command: str  # that makes what it shows
    needs: Sequence[str] = ()  # packages of one extra


_TABS: dict[Kind, _Tab] = {
    "flight": _Tab(
        "Flight",
        "A drone finds its place on a map from what its camera sees.",
        "torchcaps uav localize MAP.tcmap FLIGHT.csv IMAGES --run RUN --out flown",
        ("numba", "rasterio", "pyproj"),
    ),
    "pose": _Tab(
        "Object pose",
        "The network says how an object is turned. Compare the true turn with the predicted one.",
        "torchcaps pose train --out posed",
    ),
    "slices": _Tab(
        "CT slices",
        "Slices of a scan, with what the network marked. Research software, not a medical device.",
        "torchcaps lung segment SCAN --run RUN --out found",
        ("pydicom", "nibabel"),
    ),
    "parts": _Tab(
        "Parts and wholes",
        "Drawn images whose parts are known. Does the network find them? The true tree of parts stands "
        "beside the tree that was read from the couplings of the network.",
        "torchcaps train mnist/dr_capsnet --data partwhole --out parts",
    ),
}


def describe_tabs(given: Given) -> list[dict[str, Any]]:
    """Each tab as plain data: its items, or the one command that leads to some."""
    return [_describe(kind, tab, given.tabs.get(kind, [])) for kind, tab in _TABS.items()]


def _describe(kind: Kind, tab: _Tab, paths: Sequence[Path]) -> dict[str, Any]:
    missing = [name for name in tab.needs if find_spec(name) is None]
    return {
        "kind": kind,
        "title": tab.title,
        "about": tab.about,
        "items": [(path.parent if path.is_file() else path).resolve().name for path in paths],
        "install": f'pip install "torchcaps[{EXTRAS[missing[0]]}]"' if missing else "",
        "command": tab.command,
        "out": tab.command.rpartition(" ")[2],
    }
