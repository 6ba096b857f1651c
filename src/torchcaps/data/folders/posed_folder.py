"""Images of objects in known rotations, as `torchcaps pose render` writes them.

`poses.csv` has a line for each image, and its first line names the columns: `image`, the path of a file in
the folder; `class`; `w`, `x`, `y` and `z`, a unit quaternion; and perhaps `split`, which is train or test.
Where `scene.json`, `meshes.npz` and masks are there as well, some silhouettes are rendered again: rotations
in another order would otherwise be learned without complaint.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from functools import partial
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchcaps.core import MissingDataError, UserError, build_dataclass
from torchcaps.storage import read_mapping, read_text

from ..api import Frame, Split
from ..examples import PosedImages
from ..rendering.mesh import MeshSet, NamedMesh, load_meshes
from ..rendering.poses import render_anew
from ..rendering.rasterise import rasterise
from ..rendering.view import View
from .layout import FolderContent, split_by_name
from .picture import open_any, read_picture, read_pictures
from .unopened import raise_all

POSES_FILE, SCENE_FILE, MESHES_FILE = "poses.csv", "scene.json", "meshes.npz"
COLUMNS = ("image", "class", "w", "x", "y", "z")
_LOOKED_AT = 12  # silhouettes that are rendered again


class PosedFile(NamedTuple):
    """One line of `poses.csv`."""

    image: Path
    label: str
    rotation: tuple[float, ...]
    split: str
    name: str  # of the object, where it is known


def open_posed_folder(root: Path, frame: Frame | None = None) -> FolderContent:
    """A folder of images with classes and rotations; without a column `split` a fifth is set aside."""
    rows = read_poses(root)
    check_silhouettes(root, rows)
    classes = tuple(sorted({row.label for row in rows}))
    by_image = {row.image: row for row in rows}
    images = _split(rows)
    if len(classes) < 2:
        raise UserError(
            f"{root} shows one class, {classes[0]}; a network tells at least two apart: render another"
        )
    read = partial(read_picture, mode="RGB", frame=frame)

    def examples(split: Split) -> PosedImages:
        mine = [by_image[path] for path in images[split]]
        labels = torch.tensor([classes.index(row.label) for row in mine])
        rotations = torch.nn.functional.normalize(torch.tensor([row.rotation for row in mine]), dim=1)
        found = PosedImages(read_pictures(images[split], read), labels, rotations, classes)
        meshes = _meshes_of(root, mine, classes)
        view = None if meshes is None else _fitted_view(root, frame)
        return found if meshes is None or view is None else found.drawn_by(partial(render_anew, meshes, view))

    return FolderContent(classes, images, read, examples)


def _meshes_of(root: Path, rows: Sequence[PosedFile], classes: tuple[str, ...]) -> MeshSet | None:
    """The objects that some images show; None where one of them is not known."""
    if not (root / SCENE_FILE).is_file() or not (root / MESHES_FILE).is_file():
        return None
    known = {each.name: each.mesh for each in load_meshes(root / MESHES_FILE).objects}
    shown = {row.name: classes.index(row.label) for row in rows}
    if not shown.keys() <= known.keys():
        return None
    return MeshSet(classes, tuple(NamedMesh(name, label, known[name]) for name, label in shown.items()))


def _view_of(root: Path) -> View:
    return build_dataclass(View, read_mapping(root / SCENE_FILE).get("view", {}), SCENE_FILE)


def _fitted_view(root: Path, frame: Frame | None) -> View | None:
    """What shows objects as the fitted images do; None where these have bands, or other proportions."""
    view = _view_of(root)
    if frame is None:
        return view
    is_whole = frame.height * view.width == frame.width * view.height
    return view.cropped(frame.height, frame.width) if is_whole or frame.fit == "crop" else None


def read_poses(root: Path) -> list[PosedFile]:
    """The lines of `poses.csv`; one message lists those that are wrong."""
    path = root / POSES_FILE
    if not path.is_file():
        raise MissingDataError(f"{root} has no {POSES_FILE}; torchcaps pose render writes such folders")
    with StringIO(read_text(path), newline="") as file:
        reader = csv.DictReader(file)
        missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
        if missing:
            raise UserError(
                f"{path}: the first line must name the columns {','.join(COLUMNS)}, in any order, so that it "
                f"is known which number is w; {', '.join(missing)} missing"
            )
        rows, problems = [], []
        for line in reader:
            try:
                rows.append(_read_line(root, line))
            except UserError as error:
                problems.append(f"{path}: line {reader.line_num}: {error}")
    raise_all(problems)
    lines = Counter(row.image for row in rows)
    raise_all([f"{path}: {image} is on {count} lines" for image, count in lines.items() if count > 1])
    if not rows:
        raise MissingDataError(f"{path} has no images")
    return rows


def _read_line(root: Path, line: dict[str, str]) -> PosedFile:
    image = root / (line["image"] or "")
    if not image.resolve().is_relative_to(root.resolve()):
        raise UserError(f"{line['image']} is outside of the folder")
    try:
        rotation = tuple(float(line[name]) for name in "wxyz")
    except (TypeError, ValueError) as error:
        raise UserError("w, x, y and z must be numbers") from error
    length = sum(value * value for value in rotation) ** 0.5
    if not 0.99 < length < 1.01:
        raise UserError(f"w, x, y and z must be a unit quaternion; its length is {length:.3g}")
    if not image.is_file():
        raise UserError(f"there is no file {image}")
    return PosedFile(image, line["class"], rotation, line.get("split") or "", line.get("object") or "")


def _split(rows: Sequence[PosedFile]) -> dict[Split, list[Path]]:
    if not any(row.split for row in rows):
        return split_by_name([row.image for row in rows])
    wrong = {row.split for row in rows} - {"train", "test"}
    if wrong:
        raise UserError(f"{POSES_FILE}: split must be train or test, got {', '.join(sorted(wrong))!r}")
    splits: tuple[Split, Split] = ("train", "test")
    found = {split: [row.image for row in rows if row.split == split] for split in splits}
    for split, images in found.items():
        if not images:
            raise MissingDataError(f"{POSES_FILE} has no images with the split {split}")
    return found


def check_silhouettes(root: Path, rows: Sequence[PosedFile]) -> None:
    """Raise where the stated rotations do not give the masks, but the same numbers read as x, y, z, w do."""
    if not (root / SCENE_FILE).is_file() or not (root / MESHES_FILE).is_file():
        return
    view = _view_of(root)
    meshes = load_meshes(root / MESHES_FILE)
    chosen = [row for row in rows[:: max(1, len(rows) // _LOOKED_AT)] if _mask_of(root, row).is_file()]
    pairs = [pair for row in chosen if (pair := _overlaps(root, row, meshes, view)) is not None]
    if not pairs:
        return
    stated, other = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    if stated < 0.9 and other > stated + 0.03:
        raise UserError(
            f"{root / POSES_FILE}: the rotations do not match the images, but they do when the columns w, x, "
            "y, z are read as x, y, z, w; name the columns in the order of the numbers"
        )


def _mask_of(root: Path, row: PosedFile) -> Path:
    is_rendered = row.image.is_relative_to(root / "images")
    return root / "masks" / row.image.relative_to(root / "images") if is_rendered else root


def _overlaps(root: Path, row: PosedFile, meshes: MeshSet, view: View) -> tuple[float, float] | None:
    """How much of the mask the rendered silhouette covers, as stated and with w last."""
    mesh = next((each.mesh for each in meshes.objects if each.name == row.name), None)
    if mesh is None:
        return None
    mask = torch.from_numpy(np.array(open_any(_mask_of(root, row)).convert("L"))) > 127
    w, x, y, z = row.rotation
    if mask.shape != (view.height, view.width):
        return None
    found = rasterise(mesh, torch.tensor([[w, x, y, z], [z, w, x, y]]), view).masks[:, 0] > 0
    return _overlap(found[0], mask), _overlap(found[1], mask)


def _overlap(a: Tensor, b: Tensor) -> float:
    return float((a & b).sum() / (a | b).sum().clamp(min=1))
