"""The claims of the chapter on lung nodules, decided by rows."""

from __future__ import annotations

from math import hypot

from ..plan import (
    MISSING,
    Case,
    Claim,
    Effect,
    Finding,
    Mean,
    decide_each,
    decide_together,
    difference,
    on_rows,
)
from ..records import Rows, by_setting

CHAPTER = "Lung Nodules Segmentation with Capsule networks"
TABLE, SLICES, COSTS = "tab:lung-results", "beyond:lung-slices", "beyond:lung-costs"
MODELS = {
    "segcaps_r3": "SegCaps R3",
    "unet_3": "U-Net 3",
    "unet_4": "U-Net 4",
    "unet_5": "U-Net 5",
    "segcaps_r1": "SegCaps R1",
}
SHARES = (1.0, 0.5, 0.1)
METRIC = "region_dice"


def setting_name(model: str, share: float) -> str:
    """The setting of a network with a share of the training patients."""
    return f"{MODELS[model]}, {100 * share:g} % of the patients"


def _means(rows: Rows, share: float) -> dict[str, Mean]:
    """The Dice of each network with a share of the patients; a SegCaps needs the epochs of a full budget."""
    found = by_setting(rows, METRIC)
    named = {model: found.get(setting_name(model, share)) for model in MODELS}
    return {model: Mean.of_row(row) for model, row in named.items() if row is not None}


def _loses_less(rows: Rows) -> Finding:
    """The loss of U-Net 3 from all patients to a tenth, minus that of SegCaps, lies above zero."""
    whole, tenth = _means(rows, 1.0), _means(rows, 0.1)
    names = ("segcaps_r3", "unet_3")
    if any(name not in means for name in names for means in (whole, tenth)):
        return MISSING
    ours, other = (difference(whole[name], tenth[name]) for name in names)
    is_short = ours.is_short or other.is_short
    effect = Effect(other.size - ours.size, hypot(other.margin, ours.margin), is_short)
    because = f"U-Net 3 loses {other} and SegCaps {ours}"
    return decide_together({"the difference": Case(effect)}, 1, because)


def _beats_small_networks(rows: Rows) -> Finding:
    """SegCaps lies above U-Net 3 and U-Net 4 at every share."""
    gaps = {
        f"{MODELS[model]} at {100 * share:g} %": difference(means["segcaps_r3"], means[model])
        for share in SHARES
        for model in ("unet_3", "unet_4")
        if {"segcaps_r3", model} <= (means := _means(rows, share)).keys()
    }
    return decide_each(gaps, 2 * len(SHARES), "SegCaps minus U-Nets")


def _largest_is_best(rows: Rows) -> Finding:
    """U-Net 5 lies above the others with all patients."""
    means = _means(rows, 1.0)
    others = ("segcaps_r3", "unet_3", "unet_4")
    gaps = {
        MODELS[model]: difference(means["unet_5"], means[model])
        for model in others
        if {"unet_5", model} <= means.keys()
    }
    return decide_each(gaps, len(others), "U-Net 5 minus the others")


CLAIMS = (
    Claim(
        "With a tenth of the patients SegCaps loses less Dice than the U-Net of its size (U-Net 3).",
        on_rows(TABLE, _loses_less),
    ),
    Claim(
        "SegCaps is better than U-Nets of three and four levels at every share.",
        on_rows(TABLE, _beats_small_networks),
    ),
    Claim("With all patients the U-Net of five levels is best.", on_rows(TABLE, _largest_is_best)),
)
