"""NumPy arrays in files: written whole, and read only where they have the form that they should have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import UserError, reason_of

from .files import write_atomically

Found = TypeVar("Found")


class Form(NamedTuple):
    """What an array must be: the letters that NumPy has for its kinds of values, and how many axes it has."""

    kinds: str
    axes: int


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as a compressed `.npz`, whole or not at all."""

    def fill(draft: Path) -> None:
        with draft.open("wb") as file:  # by its name alone, NumPy would add an ending
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # its own keyword comes last

    write_atomically(path, fill)


def read_arrays(path: Path, forms: Mapping[str, Form], what: str) -> dict[str, NDArray[Any]]:
    """The arrays of a `.npz` by their names; `what` says in an error what the file should be."""

    def read() -> dict[str, NDArray[Any]]:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: np.asarray(archive[name]) for name in forms}  # a member that is no array is bytes

    arrays = _read(read, path, what)
    for name, form in forms.items():
        _check_form(arrays[name], form, f"{path} is no {what}: {name}")
    return arrays


def read_array(path: Path, form: Form, what: str) -> NDArray[Any]:
    """The array of a `.npy`, as `read_arrays` reads several."""
    array = _read(lambda: np.asarray(np.load(path, allow_pickle=False)), path, what)
    _check_form(array, form, f"{path} is no {what}: it")
    return array


def _read(read: Callable[[], Found], path: Path, what: str) -> Found:
    try:
        return read()
    except Exception as error:  # of zip files, of zlib, of Python's reader of numbers, and of memory
        raise UserError(f"{path} is no {what}, or damaged ({reason_of(error)}); write it anew") from error


def _check_form(array: NDArray[Any], form: Form, where: str) -> None:
    if array.dtype.kind not in form.kinds or array.ndim != form.axes:
        raise UserError(f"{where} holds {array.dtype} of shape {array.shape}; write the file anew")
