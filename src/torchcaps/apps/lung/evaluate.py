"""How well a run segments the nodules of a prepared folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from torchcaps.core import MissingDataError, Plain, UserError, evaluating, require_choice
from torchcaps.data import FOLDER_PREFIX
from torchcaps.storage import read_mapping
from torchcaps.train import Run
from torchcaps.zoo import given_name

from .measure import dice, measure
from .prepare import MANIFEST
from .report import Case, bootstrap_mean, summarise
from .segment import THRESHOLD, SliceNetwork, native_bf16, slice_network

_PARTS = ("train", "val", "test")
_BATCH = {"cuda": 64}
_ON_CPU = 4


class _Region(NamedTuple):
    """A prepared region: its files, whose nodule it shows, and where in the scan it lies."""

    image: Path
    mask: Path
    patient: str
    nodule: int
    slice: int
    corner: tuple[int, int]
    spacing: tuple[float, float, float] | None
    diameter: float | None


def evaluate_prepared(
    run: Run,
    prepared: Path,
    part: str = "test",
    *,
    on_regions: Callable[[int, int], None] = lambda done, planned: None,
) -> Plain:
    """Measures of the nodules of one part of a prepared folder, as plain data.

    The regions of a nodule are put where they lie in the scan, so that it is measured in three dimensions.
    Without spacing a distance is in pixels and a volume in voxels. A region may show a second nodule; both
    count, for both are to be found. Regions that the run was trained on are refused, because they
    would measure nothing: a run that left out one patient has learned from the others.

    Args:
        run: A segmentation run.
        prepared: Folder that `prepare` wrote, or one of its splits.
        part: "train", "val" or "test".
        on_regions: Told how many regions are done, and how many there are.
    """
    network = slice_network(run)
    regions = list(_read_list(prepared, part))
    if part != "train":
        _check_unseen(run, regions)
    found: list[tuple[NDArray[np.bool_], NDArray[np.bool_]]] = []
    with evaluating(run.model):
        for predicted, truth in _predict(network, regions):
            found += zip(predicted, truth, strict=True)
            on_regions(len(found), len(regions))
    has_spacing = all(region.spacing is not None for region in regions)
    cases = list(_cases(regions, found, has_spacing=has_spacing))
    by_patient: dict[str, list[float]] = {}
    for region, (predicted, truth) in zip(regions, found, strict=True):
        by_patient.setdefault(region.patient, []).append(dice(predicted, truth))
    return {
        "run": given_name(run.folder),
        "model": run.recipe.model["name"],
        "prepared": str(prepared),
        "part": part,
        "regions": len(regions),
        "unit": "mm" if has_spacing else "pixels",
        "region_dice": bootstrap_mean(by_patient)._asdict(),
        **summarise(cases),
    }


def _read_list(prepared: Path, part: str) -> Iterator[_Region]:
    """The regions of a part, from the folder itself or from one of its splits."""
    require_choice("part", part, _PARTS)
    root = _root_of(prepared)
    names = prepared / f"{part}.txt"
    if root is None or not names.is_file():
        raise MissingDataError(f"{prepared} is not prepared; make it with torchcaps lung prepare")
    manifest = read_mapping(root / MANIFEST)
    for name in names.read_text(encoding="utf-8").split():
        facts = manifest.get("regions", {}).get(name)
        if not isinstance(facts, dict):
            raise UserError(f"{root / MANIFEST} does not know {name}, which {names} lists; prepare again")
        if facts.get("nodule", "") is None:  # a region to learn from that shows none
            continue
        try:
            yield _region(root, name, facts)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise UserError(f"{root / MANIFEST} is damaged at {name} ({error}); prepare again") from error


def _root_of(place: Path) -> Path | None:
    """The prepared folder that a place is, or whose split it is."""
    return next((each for each in (place, *place.parents[:2]) if (each / MANIFEST).is_file()), None)


def _check_unseen(run: Run, regions: list[_Region]) -> None:
    learned = Path(run.recipe.data.name.removeprefix(FOLDER_PREFIX))
    root, names = _root_of(learned), learned / "train.txt"
    if root is None or not names.is_file():  # it learned elsewhere, or the folder was moved
        return
    seen = {(root / "images" / f"{name}.png").resolve() for name in names.read_text(encoding="utf-8").split()}
    count = sum(region.image.resolve() in seen for region in regions)
    if count:
        raise UserError(
            f"{count} of {len(regions)} regions trained this run; evaluate it on what it left out: {learned}"
        )


def _region(root: Path, name: str, facts: Plain) -> _Region:
    spacing = facts["spacing_mm"]
    return _Region(
        image=root / "images" / f"{name}.png",
        mask=root / "masks" / f"{name}.png",
        patient=str(facts["patient"]),
        nodule=int(facts["nodule"]),
        slice=int(facts["slice"]),
        corner=(int(facts["corner"][0]), int(facts["corner"][1])),
        spacing=None if spacing is None else (float(spacing[0]), float(spacing[1]), float(spacing[2])),
        diameter=facts["diameter_mm"],
    )


def _predict(
    network: SliceNetwork, regions: list[_Region]
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Predicted and true masks of the regions, a batch at a time."""
    if not regions:
        raise UserError("this part has no regions; choose another with --part")
    batch = _BATCH.get(network.device.type, _ON_CPU)
    for start in range(0, len(regions), batch):
        some = regions[start : start + batch]
        images = [_read_grey(region.image) for region in some]
        masks = [_read_grey(region.mask) > 0 for region in some]
        for region, image, mask in zip(some, images, masks, strict=True):
            if image.shape != mask.shape or image.shape != images[0].shape:
                raise UserError(
                    f"{region.mask} has the size {mask.shape}, its image {image.shape} and others "
                    f"{images[0].shape}; prepare again"
                )
        grey = torch.from_numpy(np.stack(images)).float().div(255).unsqueeze(1).to(network.device)
        with torch.inference_mode(), native_bf16(network.device):
            answers = network(grey)[:, 0].float()
        yield (answers >= THRESHOLD).cpu().numpy(), np.stack(masks)


def _read_grey(path: Path) -> NDArray[np.uint8]:
    try:
        with Image.open(path) as picture:
            return np.asarray(picture.convert("L"))
    except (OSError, SyntaxError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); prepare again") from error


def _cases(
    regions: list[_Region], found: list[tuple[NDArray[np.bool_], NDArray[np.bool_]]], *, has_spacing: bool
) -> Iterator[Case]:
    """One case for each nodule, of all regions that were cut around it."""
    together: dict[tuple[str, int], list[int]] = {}
    for number, region in enumerate(regions):
        together.setdefault((region.patient, region.nodule), []).append(number)
    for (patient, nodule), numbers in together.items():
        own = [regions[number] for number in numbers]
        predicted, truth = (_stack(own, [found[number][which] for number in numbers]) for which in (0, 1))
        spacing = own[0].spacing if has_spacing else None
        yield Case(
            patient=patient,
            nodule=str(nodule),
            diameter=own[0].diameter,
            overlap=measure(predicted, truth, spacing or (1.0, 1.0, 1.0)),
        )


def _stack(regions: list[_Region], masks: list[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Masks of regions in the box around all of them, as they lie in the scan."""
    places = np.array([(region.slice, *region.corner) for region in regions])
    first = places.min(0)
    size = np.array([1, *masks[0].shape])
    box = np.zeros(tuple((places.max(0) + size - first).tolist()), bool)
    for (depth, row, column), mask in zip((places - first).tolist(), masks, strict=True):
        box[depth, row : row + mask.shape[0], column : column + mask.shape[1]] |= mask
    return box
