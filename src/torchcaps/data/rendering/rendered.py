"""Images that are rendered on the device they are wanted on."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor
from torch.nn import functional as F

from torchcaps.core import UserError

from ..lazy_images import Indices, LazyImages
from .mesh import Mesh
from .rasterise import rasterise
from .view import View

MOST_BYTES_AT_ONCE = 8 << 30  # more images are rendered batch by batch
_SMOOTH_SIDE = 112  # smaller images are rendered at about this size and averaged down
_CHUNK = 2048


class RenderedImages(LazyImages):
    """Images of objects in given rotations; `to(device)` renders all of them there where they fit in memory.

    Args:
        meshes: The objects.
        numbers: Which of them is in each image.
        rotations: How it is turned, as unit quaternions (w, x, y, z).
        view: Camera, lights, background and size.
        device: Where images are rendered.
    """

    def __init__(
        self,
        meshes: tuple[Mesh, ...],
        numbers: Int64[Tensor, " count"],
        rotations: Float[Tensor, "count 4"],
        view: View,
        device: torch.device | str = "cpu",
    ) -> None:
        if len(numbers) != len(rotations):
            raise UserError(f"{len(numbers)} images have {len(rotations)} rotations")
        self.meshes, self.numbers, self.rotations = meshes, numbers, rotations
        self.view, self.device = view, torch.device(device)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def shape(self) -> torch.Size:
        """As of a tensor."""
        return torch.Size((len(self), 3, self.view.height, self.view.width))

    def __getitem__(self, indices: Tensor | slice) -> UInt8[Tensor, "chosen channels height width"]:
        chosen = indices if isinstance(indices, slice) else indices.to(self.numbers.device)
        return self._render(self.numbers[chosen], self.rotations[chosen])

    def to(self, device: torch.device | str) -> LazyImages | Tensor:
        """All images, rendered on the device; where they are too many, each is rendered when needed."""
        moved = RenderedImages(self.meshes, self.numbers, self.rotations, self.view, device)
        return moved if self.shape.numel() > MOST_BYTES_AT_ONCE else moved[:]

    def subset(self, indices: Indices) -> RenderedImages:
        """The images at `indices`."""
        chosen = torch.as_tensor(indices, dtype=torch.int64, device=self.numbers.device)
        return RenderedImages(
            self.meshes, self.numbers[chosen], self.rotations[chosen], self.view, self.device
        )

    def _render(self, numbers: Tensor, rotations: Tensor) -> Tensor:
        """The images, one object after the other, each put in its place."""
        size = (len(numbers), *self.shape[1:])
        images = torch.empty(size, dtype=torch.uint8, device=self.device)
        for number in sorted(set(numbers.tolist())):
            mesh = self.meshes[number].to(self.device)
            for places in torch.split((numbers == number).nonzero().squeeze(1), _CHUNK):
                turns = rotations[places].to(self.device)
                images[places.to(self.device)] = render_smooth(mesh, turns, self.view)
        return images


def render_smooth(
    mesh: Mesh, rotations: Float[Tensor, "batch 4"], view: View
) -> UInt8[Tensor, "batch 3 height width"]:
    """Images without steps along edges: small ones are rendered larger and averaged."""
    times = max(1, _SMOOTH_SIDE // max(view.height, view.width))
    images = rasterise(mesh, rotations, view.enlarged(times)).images
    if times == 1:
        return images
    return F.avg_pool2d(images.float(), times).round().byte()
