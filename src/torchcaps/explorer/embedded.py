"""A decoder as plain numbers, so that a file without a server can run it: `templates/decode.js` does."""

from __future__ import annotations

from base64 import b64encode
from copy import deepcopy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from torchcaps.core import Plain
from torchcaps.layers import ConvDecoder, FcDecoder
from torchcaps.parse import perturb_capsule
from torchcaps.viz import INK_MAP

from .subject import Look

Decoder = FcDecoder | ConvDecoder


def round_decoder(decoder: Decoder) -> Decoder:
    """The decoder with the weights that a page holds: in half precision, computed with in single."""
    rounded = deepcopy(decoder).cpu().eval()
    for layer in rounded.modules():
        if isinstance(layer, nn.Linear | nn.ConvTranspose2d):
            layer.half().float()
    return rounded


def embed_decoder(rounded: Decoder) -> Plain:
    """What a page needs to draw: the steps from capsules to pixels, and the colours of grey ones."""
    if isinstance(rounded, FcDecoder):
        takes, steps = "masked" if rounded.masked else "all", [_step(layer) for layer in rounded.layers]
    else:
        takes, steps = "chosen", _growing_steps(rounded)
    return {
        "takes": takes,  # which capsules: all, all but the chosen one zero, or the chosen one alone
        "shape": list(rounded.image_shape),
        "steps": steps,
        "ink": _bytes((INK_MAP(np.arange(256))[:, :3] * 255).round().astype(np.uint8)),
    }


def rounding_error(rounded: Decoder, look: Look, sheet: Tensor) -> float:
    """How far drawings with a number changed are from those of the rounded decoder, at most, in [0, 1]."""
    drawn = perturb_capsule(rounded, look.poses[None], torch.tensor([look.winner]))
    return float((drawn.clamp(0, 1) - sheet).abs().max())


def _growing_steps(decoder: ConvDecoder) -> list[Plain]:
    norm = decoder.norm
    assert norm.running_var is not None
    assert norm.running_mean is not None
    # the normalisation is a factor and a summand for each channel, with the statistics of training
    factor = norm.weight / (norm.running_var + norm.eps).sqrt()
    summand = norm.bias - norm.running_mean * factor
    channel = {"kind": "scale", "factor": factor.tolist(), "summand": summand.tolist()}
    expanded = {**_step(decoder.expand), "shape": list(decoder.map_shape)}
    return [expanded, channel, *(_step(layer) for layer in decoder.layers), {"kind": "relu"}]


def _step(layer: nn.Module) -> Plain:
    match layer:
        case nn.ReLU():
            return {"kind": "relu"}
        case nn.Sigmoid():
            return {"kind": "sigmoid"}
        case nn.Linear():
            return {"kind": "dense", "weight": _halves(layer.weight), "bias": _halves(layer.bias)}
        case nn.ConvTranspose2d():
            return {
                "kind": "grow",
                "weight": _halves(layer.weight),  # in, out, down, across
                "bias": _halves(layer.bias),  # type: ignore[arg-type]  # our decoders have one
                "stride": layer.stride[0],
                "kernel": layer.kernel_size[0],
            }
    raise TypeError(f"a decoder with a {type(layer).__name__} cannot be written into a page")


def _halves(values: Tensor) -> str:
    return _bytes(values.detach().numpy().astype("<f2"))


def _bytes(values: NDArray[np.generic]) -> str:
    return b64encode(values.tobytes()).decode("ascii")
