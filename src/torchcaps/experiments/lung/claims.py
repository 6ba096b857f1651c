"""The claims of the chapter on lung nodules, decided by rows, and its figure."""

from __future__ import annotations

from collections.abc import Callable
from math import hypot, sqrt
from pathlib import Path

from torchcaps.viz import LineChart, Measured, draw_lines, to_png, with_deviation

from ..plan import Claim, Finding, confirm
from ..records import Row, Rows, by_setting

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
_OPEN = Finding("open", "some of its runs are missing, or have a single seed")


def setting_name(model: str, share: float) -> str:
    """The setting of a network with a share of the training patients."""
    return f"{MODELS[model]}, {100 * share:g} % of the patients"


def _row(rows: Rows, model: str, share: float) -> Row | None:
    found = by_setting(rows, METRIC).get(setting_name(model, share))
    return found if found is not None and found.spread is not None else None


def _error(*rows: Row) -> float:
    """The standard error of a sum or difference of the means of rows."""
    return hypot(*((row.spread or 0.0) / sqrt(row.seeds) for row in rows))


def _loses_less(rows: Rows) -> Finding:
    """SegCaps loses less than U-Net 3 by more than two standard errors."""
    found = [_row(rows, model, share) for model in ("segcaps_r3", "unet_3") for share in (1.0, 0.1)]
    known = [row for row in found if row is not None]
    if len(known) < len(found):
        return _OPEN
    capsules, tenth, plain, plain_tenth = known
    ours, other = float(capsules.ours - tenth.ours), float(plain.ours - plain_tenth.ours)
    error = _error(*known)
    losses = f"SegCaps loses {ours:.4f} and U-Net 3 {other:.4f}"
    return confirm(other - ours > 2 * error, f"{losses}; the difference has a standard error of {error:.4f}")


def _beats_small_networks(rows: Rows) -> Finding:
    """SegCaps is above U-Net 3 and U-Net 4 at every share, by more than two standard errors."""
    gaps = []
    for share in SHARES:
        own = _row(rows, "segcaps_r3", share)
        for model in ("unet_3", "unet_4"):
            other = _row(rows, model, share)
            if own is None or other is None:
                return _OPEN
            gaps.append((float(own.ours - other.ours), 2 * _error(own, other)))
    worst, best = min(gap for gap, _ in gaps), max(gap for gap, _ in gaps)
    is_so = all(gap > least for gap, least in gaps)
    return confirm(is_so, f"SegCaps is ahead by {worst:.4f} to {best:.4f}")


def _largest_is_best(rows: Rows) -> Finding:
    """U-Net 5 has the highest Dice with all patients."""
    found = {model: _row(rows, model, 1.0) for model in MODELS if model != "segcaps_r1"}
    known = {model: float(row.ours) for model, row in found.items() if row is not None}
    if len(known) < len(found):
        return _OPEN
    words = ", ".join(f"{MODELS[model]} {value:.4f}" for model, value in known.items())
    return confirm(max(known, key=lambda model: known[model]) == "unet_5", words)


def _claim(text: str, decide: Callable[[Rows], Finding]) -> Claim:
    return Claim(text, lambda rows_of: decide(rows_of(TABLE)))


CLAIMS = (
    _claim(
        "With a tenth of the patients SegCaps loses less Dice than the U-Net of its size (U-Net 3).",
        _loses_less,
    ),
    _claim("SegCaps is better than U-Nets of three and four levels at every share.", _beats_small_networks),
    _claim("With all patients the U-Net of five levels is best.", _largest_is_best),
)


def draw_figure(rows: Rows, path: Path) -> None:
    """Dice, and the regions whose nodule was missed, over the share of the training patients."""
    panels = (
        LineChart(
            title, _curves(rows, metric), across="training patients, %", unit=unit, starts_at_zero=False
        )
        for title, metric, unit in (
            ("mean Dice of test regions", METRIC, "Dice"),
            ("regions without a single right pixel", "missed_share", "%"),
        )
    )
    path.write_bytes(to_png(draw_lines(list(panels))))


def _curves(rows: Rows, metric: str) -> dict[str, list[tuple[float, Measured]]]:
    """A line for each network."""
    found = by_setting(rows, metric)
    curves = {
        title: [
            (100 * share, with_deviation(row.ours, row.spread, ""))
            for share in reversed(SHARES)
            if (row := found.get(setting_name(model, share))) is not None
        ]
        for model, title in MODELS.items()
    }
    return {title: points for title, points in curves.items() if points}
