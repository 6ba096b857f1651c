"""Deletion: how much the predicted class loses when the places that a map names are blanked."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from torchcaps.core import generator
from torchcaps.data import LabelledImages, normalize
from torchcaps.parse import CapsuleMap, Levels, place_map, quantized
from torchcaps.train import Pipeline

_SHARE = 0.2  # of the pixels between the capsules' centres
_BATCH = 100


def random_maps(maps: Float[Tensor, "batch rows columns"]) -> Float[Tensor, "batch rows columns"]:
    """Random maps of the same grid, the same at each call."""
    values = torch.rand(maps.shape, generator=generator(0, "deletion", "maps"))
    return values.to(maps)


def strongest_pixels(
    maps: Float[Tensor, "batch rows columns"], size: tuple[int, int], where: CapsuleMap
) -> Bool[Tensor, "batch height width"]:
    """The fifth of the pixels between the capsules' centres on which a map, placed there, is highest.

    Without padding the centres lie in the middle of an image, and may span less than a fifth of all its
    pixels: every map would then name the same ones. Equal values are ranked in one random order.
    """
    # rounded, because interpolation alone makes equal values differ in their last digits
    placed = place_map(maps.double(), size, where.field).flatten(1).round(decimals=9)
    is_between = place_map(torch.ones_like(maps[:1]), size, where.field).flatten() > 1 - 1e-4
    pixels = is_between.nonzero().squeeze(1)
    order = torch.randperm(len(pixels), generator=generator(0, "deletion", "order"))
    pixels = pixels[order.to(pixels.device)]
    ranked = placed[:, pixels].argsort(dim=1, descending=True, stable=True)
    strongest = pixels[ranked[:, : max(1, round(_SHARE * len(pixels)))]]
    return torch.zeros_like(placed, dtype=torch.bool).scatter_(1, strongest, True).view(-1, *size)


@torch.no_grad()
def measure_deletion(
    network: nn.Module,
    data: LabelledImages,
    pipeline: Pipeline,
    *,
    maps: Mapping[str, Tensor],
    where: CapsuleMap,
    levels: Levels,
) -> dict[str, float]:
    """By how many points the activation of the class predicted before falls, mean over images, by map.

    Pixels that a map names become the dataset's mean colour. The network is quantized, as for the maps.

    Args:
        network: On the device of the data, in evaluation mode.
        data: The images.
        pipeline: What becomes of an image before the network sees it.
        maps: By name, (images, rows, columns).
        where: On which the maps stand.
        levels: As in `quantized`.
    """
    falls = dict.fromkeys(maps, 0.0)
    with quantized(network, levels):
        for start in range(0, len(data), _BATCH):
            images, inputs, _ = pipeline.for_evaluation(data.images[start : start + _BATCH])
            before, chosen = network(inputs).activations.max(1)
            size = (images.shape[2], images.shape[3])
            blank = torch.tensor(pipeline.info.mean).to(images).view(-1, 1, 1)
            for name, those in maps.items():
                is_blank = strongest_pixels(those[start : start + _BATCH], size, where).unsqueeze(1)
                changed = torch.where(is_blank, blank, images)
                seen = normalize(changed, pipeline.settings.preprocess, pipeline.info)
                after = network(seen).activations.gather(1, chosen.unsqueeze(1)).squeeze(1)
                falls[name] += float((before - after).sum())
    return {name: 100 * fall / len(data) for name, fall in falls.items()}
