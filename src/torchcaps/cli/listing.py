"""`torchcaps list`: what can be named in a recipe."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from .terminal import Json, print_json, print_table


class Kind(StrEnum):
    """What can be listed."""

    models = "models"
    routings = "routings"
    datasets = "datasets"
    recipes = "recipes"


def command(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    pattern: Annotated[str, typer.Argument(help="Shell pattern for the names.")] = "*",
    json: Json = False,
) -> None:
    """List models, routings, datasets or recipes."""
    rows = _ROWS[kind](pattern)
    if json or rows:
        (print_json if json else print_table)(rows)
    else:
        typer.echo(f"no {kind} match {pattern!r}; `torchcaps list {kind}` shows all", err=True)


def _models(pattern: str) -> list[dict[str, Any]]:
    from torchcaps.inspection import describe_model
    from torchcaps.models import list_models

    return [describe_model(name) for name in list_models(pattern)]


def _routings(pattern: str) -> list[dict[str, Any]]:
    from torchcaps.routing import describe_routing, list_routings

    return [describe_routing(name) for name in list_routings(pattern)]


def _datasets(pattern: str) -> list[dict[str, Any]]:
    from torchcaps.data import DATASETS, list_datasets

    infos = [DATASETS[name] for name in list_datasets(pattern)]
    return [
        {
            "name": info.name,
            "image": [info.channels, info.height, info.width],
            "classes": info.num_classes,
            "train": info.num_train,
            "test": info.num_test,
            "licence": info.licence,
        }
        for info in infos
    ]


def _recipes(pattern: str) -> list[dict[str, Any]]:
    from fnmatch import fnmatch

    from torchcaps.train import load_recipe, packaged_recipes

    recipes = [(name, load_recipe(name)) for name in packaged_recipes() if fnmatch(name, pattern)]
    return [
        {"name": name, "model": recipe.model["name"], "data": recipe.data.name, "epochs": recipe.epochs}
        for name, recipe in recipes
    ]


_ROWS = {Kind.models: _models, Kind.routings: _routings, Kind.datasets: _datasets, Kind.recipes: _recipes}
