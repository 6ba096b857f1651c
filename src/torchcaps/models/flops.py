"""Operations of a forward pass: products counted by PyTorch, routing by its own formula."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from torchcaps.routing import RoutingShape


def count_flops(model: nn.Module, batch: int = 1) -> dict[str, Any]:
    """Operations for `batch` images of the size in the model's config, a multiply-add being two.

    Convolutions and matrix products outside of routings are those PyTorch sees; biases, rectifiers and
    normalisations are left out, as is usual. A routing counts everything by the formula of its `cost` method,
    so that the number does not depend on which kernel runs it. Nothing is computed: the pass runs without
    data.

    Returns:
        "total"; its parts "products" and "routing"; and "layers", the part of each routing by its name.
    """
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


def _recorder(shapes: list[tuple[int, ...]]) -> Any:
    def record(module: nn.Module, inputs: tuple[Tensor, ...], output: Any) -> None:
        shapes.append(tuple(inputs[0].shape))

    return record


def _dry_run(model: nn.Module, batch: int) -> FlopCounterMode:
    config: Any = model.config
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), torch.device("meta"), _plain_and_evaluating(model):
        state = [*model.named_parameters(), *model.named_buffers()]
        shadows = {name: torch.empty(tensor.shape, dtype=tensor.dtype) for name, tensor in state}
        shape = (batch, config.in_channels, config.image_size, config.image_size)
        images = torch.empty(shape, dtype=next(model.parameters()).dtype)
        with counter:
            torch.func.functional_call(model, shadows, (images,))
    return counter


@contextmanager
def _plain_and_evaluating(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode and without fused kernels, which the counter cannot see into."""
    layers = [module for module in model.modules() if hasattr(module, "backend")]
    backends, was_training = [layer.backend for layer in layers], model.training
    for layer in layers:
        setattr(layer, "backend", "torch")  # noqa: B010  a plain assignment is refused on a Module
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
        for layer, backend in zip(layers, backends, strict=True):
            setattr(layer, "backend", backend)  # noqa: B010


def _products_inside(counter: FlopCounterMode, root: str, names: list[str]) -> int:
    outermost = [name for name in names if not any(name.startswith(f"{other}.") for other in names)]
    counts = counter.get_flop_counts()
    return sum(sum(counts.get(f"{root}.{name}", {}).values()) for name in outermost)
