"""Operations of a forward pass: products as PyTorch counts them, routings by their own formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, TypedDict

import torch
from torch import Tensor, nn

from torchcaps.core import UserError, evaluating
from torchcaps.layers import layers_with_backend
from torchcaps.routing import RoutingShape

if TYPE_CHECKING:
    from torch.utils.flop_counter import FlopCounterMode


class FlopCount(TypedDict):
    """Operations by kind; a multiply-add is two."""

    total: int
    products: int
    routing: int
    layers: dict[str, int]  # the part of each routing, by its name in the model


def count_flops(model: nn.Module, batch: int = 1) -> FlopCount:
    """Operations for `batch` images of the model's `image_shape`.

    PyTorch counts the convolutions and matrix products outside of routings; biases, rectifiers and
    normalisations are left out, as is usual, and so is building the matrices of quaternion votes: their
    entries are those of the quaternions, up to the sign, whatever the number of images. A routing is counted
    by the formula of its `cost` method, so the number does not depend on the kernel that runs it. The pass
    runs on the meta device, without data.
    """
    if not hasattr(model, "image_shape"):
        raise UserError(
            f"this {type(model).__name__} does not say what images it takes: set its attribute image_shape "
            "to (channels, height, width)"
        )
    shapes: dict[str, list[tuple[int, ...]]] = {}
    routings = {name: module for name, module in model.named_modules() if hasattr(module, "cost")}
    handles = [
        module.register_forward_hook(_recorder(shapes.setdefault(name, [])))
        for name, module in routings.items()
    ]
    try:
        counter = _dry_run(model, batch)
    finally:
        for handle in handles:
            handle.remove()
    layers = {
        name: sum(prod(shape[:-3]) * module.cost(RoutingShape(*shape[-3:])).flops for shape in shapes[name])
        for name, module in routings.items()
    }
    products = counter.get_total_flops() - _products_inside(counter, type(model).__name__, list(routings))
    routing = sum(layers.values())
    return {"total": products + routing, "products": products, "routing": routing, "layers": layers}


def _recorder(shapes: list[tuple[int, ...]]) -> Callable[[nn.Module, tuple[Tensor, ...], object], None]:
    def record(module: nn.Module, inputs: tuple[Tensor, ...], output: object) -> None:
        shapes.append(tuple(inputs[0].shape))

    return record


def _dry_run(model: nn.Module, batch: int) -> FlopCounterMode:
    from torch.utils.flop_counter import FlopCounterMode  # imports Triton, which few commands need

    counter = FlopCounterMode(display=False)
    with torch.no_grad(), torch.device("meta"), evaluating(model), _without_kernels(model):
        state = [*model.named_parameters(), *model.named_buffers()]
        shadows = {name: torch.empty(tensor.shape, dtype=tensor.dtype) for name, tensor in state}
        image_shape: tuple[int, int, int] = model.image_shape  # type: ignore[assignment]
        images = torch.empty((batch, *image_shape), dtype=next(model.parameters()).dtype)
        with counter:
            torch.func.functional_call(model, shadows, (images,))
    return counter


@contextmanager
def _without_kernels(model: nn.Module) -> Iterator[None]:
    """While open, every layer takes its plain path: the counter does not see inside fused kernels."""
    backends = [(layer, layer.backend) for layer in layers_with_backend(model)]
    for layer, _ in backends:
        layer.backend = "torch"
    try:
        yield
    finally:
        for layer, backend in backends:
            layer.backend = backend


def _products_inside(counter: FlopCounterMode, root: str, names: list[str]) -> int:
    outermost = [name for name in names if not any(name.startswith(f"{other}.") for other in names)]
    counts = counter.get_flop_counts()
    return sum(sum(counts.get(f"{root}.{name}", {}).values()) for name in outermost)
