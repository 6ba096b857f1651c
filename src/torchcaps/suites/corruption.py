"""Noise, blur and occlusion of the test images at five strengths."""

from __future__ import annotations

from torchcaps.data import CORRUPTIONS, corrupt_images

from .api import SUITES, Material, Measurement, accuracy_on


@SUITES.register("corruption")
def measure_corruption(material: Material) -> list[Measurement]:
    """Accuracy on clean images and under each corruption."""
    images = material.data.images
    found = [Measurement("clean", "0", accuracy_on(material, images))]
    for kind in CORRUPTIONS:
        for strength in range(1, 6):
            changed = corrupt_images(images, kind, strength)
            found.append(Measurement(kind, str(strength), accuracy_on(material, changed)))
    return found
