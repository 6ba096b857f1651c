"""The page that scrolls through a segmented scan."""

from __future__ import annotations

import numpy as np

from torchcaps.core import counted
from torchcaps.viz import Finding, SliceView, slice_viewer

from ..segment import SMALLEST, THRESHOLD, FoundNodule, NodulesFound
from ..volume import Volume, grey_bytes

NOTICE = "Research software, not a medical device."


def scan_page(volume: Volume, found: NodulesFound, network: str) -> str:
    """One HTML file with the slices, the mask and the list of nodules; `network` names what made it."""
    spacing = volume.spacing
    view = SliceView(
        title=f"Possible nodules in {volume.name}",
        text=_words(volume, found, network),
        notice=NOTICE,
        columns=("mark", "slice", "diameter", "volume", "mean probability"),
        findings=[_finding(nodule) for nodule in found.nodules],
        captions={} if spacing is None else _heights(volume),
        aspect=1.0 if spacing is None else spacing[1] / spacing[2],
    )
    grey = np.stack([grey_bytes(plane) for plane in volume.hounsfield])
    return slice_viewer(grey, found.labels, view)


def _words(volume: Volume, found: NodulesFound, network: str) -> str:
    size = "x".join(map(str, volume.hounsfield.shape))
    steps = "" if volume.spacing is None else " of {:.2f}x{:.2f}x{:.2f} mm".format(*volume.spacing)
    smallest = "8 pixels" if volume.spacing is None else f"{SMALLEST:g} mm"
    shown = "are taken as" if volume.spacing is None else "run from"
    return (
        f"{counted(len(found.nodules), 'piece')} in {size} voxels{steps}, marked by {network} where its "
        f"probability reaches {THRESHOLD:g}; a mark may be false. Smaller than {smallest} and left out: "
        f"{counted(found.too_small, 'piece')}. Grey values {shown} -1000 to 400 Hounsfield units."
        + "".join(f"\n\nNote: {note}." for note in volume.notes)
    )


def _finding(nodule: FoundNodule) -> Finding:
    millimetres = nodule.diameter is not None
    cells = (
        str(nodule.number),
        str(nodule.slice),
        f"{nodule.diameter:.1f} mm" if millimetres else "unknown",
        f"{nodule.volume:,.0f} mm³" if millimetres else f"{nodule.voxels:,} pixels",
        f"{nodule.probability:.2f}",
    )
    return Finding(slice=nodule.slice, row=nodule.row, column=nodule.column, cells=cells)


def _heights(volume: Volume) -> dict[int, str]:
    """Where slices lie along the body."""
    middle = [volume.hounsfield.shape[2] / 2, volume.hounsfield.shape[1] / 2]
    heights = ((volume.affine @ [*middle, number, 1.0])[2] for number in range(len(volume.hounsfield)))
    return {number: f"{height:.1f} mm" for number, height in enumerate(heights)}
