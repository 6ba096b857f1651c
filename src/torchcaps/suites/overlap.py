"""Two test images of different classes on top of each other: are both classes found?"""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.core import UserError, generator
from torchcaps.data import LabelledImages, shift

from .api import SUITES, Material, Measurement, activations_of

_SHIFTS = (0, 2, 4, 6)  # pixels to each side, of each image on its own


def overlay_pairs(data: LabelledImages, shift_by: int) -> tuple[Tensor, Tensor]:
    """Each image with another of a different class: their sum cut at 255, and both classes (count, 2)."""
    labels = data.labels.cpu()
    if len(set(labels.tolist())) < 2:
        raise UserError("the overlap suite needs test images of at least two classes; raise --limit")
    rng = generator(0, "overlap suite", shift_by)
    other = torch.randint(len(labels), (len(labels),), generator=rng)
    while (same := labels[other] == labels).any():
        other[same] = torch.randint(len(labels), (int(same.sum()),), generator=rng)
    other = other.to(data.device)
    moved = []
    for images in (data.images, data.images[other]):
        draws = torch.rand(len(images), 2, generator=rng).to(data.device)
        moved.append(shift(images.float(), shift_by, draws))
    together = (moved[0] + moved[1]).clamp(max=255).byte()
    return together, torch.stack([data.labels, data.labels[other]], dim=1)


@SUITES.register("overlap")
def measure_overlap(material: Material) -> list[Measurement]:
    """The share of pairs, and of single classes, that are the two strongest answers."""
    if len(material.data.classes) < 3:
        raise UserError("the overlap suite needs at least three classes: two answers are always right of two")
    found = []
    for shift_by in _SHIFTS:
        images, labels = overlay_pairs(material.data, shift_by)
        chosen = activations_of(material, images).topk(2, dim=1).indices
        hits = (labels.unsqueeze(2) == chosen.unsqueeze(1)).any(2).double()
        metrics = {"pair_accuracy": float(hits.prod(1).mean()), "digit_accuracy": float(hits.mean())}
        found.append(Measurement("shift of each", f"±{shift_by} px", metrics))
    return found
