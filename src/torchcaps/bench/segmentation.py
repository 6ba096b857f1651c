"""Suite `segmentation`: SegCaps on regions and on whole slices, plain, fused, and with checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from .backend import kernel_free
from .bench import Bench, Measurement
from .model import model_work
from .roofline import model_cost, model_size

_MODEL = "segcaps_r3"
_BATCHES = {128: 16, 512: 4}  # images of a pass on CUDA; elsewhere a quarter
_WAYS = ("torch", "fused", "torch+checkpoint", "fused+checkpoint")


def segmentation_suite(
    bench: Bench, *, quick: bool = False, model: str = _MODEL, sides: Sequence[int] = tuple(_BATCHES)
) -> Iterator[Measurement]:
    """A forward pass and a training pass at each size; a batch that does not fit is tried as one image.

    Args:
        bench: Where it will be measured.
        quick: Without the largest size.
        model: A SegCaps.
        sides: Of the images.
    """
    has_kernel = not kernel_free(model, bench.device)
    for side in sides[:-1] if quick else sides:
        whole = _BATCHES.get(side, 4)
        batch = whole if bench.device.type == "cuda" else whole // 4
        for backward in (False, True):
            for way in _WAYS:
                if "fused" in way and not has_kernel:
                    continue
                if "checkpoint" in way and not backward:  # there is nothing to keep
                    continue
                yield _pass(bench, model, side, batch, backward=backward, way=way)
                if bench.ran_out_of_memory and batch > 1:
                    yield _pass(bench, model, side, 1, backward=backward, way=way)


def _pass(bench: Bench, model: str, side: int, batch: int, *, backward: bool, way: str) -> Measurement:
    options = {"image_size": side, "checkpoint": "checkpoint" in way}
    shape = (batch, 1, side, side)
    passes = "forward+backward" if backward else "forward"
    work = partial(model_work, model, options, shape, bench.device, backward=backward, fused="fused" in way)
    return Measurement(
        case=f"{model} at {side} px, {passes}",
        backend=way,
        batch=batch,
        build=work,
        cost=partial(model_cost, model, batch, options, backward=backward),
        sizes=f"images {'x'.join(map(str, shape))}",
        facts={"model": model, "params": model_size(model).weights, "pass": passes},
    )
