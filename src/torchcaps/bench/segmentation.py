"""Suite `segmentation`: SegCaps on regions and on whole slices, plain, fused, and with checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np
import torch

from torchcaps.apps.lung.segment import SliceNetwork, segment_volume
from torchcaps.models import create_model

from .backend import kernel_free
from .bench import Bench, Measurement
from .model import model_work
from .roofline import model_cost, model_size
from .timing import Effort, Work

_MODEL = "segcaps_r3"
_BATCHES = {"cuda": {128: 16, 512: 4}, "cpu": {64: 16, 128: 4, 512: 1}}  # images of a pass, by their side
_SLICES, _FEW_SLICES = 300, 8
_WAYS = ("torch", "fused", "torch+checkpoint", "fused+checkpoint")


def segmentation_suite(
    bench: Bench, *, quick: bool = False, model: str = _MODEL, sides: Sequence[int] | None = None
) -> Iterator[Measurement]:
    """A scan, then a forward and a training pass at each size; what does not fit is tried with one image.

    The scan is what `lung segment` computes: windows over the lungs of 300 slices (quick on a CPU: 8).

    Args:
        bench: Where it will be measured.
        quick: Without the largest size, and on a CPU without most slices of the scan.
        model: A SegCaps.
        sides: Of the images; by default 128 and 512 pixels, on a CPU also 64.
    """
    batches = _BATCHES.get(bench.device.type, _BATCHES["cpu"])
    sides = sides or tuple(batches)
    is_short = quick and bench.device.type != "cuda"
    yield _scan(bench, model, max(sides), _FEW_SLICES if is_short else _SLICES)
    has_kernel = not kernel_free(model, bench.device)
    for side in sides[:-1] if quick else sides:
        batch = batches.get(side, 1)
        for backward, way in product((False, True), _WAYS):
            if "fused" in way and not has_kernel:
                continue
            if "checkpoint" in way and not backward:  # there is nothing to keep
                continue
            yield _pass(bench, model, side, batch, backward=backward, way=way)
            if bench.ran_out_of_memory and batch > 1:
                yield _pass(bench, model, side, 1, backward=backward, way=way)


def _scan(bench: Bench, model: str, side: int, slices: int) -> Measurement:
    repeats = 1 if bench.device.type != "cuda" and slices == _SLICES else 2  # minutes on a CPU
    return Measurement(
        case=f"{model}, scan of {slices} slices of {side} px",
        backend="fused",
        batch=slices,
        build=partial(scan_work, model, slices, side, bench.device),
        effort=Effort(warm_ups=0, seconds=0.0, least=repeats, most=repeats),
        sizes=f"slices {slices}x{side}x{side}",
        facts={"model": model, "params": model_size(model).weights, "pass": "forward"},
    )


def scan_work(name: str, slices: int, side: int, device: torch.device) -> Work:
    """Nodule probabilities of a chest: two lungs of -850 HU in a body, noise on top."""
    model = create_model(name, image_size=side).to(device).eval()
    network = SliceNetwork(model, lambda grey: grey, 2 ** int(model.halvings), device)  # type: ignore[arg-type]
    rows, columns = np.mgrid[:side, :side] / side - 0.5
    chest = np.where((rows / 0.3) ** 2 + (columns / 0.43) ** 2 < 1, 40.0, -1000.0)
    for middle in (-0.19, 0.19):
        chest[(rows / 0.22) ** 2 + ((columns - middle) / 0.15) ** 2 < 1] = -850.0
    noise = np.random.default_rng(0).normal(0, 25, (slices, side, side))
    hounsfield = (chest + noise).astype(np.int16)
    return lambda: segment_volume(network, hounsfield)


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
