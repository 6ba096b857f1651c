"""Class and rotation of the object in an image file, how certain that is, and a picture of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from torchcaps.core import MissingDataError, UserError, build_dataclass
from torchcaps.data import FOLDER_PREFIX, resolve_data_dir
from torchcaps.data.folders import parse_folder_name
from torchcaps.data.rendering import (
    TINY_FILE,
    MeshSet,
    View,
    cube_tetrahedron,
    load_meshes,
    render_smooth,
)
from torchcaps.storage import read_mapping
from torchcaps.train import Answer, Pipeline, Run, fit_to_data, open_named, own_images, read_named

from .uncertainty import COVERED_SHARE, forgives_symmetries, has_votes, read_calibration, vote_spread

_SIDE = 256  # of each half of a picture
_GAP = 8


class Estimator:
    """A trained run with the objects it knows.

    Args:
        run: Of a pose task.
        meshes: The objects, to be drawn in the predicted rotation; those of the run's dataset by default,
            and none where it has none.
        data_dir: Folder of the datasets.
    """

    def __init__(self, run: Run, meshes: MeshSet | None = None, data_dir: Path | None = None) -> None:
        run.expect_task("pose")
        self.run, self.info, self._own = run, run.info(data_dir), own_images(run, data_dir)
        found, self.view = _known_objects(run, data_dir) if meshes is None else (meshes, View())
        self.meshes = None if found is None else _of_classes(found, self.info.classes)
        self.calibration = read_calibration(run) if has_votes(run) else None

    @torch.no_grad()
    def answer(self, path: Path) -> Answer:
        """What the run says of an image file, or of `test:17`; pictures are fitted as in training."""
        picture, image = read_named(path, self.info, self._own)
        batch = Pipeline(self.run.recipe.data, self.info).for_evaluation(image.to(self.run.device))
        output = self.run.model(batch.inputs, return_routing=True)
        task = self.run.task
        found = task.answer(task.outputs(output), self.info, picture)
        winner = output.activations.argmax(1)
        row, words = dict(found.row), found.words
        row["uncertainty"] = None
        if self.calibration is not None:
            spread = float(vote_spread(self.run.model, output.layers[0], winner))  # type: ignore[arg-type]
            usual, within = self.calibration.at(spread)
            row["uncertainty"] = {
                "median": round(usual, 2),
                "within": round(within, 2),
                "share": COVERED_SHARE,
                "up_to_symmetry": forgives_symmetries(self.run),
            }
            alike = " up to symmetry" if forgives_symmetries(self.run) else ""
            words += f", usually {usual:.1f}° off{alike}, {COVERED_SHARE:.0%} within {within:.1f}°"
        words += f", Euler angles {', '.join(f'{angle:.1f}°' for angle in row['euler'])}"
        pictures = {}
        if self.meshes is not None:
            pictures["pose"] = self._picture(path, int(winner), output.rotations[0, winner].cpu())
        return Answer(row, words, pictures)

    def _picture(self, path: Path, winner: int, rotation: Tensor) -> Image.Image:
        """The image beside the object in the predicted rotation."""
        assert self.meshes is not None
        mesh = self.meshes.of_class(winner)[0]
        whole = replace(self.view, height=_SIDE, width=_SIDE)  # between bands, as "pad" has it
        view = self.view.cropped(_SIDE, _SIDE) if self.info.fit == "crop" else whole
        drawn = render_smooth(mesh, rotation.view(1, 4), view)[0]
        shown = replace(self.info, channels=3, height=_SIDE, width=_SIDE)
        seen = fit_to_data(open_named(path, shown, self._own), shown)[0]
        pair = Image.new("RGB", (2 * _SIDE + _GAP, _SIDE), "white")
        for place, half in enumerate((seen, drawn)):
            pixels = np.ascontiguousarray(half.permute(1, 2, 0))
            pair.paste(Image.fromarray(pixels), (place * (_SIDE + _GAP), 0))
        return pair


def _of_classes(meshes: MeshSet, classes: tuple[str, ...]) -> MeshSet:
    """The objects with the classes in the order of a run; a scene may name them in another."""
    if sorted(meshes.classes) != sorted(classes):
        raise UserError(
            f"the meshes are of {', '.join(meshes.classes)}, the run knows {', '.join(classes)}; "
            "give those of the run"
        )
    return meshes.in_order(classes)


def _known_objects(run: Run, data_dir: Path | None) -> tuple[MeshSet | None, View]:
    """The objects that a run was trained on and how they were seen, where its dataset still has them."""
    name, view = run.recipe.data.name.removeprefix("synthetic_"), View()
    if name.startswith("cube_tetrahedron"):
        return cube_tetrahedron(borders="plain" not in name), view
    try:
        if name.startswith(FOLDER_PREFIX):
            root = parse_folder_name(name, resolve_data_dir(data_dir)).root
            view = build_dataclass(View, read_mapping(root / "scene.json")["view"], "scene.json")
            return load_meshes(root / "meshes.npz"), view
        if name.startswith("tiny_meshes"):
            return load_meshes(resolve_data_dir(data_dir) / TINY_FILE), view
    except (MissingDataError, FileNotFoundError, KeyError):
        pass  # the answer has no picture then
    return None, view
