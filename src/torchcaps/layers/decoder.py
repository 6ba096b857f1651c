"""Decoders: from the capsule of one class back to the image."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from torchcaps.core import mark_labels, require_labels


class FcDecoder(nn.Module):
    """Three dense layers on the class capsules, all but the chosen one zero (Sabour 2017, figure 2).

    Without `masked` they see all capsules, whatever is chosen (Peer 2019).
    """

    def __init__(
        self,
        num_classes: int,
        pose: int,
        image_shape: tuple[int, int, int],
        hidden: tuple[int, int] = (512, 1024),
        *,
        masked: bool = True,
    ) -> None:
        super().__init__()
        self.masked = masked
        self.image_shape = image_shape
        self.layers = nn.Sequential(
            nn.Linear(num_classes * pose, hidden[0]),
            nn.ReLU(),
            nn.Linear(hidden[0], hidden[1]),
            nn.ReLU(),
            nn.Linear(hidden[1], prod(image_shape)),
            nn.Sigmoid(),
        )

    def forward(
        self, poses: Float[Tensor, "batch classes pose"], chosen: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch channels height width"]:
        """Images in [0, 1], drawn from the capsule of class `chosen` alone."""
        require_labels(poses, chosen, poses.shape[1])
        if self.masked:
            poses = poses * mark_labels(chosen, poses[..., 0]).unsqueeze(-1)
        return self.layers(poses.flatten(1)).unflatten(1, self.image_shape)


class ConvDecoder(nn.Module):
    """Transposed convolutions on the chosen capsule, whatever its class (Rajasegaran 2019, section 3.4)."""

    def __init__(self, pose: int, image_shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.image_shape = image_shape
        channels, height, width = image_shape
        widths = [64, 32, 16] if max(height, width) <= 32 else [64, 32, 16, 8]
        shrink = 2 ** (len(widths) - 1)
        self.map_shape = (16, -(-height // shrink), -(-width // shrink))
        self.expand = nn.Linear(pose, prod(self.map_shape))
        self.norm = nn.BatchNorm2d(16)
        sizes = [16, *widths, channels]
        self.layers = nn.Sequential()
        for level, (before, after) in enumerate(pairwise(sizes)):
            if level:
                self.layers.append(nn.ReLU())
            doubles = 0 < level < len(widths)
            self.layers.append(
                nn.ConvTranspose2d(before, after, 3, 2, padding=1, output_padding=1)
                if doubles
                else nn.ConvTranspose2d(before, after, 3, 1, padding=1)
            )
        last = self.layers[-1]
        assert isinstance(last, nn.ConvTranspose2d)
        nn.init.constant_(last.bias, 0.1)  # type: ignore[arg-type]  # or the last rectifier may start dead

    def forward(
        self, poses: Float[Tensor, "batch classes pose"], chosen: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch channels height width"]:
        """Images drawn from the capsule of class `chosen`, not bounded above."""
        require_labels(poses, chosen, poses.shape[1])
        capsule = poses.gather(1, chosen.view(-1, 1, 1).expand(-1, 1, poses.shape[-1])).squeeze(1)
        features = self.norm(self.expand(capsule).unflatten(1, self.map_shape))
        image = torch.relu(self.layers(features))
        return image[..., : self.image_shape[1], : self.image_shape[2]]
