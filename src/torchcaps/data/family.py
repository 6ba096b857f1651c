"""Datasets with settings in their names, such as `partwhole:clutter=0.5,classes=6`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

from torchcaps.core import UserError, build_dataclass

from .api import DATASETS, FAMILIES, DatasetInfo

S = TypeVar("S")


def register_family(name: str, kind: type[S], describe: Callable[[S], DatasetInfo]) -> DatasetInfo:
    """Make a dataset known by its name, and by its name with settings behind it.

    Args:
        name: Of the dataset; `describe` of the default settings is registered under it.
        kind: A frozen dataclass of settings, all with defaults.
        describe: Gives the info of a dataset with these settings.
    """

    def with_settings(text: str) -> DatasetInfo:
        full = f"{name}:{text}"
        return replace(describe(read_settings(kind, full)), name=full)

    FAMILIES[name] = with_settings
    return DATASETS.register(name)(describe(kind()))


def read_settings(kind: type[S], full_name: str) -> S:
    """The settings in the name of a dataset; a name without any has the defaults."""
    name, colon, text = full_name.partition(":")
    values = _read(text, name) if colon else {}
    lists = {field.name for field in fields(kind) if isinstance(field.default, tuple)}  # type: ignore[arg-type]
    listed = {key: [values[key]] for key in lists & values.keys() if isinstance(values[key], int)}
    return build_dataclass(kind, {**values, **listed}, name)


def _read(text: str, name: str) -> dict[str, Any]:
    """`a=1,b=3x4,c=word` as a mapping; whole numbers with an x between are a list."""
    values: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals or not key or not value:
            raise UserError(
                f"{name}:{text}: settings are written as key=value with commas between, got {part!r}"
            )
        values[key.strip()] = _value(value.strip())
    return values


def _value(text: str) -> int | str | list[int]:
    numbers = text.split("x")
    if all(number.lstrip("-").isdecimal() for number in numbers):
        return int(text) if len(numbers) == 1 else [int(number) for number in numbers]
    return text
