"""Mesh files (OBJ, OFF, PLY, STL, GLB) as meshes of one size; what cannot be used is left out."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torchcaps.core import MissingDataError, UserError, reason_of
from torchcaps.data.folders import visible_files, visible_folders
from torchcaps.data.rendering import Mesh, MeshSet, NamedMesh

from .polygon_files import PolygonFile, read_off, read_ply
from .polygons import cut_concave, triangulate

SUFFIXES = {".obj", ".off", ".ply", ".stl", ".glb"}
MOST_FACES = 500_000
_MOST_BYTES = 200 << 20
_GREY = 0.8
_SMALLEST_AREA = 1e-12  # of the whole surface, when the longest side is 1
_SMALLEST_FACE = 1e-12  # of the whole surface
_FARTHEST = 1e15  # squares of such numbers, and of their inverses, are still numbers in float32

_POLYGON_FILES = {".off": read_off, ".ply": read_ply}

Tell = Callable[[str], None]  # which file is left out, and why


def read_mesh(path: Path) -> Mesh:
    """The mesh in a file, centred and scaled; an error says why a file cannot be used."""
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"{path} is no mesh file; known are {', '.join(sorted(SUFFIXES))}")
    if not path.is_file():
        raise MissingDataError(f"no mesh at {path}")
    if path.stat().st_size > _MOST_BYTES:
        raise UserError(f"{path} has more than {_MOST_BYTES >> 20} MiB; simplify it")
    loaded = _load(path)
    _check(path, loaded)
    is_closed = _cleaned(loaded)
    if not len(loaded.faces):
        raise UserError(f"{path} has no area: next to its longest side, all of its faces are points or lines")
    faces = torch.from_numpy(np.array(loaded.faces)).long()
    mesh = Mesh(
        torch.from_numpy(np.array(loaded.vertices, dtype=np.float64)),
        faces,
        _colours(loaded, len(faces)),
        is_closed=is_closed,
    ).normalised()  # in float64: far from its origin, an object has few digits of float32
    return mesh._replace(vertices=mesh.vertices.float())


def _cleaned(loaded: Any) -> bool:
    """Merge equal corners and leave out faces without area; return whether the surface is closed.

    STL repeats the corners of every triangle: it would look open everywhere. A face without area is not seen,
    but its corners would count when the object is centred and scaled. Such faces may also close a surface.
    """
    low, high = loaded.bounds
    loaded.apply_translation(-(low + high) / 2)
    loaded.apply_scale(1 / (high - low).max())  # corners are merged within a distance that does not scale
    loaded.merge_vertices()
    was_closed = _is_closed(loaded)
    loaded.update_faces(loaded.area_faces > _SMALLEST_FACE * loaded.area)
    loaded.remove_unreferenced_vertices()
    return was_closed or _is_closed(loaded)


def _is_closed(loaded: Any) -> bool:
    with np.errstate(invalid="ignore"):  # trimesh also looks for the centre of what has no volume
        return bool(loaded.is_watertight and loaded.is_winding_consistent and loaded.volume > 0)


def _load(path: Path) -> Any:
    import trimesh

    settings = {"force": "mesh", "process": False, "skip_materials": True, "resolver": _NoOtherFiles()}
    try:  # maps and materials are not needed, and a file must not name others to be opened
        if path.suffix.lower() == ".obj":
            text = path.read_text(encoding="utf-8", errors="replace")
            return trimesh.load(StringIO(cut_concave(text, path)), file_type="obj", **settings)
        if reader := _POLYGON_FILES.get(path.suffix.lower()):
            return _of_polygons(reader(path), path)
        logging.getLogger("trimesh").setLevel(logging.CRITICAL)  # it logs tracebacks of damaged files
        with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is refused below
            return trimesh.load(path, **settings)
    except UserError:
        raise
    except Exception as error:  # readers of damaged files fail in any way
        raise UserError(f"{path} is damaged or empty ({reason_of(error)})") from error


def _of_polygons(file: PolygonFile, path: Path) -> Any:
    import trimesh

    faces, owners = triangulate(file.corners, file.polygons, path)
    colours = None if file.face_colours is None else file.face_colours[owners]
    return trimesh.Trimesh(
        file.corners, faces, face_colors=colours, vertex_colors=file.corner_colours, process=False
    )


class _NoOtherFiles:
    """Answers a mesh file that asks for a texture or a part in another file."""

    def get(self, name: str) -> bytes:
        """Refuse."""
        raise FileNotFoundError(name)


def _check(path: Path, loaded: Any) -> None:
    vertices, faces = getattr(loaded, "vertices", ()), getattr(loaded, "faces", ())
    if not len(vertices) or not len(faces):
        raise UserError(f"{path} has no faces")
    if np.shape(vertices)[1:] != (3,):
        raise UserError(f"{path} is damaged: its corners have {np.shape(vertices)[1]} coordinates, not 3")
    if len(faces) > MOST_FACES:
        raise UserError(f"{path} has {len(faces):,} faces; simplify it to at most {MOST_FACES:,}")
    if not 0 <= np.min(faces) <= np.max(faces) < len(vertices):  # negative numbers would count from the end
        raise UserError(f"{path} is damaged: a face names a corner that is not there")
    corners = torch.from_numpy(np.array(vertices))
    if not bool(corners.isfinite().all()):
        raise UserError(f"{path} has corners that are not finite numbers (NaN)")
    longest, farthest = float((corners.amax(0) - corners.amin(0)).max()), float(corners.abs().max())
    if farthest > _FARTHEST or 0 < longest < 1 / _FARTHEST:
        raise UserError(
            f"{path} has corners {farthest:.3g} from its origin and {longest:.3g} from each other: scale it"
        )
    if longest <= 0 or float(loaded.area) / longest**2 < _SMALLEST_AREA:
        raise UserError(f"{path} has no area: its corners lie in one point or on one line")


def _colours(loaded: Any, faces: int) -> torch.Tensor:
    """The colours of the faces where the file has them, as light thrown back; grey otherwise."""
    kind = getattr(loaded.visual, "kind", None)
    if kind not in ("face", "vertex"):
        return torch.full((faces, 3), _GREY)
    stored = torch.from_numpy(np.array(loaded.visual.face_colors))[:, :3].double() / 255
    linear = torch.where(stored <= 0.04045, stored / 12.92, ((stored + 0.055) / 1.055) ** 2.4)
    return linear.float()


def read_mesh_folder(
    folder: Path,
    classes: Sequence[str] | None = None,
    *,
    most: int = 0,
    leave_out: frozenset[str] = frozenset(),
    report: Tell,
) -> MeshSet:
    """The objects in a folder of class folders (the layout of ShapeNet's classes).

    Args:
        folder: It has a folder of mesh files for each class.
        classes: Of these classes alone, in this order; all of them, sorted, by default.
        most: Objects of a class, the first by name; 0 means all.
        leave_out: Objects as class/name.
        report: Told of each file that is left out, and why.
    """
    if not folder.is_dir():
        raise MissingDataError(f"{folder} is not a folder of class folders of meshes")
    names = tuple(classes or (each.name for each in visible_folders(folder)))
    objects: list[NamedMesh] = []
    for label, name in enumerate(names):
        found = _usable(folder, name, leave_out, report)
        mine = list(islice(found, most or None))
        if not mine:
            raise MissingDataError(
                f"class {name}: no mesh that can be used in {folder / name} ({', '.join(sorted(SUFFIXES))})"
            )
        objects += [NamedMesh(f"{name}/{path.stem}", label, mesh) for path, mesh in mine]
    if not objects:
        raise MissingDataError(f"{folder} has no class folders")
    return MeshSet(names, tuple(objects))


def _usable(folder: Path, name: str, leave_out: frozenset[str], report: Tell) -> Iterator[tuple[Path, Mesh]]:
    place = folder / name
    if Path(os.path.normpath(place)).parent != Path(os.path.normpath(folder)):
        raise UserError(f"{name!r} is not the name of a class folder")
    taken: set[str] = set()
    for path in visible_files(place, SUFFIXES) if place.is_dir() else ():
        if f"{name}/{path.stem}" in leave_out:
            continue
        if path.stem in taken:  # its images would be written over those of the other
            report(f"left out: {path} has the name of another mesh, with another ending")
            continue
        try:
            mesh = read_mesh(path)
        except UserError as error:
            report(f"left out: {error}")
            continue
        taken.add(path.stem)
        yield path, mesh
