"""PartWhole on disk: arrays that any framework reads, and all that is true of the images.

A folder holds

- `images.npy`: bytes (count, height, width);
- `truth.npz`: `labels` (count), `owners` (count, height, width), `poses` (count, nodes, 2, 3),
  `loose_poses` (count, loose, 2, 3) and `present` (count, loose), as `PartWhole` describes them;
- `design.json`: the settings, the seed, and the tree as `names`, `parents` and `levels` of its nodes;
- with pictures, `images/000000.png` and following.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from PIL import Image

from torchcaps.core import MissingDataError, UserError
from torchcaps.storage import read_json, write_arrays, write_atomically, write_json, write_png

from .design import Design
from .draw import PartWhole
from .grammar import Tree, build_tree

FORMAT = 1
_ARRAYS = ("labels", "owners", "poses", "loose_poses", "present")


def write_partwhole(
    folder: Path | str, drawn: PartWhole, design: Design, *, seed: int = 0, pictures: bool = False
) -> None:
    """Write images and truth; `design.json` comes last, so that a folder with one is complete."""
    folder = Path(folder)
    images = drawn.images[:, 0].cpu().numpy()
    _refuse_old_pictures(folder / "images", len(images) if pictures else 0)
    arrays = {name: getattr(drawn, name).cpu().numpy() for name in _ARRAYS}
    write_atomically(folder / "images.npy", lambda draft: _save(draft, images))
    write_arrays(folder / "truth.npz", arrays)
    for number, image in enumerate(images if pictures else ()):
        write_png(folder / "images" / f"{number:06d}.png", Image.fromarray(image))
    about = {"format": FORMAT, "seed": seed, "count": len(images), "design": asdict(design)}
    write_json(folder / "design.json", {**about, "tree": asdict(drawn.tree)})


def _refuse_old_pictures(folder: Path, count: int) -> None:
    """Pictures that would not be written anew belong to other images."""
    names = {f"{number:06d}.png" for number in range(count)}
    if old := [path for path in folder.glob("*.png") if path.name not in names]:
        raise UserError(
            f"{folder} has {len(old):,} pictures of another draw; remove them or write to another folder"
        )


def _save(path: Path, images: np.ndarray) -> None:
    with path.open("wb") as file:
        np.save(file, images, allow_pickle=False)


def load_partwhole(folder: Path | str) -> PartWhole:
    """What `write_partwhole` wrote; a damaged file is an error that names it."""
    folder = Path(folder)
    if not (folder / "design.json").is_file():
        raise MissingDataError(
            f"{folder} holds no PartWhole (no design.json); `torchcaps data draw` writes one"
        )
    about = read_json(folder / "design.json")
    try:
        tree = Tree(**{key: tuple(values) for key, values in about["tree"].items()})
        images = np.load(folder / "images.npy", allow_pickle=False)
        with np.load(folder / "truth.npz", allow_pickle=False) as truth:
            arrays = {name: torch.from_numpy(truth[name]) for name in _ARRAYS}
    except (OSError, KeyError, TypeError, ValueError, AttributeError, BadZipFile) as error:
        raise UserError(f"{folder} holds a damaged PartWhole ({error}); write it again") from error
    lengths = {len(images), *map(len, arrays.values())}
    if lengths != {about.get("count")} or tree != build_tree(tuple(about["design"]["branches"])):
        raise UserError(f"{folder} holds a PartWhole whose files do not belong together; write it again")
    return PartWhole(images=torch.from_numpy(images).unsqueeze(1), tree=tree, **arrays)
