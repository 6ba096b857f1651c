"""What a run wrote down, without the folders of the machine it ran on."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from torchcaps.data import FOLDER_PREFIX
from torchcaps.train import Recipe

_ABSOLUTE = re.compile(r"[/~\\]|[A-Za-z]:[/\\]")


def recipe_without_paths(recipe: Recipe, trained_on: str) -> Recipe:
    """The recipe with `trained_on` in place of a folder of data, and the run it started from by name."""
    data = replace(recipe.data, name=_name(recipe.data.name, trained_on))
    return replace(recipe, data=data, start_from=PurePath(recipe.start_from).name)


def without_paths(value: Any, trained_on: str) -> Any:
    """Plain data in which a folder of data is called `trained_on`, and other files by their names alone."""
    if isinstance(value, str):
        return _name(value, trained_on)
    if isinstance(value, dict):
        return {key: without_paths(each, trained_on) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_paths(each, trained_on) for each in value]
    return value


def _name(text: str, trained_on: str) -> str:
    if text.startswith(FOLDER_PREFIX):
        return f"{FOLDER_PREFIX}{trained_on}"
    return PurePath(text.replace("\\", "/")).name if _ABSOLUTE.match(text) else text
