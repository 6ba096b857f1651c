"""What each key of a recipe means, read from the docstrings of the dataclasses that hold them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from inspect import getdoc
from typing import Any, NamedTuple, get_args, get_type_hints

from torchcaps.core import as_plain, markdown_table
from torchcaps.losses import LOSSES

from ..objective import LossSettings
from .recipe import Recipe, recipe_as_json

_WIDEST_VALUE = 28  # comments of one group stand in one column up to here
_LOSS_NAME = "One of the losses of the task; without it, the usual one."


def words_of(kind: type) -> dict[str, str]:
    """What the section `Attributes` of a class's docstring says of each field."""
    _, _, section = (getdoc(kind) or "").partition("\nAttributes:\n")
    entries = re.split(r"\n(?=    \w)", f"\n{section}")[1:]
    pairs = (entry.strip().partition(": ") for entry in entries)
    return {name: " ".join(words.split()) for name, _, words in pairs}


def annotated_recipe(recipe: Recipe) -> str:
    """The resolved recipe as YAML, with what each key means beside it."""
    return "\n".join(_lines(recipe_as_json(recipe), recipe, "")) + "\n"


def _lines(values: Mapping[str, object], holder: object, indent: str) -> Iterator[str]:
    words = _words_in(holder)
    for key, value in values.items():
        comment = f"  # {words[key]}" if key in words else ""
        if isinstance(value, Mapping) and value:
            yield f"{indent}{key}:{comment}"
            yield from _lines(value, getattr(holder, key, None), f"{indent}  ")
        else:
            entry = f"{indent}{key}: {json.dumps(value, ensure_ascii=False)}"
            yield f"{entry:<{_WIDEST_VALUE}}{comment}" if comment else entry


def _words_in(holder: object) -> dict[str, str]:
    if isinstance(holder, LossSettings):
        return {"name": _LOSS_NAME, **words_of(LossSettings), **words_of(type(holder.task_loss))}
    return words_of(type(holder)) if is_dataclass(holder) else {}


class Group(NamedTuple):
    """Keys that stand under one key of a recipe."""

    title: str
    about: str
    rows: list[tuple[str, str, str]]  # key, default, words


def key_groups() -> list[Group]:
    """All keys of a recipe, group by group, and the settings of each loss."""
    groups = list(_groups(Recipe, ""))
    for name in LOSSES.names():
        kind = LOSSES[name]
        about = f"{_first_line(kind)} For {kind.task}."
        groups.append(Group(f"loss, name: {name}", about, _rows(kind)))
    return groups


def _groups(kind: type, prefix: str) -> Iterator[Group]:
    nested = {field.name: _nested(kind, field) for field in fields(kind)}
    yield Group(prefix or "The recipe", _first_line(kind), _rows(kind))
    for name, below in nested.items():
        if below is not None:
            yield from _groups(below, f"{prefix}.{name}" if prefix else name)


def _nested(kind: type, field: Field[Any]) -> type | None:
    hint = get_type_hints(kind)[field.name]
    return next((each for each in (hint, *get_args(hint)) if is_dataclass(each)), None)  # type: ignore[return-value]


def _rows(kind: type) -> list[tuple[str, str, str]]:
    words = words_of(kind)
    rows = [
        (field.name, _default(field), words.get(field.name, ""))
        for field in fields(kind)
        if field.name != "task_loss"
    ]
    return [("name", '"margin"', _LOSS_NAME), *rows] if kind is LossSettings else rows


def _default(field: Field[Any]) -> str:
    if field.default is MISSING:
        return "required" if field.default_factory is MISSING else "see below"
    return json.dumps(as_plain(field.default), ensure_ascii=False)


def _first_line(kind: type) -> str:
    return " ".join((getdoc(kind) or "").partition("\n\n")[0].split())


def keys_as_markdown() -> str:
    """The page of all keys."""
    parts = [
        "# Every key of a recipe",
        "A recipe is a YAML file that says all of a training: model, data, loss, optimizer. "
        "`torchcaps list recipes` shows those of the package,\n`torchcaps recipe show NAME` prints one with "
        "all of its keys, and `torchcaps train NAME --set optim.learning_rate=3e-4` replaces a key.\n"
        "`model` takes the name of a model and any field of its config, such as `num_classes`, "
        "`in_channels`, `image_size`, `routing`\nor `decoder`.",
        "This page is written by `python -m torchcaps.train.recipe.keys docs/recipes.md`; a test keeps it "
        "current.",
    ]
    for group in key_groups():
        parts += [f"## {group.title}", group.about]
        if group.rows:
            rows = ((f"`{key}`", f"`{default}`", words) for key, default, words in group.rows)
            parts.append(markdown_table(("key", "default", "meaning"), rows).rstrip("\n"))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    import sys
    from pathlib import Path

    from torchcaps.storage import write_text

    write_text(Path(sys.argv[1]), keys_as_markdown())
