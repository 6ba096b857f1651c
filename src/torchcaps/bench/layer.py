"""Suite `routing`: the fully connected capsule layer alone, plain and fused side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import torch

from torchcaps.core import Capsules
from torchcaps.layers import FcCaps

from .bench import Bench, Measurement
from .memory import free_memory
from .roofline import LayerSize
from .row import BenchRow
from .timing import Work, cold_cache

BASE = LayerSize()
MANY_CLASSES = replace(BASE, out_caps=1000)
CURVES: dict[str, tuple[int, ...]] = {
    "batch": (1, 8, 32, 128, 512, 1024, 4096),
    "in_caps": (64, 256, 1152, 4608, 10000),
    "out_caps": (2, 10, 50, 100, 500),
    "iterations": (1, 2, 3, 5, 10),
}
_CURVE_EFFORT = 0.3  # of the time that a case of the table gets
_QUICK_CURVES: dict[str, tuple[int, ...]] = {
    "batch": (8, 128),
    "in_caps": (256, 1152),
    "out_caps": (10, 50),
    "iterations": (1, 3),
}
# Tensors like the votes that the plain path holds at its peak, at most.
_PLAIN_COPIES = {"forward": 2, "last": 3, "full": 8}


def routing_suite(
    bench: Bench,
    *,
    quick: bool = False,
    compiled: bool | None = None,
    base: LayerSize = BASE,
    many: LayerSize = MANY_CLASSES,
    curves: dict[str, tuple[int, ...]] | None = None,
) -> Iterator[Measurement]:
    """The layer of DR-CapsNet in both gradients and two batches, a thousand classes, and scaling curves.

    Beside them the hidden layer of gamma-CapsNet, which has as many children.

    Args:
        bench: Where it will be measured.
        quick: Fewer batches and values.
        compiled: Also the plain layer under `torch.compile`; by default on CUDA.
        base: The layer.
        many: The layer whose votes do not fit.
        curves: Values that each field of the layer takes, the others staying.
    """
    on_gpu = bench.device.type == "cuda"
    with_compiled = on_gpu if compiled is None else compiled
    batches = (base.batch,) if quick else (base.batch, 8 * base.batch)
    for batch in batches:  # forward alone does not depend on the gradient
        size = replace(base, batch=batch)
        yield from _backends(bench, replace(size, backward=False))
        yield from _backends(bench, replace(size, gradient="full"), compiled=with_compiled)
        yield from _backends(bench, replace(size, gradient="last"), compiled=with_compiled)
    yield from _backends(bench, replace(base, out_caps=32, out_pose=8, routing="scaled_distance"))
    small = replace(many, batch=max(1, many.batch // 32)) if quick and not on_gpu else many
    yield from _backends(bench, small)
    usual = _QUICK_CURVES if quick else CURVES
    for name, values in (usual if curves is None else curves).items():
        for value in values:
            yield from _backends(bench, replace(base, **{name: value}), curve=name)  # type: ignore[arg-type]


def _backends(
    bench: Bench, size: LayerSize, *, compiled: bool = False, curve: str | None = None
) -> Iterator[Measurement]:
    on_gpu = bench.device.type == "cuda"
    has_kernel = on_gpu or size.routing == "dynamic"
    names = ["torch", *(["compiled"] if compiled else []), *(["fused"] if has_kernel else [])]
    graphs = (False, True) if on_gpu else (False,)
    share = 1.0 if curve is None else _CURVE_EFFORT
    for name, graph in product(names, graphs):
        yield Measurement(
            case=describe(size),
            backend=f"{name}+graph" if graph else name,
            batch=size.batch,
            build=partial(layer_work, size, name, bench.device),
            is_captured_here=graph,
            between=cold_cache(bench.device),
            effort=replace(bench.effort, seconds=share * bench.effort.seconds),
            cost=lambda: size.cost,
            sizes=_sizes(size),
            skip=None if name == "fused" else _why_not_plain(size, bench.device),
            facts={**_facts(size), "curve": curve},
        )


def describe(size: LayerSize) -> str:
    """The layer and how it is run, in one line."""
    layer = f"{size.in_caps}x{size.in_pose} -> {size.out_caps}x{size.out_pose}, r={size.iterations}"
    if size.routing == "scaled_distance":
        layer += ", scaled distance"
    return f"{layer}, forward+backward, {size.gradient}" if size.backward else f"{layer}, forward"


def _facts(size: LayerSize) -> BenchRow:
    return {
        "in_caps": size.in_caps,
        "out_caps": size.out_caps,
        "routing": size.routing,
        "iterations": size.iterations,
        "gradient": size.gradient if size.backward else None,
        "pass": "forward+backward" if size.backward else "forward",
    }


def _sizes(size: LayerSize) -> str:
    return (
        f"votes {size.batch}x{size.in_caps}x{size.out_caps}x{size.out_pose}, {4 * size.votes / 2**30:.2f} GiB"
    )


def _why_not_plain(size: LayerSize, device: torch.device) -> str | None:
    """Why the votes would not fit into memory; on a CPU the system could kill a process that tries."""
    copies = _PLAIN_COPIES[size.gradient if size.backward else "forward"]
    needed, free = 4 * size.votes * copies, free_memory(device)
    if free is None or needed < 0.9 * free:
        return None
    return (
        f"the plain path would hold about {copies} tensors like the {_sizes(size)}: "
        f"{needed / 2**30:.0f} GiB, and {free / 2**30:.0f} GiB are free"
    )


def layer_work(size: LayerSize, backend: str, device: torch.device) -> Work:
    """The layer on random children: its poses, or the gradients of children and weights."""
    random = torch.Generator().manual_seed(0)
    routing: dict[str, object] = {"name": size.routing, "iterations": size.iterations}
    if size.routing == "dynamic":
        routing["gradient"] = size.gradient
    with device:
        layer = FcCaps(
            size.in_caps,
            size.out_caps,
            size.in_pose,
            size.out_pose,
            routing=routing,
            backend="fused" if backend == "fused" else "torch",
        )
    poses = torch.randn(size.batch, size.in_caps, size.in_pose, generator=random).to(device) / size.in_pose
    children = Capsules(poses, poses.norm(dim=-1))
    call: Any = layer
    if backend == "compiled":
        torch.compiler.reset()  # each size is compiled for itself
        call = torch.compile(layer, dynamic=False)
    if not size.backward:
        return torch.no_grad()(lambda: call(children, return_coupling=False).poses)
    upstream = torch.randn(size.batch, size.out_caps, size.out_pose, generator=random).to(device)
    poses.requires_grad_()
    learned = [poses, *layer.parameters()]
    return lambda: torch.autograd.grad(call(children, return_coupling=False).poses, learned, upstream)
