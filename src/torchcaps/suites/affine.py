"""Affine changes of the test images, one kind at a time and as in affNIST."""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.core import generator
from torchcaps.data import AffineLimits, affine

from .api import SUITES, Material, Measurement, accuracy_on

_CONDITIONS: dict[str, dict[str, AffineLimits]] = {
    "as they are": {"0": AffineLimits()},
    "rotation": {f"±{angle:g}°": AffineLimits(rotation=angle) for angle in (10.0, 20.0, 30.0, 45.0, 60.0)},
    "scale": {f"±{share:.0%}": AffineLimits(scale=share) for share in (0.1, 0.2, 0.3, 0.4)},
    "shear": {f"±{share}": AffineLimits(shear=share) for share in (0.1, 0.2, 0.3, 0.4)},
    "shift": {f"±{share:.0%}": AffineLimits(translation=share) for share in (0.05, 0.1, 0.15, 0.2)},
    "affNIST-style": {"all": AffineLimits(rotation=20.0, shear=0.2, scale=0.2, translation=0.1)},
}


def transform(images: Tensor, limits: AffineLimits, name: str) -> Tensor:
    """Bytes under one random affine map each; numbers are drawn on the CPU, the same for every run."""
    draws = torch.rand(len(images), 8, generator=generator(0, "affine suite", name)).to(images.device)
    changed = affine(images.float() / 255, limits, draws)
    return (changed.clamp(0, 1) * 255).round().byte()


@SUITES.register("affine")
def measure_affine(material: Material) -> list[Measurement]:
    """Accuracy under each change; what enters the frame is black."""
    images = material.data.images
    return [
        Measurement(
            group, words, accuracy_on(material, transform(images, limits, group) if words != "0" else images)
        )
        for group, conditions in _CONDITIONS.items()
        for words, limits in conditions.items()
    ]
