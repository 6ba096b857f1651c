"""Whether a model, and a step of its training, fit in the memory of this machine."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, UntypedStorage, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.modules.conv import _ConvNd

from torchcaps.core import UserError, machine_memory
from torchcaps.layers import layers_with_backend
from torchcaps.models import Network

from ..machine import Machine, device_of
from .recipe import Recipe

_FLOAT32 = 4  # bytes of a number
_Maps = Tensor | tuple[Any, ...]


def require_memory(recipe: Recipe) -> None:
    """Raise before memory is taken where the model is larger than the machine."""
    _checked_sketch(recipe, torch.device("cpu"))


def require_memory_to_train(recipe: Recipe, machine: Machine) -> None:
    """Raise before memory is taken where the model, or a step with its batch, is larger than the device."""
    device = device_of(machine)
    network, there = _checked_sketch(recipe, device), _memory_of(device)
    per_image = least_bytes(network) * (2 if machine.precision == "bf16" else _FLOAT32) // _FLOAT32
    devices = machine.devices if device.type == "cuda" else 1  # processes on a CPU share its memory
    batch = recipe.batch_size // devices
    if there and batch * per_image > there:
        shape, most = "x".join(map(str, network.image_shape)), there // per_image
        smaller = f", or a batch_size of at most {most * devices}" if most else ""
        raise UserError(
            f"a training step with {batch} images of {shape} needs at least "
            f"{batch * per_image / 2**30:,.1f} GiB, and {_has(device, there)}; "
            f"choose smaller images{smaller}"
        )


def _memory_of(device: torch.device) -> int:
    """Bytes of memory, also where some is taken at the moment; 0 where the system does not tell."""
    return torch.cuda.mem_get_info(device)[1] if device.type == "cuda" else machine_memory()


def _has(device: torch.device, memory: int) -> str:
    name = device if device.type == "cuda" else "this machine"
    return f"{name} has {memory / 2**30:,.1f} GiB of memory"


def _checked_sketch(recipe: Recipe, device: torch.device) -> Network:
    """The model without memory for its weights, which would fit."""
    try:
        network = recipe.sketch()
    except (RuntimeError, OverflowError) as error:  # sizes that overflow the numbers of PyTorch
        raise UserError(
            "recipe.model: its sizes are too large for any machine; choose smaller ones"
        ) from error
    needed, there = sum(each.numel() * each.itemsize for each in network.parameters()), _memory_of(device)
    if there and needed > there:
        raise UserError(
            f"recipe.model needs {needed / 2**30:,.1f} GiB for its weights alone, and {_has(device, there)}; "
            "choose smaller sizes"
        )
    return network


def least_bytes(network: Network) -> int:
    """No more than what the forward pass of one image holds at once in training; a sketch is enough.

    It is what layers read and write, not what happens inside them, which depends on their kernels. A network
    that needs numbers, which a sketch has not, counts as nothing.
    """
    held = _Held()
    plain = [module for module in network.modules() if isinstance(module, _ConvNd | nn.Linear)]
    for layer in (*plain, *layers_with_backend(network)):
        layer.register_forward_hook(held.see)
    try:
        with saved_tensors_hooks(held.pack, lambda tensor: tensor):
            network.eval()(torch.empty(1, *network.image_shape, device="meta"))
    except Exception:  # whatever it is, numbers may mend it
        return 0
    return held.most


class _Held:
    """What layers read and is kept for the backward pass, and what they write meanwhile."""

    def __init__(self) -> None:
        self.saved: dict[int, UntypedStorage] = {}
        self.kept: dict[int, int] = {}  # bytes; layers may read the same numbers
        self.most = 0

    def pack(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        self.saved[id(storage)] = storage
        return tensor

    def see(self, layer: nn.Module, inputs: tuple[_Maps, ...], output: _Maps) -> None:
        read, written = (_first(maps).untyped_storage() for maps in (inputs[0], output))
        if id(read) in self.saved:
            self.kept[id(read)] = read.nbytes()
        self.most = max(self.most, sum(self.kept.values()) + written.nbytes())


def _first(maps: _Maps) -> Tensor:
    """A map of features, or the poses of capsules."""
    return maps if isinstance(maps, Tensor) else maps[0]
