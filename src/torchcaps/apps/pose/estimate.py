"""Class and rotation of the object in an image file, how certain that is, and a picture of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import torch
from PIL import Image

from torchcaps.core import (
    MissingDataError,
    Plain,
    PoseOutput,
    PoseTarget,
    UserError,
    build_dataclass,
    euler_of_quaternions,
)
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
from torchcaps.losses import rotations_of
from torchcaps.storage import read_mapping
from torchcaps.train import (
    Answer,
    Pipeline,
    Run,
    fit_to_data,
    is_numbered,
    open_named,
    own_images,
    read_named,
)
from torchcaps.train.tasks import symmetric_angle

from .uncertainty import COVERED_SHARE, forgives_symmetries, has_votes, read_calibration, vote_spread

_SIDE = 256  # pixels of each half of a picture


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
        if (image.amin((-2, -1)) == image.amax((-2, -1))).all():
            raise UserError(f"{path} has one colour alone: it shows no object")
        batch = Pipeline(self.run.recipe.data, self.info).for_evaluation(image.to(self.run.device))
        output = self.run.model(batch.inputs, return_routing=True)
        task = self.run.task
        found = task.answer(task.outputs(output), self.info, picture)
        uncertainty, truth = self._uncertainty(output), self._truth(path, output)
        row = {**found.row, "uncertainty": uncertainty, "truth": truth}
        words = (found.words, *_uncertain_words(row), _angles_in_words(row["euler"]), *_true_words(row))
        return Answer(row, ", ".join(words))

    def drawn_answer(self, path: Path) -> Answer:
        """`answer`, with a picture of the image beside the object where the objects are known."""
        answer = self.answer(path)
        return (
            answer if self.meshes is None else replace(answer, pictures={"pose": self._picture(path, answer)})
        )

    def _uncertainty(self, output: PoseOutput) -> Plain | None:
        """Degrees that images with votes so far apart are off, where the run is calibrated."""
        if self.calibration is None or not self.calibration.is_enough:
            return None
        spread = float(vote_spread(self.run.model, output.layers[0], output.activations.argmax(1)))  # type: ignore[arg-type]
        usual, within = self.calibration.at(spread)
        return {
            "median": round(usual, 2),
            "within": round(within, 2),
            "share": COVERED_SHARE,
            "up_to_symmetry": forgives_symmetries(self.run),
        }

    def _truth(self, path: Path, output: PoseOutput) -> Plain | None:
        """Class and rotation of an image of the run's own data, and the error in degrees."""
        if not is_numbered(path):
            return None
        examples, index = self._own.find(str(path))
        target = examples.targets_at(torch.tensor([index], device=examples.device))
        target = PoseTarget(target.labels.to(self.run.device), target.rotations.to(self.run.device))
        found = rotations_of(output, output.activations.argmax(1)).float()
        error = symmetric_angle(self.run.recipe.loss.task_loss, found, target, len(self.info.classes))
        rotation = target.rotations[0].float().cpu()
        return {
            "class": self.info.classes[int(target.labels)],
            "rotation": [round(value, 6) for value in rotation.tolist()],
            "euler": [round(value, 2) for value in euler_of_quaternions(rotation).tolist()],
            "error": round(float(error), 2),
            "up_to_symmetry": forgives_symmetries(self.run),
        }

    def _picture(self, path: Path, answer: Answer) -> Image.Image:
        """The image beside the object in the predicted rotation."""
        from torchcaps.viz import draw_side_by_side, to_png  # without a picture, nobody needs matplotlib

        assert self.meshes is not None
        row = answer.row
        mesh = self.meshes.of_class(self.info.classes.index(row["class"]))[0]
        whole = replace(self.view, height=_SIDE, width=_SIDE)  # between bands, as "pad" has it
        view = self.view.cropped(_SIDE, _SIDE) if self.info.fit == "crop" else whole
        drawn = render_smooth(mesh, torch.tensor(row["rotation"]).view(1, 4), view)
        shown = replace(self.info, channels=3, height=_SIDE, width=_SIDE)
        seen = fit_to_data(open_named(path, shown, self._own), shown)
        truth = row["truth"]
        told = [] if truth is None else [f"in truth: {truth['class']}", _angles_in_words(truth["euler"])]
        off = _true_words(row) or _uncertain_words(row)
        figure = draw_side_by_side(
            torch.cat([seen, drawn]),
            titles=["image", "estimated"],
            captions=[[path.name, *told], [row["class"], _angles_in_words(row["euler"]), *off]],
        )
        return Image.open(BytesIO(to_png(figure)))


def _angles_in_words(euler: Sequence[float]) -> str:
    return f"Euler angles {', '.join(f'{angle:.1f}°' for angle in euler)}"


def _uncertain_words(row: Plain) -> list[str]:
    found = row["uncertainty"]
    if found is None:
        return []
    alike = " up to symmetry" if found["up_to_symmetry"] else ""
    return [
        f"usually {found['median']:.1f}° off{alike}",
        f"{found['share']:.0%} within {found['within']:.1f}°",
    ]


def _true_words(row: Plain) -> list[str]:
    truth = row["truth"]
    if truth is None:
        return []
    if truth["class"] != row["class"]:
        return [f"wrong class: it is {truth['class']}"]
    return [f"error {truth['error']:.1f}°{' up to symmetry' if truth['up_to_symmetry'] else ''}"]


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
