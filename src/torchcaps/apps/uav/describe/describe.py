"""What turns crops of ground into descriptors: a trained network, or the handmade abBRIEF."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from torchcaps.core import UserError, build_dataclass, generator
from torchcaps.models import DescriptorNetwork
from torchcaps.storage import checksum_of, read_mapping, write_json
from torchcaps.train import Pipeline, Run, load_run

from .building_ratio import is_building_ratio, load_building_ratio

_ABBRIEF = "abbrief.json"
_LARGEST_SIDE = 10_000  # pixels of a crop

# linear RGB to XYZ for D65, divided by the white point
_TO_XYZ = ((0.43395, 0.37622, 0.18983), (0.21267, 0.71516, 0.07217), (0.01776, 0.10947, 0.87277))


@runtime_checkable
class Describer(Protocol):
    """Gives a unit vector for each crop in [0, 1] of `side` pixels; the vectors have `size` components."""

    side: int
    size: int
    name: str
    device: torch.device

    def __call__(self, crops: Tensor) -> Tensor:
        """Descriptors of crops (batch, 3, side, side)."""


class NetworkDescriber:
    """The network of a run, with what its training did to images."""

    def __init__(self, run: Run) -> None:
        if not isinstance(run.model, DescriptorNetwork):
            raise UserError(f"{run.folder} is a run of {run.task.name}; maps need one of retrieval")
        self._model, self._pipeline = run.model, Pipeline(run.recipe.data, run.info())
        self.side, self.size = run.model.image_shape[2], run.model.config.descriptor
        self.device = run.device
        self.name = f"{run.recipe.model['name']} {checksum_of(run.folder / 'weights.safetensors')[:16]}"

    @torch.inference_mode()
    def __call__(self, crops: Float[Tensor, "batch 3 side side"]) -> Float[Tensor, "batch descriptor"]:
        """Descriptors of crops."""
        inputs = self._pipeline.for_evaluation(crops).inputs
        return self._model(inputs).descriptors.float()


def load_describer(folder: Path, device: torch.device | str = "cpu") -> Describer:
    """The network that the run in a folder ended with, or the baseline that was put there."""
    if is_building_ratio(folder):
        return load_building_ratio(folder, device)
    if (folder / _ABBRIEF).is_file():
        found = build_dataclass(_AbBriefSettings, read_mapping(folder / _ABBRIEF), str(folder / _ABBRIEF))
        return AbBrief(found.side, found.bits, device)
    return NetworkDescriber(load_run(folder, device))


@dataclass(frozen=True)
class _AbBriefSettings:
    """What a folder keeps of an `AbBrief`."""

    side: int
    bits: int


class AbBrief:
    """Which of two points is redder and which is bluer, for many fixed pairs (Mantelli 2019, our reading).

    The a* and b* channels of CIELAB are smoothed over 5 pixels and compared at random pairs of points, half
    of the pairs for each channel. Signs over the root of their number are unit vectors whose dot product is
    one minus twice the share of bits that differ.
    """

    def __init__(self, side: int, size: int = 128, device: torch.device | str = "cpu") -> None:
        if not 1 <= side <= _LARGEST_SIDE:
            raise UserError(f"abBRIEF needs crops of 1 to {_LARGEST_SIDE:,} pixels, got {side}")
        if size < 2 or size % 2:
            raise UserError(f"abBRIEF needs an even number of bits, got {size}")
        self.side, self.size, self.name = side, size, f"abbrief {size}"
        self.device = torch.device(device)
        spread = torch.randn(size, 4, generator=generator(0, "abbrief")) * side / 5 + (side - 1) / 2
        self._points = spread.round().clamp(0, side - 1).long().to(self.device)

    def save(self, folder: Path) -> None:
        """Write it where `load_describer` finds it."""
        write_json(folder / _ABBRIEF, {"side": self.side, "bits": self.size})

    def __call__(self, crops: Float[Tensor, "batch 3 side side"]) -> Float[Tensor, "batch descriptor"]:
        """Descriptors of crops."""
        smooth = F.avg_pool2d(_opponent_colours(crops), 5, 1, 2, count_include_pad=False)
        x, y, other_x, other_y = self._points.T
        channel = torch.arange(self.size, device=crops.device) % 2
        first, second = smooth[:, channel, y, x], smooth[:, channel, other_y, other_x]
        return torch.where(first > second, 1.0, -1.0) / self.size**0.5


def _opponent_colours(images: Tensor) -> Tensor:
    """The a* and b* channels of sRGB images."""
    linear = torch.where(images <= 0.04045, images / 12.92, ((images + 0.055) / 1.055) ** 2.4)
    matrix = torch.tensor(_TO_XYZ, device=images.device, dtype=images.dtype)
    xyz = torch.einsum("pq,bqhw->bphw", matrix, linear)
    root = torch.where(xyz > 216 / 24389, xyz.clamp(min=1e-9) ** (1 / 3), (24389 / 27 * xyz + 16) / 116)
    return torch.stack([500 * (root[:, 0] - root[:, 1]), 200 * (root[:, 1] - root[:, 2])], dim=1)
