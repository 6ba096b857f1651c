"""A finished or interrupted run, read back from its folder."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias, cast

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from torchcaps.core import MissingDataError, Plain, UserError, listed
from torchcaps.data import DatasetInfo, Examples, LabelledImages
from torchcaps.models import Network, build_model
from torchcaps.routing import set_iterations
from torchcaps.storage import load_weights, read_json, read_json_lines, wrong_kind

from ..evaluate import evaluate
from ..objective import Objective
from ..pipeline import Pipeline
from ..recipe import Recipe, packaged_recipes, read_recipe, require_memory
from ..source import Source, source_of
from ..tasks import AnyTask
from .data_card import DataCard

_LONGEST = 300  # characters of PyTorch's words in a message


@dataclass(frozen=True)
class Run:
    """A trained model with the recipe that made it."""

    folder: Path
    recipe: Recipe
    model: Network
    epoch: int
    card: DataCard | None = None  # None in a run that was imported, or written before there were cards

    @property
    def task(self) -> AnyTask:
        """What the model is for."""
        return self.recipe.task

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    def expect_task(self, name: str) -> None:
        """Raise where the run is for another task than the named one."""
        if self.task.name != name:
            raise UserError(f"{self.folder} is a run of {self.task.name}; this needs one of {name}")

    def source(self, data_name: str | None = None, data_dir: Path | None = None) -> Source:
        """The dataset of the run, or another one that is read like it."""
        recipe = self.recipe
        if data_name is not None:
            recipe = replace(recipe, data=replace(recipe.data, name=data_name))
        return source_of(recipe, self.model, data_dir)

    def info(self, data_dir: Path | None = None) -> DatasetInfo:
        """What the run knows about its dataset; without a card, what the dataset says itself."""
        if self.card is None:
            return self.source(data_dir=data_dir).info()
        return self.card.describe(self.recipe.data.name)

    def prepare(
        self, images: Shaped[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch channels new_height new_width"]:
        """Images as they look, in bytes or in [0, 1], as the model of this run gets them, on its device.

        They are resized and cropped where the recipe says so, and scaled by mean and deviation of the
        training images.

        Examples:
            >>> run = load_run("runs/mine")
            >>> run.model(run.prepare(torch.rand(2, *run.model.image_shape))).activations.shape
            torch.Size([2, 10])
        """
        return Pipeline(self.recipe.data, self.info()).for_evaluation(images.to(self.device)).inputs

    @property
    def metrics(self) -> list[Plain]:
        """One row per epoch."""
        return read_json_lines(self.folder / "metrics.jsonl")


def load_run(folder: Path | str, device: torch.device | str = "cpu", *, weights: str = "weights") -> Run:
    """The weights that the run in `folder` ended with, or others that it kept, ready for inference.

    Examples:
        >>> run = load_run("runs/mine")
        >>> run.task.name
        'classification'
    """
    if not isinstance(folder, os.PathLike | str):
        raise UserError(f"a run is loaded from its folder, as runs/mine, got a {type(folder).__name__}")
    folder = Path(folder)
    recipe = read_recipe(folder)
    if recipe is None:
        recipe_name = folder.name.replace("-", "/", 1)  # a packaged recipe names its run
        named = f" {recipe_name}" if recipe_name in packaged_recipes() else ""
        raise MissingDataError(
            f"{folder} holds no run (no recipe.json); make one with torchcaps train{named}"
        )
    device = _checked_device(device)
    path = folder / f"{weights}.safetensors"
    state, header = load_weights(path)
    require_memory(recipe)
    model = build_model(recipe.model)
    try:
        if recipe.annealing is not None:
            set_iterations(model, header["iterations"], recipe.annealing.layers)
        if problem := wrong_kind(state, model.state_dict()):
            raise ValueError(problem)
        model.load_state_dict(state)
        epoch = int(header.get("epoch", -1))
    except (RuntimeError, LookupError, TypeError, ValueError) as error:
        problem = " ".join(str(error).split())[:_LONGEST]
        raise UserError(f"{path} does not fit the model in recipe.json: {problem}; restore both") from error
    card = read_data_card(folder)
    if card is not None:
        recipe.task.check_model(model, card.describe(f"in {folder / 'data.json'}"))
    return Run(folder, recipe, model.to(device).eval(), epoch, card)


def _checked_device(device: torch.device | str) -> torch.device:
    try:
        found = torch.device(device)
    except RuntimeError as error:
        raise UserError(f"device must be such as cpu or cuda, got {device!r}") from error
    if found.type == "meta":
        raise UserError("a run cannot be loaded on the device meta, which holds no numbers")
    return found


def read_data_card(folder: Path) -> DataCard | None:
    """The card of the data that the run in `folder` was trained on, if it has one."""
    path = folder / "data.json"
    return DataCard.from_plain(read_json(path), str(path)) if path.is_file() else None


def load_split(
    run: Run, split: str, *, data_name: str | None = None, data_dir: Path | None = None
) -> tuple[Examples, Pipeline]:
    """Examples of a run's own dataset or another, on its device, prepared like those of its training.

    Args:
        run: The run.
        split: "test", "validation" or "train".
        data_name: Another dataset of the same shape.
        data_dir: Folder of the datasets.
    """
    source = run.source(data_name, data_dir)
    match split:
        case "test":
            examples = source.test(run.device)
        case "train" | "validation":
            examples = getattr(source.splits(run.device), split)
        case _:
            raise UserError(f"split must be test, validation or train, got {split!r}")
    pipeline = Pipeline(source.settings, run.info(data_dir))
    if data_name is None and run.task.knows_classes:  # those of a folder may have changed since
        _check_classes(examples.classes, pipeline, MissingDataError)
    return examples, pipeline


Loader: TypeAlias = Callable[..., tuple[Examples, Pipeline]]  # with the arguments of `load_split`


def load_labelled(
    run: Run, split: str, *, data_name: str | None = None, data_dir: Path | None = None
) -> tuple[LabelledImages, Pipeline]:
    """`load_split` of a run that classifies; parse trees and their dictionaries know no other task."""
    run.expect_task("classification")
    examples, pipeline = load_split(run, split, data_name=data_name, data_dir=data_dir)
    return cast(LabelledImages, examples), pipeline


def evaluate_run(
    run: Run,
    split: str = "test",
    *,
    data_name: str | None = None,
    data_dir: Path | None = None,
    load: Loader = load_split,
) -> Plain:
    """Loss, metrics and tables of a run on one split, of its own dataset or another, as plain data.

    `load` reads the split.

    Examples:
        >>> found = evaluate_run(load_run("runs/mine"), data_name="synthetic_mnist")
        >>> found["images"], len(found["confusion"])
        (128, 10)
    """
    examples, pipeline = load(run, split, data_name=data_name, data_dir=data_dir)
    if run.task.knows_classes:
        _check_classes(examples.classes, pipeline, UserError)
    objective = Objective.of_network(run.model, run.recipe.loss, examples.device)
    found = evaluate(run.model, examples, run.task, pipeline, objective)
    if not math.isfinite(found.loss):
        raise UserError(f"the loss of {run.folder} is not finite; its weights are damaged")
    return {
        "run": str(run.folder),
        "task": run.task.name,
        "data": pipeline.settings.name,
        "split": split,
        "images": len(examples),
        "loss": found.loss,
        **found.metrics,
        **found.tables,
    }


def _check_classes(found: Sequence[str], pipeline: Pipeline, problem: type[UserError]) -> None:
    known = pipeline.info.classes
    if len(found) == len(known) == 1:  # of masks: there is nothing to take it for
        return
    if tuple(found) != tuple(known):
        raise problem(
            f"{pipeline.settings.name} has the classes {listed(found)}; the run knows, in this order, "
            f"{listed(known)}: its answers cannot be compared"
        )
