"""A scan from file to nodules, and all that is written about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from torchcaps.core import Plain, UserError, evaluating
from torchcaps.storage import write_bytes, write_json, write_png, write_text
from torchcaps.train import Run
from torchcaps.viz import SliceDetail, draw_slice_detail, to_png
from torchcaps.zoo import given_name

from .output import NOTICE, nodule_rows, nodule_table, scan_page, write_dicom_seg, write_nifti
from .segment import (
    Carried,
    FoundNodule,
    NodulesFound,
    list_nodules,
    nodule_carriers,
    segment_volume,
    slice_network,
)
from .volume import Volume, grey_bytes, read_volume

_MOST_OVERLAYS = 12  # of the largest nodules
_MOST_CARRIED = 3  # of them; what carries one is looked for in 19 passes


def segment_scan(
    run: Run,
    source: Path,
    out: Path,
    *,
    series: str | None = None,
    on_slices: Callable[[int, int], None] = lambda done, planned: None,
) -> Plain:
    """Segment a DICOM series, a NIfTI volume or a picture; write the findings to `out` and return them.

    Written are `nodules.csv`, `page.html`, `nodule-1.png` and so on for the 12 largest, `result.json`,
    `mask.nii.gz`, and `mask.dcm` (DICOM-SEG) where the source is DICOM and has nodules. A picture, which has
    no millimetres, gets `mask.png` instead of the last two.

    Args:
        run: A segmentation run.
        source: What to segment.
        out: Folder; files of these names that were written of another scan are replaced or removed.
        series: Which DICOM series of a folder with several.
        on_slices: Told how many slices are done, and how many there are.
    """
    network = slice_network(run)
    volume = read_volume(source, series=series)
    with evaluating(run.model):
        probability = segment_volume(network, volume.hounsfield, on_slices=on_slices)
        found = list_nodules(probability, volume)
        carried = {
            nodule.number: nodule_carriers(run.model, network, volume, found, nodule)
            for nodule in found.nodules[:_MOST_CARRIED]
        }
    model = str(run.recipe.model["name"])
    files = _write_pages(out, volume, found, carried, model)
    masks, problems = _write_masks(out, volume, found, model)
    written = [*files, *masks]
    result = {
        "notice": NOTICE,
        "source": str(source),
        "run": given_name(run.folder),
        "model": model,
        **_facts(volume, found, carried),
        "notes": [*volume.notes, *problems],
        "files": [str(file) for file in [*written, out / "result.json"]],
    }
    write_json(out / "result.json", result)
    _remove_others(out, written)
    return result


def _facts(volume: Volume, found: NodulesFound, carried: Mapping[int, Carried | None]) -> Plain:
    return {
        "size": list(volume.hounsfield.shape),
        "spacing_mm": None if volume.spacing is None else list(volume.spacing),
        "nodules": nodule_rows(found.nodules),
        "too_small": found.too_small,
        "carriers": [each.as_json() for each in carried.values() if each is not None],
    }


def _remove_others(out: Path, written: list[Path]) -> None:
    """Remove what was written of another scan: its mask beside this one's list would mislead."""
    for pattern in ("mask.dcm", "mask.nii.gz", "mask.png", "nodule-[0-9]*.png"):
        for path in out.glob(pattern):
            if path not in written:
                path.unlink()


def _write_masks(out: Path, volume: Volume, found: NodulesFound, model: str) -> tuple[list[Path], list[str]]:
    """Masks in the formats that the source allows; why a DICOM segmentation could not be made."""
    if volume.spacing is None:
        write_png(out / "mask.png", Image.fromarray((found.labels[0] > 0).astype(np.uint8) * 255))
        return [out / "mask.png"], []
    write_nifti(out / "mask.nii.gz", found.labels, volume)
    written = [out / "mask.nii.gz"]
    if volume.slices is None or not found.nodules:
        return written, []
    try:
        write_dicom_seg(out / "mask.dcm", found, volume, model)
    except UserError as error:  # of odd headers, which need not cost the other files
        return written, [str(error)]
    return [*written, out / "mask.dcm"], []


def _write_pages(
    out: Path, volume: Volume, found: NodulesFound, carried: dict[int, Carried | None], model: str
) -> list[Path]:
    write_text(out / "nodules.csv", nodule_table(found.nodules))
    write_text(out / "page.html", scan_page(volume, found, model))
    written = [out / "nodules.csv", out / "page.html"]
    for nodule in found.nodules[:_MOST_OVERLAYS]:
        path = out / f"nodule-{nodule.number}.png"
        drawing = to_png(draw_slice_detail(_detail(volume, found, nodule, carried.get(nodule.number))))
        write_bytes(path, drawing)
        written.append(path)
    return written


def _detail(volume: Volume, found: NodulesFound, nodule: FoundNodule, carried: Carried | None) -> SliceDetail:
    size = "" if nodule.diameter is None else f", {nodule.diameter:.1f} mm"
    return SliceDetail(
        grey=grey_bytes(volume.hounsfield[nodule.slice]),
        mask=found.labels[nodule.slice] > 0,
        heat=None if carried is None else carried.heat,
        centre=(nodule.row, nodule.column),
        aspect=1.0 if volume.spacing is None else volume.spacing[1] / volume.spacing[2],
        title=f"mark {nodule.number} in slice {nodule.slice}{size}, "
        f"mean probability {nodule.probability:.2f}",
        caption=NOTICE if carried is None else f"{NOTICE} {carried.words}",
        heat_title="" if carried is None else carried.title,
    )


def require_scan(source: Path) -> None:
    """Raise where nothing is at `source`, before a network is loaded."""
    if not source.exists():
        raise UserError(f"no file or folder at {source}")
