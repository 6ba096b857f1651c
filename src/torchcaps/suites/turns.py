"""Test images turned by quarters: how many are still known, and how often a turned page is noticed."""

from __future__ import annotations

import torch

from torchcaps.core import Metric, UserError, register_metrics
from torchcaps.zoo import ANGLES, better_turns

from .api import SUITES, Material, Measurement, activations_of

register_metrics(
    Metric("hinted", "said to be turned", "neither", "%", 100.0),
    Metric("hinted_back", "said how to turn it upright", "higher", "%", 100.0),
    Metric("hinted_errors", "misread ones said to be turned", "higher", "%", 100.0),
)


@SUITES.register("turns")
def measure_turns(material: Material) -> list[Measurement]:
    """Accuracy on images that were turned to the left, and how often the network is surer of another turn."""
    images, labels = material.data.images, material.data.labels
    if images.shape[2] != images.shape[3]:
        raise UserError(f"{material.run.folder} sees images that are not square; quarters would not fit it")
    turned = [activations_of(material, torch.rot90(images, quarters, (2, 3))) for quarters in range(4)]
    activations = torch.stack(turned, 1)
    found = []
    for quarters, angle in enumerate(ANGLES):
        seen = activations.roll(-quarters, 1)  # the image as it is given comes first
        hints, is_wrong = better_turns(seen), seen[:, 0].argmax(1) != labels
        shares = {
            "accuracy": ~is_wrong,
            "hinted": hints > 0,
            **({"hinted_back": hints == 4 - quarters} if quarters else {}),
            **({"hinted_errors": hints[is_wrong] > 0} if is_wrong.any() else {}),
        }
        metrics = {name: float(share.double().mean()) for name, share in shares.items()}
        found.append(Measurement("turned", angle, metrics))
    return found
