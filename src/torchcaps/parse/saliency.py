"""Saliency maps from couplings, and where on the image a capsule looks."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import torch
from einops import reduce
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from torchcaps.core.errors import UserError
from torchcaps.layers.geometry import ConvStage, map_sizes

Grid = tuple[int, int, int]


class ReceptiveField(NamedTuple):
    """The pixels a grid of capsules sees, along one side; a pixel's centre has its whole number."""

    first: float  # centre of capsule 0
    step: float
    size: float

    def centre(self, position: int) -> float:
        """Pixel below the middle of the capsule in row or column `position`."""
        return self.first + self.step * position


def receptive_field(image_size: int, stages: Sequence[ConvStage]) -> ReceptiveField:
    """What a capsule sees of a square image after convolutions, as in `model.config.stages`."""
    first, step, size = 0.0, 1, 1
    before = image_size
    for stage, after in zip(stages, map_sizes(image_size, stages), strict=True):
        lacking = max((after - 1) * stage.stride + stage.kernel - before, 0)
        padding = lacking // 2 if stage.padding == "same" else 0
        first += ((stage.kernel - 1) / 2 - padding) * step
        size += (stage.kernel - 1) * step
        step *= stage.stride
        before = after
    return ReceptiveField(first, float(step), float(size))


def capsule_grid(in_caps: int, image_size: int, stages: Sequence[ConvStage]) -> Grid:
    """Height, width and types of `in_caps` primary capsules on a square image."""
    side = map_sizes(image_size, stages)[-1]
    if in_caps % side**2:
        raise UserError(f"{in_caps} capsules do not fill a map of {side}x{side} positions evenly")
    return side, side, in_caps // side**2


def check_grid(grid: Grid, in_caps: int) -> None:
    """Refuse a grid that does not hold `in_caps` capsules."""
    if min(grid) < 1 or prod(grid) != in_caps:
        raise UserError(f"a grid of {'x'.join(map(str, grid))} capsules does not hold {in_caps} of them")


def check_chosen(chosen: Int[Tensor, " batch"], classes: int) -> None:
    """Refuse a class that is not one of `classes`."""
    if len(chosen) and not 0 <= int(chosen.min()) <= int(chosen.max()) < classes:
        raise UserError(f"chosen classes must lie in 0..{classes - 1}, got {chosen.tolist()}")


def saliency_map(
    activations: Float[Tensor, "batch in_caps"],
    coupling: Float[Tensor, "batch in_caps out_caps"],
    chosen: Int[Tensor, " batch"],
    grid: Grid,
) -> Float[Tensor, "batch height width"]:
    """Mean over types of activation times coupling to the chosen class (thesis, Parse Trees Visualization).

    Args:
        activations: Of the children, ordered (height, width, type).
        coupling: Of the children to all classes, quantized or not.
        chosen: The class to explain, usually the predicted one.
        grid: Height, width and types of the children.
    """
    _check_sizes(activations, coupling, chosen, grid)
    index = chosen.long().view(-1, 1, 1).expand(-1, coupling.shape[1], 1)
    evidence = activations * coupling.gather(2, index).squeeze(2)
    height, width, types = grid
    return reduce(evidence, "b (h w t) -> b h w", "mean", h=height, w=width, t=types)


def map_peaks(maps: Float[Tensor, "batch ..."]) -> Float[Tensor, " batch"]:
    """The strongest place of each map over its mean one: 1 is a flat map, 0 one without any evidence.

    Maps are those of capsules. On an image, what surrounds the capsules would count as places too.
    """
    places = maps.flatten(1)
    strongest, mean = places.amax(1), places.mean(1)
    return torch.where(mean > 0, strongest / mean, 0.0)


def _check_sizes(activations: Tensor, coupling: Tensor, chosen: Tensor, grid: Grid) -> None:
    batch, in_caps = activations.shape
    if coupling.shape[:2] != (batch, in_caps) or chosen.shape != (batch,):
        raise UserError(
            f"{batch} images of {in_caps} capsules need couplings of shape ({batch}, {in_caps}, classes) and "
            f"{batch} classes, got {tuple(coupling.shape)} and {tuple(chosen.shape)}"
        )
    check_grid(grid, in_caps)
    check_chosen(chosen, coupling.shape[2])


def upsample_map(
    maps: Float[Tensor, "batch rows columns"], size: tuple[int, int]
) -> Float[Tensor, "batch height width"]:
    """Maps stretched over the whole image by bilinear interpolation, as in the thesis.

    Where convolutions are not padded, capsules look at the middle of the image only and stretching moves the
    evidence outwards; `place_map` keeps it where it was found.
    """
    _check_image_size(size)
    return F.interpolate(maps.unsqueeze(1), size, mode="bilinear", align_corners=False).squeeze(1)


def place_map(
    maps: Float[Tensor, "batch rows columns"], size: tuple[int, int], field: ReceptiveField
) -> Float[Tensor, "batch height width"]:
    """Maps with each capsule at the centre of its receptive field, bilinear between, zero around."""
    _check_image_size(size)
    axes = []
    for pixels, positions in zip(size, maps.shape[1:], strict=True):
        position = (torch.arange(pixels, device=maps.device, dtype=maps.dtype) - field.first) / field.step
        axes.append((2 * position + 1) / positions - 1)  # where grid_sample finds that position
    rows, columns = torch.meshgrid(*axes, indexing="ij")
    where = torch.stack([columns, rows], dim=-1).expand(len(maps), -1, -1, -1)
    return F.grid_sample(maps.unsqueeze(1), where, align_corners=False).squeeze(1)


def place_heat(
    maps: Float[Tensor, "batch rows columns"], size: tuple[int, int], field: ReceptiveField
) -> Float[Tensor, "batch height width"]:
    """Maps as `place_map` has them, around the capsules their lowest value: for drawings."""
    lowest = maps.amin((1, 2), keepdim=True)
    return place_map(maps - lowest, size, field) + lowest


def _check_image_size(size: tuple[int, int]) -> None:
    if min(size) < 1:
        raise UserError(f"the image needs at least one pixel, got {size[0]}x{size[1]}")
