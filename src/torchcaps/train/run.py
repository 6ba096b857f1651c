"""A finished or interrupted run, read back from its folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from torchcaps.core.errors import MissingDataError, UserError
from torchcaps.data import DatasetInfo, LabelledImages
from torchcaps.models import create_model
from torchcaps.storage import load_weights, read_json, write_json, write_text

from .annealing import set_iterations
from .data_card import DataCard
from .evaluate import evaluate
from .objective import Objective
from .pipeline import Pipeline, info_of, load_splits, load_test
from .recipe import Data, Recipe, build, recipe_as_json, recipe_as_yaml


@dataclass(frozen=True)
class Run:
    """A trained model with the recipe that made it."""

    folder: Path
    recipe: Recipe
    model: nn.Module
    epoch: int
    card: DataCard | None = None  # None in a run that was imported, or written before there were cards

    def info(self, data_dir: Path | None = None) -> DatasetInfo:
        """What the run knows about its dataset; without a card, what the dataset says itself."""
        settings = self.recipe.data
        return info_of(settings, data_dir) if self.card is None else self.card.describe(settings.name)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """One row per epoch."""
        return [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]


def write_recipe(folder: Path, recipe: Recipe, card: DataCard | None = None) -> None:
    """Write down what a run does, for programs and for people, and the card of its data."""
    write_json(folder / "recipe.json", recipe_as_json(recipe))
    if card is not None:
        write_json(folder / "data.json", asdict(card))
    write_text(folder / "recipe.yaml", recipe_as_yaml(recipe))


def load_run(folder: Path, device: torch.device | str = "cpu", *, weights: str = "weights") -> Run:
    """The weights that the run in `folder` ended with, or others that it kept, ready for inference."""
    if not (folder / "recipe.json").is_file():
        raise MissingDataError(f"{folder} holds no run (no recipe.json); make one with torchcaps train")
    recipe = build(Recipe, read_json(folder / "recipe.json"))
    state, info = load_weights(folder / f"{weights}.safetensors")
    options = dict(recipe.model)
    model = create_model(options.pop("name"), **options)
    if recipe.annealing is not None:
        set_iterations(model, info["iterations"], recipe.annealing.layers)
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise UserError(f"the weights in {folder} do not fit its model: {error}") from error
    return Run(folder, recipe, model.to(device).eval(), int(info.get("epoch", -1)), read_data_card(folder))


def read_data_card(folder: Path) -> DataCard | None:
    """The card of the data that the run in `folder` was trained on, if it has one."""
    path = folder / "data.json"
    return build(DataCard, read_json(path), str(path)) if path.is_file() else None


def load_split(
    settings: Data, split: str, data_dir: Path | None = None, device: torch.device | str = "cpu"
) -> tuple[LabelledImages, Pipeline]:
    """The images of one split of a recipe's data, and what becomes of them before a network sees them."""
    place = torch.device(device)
    match split:
        case "test":
            data = load_test(settings, data_dir, place)
        case "train" | "validation":
            data = getattr(load_splits(settings, data_dir, place), split)
        case _:
            raise UserError(f"split must be test, validation or train, got {split!r}")
    return data, Pipeline(settings, info_of(settings, data_dir))


def load_split_for(
    run: Run, split: str, *, data_name: str | None = None, data_dir: Path | None = None
) -> tuple[LabelledImages, Pipeline]:
    """Images of a run's own dataset or another, on its device, made ready like those that it learnt from."""
    settings = run.recipe.data if data_name is None else replace(run.recipe.data, name=data_name)
    data, _ = load_split(settings, split, data_dir, next(run.model.parameters()).device)
    return data, Pipeline(settings, run.info(data_dir))


def evaluate_run(
    run: Run, split: str = "test", *, data_name: str | None = None, data_dir: Path | None = None
) -> dict[str, Any]:
    """Loss, accuracy and accuracy per class of a run on one split, of its own dataset or another."""
    data, pipeline = load_split_for(run, split, data_name=data_name, data_dir=data_dir)
    _check_classes(data.classes, pipeline)
    device = data.labels.device
    objective = Objective(run.recipe.loss, has_decoder=run.recipe.loss.reconstruction > 0, device=device)
    loss, accuracy, confusion = evaluate(run.model, data, pipeline, objective)
    counts = confusion.sum(1).tolist()
    hits = confusion.diagonal().tolist()
    return {
        "run": str(run.folder),
        "data": pipeline.settings.name,
        "split": split,
        "images": len(data),
        "loss": loss,
        "accuracy": accuracy,
        "class_accuracy": {
            name: hit / count if count else None
            for name, hit, count in zip(data.classes, hits, counts, strict=True)
        },
        "confusion": confusion.tolist(),
    }


def _check_classes(found: Sequence[str], pipeline: Pipeline) -> None:
    known = pipeline.info.classes
    if tuple(found) != tuple(known):
        raise UserError(
            f"{pipeline.settings.name} has the classes {', '.join(found)}; the run knows, in this order, "
            f"{', '.join(known)}: its answers cannot be compared"
        )
