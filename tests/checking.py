"""Types and shapes are checked while tests run, at little cost.

The import hook of jaxtyping gives each function three wrappers when its module is imported, and each call
binds its arguments to names, whether a shape is named or not: a fifth of the time of all tests. Here a
function gets its checks when it is first called, beartype checks arguments and result once, and only
a function that names shapes begins a new memory of sizes.
"""

import functools
import inspect
from dataclasses import is_dataclass
from typing import Any, get_args, get_type_hints

import jaxtyping

_memory = jaxtyping.jaxtyped("context")  # sizes of the call under way; it keeps nothing between calls
_with_values = functools.partial(jaxtyping.jaxtyped, typechecker=None)  # for sizes such as {count}


def jaxtyped(*, typechecker):
    """What stands for `jaxtyping.jaxtyped` in the modules that its import hook reads."""
    return functools.partial(_check_when_called, typechecker=typechecker)


def _check_when_called(function, typechecker):
    if inspect.isclass(function):
        if is_dataclass(function) and "__init__" in vars(function):
            function.__init__ = _check_when_called(function.__init__, typechecker)
        return function
    checked = None

    @functools.wraps(function)
    def call(*args, **kwargs):
        nonlocal checked
        if checked is None:
            checked = _check(function, typechecker)
        return checked(*args, **kwargs)

    return call


def _check(function, typechecker):
    hints = {name: _read(hint, function) for name, hint in function.__annotations__.items()}
    function.__annotations__ = hints
    sizes = [size for hint in hints.values() for size in _sizes(hint)]
    checked = typechecker(function, conf=_refusal())
    if any("{" in size for size in sizes):
        return _with_values(checked)
    return _remember(checked) if sizes else checked


@functools.cache
def _refusal():
    from beartype import BeartypeConf  # missing where no checks are asked for

    return BeartypeConf(violation_type=jaxtyping.TypeCheckError)


class _Annotated:
    def __init__(self, hint):
        self.__annotations__ = {"value": hint}


def _read(hint, function):
    """The type that a text stands for; what only type checkers import may be anything."""
    try:
        return get_type_hints(_Annotated(hint), function.__globals__, include_extras=True)["value"]
    except (NameError, AttributeError, TypeError, ValueError):
        return Any


def _sizes(hint):
    """The sizes of all shapes in a type."""
    if isinstance(hint, type) and issubclass(hint, jaxtyping.AbstractArray):
        return [hint.dim_str]
    parts = hint if isinstance(hint, list) else get_args(hint)
    return [size for part in parts for size in _sizes(part)]


def _remember(function):
    @functools.wraps(function)
    def remembering(*args, **kwargs):
        with _memory:
            return function(*args, **kwargs)

    return remembering
