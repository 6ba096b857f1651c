"""What all models share: a config, the shape of their images, a decoder or none, and their capsule grids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from torchcaps.core import ImageSize, UserError, sides
from torchcaps.layers import ConvStage, PrimaryCaps, size_setting


@runtime_checkable
class ModelConfig(Protocol):
    """The fields that every config has; a config is a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def in_channels(self) -> int:
        """Channels of an image."""
        ...

    @property
    def image_size(self) -> ImageSize:
        """Side of a square image, or height and width."""
        ...

    @property
    def num_classes(self) -> int:
        """What the network tells apart."""
        ...


def _is_cast(images: Tensor) -> bool:
    """Whether autocast takes images of another dtype than the weights; it leaves float64 as it is."""
    return images.dtype != torch.float64 and torch.is_autocast_enabled(images.device.type)


class CapsuleGrid(NamedTuple):
    """Capsules on a grid: the convolutions that lead to it, and how many stand at each position."""

    stages: Sequence[ConvStage]
    types: int


class MapReader(NamedTuple):
    """Capsules that each read a whole map: what makes the map, its convolutions, and the capsules."""

    stem: nn.Module
    stages: Sequence[ConvStage]
    primary: PrimaryCaps


class Network(nn.Module):
    """A model built from its config alone."""

    config: ModelConfig
    image_shape: tuple[int, int, int]  # channels, height, width
    decoder: nn.Module | None  # draws the image from capsules

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if config.in_channels < 1:
            raise UserError(
                f"the first layer sees nothing: in_channels must be at least 1, got {config.in_channels}"
            )
        self.config = config
        height, width = sides(config.image_size)
        self.image_shape = (config.in_channels, height, width)

    def a_weight(self) -> Tensor:
        """One of the weights, for device and dtype; replicas of `nn.DataParallel` have no parameters."""
        weight = next(self.parameters(), None)
        if weight is not None:
            return weight
        copied = (getattr(module, "_former_parameters", {}) for module in self.modules())
        return next(weight for weights in copied for weight in weights.values())

    def require_images(self, images: Tensor) -> None:
        """Raise unless images are a batch with the dtype and device of the weights; no value is read."""
        if not isinstance(images, Tensor) or images.ndim != 4:
            got = tuple(images.shape) if isinstance(images, Tensor) else type(images).__name__
            raise UserError(
                f"{type(self).__name__} takes a tensor of images (batch, channels, height, width), got {got}"
            )
        if not images.is_floating_point():
            raise UserError(
                f"{type(self).__name__} takes normalised images of real numbers such as torch.float32, got "
                f"{images.dtype}; divide bytes by 255 and normalise them"
            )
        weight = self.a_weight()
        place = weight.device.type
        if images.device.type != place:
            raise UserError(
                f"the images are on {images.device.type}, the weights on {place}; move one of them"
            )
        if images.dtype != weight.dtype and not _is_cast(images):
            raise UserError(
                f"the images are {images.dtype}, the weights {weight.dtype}; convert one of them, as "
                f"images.to({weight.dtype})"
            )

    def require_shape(self, images: Tensor) -> None:
        """`require_images`, and raise unless they have the size that the network was built for."""
        self.require_images(images)
        if images.shape[1:] == self.image_shape:
            return
        channels, height, width = images.shape[1:]
        expected = "x".join(map(str, self.image_shape))
        if (width, channels, height) == self.image_shape:
            advice = "move the channels to the front, as images.permute(0, 3, 1, 2)"
        else:
            size = size_setting(height, width)
            advice = f"resize them, or set model.in_channels={channels} and {size}"
        raise UserError(
            f"this {type(self).__name__} takes images of {expected} (channels, height, width), got "
            f"{channels}x{height}x{width}; {advice}"
        )

    def capsule_grids(self) -> tuple[CapsuleGrid, ...]:
        """The grids whose capsules are the children of the first fully connected layer, in their order.

        A family whose capsules have no place on the image, because each sees all of it, has none.
        """
        return ()

    def map_reader(self) -> MapReader | None:
        """The children of the first fully connected layer, where one kernel makes each of them of a map."""
        return None
