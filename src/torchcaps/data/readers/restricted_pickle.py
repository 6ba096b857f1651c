"""Reading a pickle of plain values and byte arrays without running anything it names."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BYTE_TYPES = ("u1", "|u1", b"u1", b"|u1")


class RefusedPickleError(Exception):
    """A pickle that asks for more than plain values and byte arrays."""


class PickledArray:
    """Takes the place of a numpy array while a pickle is read, and keeps what the pickle says about it."""

    def __init__(self) -> None:
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def array(self) -> NDArray[np.uint8]:
        """The array; anything but bytes in row order is refused."""
        match self.state:
            case (_, tuple() as shape, PickledType(code=code), False | 0, bytes() as values) if (
                code in _BYTE_TYPES
            ):
                pass
            case _:
                raise RefusedPickleError("its array is not plain bytes in row order")
        try:
            return np.frombuffer(values, np.uint8).reshape(shape).copy()
        except (TypeError, ValueError) as error:
            raise RefusedPickleError(f"its array does not have the shape it claims ({error})") from error


class PickledType:
    """Takes the place of a numpy dtype."""

    def __init__(self, code: str | bytes, *_: Any) -> None:
        self.code = code

    def __setstate__(self, state: Any) -> None:
        """The byte order and the like, which a single byte does not have."""


class _Function:
    """A function that a pickle may call but, unlike a plain one, not change."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)

    def __setstate__(self, state: Any) -> None:
        raise RefusedPickleError("it tries to change a function")


def _new_array(*_: Any) -> PickledArray:
    return PickledArray()


def _encode(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise RefusedPickleError(f"it has text in {encoding!r}")
    return text.encode("latin1")


def _empty_bytes() -> bytes:
    return b""


# Every name a pickled byte array mentions, and the harmless object that is handed out for it.
_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _Function(_new_array),
    ("numpy._core.multiarray", "_reconstruct"): _Function(_new_array),
    ("numpy", "ndarray"): PickledArray,
    ("numpy", "dtype"): PickledType,
    ("_codecs", "encode"): _Function(_encode),
    ("__builtin__", "bytes"): _Function(_empty_bytes),  # how protocol 2 writes b""
}


class _RestrictedUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _STAND_INS[module, name]
        except KeyError:
            raise RefusedPickleError(f"it names {module}.{name}, which image batches never use") from None

    def persistent_load(self, key: Any) -> Any:
        raise RefusedPickleError(f"it refers to something outside the file ({key!r})")


def load_restricted(data: bytes) -> Any:
    """The object in a pickle whose only non-plain parts are byte arrays, each returned as a `PickledArray`.

    Text written by Python 2 comes back as bytes. Raises `RefusedPickleError` for a pickle that is damaged or
    names anything else; nothing that it names is imported or called.
    """
    try:
        return _RestrictedUnpickler(io.BytesIO(data), encoding="bytes").load()
    except RefusedPickleError:
        raise
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise RefusedPickleError(f"it cannot be decoded ({type(error).__name__}: {error})") from error
