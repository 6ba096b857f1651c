"""Suite `partwhole`: images with their true trees, drawn on this device."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from torchcaps.data import Design, draw_partwhole

from .bench import Bench, Measurement
from .timing import Work

# images in one call, by their side
_ON_GPU = {32: 65_536, 64: 32_768, 128: 8_192}
_ON_CPU = {32: 4_096, 64: 1_024, 128: 256}


def partwhole_suite(
    bench: Bench, *, quick: bool = False, counts: dict[int, int] | None = None
) -> Iterator[Measurement]:
    """The usual design at three sizes, from the seed to images, owners and poses on the device.

    Args:
        bench: Where it will be measured.
        quick: Fewer images in a call.
        counts: Images in one call, by their side.
    """
    usual = _ON_GPU if bench.device.type == "cuda" else _ON_CPU
    for size, most in (counts or usual).items():
        count = most // 4 if quick else most
        yield Measurement(
            case=f"draw partwhole, {size} px",
            backend="torch",
            batch=count,
            build=partial(_build, count, Design(size=size), bench.device),
            sizes=f"images {count}x1x{size}x{size}",
        )


def _build(count: int, design: Design, device: torch.device) -> Work:
    return lambda: draw_partwhole(count, design, device=device)
