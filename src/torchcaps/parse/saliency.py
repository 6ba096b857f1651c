"""Saliency maps from couplings, on the grid of capsules and on the image."""

from __future__ import annotations

from math import prod

import torch
from einops import reduce
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from torchcaps.core import UserError
from torchcaps.layers import ReceptiveField

GridShape = tuple[int, int, int]  # height, width and types of capsules on a map


def check_grid(grid: GridShape, in_caps: int) -> None:
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
    grid: GridShape,
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

    Maps are those of capsules: on the image, pixels around the capsules would lower the mean.
    """
    places = maps.flatten(1)
    strongest, mean = places.amax(1), places.mean(1)
    return torch.where(mean > 0, strongest / mean, 0.0)


def _check_sizes(activations: Tensor, coupling: Tensor, chosen: Tensor, grid: GridShape) -> None:
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
    for pixels, positions, first in zip(size, maps.shape[1:], field.first, strict=True):
        position = (torch.arange(pixels, device=maps.device, dtype=maps.dtype) - first) / field.step
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
