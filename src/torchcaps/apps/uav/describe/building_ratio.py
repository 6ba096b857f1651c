"""The building-ratio baseline: how much of each ring around the middle of a crop is built over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from torchcaps.core import MissingDataError, UserError, build_dataclass, need
from torchcaps.storage import checksum_of, read_mapping, write_bytes, write_json

Segmenter: TypeAlias = Callable[[Tensor], Tensor]  # crops in [0, 1] to the share of each pixel that is built
_SETTINGS, _NETWORK = "building_ratio.json", "segmenter.onnx"
_TEXTURE = 5  # pixels over which brightness is compared


class BuildingRatio:
    """Shares of buildings in rings of equal width (Choi 2020, our reading); turning a crop changes little.

    The descriptor has the roots of the built and of the free share of each ring, so it is a unit vector, and
    the dot product of two of them is the mean Bhattacharyya coefficient of their rings.

    Args:
        side: Pixels of a crop.
        rings: How many.
        segmenter: Finds buildings; `colour_segmenter` by default.
        device: Where to compute.
        segmenter_name: Tells maps of different segmenters apart.
    """

    def __init__(
        self,
        side: int,
        rings: int = 8,
        segmenter: Segmenter | None = None,
        device: torch.device | str = "cpu",
        segmenter_name: str = "colour",
    ) -> None:
        if not 1 <= rings <= side // 2:
            raise UserError(f"crops of {side} pixels have room for 1 to {side // 2} rings, not {rings}")
        self.side, self.size, self.rings = side, 2 * rings, rings
        self.name = f"building ratio {rings} {segmenter_name}"
        self.device = torch.device(device)
        self._segmenter = segmenter or colour_segmenter
        self._rings = _ring_masks(side, rings).to(self.device)

    def __call__(self, crops: Float[Tensor, "batch 3 side side"]) -> Float[Tensor, "batch descriptor"]:
        """Descriptors of crops."""
        built = self._segmenter(crops)
        if built.shape != (len(crops), self.side, self.side):
            raise UserError(f"the segmenter gave {tuple(built.shape)} for crops of {tuple(crops.shape)}")
        share = torch.einsum("bhw,rhw->br", built.clamp(0, 1), self._rings)
        return torch.cat([share, 1 - share], dim=1).clamp(0, 1).sqrt() / self.rings**0.5

    def save(self, folder: Path, network: Path | None = None) -> None:
        """Write it where `load_building_ratio` finds it, with the ONNX file of its segmenter."""
        if network is not None:
            write_bytes(folder / _NETWORK, network.read_bytes())
        write_json(folder / _SETTINGS, {"side": self.side, "rings": self.rings})


@dataclass(frozen=True)
class _Settings:
    """What a folder keeps of a `BuildingRatio`."""

    side: int
    rings: int


def is_building_ratio(folder: Path) -> bool:
    """Whether `BuildingRatio.save` wrote to a folder."""
    return (folder / _SETTINGS).is_file()


def load_building_ratio(folder: Path, device: torch.device | str = "cpu") -> BuildingRatio:
    """What `BuildingRatio.save` wrote."""
    path, network = folder / _SETTINGS, folder / _NETWORK
    kept = build_dataclass(_Settings, read_mapping(path), str(path))
    return building_ratio(kept.side, kept.rings, network if network.is_file() else None, device)


def building_ratio(
    side: int, rings: int = 8, network: Path | None = None, device: torch.device | str = "cpu"
) -> BuildingRatio:
    """The baseline with the segmenter of an ONNX file, or with that of colours."""
    if network is None:
        return BuildingRatio(side, rings, device=device)
    name = checksum_of(network)[:16] if network.is_file() else ""
    return BuildingRatio(side, rings, onnx_segmenter(network), device, name)


def colour_segmenter(crops: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch height width"]:
    """Pixels that are brighter than their surroundings, and grey or red rather than green or blue.

    A simple stand-in for a trained network: it also takes bare ground and roads for buildings.
    """
    red, green, blue = crops.unbind(1)
    bright = crops.mean(1)
    around = F.avg_pool2d(bright[:, None], 2 * _TEXTURE + 1, 1, _TEXTURE, count_include_pad=False)[:, 0]
    stands_out = torch.sigmoid((bright - around - 0.06) * 40)
    is_grey_or_red = torch.sigmoid((red - torch.maximum(green, blue) + 0.03) * 40)
    return stands_out * is_grey_or_red


def onnx_segmenter(path: Path) -> Segmenter:
    """The network of an ONNX file: crops (batch, 3, height, width) in, (batch, [1,] height, width) out."""
    if not path.is_file():
        raise MissingDataError(f"no network at {path}")
    runtime = need("onnxruntime")
    try:
        session: Any = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no class of its own for damaged files
        raise UserError(f"{path} is no ONNX network that can be read: {error}") from error
    name = session.get_inputs()[0].name

    def segment(crops: Tensor) -> Tensor:
        found = torch.from_numpy(session.run(None, {name: crops.cpu().float().numpy()})[0]).to(crops.device)
        return found[:, 0] if found.ndim == 4 else found

    return segment


def _ring_masks(side: int, rings: int) -> Tensor:
    """For each ring the share that a pixel has in it; each ring sums to one."""
    axis = torch.arange(side, dtype=torch.float32) - (side - 1) / 2
    distance = torch.hypot(axis[:, None], axis[None, :])
    numbers = (distance / (side / 2) * rings).floor()
    masks = torch.stack([(numbers == ring).float() for ring in range(rings)])
    return masks / masks.sum((1, 2), keepdim=True).clamp(min=1)
