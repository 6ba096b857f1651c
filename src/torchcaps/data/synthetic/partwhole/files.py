"""PartWhole on disk: arrays that any framework reads, and all that is true of the images.

A folder holds

- `images.npy`: bytes (count, height, width);
- `truth.npz`: `labels` (count), `owners` (count, height, width), `poses` (count, nodes, 2, 3),
  `loose_poses` (count, loose, 2, 3) and `present` (count, loose), as `PartWhole` describes them;
- `design.json`: the settings, the seed, and the tree as `names`, `parents` and `levels` of its nodes;
- with pictures, `images/000000.png` and following.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from torchcaps.core import MissingDataError, UserError, build_dataclass
from torchcaps.storage import (
    Form,
    read_array,
    read_arrays,
    read_mapping,
    write_arrays,
    write_atomically,
    write_json,
    write_png,
)

from .design import Design
from .draw import PartWhole
from .grammar import build_tree

FORMAT = 1
_IMAGES = Form("u", 3)
_FORMS = {
    "labels": Form("i", 1),
    "owners": Form("u", 3),
    "poses": Form("f", 4),
    "loose_poses": Form("f", 4),
    "present": Form("b", 2),
}


def write_partwhole(
    folder: Path | str, drawn: PartWhole, design: Design, *, seed: int = 0, pictures: bool = False
) -> None:
    """Write images and truth; `design.json` comes last, so that a folder with one is complete."""
    folder = Path(folder)
    images = drawn.images[:, 0].cpu().numpy()
    _refuse_old_pictures(folder / "images", len(images) if pictures else 0)
    arrays = {name: getattr(drawn, name).cpu().numpy() for name in _FORMS}
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
    about = read_mapping(folder / "design.json")
    tree = build_tree(
        build_dataclass(Design, about.get("design"), f"{folder / 'design.json'}.design").branches
    )
    images = read_array(folder / "images.npy", _IMAGES, "array of grey images")
    arrays = read_arrays(folder / "truth.npz", _FORMS, "truth of a PartWhole")
    lengths = {len(images), *map(len, arrays.values())}
    stored = json.loads(json.dumps(asdict(tree)))
    if (
        lengths != {about.get("count")}
        or about.get("tree") != stored
        or images.shape != arrays["owners"].shape
    ):
        raise UserError(f"{folder} holds a PartWhole whose files do not belong together; write it again")
    truth = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return PartWhole(images=torch.from_numpy(images).unsqueeze(1), tree=tree, **truth)
