"""Where a run takes place: devices and precision."""

from __future__ import annotations

import ctypes
import logging
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import torch

from torchcaps.core import UserError, require_choice

if TYPE_CHECKING:
    from lightning.fabric import Fabric

Precision = Literal["auto", "32", "bf16"]
_DEVICES = ("auto", "cpu", "cuda", "mps")
_SIDE = 1024  # of the matrices by which precisions are compared
_PRODUCTS = 8  # that are timed; the first one warms up
_WORTH_IT = 1.2  # times as fast: below it the gain is not worth the coarser numbers
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # of malloc.h


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where a run takes place; none of it changes what is learnt beyond rounding.

    With several devices each process keeps its own batch-norm statistics. The precision "auto" is bf16 where
    the device computes it natively and faster, else 32.
    """

    device: str = "auto"
    devices: int = 1
    precision: Precision = "32"
    data_dir: Path | None = None
    tune_convolutions: bool = True  # time the algorithms of each size; does not pay in a short run


def check_machine(machine: Machine) -> None:
    """Raise where this computer cannot do what `machine` asks."""
    require_choice("device", machine.device, _DEVICES)
    require_choice("precision", machine.precision, get_args(Precision))
    is_there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not is_there.get(machine.device, True):
        name = machine.device.upper()
        raise UserError(
            f"this machine has no {name} device that PyTorch can use; leave --device at auto or cpu"
        )


def device_of(machine: Machine) -> torch.device:
    """The device that a single process of `machine` computes on."""
    check_machine(machine)
    if machine.device != "auto":
        return torch.device(machine.device, 0) if machine.device == "cuda" else torch.device(machine.device)
    if torch.cuda.is_available():
        return torch.device("cuda", 0)
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def settled(machine: Machine) -> Machine:
    """The same machine with a precision that is not "auto"."""
    device = device_of(machine)
    if machine.precision != "auto":
        return machine
    is_faster = has_native_bf16(device) and bf16_speedup(device) > _WORTH_IT
    return replace(machine, precision="bf16" if is_faster else "32")


def has_native_bf16(device: torch.device) -> bool:
    """Whether the device has instructions for products of bfloat16."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    asked = (getattr(torch.cpu, name, None) for name in names) if device.type == "cpu" else ()
    return any(ask is not None and ask() for ask in asked)


@lru_cache(maxsize=8)
def bf16_speedup(device: torch.device) -> float:
    """How many times as fast a matrix product is in bfloat16 as in float32, by their shortest times."""
    return _product_seconds(device, torch.float32) / _product_seconds(device, torch.bfloat16)


def _product_seconds(device: torch.device, dtype: torch.dtype) -> float:
    square, laps = torch.ones(_SIDE, _SIDE, device=device, dtype=dtype), []
    for _ in range(_PRODUCTS):
        started = time.perf_counter()
        float((square @ square)[0, 0])  # waits for the device
        laps.append(time.perf_counter() - started)
    return min(laps[1:])


def launch(machine: Machine) -> Fabric:
    """Lightning's Fabric on the devices chosen, with the other processes started, if any."""
    from lightning.fabric import Fabric  # imported here: it takes seconds, and predictions do without

    machine = settled(machine)
    logging.getLogger("lightning.fabric").setLevel(logging.WARNING)  # it would announce each setting
    # in bf16 products of the routing are TF32 and its sums float32; a run before this one must not decide
    torch.set_float32_matmul_precision("high" if machine.precision == "bf16" else "highest")
    keep_freed_memory()
    torch.backends.cudnn.benchmark = machine.tune_convolutions  # batches keep their size: tuned once
    fabric = Fabric(
        accelerator=machine.device,
        devices=machine.devices,
        strategy="ddp" if machine.devices > 1 else "auto",
        precision="bf16-mixed" if machine.precision == "bf16" else "32-true",
    )
    fabric.launch()
    return fabric


def keep_freed_memory() -> None:
    """Let this process use freed memory again instead of handing it back, where the C library can.

    Every step on a CPU allocates the same large maps. By default the system takes each back and hands it out
    again page by page, zeroed, which takes as long as the arithmetic of a rectifier or a normalisation.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not the GNU C library
        return
    set_option(_M_MMAP_MAX, 0)
    set_option(_M_TRIM_THRESHOLD, 2**31 - 1)
