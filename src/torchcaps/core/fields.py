"""Plain data, as YAML and JSON hold it, checked against the type hints of what it is given to."""

from __future__ import annotations

import math
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from .errors import UserError, unknown_name

T = TypeVar("T")
Plain: TypeAlias = dict[str, Any]  # what JSON holds: text, numbers, lists and mappings, by name
_LONGEST = 200  # characters of a value in a message
_LARGEST = 2**63 - 1  # whole number that a tensor holds


def shown(value: object) -> str:
    """A value as a message shows it: as Python writes it, cut where it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python writes no number of more than 4,300 digits
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def build_dataclass(kind: type[T], values: object, where: str) -> T:
    """Build the dataclass `kind` from plain data; unknown keys and wrong types are errors with a place."""
    hints = _hints_of(kind)  # type: ignore[arg-type]
    if not isinstance(values, Mapping):
        some = ", ".join(list(hints)[:3])
        raise UserError(f"{where}: expected a mapping of keys such as {some}, got {shown(values)}")
    for key in values:
        if key not in hints:
            raise unknown_name(f"key in {where}:", str(key), hints)
    for field_ in fields(kind):  # type: ignore[arg-type]
        has_default = field_.default is not MISSING or field_.default_factory is not MISSING
        if not has_default and field_.name not in values:
            raise UserError(f"{where}: the key {field_.name!r} is missing")
    return kind(**{key: convert(hints[key], value, f"{where}.{key}") for key, value in values.items()})


@cache
def _hints_of(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)  # it compiles the text of each hint: most of the time of reading many rows


def convert(kind: Any, value: Any, where: str) -> Any:
    """`value` as the type hint `kind` wants it; an error begins with `where`."""
    origin, arguments = get_origin(kind), get_args(kind)
    if hasattr(kind, "from_plain"):  # a class with a reader of its own
        return kind.from_plain(value, where)
    if is_dataclass(kind):
        return build_dataclass(kind, value, where)  # type: ignore[arg-type]
    if origin is Literal:
        if value not in arguments:
            raise UserError(f"{where}: expected one of {list(arguments)}, got {shown(value)}")
        return value
    if origin in (Union, types.UnionType):
        return _convert_union(arguments, value, where)
    if origin is tuple:
        return _convert_tuple(arguments, value, where)
    return _convert_plain(origin or kind, value, where)


def _convert_union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    kinds = tuple(kind for kind in kinds if kind is not type(None))
    if len(kinds) == 1:
        return convert(kinds[0], value, where)
    for kind in kinds:
        try:
            return convert(kind, value, where)
        except UserError:
            continue
    raise UserError(f"{where}: expected {' or '.join(map(_words, kinds))}, got {shown(value)}")


def _words(kind: Any) -> str:
    """A type hint as a user would call it; YAML has lists where Python has tuples."""
    if get_origin(kind) is tuple and get_args(kind)[-1] is not Ellipsis:
        return f"a list of {len(get_args(kind))}"
    return getattr(get_origin(kind) or kind, "__name__", str(kind))


def _convert_tuple(kinds: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise UserError(f"{where}: expected a list, got {shown(value)}")
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(value)
    if len(kinds) != len(value):
        raise UserError(f"{where}: expected {len(kinds)} values, got {len(value)}")
    return tuple(convert(k, v, f"{where}[{i}]") for i, (k, v) in enumerate(zip(kinds, value, strict=True)))


def _convert_plain(kind: Any, value: Any, where: str) -> Any:
    if kind is Any or not isinstance(kind, type):  # what only a type checker understands
        return value
    if kind is float and isinstance(value, float | int | str) and not isinstance(value, bool):
        return _finite(value, where)
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        _check_plain(value, where)
        return value
    raise UserError(f"{where}: expected {kind.__name__}, got {shown(value)}")


def _check_plain(value: Any, where: str) -> None:
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise UserError(f"{where}: the number is too large, got {shown(value)}")
    if isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):
        raise UserError(f"{where}: keys must be text, got {shown(list(value))}")


def _finite(value: Any, where: str) -> float:
    try:
        number = float(value)  # PyYAML reads 1e-3 as text
    except (ValueError, OverflowError):
        raise UserError(f"{where}: expected float, got {shown(value)}") from None
    if not math.isfinite(number):
        raise UserError(f"{where}: expected a finite number, got {shown(value)}")
    return number


def finite_or_none(value: Any) -> Any:
    """Plain data with None for numbers that are not finite, which JSON does not know."""
    if isinstance(value, Mapping):
        return {key: finite_or_none(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_none(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_plain(value: Any) -> Any:
    """Lists, mappings and numbers that `convert` reads back; a class may say itself with `to_plain`."""
    if hasattr(value, "to_plain"):
        return value.to_plain()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: as_plain(item) for key, item in value.items()}
    return [as_plain(item) for item in value] if isinstance(value, list | tuple) else value


def whole_numbers(value: Any) -> Iterable[int]:
    """The integers in a value or in the tuples that it nests."""
    if isinstance(value, tuple):
        for item in value:
            yield from whole_numbers(item)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield value


def require_equal_lengths(**lists: tuple[Any, ...]) -> None:
    """Raise when lists that belong together, named as their fields are, differ in length."""
    if len({len(values) for values in lists.values()}) > 1:
        lengths = ", ".join(f"{name} has {len(values)}" for name, values in lists.items())
        raise UserError(f"these lists must have as many values as each other: {lengths}")
