"""The authors' Keras weights of Efficient-CapsNet as a state dict of ours: a function of named arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from einops import EinopsError, rearrange
from torch import Tensor

from torchcaps.core import UserError, sides, sketching
from torchcaps.models import EfficientCapsNet, EfficientCapsNetConfig

from .agreement import StateDict, require_same_names, require_shape

Array = np.ndarray[Any, np.dtype[Any]]
VARIABLES = (
    "kernel",
    "depthwise_kernel",
    "bias",
    "gamma",
    "beta",
    "moving_mean",
    "moving_variance",
    "W",
    "b",
)


@dataclass(frozen=True)
class _KerasLayer:
    """The arrays of one layer by variable name, and the path they were found under."""

    path: str
    arrays: Mapping[str, Array]

    @property
    def kind(self) -> str:
        names = set(self.arrays)
        if names & {"W", "b"}:
            return "capsules"
        if names & {"gamma", "beta", "moving_mean", "moving_variance"}:
            return "norm"
        is_dense = "kernel" in names and self.arrays["kernel"].ndim == 2
        return "dense" if is_dense else "convolution"

    @property
    def is_decoder(self) -> bool:
        parts = [re.sub(r"_\d+$", "", part).lower() for part in self.path.split("/")]
        return self.kind == "dense" or "generator" in parts

    def take(self, variable: str) -> Array:
        if variable not in self.arrays:
            raise UserError(f"{self.path} has no {variable!r}, only {', '.join(sorted(self.arrays))}")
        return self.arrays[variable]


def _natural(layer: _KerasLayer) -> tuple[int, list[tuple[int, str]]]:
    """Order of creation: Keras numbers its layers, and conv2d_10 comes after conv2d_9."""
    name = layer.path.rsplit("/", 1)[-1]
    words = re.split(r"(\d+)", name)
    is_primary = "primary" in layer.path.lower() or "depthwise_kernel" in layer.arrays
    return is_primary, [(int(word), "") if word.isdecimal() else (-1, word) for word in words]


def _keras_layers(arrays: Mapping[str, Array]) -> list[_KerasLayer]:
    grouped: dict[str, dict[str, Array]] = {}
    for path, array in arrays.items():
        if path.startswith("optimizer_weights/"):
            continue
        layer, _, variable = path.removesuffix(":0").rpartition("/")
        if variable not in VARIABLES:
            raise UserError(f"{path} is no weight of an Efficient-CapsNet in Keras ({', '.join(VARIABLES)})")
        grouped.setdefault(layer, {})[variable] = np.asarray(array)
    layers = [_KerasLayer(path, variables) for path, variables in grouped.items()]
    return sorted(layers, key=_natural)


def _convolution(layer: _KerasLayer) -> StateDict:
    """Height, width, in, out to out, in, height, width; a depthwise kernel has its channels third."""
    if "depthwise_kernel" in layer.arrays:
        weight = rearrange(layer.take("depthwise_kernel"), "h w c 1 -> c 1 h w")
    else:
        weight = rearrange(layer.take("kernel"), "h w i o -> o i h w")
    return {"weight": _tensor(weight), "bias": _tensor(layer.take("bias"))}


def _norm(layer: _KerasLayer) -> StateDict:
    state = {"weight": _tensor(layer.take("gamma")), "bias": _tensor(layer.take("beta"))}
    if "moving_mean" in layer.arrays or "moving_variance" in layer.arrays:
        state["running_mean"] = _tensor(layer.take("moving_mean"))
        state["running_var"] = _tensor(layer.take("moving_variance"))
        state["num_batches_tracked"] = torch.tensor(0)
    return state


def _capsules(layer: _KerasLayer) -> StateDict:
    """Parents, children, in, out to children, in, parents, out; the prior loses its last axis of one."""
    weight = rearrange(layer.take("W"), "o i p d -> i p o d")
    prior = rearrange(layer.take("b"), "o i 1 -> i o")
    return {"weight": _tensor(weight), "routing.prior": _tensor(prior)}


def _dense(layer: _KerasLayer) -> StateDict:
    return {"weight": _tensor(layer.take("kernel").T), "bias": _tensor(layer.take("bias"))}


def _last_dense(layer: _KerasLayer, height: int, width: int) -> StateDict:
    """As `_dense`, its outputs moved from (height, width, channels) to (channels, height, width)."""
    return {
        name: rearrange(values, "(h w c) ... -> (c h w) ...", h=height, w=width)
        for name, values in _dense(layer).items()
    }


def _tensor(array: Array) -> Tensor:
    return torch.tensor(np.ascontiguousarray(array), dtype=torch.float32)


def keras_efficient_capsnet(
    arrays: Mapping[str, Array], config: EfficientCapsNetConfig | None = None
) -> StateDict:
    """State dict of an `EfficientCapsNet` from the authors' Keras weights.

    Their primary layer is a convolution in groups, kernel (height, width, 1, channels); one of
    `DepthwiseConv2D`, (height, width, channels, 1), is taken as well. Capsule matrices W are (parents,
    children, child pose, parent pose) and the prior b (parents, children, 1). Their class lengths have 1e-7
    under the root, which ours have not: a capsule of length zero reads 0.0003 there.

    Args:
        arrays: Path inside the file to array, such as "Efficient_CapsNet/conv2d_1/kernel:0"; layers of one
            kind follow each other by their numbers, whatever groups they are nested in.
        config: What the weights are for, by default MNIST. With `decoder="fc"` the decoder's weights are
            taken too; otherwise they are left out.
    """
    config = EfficientCapsNetConfig() if config is None else config
    layers = _keras_layers(arrays)
    network = [layer for layer in layers if not layer.is_decoder]
    plan = _network_plan(network, len(config.channels))
    if config.decoder == "fc":
        dense = [layer for layer in layers if layer.is_decoder]
        plan += _decoder_plan(dense, *sides(config.image_size))
    with sketching():
        expected = EfficientCapsNet(config).state_dict()
    return _carry_out(plan, expected)


Plan = list[tuple[str, _KerasLayer, Callable[[_KerasLayer], StateDict]]]


def _network_plan(layers: list[_KerasLayer], depth: int) -> Plan:
    convolutions = _exactly(layers, "convolution", depth + 1)
    norms = _exactly(layers, "norm", depth)
    capsules = _exactly(layers, "capsules", 1)
    plan: Plan = [(f"stem.{i}.0", layer, _convolution) for i, layer in enumerate(convolutions[:-1])]
    plan += [(f"stem.{i}.2", layer, _norm) for i, layer in enumerate(norms)]
    plan += [("primary.conv", convolutions[-1], _convolution), ("classes", capsules[0], _capsules)]
    return plan


def _decoder_plan(layers: list[_KerasLayer], height: int, width: int) -> Plan:
    dense = [layer for layer in layers if layer.kind == "dense"]
    if len(dense) != 3 or len(layers) != 3:
        found = ", ".join(layer.path for layer in layers) or "nothing"
        raise UserError(
            f"the decoder of these weights is not three dense layers but {found}; leave it out with "
            "decoder='none' (on the command line --set model.decoder=none --set loss.reconstruction=0)"
        )
    return [
        ("decoder.layers.0", dense[0], _dense),
        ("decoder.layers.2", dense[1], _dense),
        ("decoder.layers.4", dense[2], lambda layer: _last_dense(layer, height, width)),
    ]


def _exactly(layers: list[_KerasLayer], kind: str, count: int) -> list[_KerasLayer]:
    found = [layer for layer in layers if layer.kind == kind]
    if len(found) != count:
        paths = ", ".join(layer.path for layer in found) or "none"
        raise UserError(f"the network has {count} layers of kind {kind!r}, these weights have {paths}")
    return found


def _carry_out(plan: Plan, expected: Mapping[str, Tensor]) -> StateDict:
    state: StateDict = {}
    for prefix, layer, convert in plan:
        try:
            converted = convert(layer)
        except EinopsError as error:
            raise UserError(f"{layer.path} does not have the axes of {prefix}: {error}") from error
        for name, values in converted.items():
            require_shape(f"{prefix}.{name}", values, expected, source=layer.path)
            state[f"{prefix}.{name}"] = values
    require_same_names(state, expected)
    return state
