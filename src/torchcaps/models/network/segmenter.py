"""What all segmentation networks share: the input check and the sizes that can be halved and doubled back."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import SegmentationOutput, UserError, sides
from torchcaps.layers import size_setting

from .network import ModelConfig, Network


class Segmenter(Network, ABC):
    """A network that classifies each pixel of an image whose sides can be halved `halvings` times."""

    decoder: nn.Module | None = None

    def __init__(self, config: ModelConfig, halvings: int) -> None:
        super().__init__(config)
        if config.num_classes < 1:
            raise UserError(f"num_classes must be at least 1, got {config.num_classes}")
        self.halvings = halvings
        self._check_size(*sides(config.image_size))

    @abstractmethod
    def forward(
        self,
        images: Float[Tensor, "batch channels height width"],
        masks: Float[Tensor, "batch classes height width"] | None = None,
        *,
        return_routing: bool = False,
    ) -> SegmentationOutput:
        """Segment normalised images.

        Args:
            images: Height and width divisible by 2 to the number of halvings.
            masks: Choose what a reconstruction shows; a network without a decoder ignores them.
            return_routing: Also return the result of every routed layer.
        """

    def _check(self, images: Tensor) -> None:
        self.require_images(images)
        if images.shape[1] != self.config.in_channels:
            raise UserError(
                f"the first layer of this {type(self).__name__} takes images of {self.config.in_channels} "
                f"channels, got {images.shape[1]}; set model.in_channels={images.shape[1]}"
            )
        self._check_size(images.shape[2], images.shape[3])

    def _check_size(self, height: int, width: int) -> None:
        step = 2**self.halvings
        if height > 0 and width > 0 and height % step == 0 and width % step == 0:
            return
        sizes = sorted({size for side in (height, width) for size in _neighbours(side, step)})
        setting = size_setting(max(_neighbours(height, step)), max(_neighbours(width, step)))
        raise UserError(
            f"{type(self).__name__} halves an image {self.halvings} times, so its sides must be multiples of "
            f"{step}, got {height}x{width}; what fits is {', '.join(map(str, sizes))}: pad, crop or resize "
            f"the images, or set {setting}"
        )


def _neighbours(side: int, step: int) -> set[int]:
    below = side // step * step
    return {side} if 0 < side == below else {max(below, step), below + step}
