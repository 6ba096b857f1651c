"""Suite `models`: a forward pass and a training pass of every registered model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import torch

from torchcaps.core import sides
from torchcaps.models import MODELS, create_model, list_models
from torchcaps.train.loop import use_channels_last

from .backend import kernel_free, use_kernels
from .bench import Bench, Measurement
from .roofline import model_cost, model_size
from .timing import Work

_SEGMENTATION_SIDE = 64


def model_suite(
    bench: Bench,
    *,
    quick: bool = False,
    names: Sequence[str] | None = None,
    batch: int | None = None,
) -> Iterator[Measurement]:
    """Every model but those made for tests, plain and fused; one that does not fit is tried smaller.

    Args:
        bench: Where it will be measured.
        quick: One model of each family.
        names: Which models instead.
        batch: Images of a pass; by default 128 for classification and 16 for segmentation, on a CPU 32 and 4.
    """
    for name in names or model_names(quick):
        size = batch or _batch(name, bench.device)
        yield from _passes(bench, name, size)


def model_names(quick: bool = False) -> list[str]:
    """The models of the suite, or one of each family: that for MNIST, else the first."""
    names = list_models()
    if not quick:
        return names
    chosen: dict[str, str] = {}
    for name in sorted(names, key=lambda name: not name.endswith("_mnist")):
        chosen.setdefault(MODELS[name].family, name)
    return sorted(chosen.values())


def _batch(name: str, device: torch.device) -> int:
    whole = 16 if MODELS[name].task == "segmentation" else 128
    return whole if device.type == "cuda" else whole // 4


def _passes(bench: Bench, name: str, batch: int) -> Iterator[Measurement]:
    options = {"image_size": _SEGMENTATION_SIDE} if MODELS[name].task == "segmentation" else {}
    params, has_kernel = _look_up(name, options, bench.device)
    graphs = (False, True) if bench.device.type == "cuda" else (False,)
    kernels = (False, True) if has_kernel else (False,)
    for backward, fused, graph in product((False, True), kernels, graphs):
        variant = _Variant(name, options, params, backward, fused, graph)
        yield _measurement(variant, batch, bench.device)
        if bench.ran_out_of_memory and batch > 1:
            yield _measurement(variant, max(1, batch // 4), bench.device)


def _look_up(name: str, options: dict[str, int], device: torch.device) -> tuple[int | None, bool]:
    """Parameters, and whether there is a fused kernel for a layer."""
    try:
        return model_size(name, tuple(options.items())).weights, not kernel_free(name, device, **options)
    except Exception:  # the model is broken: its rows say so
        return None, False


class _Variant(NamedTuple):
    name: str
    options: dict[str, int]
    params: int | None
    backward: bool
    fused: bool
    graph: bool


def _measurement(variant: _Variant, batch: int, device: torch.device) -> Measurement:
    name, options, params, backward, fused, graph = variant
    config = MODELS[name].config
    shape = (batch, config.in_channels, *sides(options.get("image_size", config.image_size)))
    passes = "forward+backward" if backward else "forward"
    return Measurement(
        case=f"{name}, {passes}",
        backend=("fused" if fused else "torch") + ("+graph" if graph else ""),
        batch=batch,
        build=partial(model_work, name, options, shape, device, backward=backward, fused=fused),
        is_captured_here=graph,
        cost=partial(model_cost, name, batch, options, backward=backward),
        sizes=f"images {'x'.join(map(str, shape))}",
        facts={"model": name, "params": params, "pass": passes},
    )


def model_work(
    name: str,
    options: Mapping[str, object],
    shape: tuple[int, int, int, int],
    device: torch.device,
    *,
    backward: bool,
    fused: bool,
) -> Work:
    """The model on random images: what it answers, or the gradients of all its weights."""
    model = create_model(name, **options).to(device)
    use_kernels(model, fused)
    images = torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(device)
    if device.type == "cuda":
        images = images.to(memory_format=torch.channels_last)
        use_channels_last(model)
    if not backward:
        model.eval()
        return torch.no_grad()(lambda: model(images).activations)
    learned = [weight for weight in model.parameters() if weight.requires_grad]

    def learn() -> tuple[torch.Tensor, ...]:
        output = model(images)
        drawn = output.reconstruction
        loss = output.activations.square().sum() + (0 if drawn is None else drawn.square().sum())
        return torch.autograd.grad(loss, learned, allow_unused=True)

    return learn
