"""Couplings rounded to a few levels, inside the forward pass (thesis, Parse Trees Extraction)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import index
from typing import Any, Literal, TypeAlias

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from torchcaps.core import Routed, UserError, counted, even_levels, shown
from torchcaps.routing import ReadsOut

# One number for all routed layers, one for each, or what `even_levels` gives for the parents of each. A layer
# below the classes with 0 levels is not quantized.
Levels: TypeAlias = int | Sequence[int] | Literal["even"]

_MOST_LEVELS = 2**15


def quantization_indices(coupling: Float[Tensor, "*shape"], levels: int) -> Integer[Tensor, "*shape"]:
    """The nearest of the levels k / (levels - 1), as its number k; halfway between two is the higher.

    Couplings outside [0, 1], which a prior added after the softmax makes, go to the nearest end. One byte
    each up to 256 levels, else two.
    """
    if not 2 <= levels <= _MOST_LEVELS:
        raise UserError(f"levels must lie in 2..{_MOST_LEVELS}, got {levels}")
    steps = coupling.clamp(0, 1).to(_wide(coupling)) * (levels - 1)
    return (steps + 0.5).floor().to(torch.uint8 if levels <= 256 else torch.int16)


def quantize(coupling: Float[Tensor, "*shape"], levels: int) -> Float[Tensor, "*shape"]:
    """Couplings moved to the nearest level; those of one child need no longer sum to one."""
    indices = quantization_indices(coupling, levels).to(_wide(coupling))
    return (indices / (levels - 1)).to(coupling.dtype)


def _wide(coupling: Tensor) -> torch.dtype:
    """At least single precision: in bfloat16, halfway between two of more than 128 levels is no number."""
    return torch.promote_types(coupling.dtype, torch.float32)


@contextmanager
def quantized(network: nn.Module, levels: Levels = "even") -> Iterator[nn.Module]:
    """While open, every routed layer quantizes the couplings of its last round and pools its votes by those.

    A routing of a single round splits evenly for every image, so it stays as it is. Fused kernels are not
    used meanwhile. No gradient flows through the rounding.

    Args:
        network: Changed in place until the context closes.
        levels: For all routed layers, or one number for each in the order of the network, where 0 leaves a
            layer below the classes as it is. By default each layer has as many as make an even share of its
            parents a level.

    Examples:
        >>> model = create_model("dr_capsnet_minimal", pretrained=True).eval()
        >>> with torch.no_grad(), quantized(model, levels=11):
        ...     coupling = model(torch.rand(1, 1, 28, 28), return_routing=True).layers[-1].routed.coupling
        >>> len(coupling.unique()) <= 11
        True
    """
    routings = quantizable_routings(network)
    numbers = levels_of_layers(levels, len(routings))
    with _replaced(network, [_quantizer(number) for number in numbers]):
        yield network


@contextmanager
def evened(network: nn.Module) -> Iterator[nn.Module]:
    """While open, every routed layer pools its votes by even couplings: what the network is without routing.

    Only the last round is replaced. Fused kernels are not used meanwhile.
    """
    with _replaced(network, [_even] * len(quantizable_routings(network))):
        yield network


@contextmanager
def _replaced(network: nn.Module, changes: Sequence[Callable[[Tensor], Tensor]]) -> Iterator[None]:
    """While open, the couplings of each routed layer are changed before its votes are pooled."""
    handles = [
        routing.register_forward_hook(_reader(change))
        for (_, routing), change in zip(quantizable_routings(network), changes, strict=True)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def levels_of_layers(levels: Levels, layers: int) -> list[int | None]:
    """One number of levels for each of `layers` routed layers; None follows from the parents, 0 is none."""
    if levels == "even":
        return [None] * layers
    try:
        numbers = [levels] * layers if isinstance(levels, int) else [index(number) for number in levels]
    except TypeError:
        raise UserError(
            f'levels are a whole number, one for each routed layer, or "even", got {shown(levels)}'
        ) from None
    if len(numbers) != layers:
        raise UserError(
            f"the network quantizes {counted(layers, 'routed layer')}, got levels for {len(numbers)}"
        )
    for place, number in enumerate(numbers, start=1):
        if number or place == layers:
            quantization_indices(torch.zeros(0), number)  # refuses an impossible number before any image
    return [*numbers]


def keeps_even_share(parents: int, levels: int) -> bool:
    """Whether an even share is not rounded up, which would make a preference of none."""
    even = torch.tensor(1 / parents)
    return bool(quantize(even, levels) <= even)


def say_rounded_up(classes: int, levels: int) -> str:
    """A sentence for levels of the class layer that round an even share up; else nothing."""
    if keeps_even_share(classes, levels):
        return ""
    return (
        f"{levels} levels round the even share of {classes} classes up, so that undecided children count as "
        "decided; --levels even or auto avoids this"
    )


def check_levels(network: nn.Module, levels: Levels | None) -> None:
    """Raise where the couplings of a network cannot be quantized so; None are levels not chosen yet."""
    levels_of_layers("even" if levels is None else levels, len(quantizable_routings(network)))


def levels_of_classes(levels: Levels, classes: int) -> int:
    """The levels of the last routed layer, whose parents are the classes."""
    if levels == "even":
        return even_levels(classes)
    return levels if isinstance(levels, int) else int(levels[-1])


def quantizable_routings(network: nn.Module) -> list[tuple[str, Any]]:
    """The routings with couplings to quantize, by name, in the order of the network."""
    for name, module in network.named_modules():
        routing = getattr(module, "routing", None)
        if routing is not None and not isinstance(routing, ReadsOut) and not hasattr(routing, "routing"):
            kind = getattr(routing, "__name__", type(routing).__name__)
            raise UserError(
                f"layer {name!r} routes by {kind}, which does not say what parents other couplings make "
                "(it has no method read_out): they cannot be quantized"
            )
    found = [
        (name, module)
        for name, module in network.named_modules()
        if isinstance(module, ReadsOut) and getattr(module, "iterations", 2) > 1
    ]
    if not found:
        raise UserError(
            f"{type(network).__name__} has no couplings to quantize: none of its layers routes in more than "
            "one round"
        )
    return found


def _quantizer(levels: int | None) -> Callable[[Tensor], Tensor]:
    if levels == 0:
        return lambda coupling: coupling
    return lambda coupling: quantize(coupling, levels or even_levels(coupling.shape[-1]))


def _even(coupling: Tensor) -> Tensor:
    return torch.full_like(coupling, 1 / coupling.shape[-1])


def _reader(change: Callable[[Tensor], Tensor]) -> Callable[..., Routed]:
    def read_out_again(routing: ReadsOut, inputs: tuple[Tensor, Tensor], routed: Routed) -> Routed:
        assert routed.coupling is not None  # plain routings always give them
        votes, activations = inputs
        return routing.read_out(votes, activations, change(routed.coupling))

    return read_out_again
