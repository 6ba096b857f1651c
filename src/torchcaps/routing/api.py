"""The contract every routing keeps, and the registry they are found in."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import (
    Any,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeAlias,
    cast,
    get_type_hints,
    runtime_checkable,
)

import torch
from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import Registry, Routed, UserError, convert, unknown_name, without_autocast


@runtime_checkable
class Routing(Protocol):
    """Decides how much of each input capsule's vote goes to each output capsule."""

    def __call__(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
    ) -> Routed:
        """Route `votes`, which a layer has cast."""
        ...


@runtime_checkable
class ReadsOut(Protocol):
    """A routing with `read_out`, which makes parents of given couplings as its own last round does."""

    def read_out(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
        coupling: Float[Tensor, "*where in_caps out_caps"],
    ) -> Routed:
        """Pool `votes` by `coupling`, which need not sum to one."""
        ...


@runtime_checkable
class SumsVotes(Protocol):
    """A routing whose parents, before they are squashed, are sums of what each child adds.

    A learned `bias` of that name, where it has one, is added to the sum.
    """

    def summands(
        self,
        votes: Float[Tensor, "*where in_caps out_caps pose"],
        activations: Float[Tensor, "*where in_caps"],
        coupling: Float[Tensor, "*where in_caps out_caps"],
    ) -> Float[Tensor, "*where in_caps out_caps pose"]:
        """What each child adds to each parent; parents do not see each other, so some of them will do."""
        ...


class RoutingShape(NamedTuple):
    """Sizes that a routing with learned parameters needs to know."""

    in_caps: int
    out_caps: int
    pose: int


RoutingSpec: TypeAlias = str | Mapping[str, Any] | Routing
Inputs = ParamSpec("Inputs")  # of the function of a routing

ROUTINGS: Registry[type[nn.Module]] = Registry("routing", nn.Module)


def create_routing(name: str, shape: RoutingShape, **settings: Any) -> Routing:
    """Build the routing registered as `name` for a layer of the given sizes."""
    kind = ROUTINGS[name]
    known = [p for p in inspect.signature(kind.__init__).parameters if p not in ("self", "shape")]
    for setting in settings:
        if setting not in known:
            raise unknown_name(f"setting of routing {name!r}", setting, known)
    try:
        hints = get_type_hints(kind.__init__)
    except NameError:  # a routing of a user may be annotated with what only a type checker sees
        hints = {}
    checked = {key: convert(hints.get(key, Any), value, f"routing.{key}") for key, value in settings.items()}
    return kind(shape, **checked)


def build_routing(spec: RoutingSpec, shape: RoutingShape) -> Routing:
    """A routing from its name or `{"name": ..., setting: value}`; a callable is taken as it is."""
    if min(shape) < 1:
        sizes = f"{shape.in_caps} children, {shape.out_caps} parents and poses of {shape.pose} dimensions"
        raise UserError(f"a routed layer needs at least one of each, got {sizes}")
    if isinstance(spec, str):
        return create_routing(spec, shape)
    if isinstance(spec, Mapping):
        settings = dict(spec)
        if not isinstance(settings.get("name"), str) or not all(isinstance(key, str) for key in settings):
            raise UserError(f"a routing given as a mapping needs a 'name', and names as keys, got {settings}")
        return create_routing(settings.pop("name"), shape, **settings)
    if inspect.isclass(spec):
        raise UserError(f"routing is the class {spec.__name__}; give an object of it, or register it")
    if callable(spec):
        _require_arguments(spec)
        return spec
    raise UserError(f"routing must be a name, a mapping or a callable, got {spec!r}")


def _require_arguments(routing: Routing) -> None:
    """Raise where a callable does not take votes and activations."""
    call = routing.forward if isinstance(routing, nn.Module) else routing
    try:
        inspect.signature(call).bind(None, None)
    except ValueError:  # one that is not written in Python does not say what it takes
        return
    except TypeError as error:
        name = getattr(routing, "__name__", type(routing).__name__)
        raise UserError(
            "a routing is called with votes and activations, and returns Routed(poses, activations, "
            f"coupling); {name} does not take these two ({error})"
        ) from error


def list_routings(pattern: str = "*") -> list[str]:
    """Names of the registered routings.

    Examples:
        >>> list_routings("em*")
        ['em', 'em_rotation']
    """
    return ROUTINGS.names(pattern)


def describe_routing(name: str) -> dict[str, Any]:
    """Name, settings with their defaults, and one sentence on a registered routing."""
    kind = ROUTINGS[name]
    parameters = list(inspect.signature(kind.__init__).parameters.values())[2:]
    module_doc = inspect.getdoc(inspect.getmodule(kind)) or ""
    return {
        "name": name,
        "settings": ", ".join(f"{parameter.name}={parameter.default!r}" for parameter in parameters),
        "about": module_doc.partition("\n")[0],
    }


def say_settings(routing: nn.Module) -> str:
    """The settings that a routing was built with, as they are now; its `extra_repr`."""
    names = list(inspect.signature(type(routing).__init__).parameters)[2:]
    settings = {name: getattr(routing, name, None) for name in names}
    return ", ".join(
        f"{name}={value!r}" for name, value in settings.items() if isinstance(value, int | float | str)
    )


def require_iterations(iterations: int) -> int:
    """`iterations` itself when it is a possible count, else a clear error."""
    if isinstance(iterations, bool) or not isinstance(iterations, int):
        raise UserError(f"iterations must be a whole number of at least 1, got {iterations!r}")
    if iterations < 1:
        raise UserError(f"iterations must be at least 1, got {iterations}")
    return iterations


def require_sizes(parameter: Tensor | None, sizes: Sequence[int]) -> None:
    """Raise where a learned parameter was not made for these sizes.

    PyTorch would spread a size of one over all parents, and a kernel would read past its end.
    """
    if parameter is not None and parameter.shape != sizes:
        raise UserError(
            f"this routing was built for sizes {tuple(parameter.shape)}, but votes need {tuple(sizes)}; "
            "build it with the RoutingShape(in_caps, out_caps, pose), or give the layer its name"
        )


def keep_float32(route: Callable[Inputs, Routed]) -> Callable[Inputs, Routed]:
    """Make a routing compute in at least float32, also under autocast, and answer in the dtype of its votes.

    Sums over a thousand children and the exponentials of a softmax lose too much in half precision. A routing
    that reads no activations need not take them.
    """

    @functools.wraps(route)
    def wrapper(votes: Tensor, activations: Tensor | None = None, *others: Any, **settings: Any) -> Routed:
        dtype = votes.dtype
        if not dtype.is_floating_point:
            raise UserError(
                f"votes are real numbers such as torch.float32, got {dtype}; votes.float() gives them"
            )
        with without_autocast(votes):
            if dtype in (torch.float16, torch.bfloat16):
                votes = votes.float()
            if activations is not None or others:
                others = (None if activations is None else activations.to(votes.dtype), *others)
            routed = cast(Callable[..., Routed], route)(votes, *others, **settings)
        coupling = None if routed.coupling is None else routed.coupling.to(dtype)
        return Routed(routed.poses.to(dtype), routed.activations.to(dtype), coupling)

    return cast(Callable[Inputs, Routed], wrapper)
