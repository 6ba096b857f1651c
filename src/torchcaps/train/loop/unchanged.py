"""A run goes on as it began: on the same images, cut into the same splits, and in the same precision."""

from __future__ import annotations

from pathlib import Path

from torchcaps.core import UserError, listed
from torchcaps.data import DatasetInfo

from ..run import DataCard, card_of

_SAME_COLOURS = 0.005  # between means, and between spreads, of pixels from 0 to 1


def require_same_data(out: Path, before: DataCard | None, info: DatasetInfo) -> None:
    """Raise where the classes, or the colours of all images, are not those that the run in `out` had."""
    now = card_of(info)
    if before is None:
        return
    if before.classes != now.classes:
        raise UserError(
            f"{out} was trained on the classes {listed(before.classes)}; the dataset now has "
            f"{listed(now.classes)}: restore the class folders, or choose another --out"
        )
    if not _are_alike(before, now):
        raise UserError(
            f"{out} was trained on other images: their mean and spread were not those of {info.name}; "
            "restore the files, or choose another --out"
        )


def _are_alike(before: DataCard, now: DataCard) -> bool:
    """Whether two cards may be of the same images, which programs decode almost equally."""
    pairs = zip(before.mean + before.std, now.mean + now.std, strict=False)
    return before.channels == now.channels and all(abs(one - other) < _SAME_COLOURS for one, other in pairs)


def require_same_precision(out: Path, before: str | None, now: str) -> None:
    """Raise where the run in `out` began in another precision; older checkpoints do not tell."""
    if before not in (None, now):
        raise UserError(
            f"{out} was trained in precision {before}, not {now}; continue it with --precision {before}, or "
            "choose another --out"
        )


def require_same_counts(out: Path, before: tuple[int, int] | None, now: tuple[int, int]) -> None:
    """Raise where others train now: the best epoch so far was chosen by images that may train now.

    Counts are those of the images that train and that validate; older checkpoints do not tell.
    """
    if before not in (None, now):
        raise UserError(
            f"{out} was trained on {before[0]:,} images and validated on {before[1]:,}; there are now "
            f"{now[0]:,} and {now[1]:,}: restore the files, or choose another --out"
        )


def require_same_files(out: Path, before: DataCard | None, info: DatasetInfo) -> None:
    """Raise where as many other files train in a folder, as after two class folders were swapped."""
    if before is not None and before.listing not in ("", info.listing):
        raise UserError(
            f"{out} was trained on other images: the files that train in {info.name}, or their classes, have "
            "changed since; restore them, or choose another --out"
        )
