"""What all classification networks share: input check, class capsules, decoder, result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal

from jaxtyping import Float, Int
from torch import Tensor, nn

from torchcaps.core.errors import UserError
from torchcaps.core.types import CapsuleOutput, LayerTrace
from torchcaps.layers.decoder import ConvDecoder, FcDecoder

DecoderName = Literal["none", "fc", "fc_unmasked", "conv"]


def build_decoder(
    name: DecoderName, num_classes: int, pose: int, image_shape: tuple[int, int, int]
) -> FcDecoder | ConvDecoder | None:
    """The decoder of that name, or None."""
    match name:
        case "none":
            return None
        case "fc":
            return FcDecoder(num_classes, pose, image_shape)
        case "fc_unmasked":
            return FcDecoder(num_classes, pose, image_shape, masked=False)
        case "conv":
            return ConvDecoder(pose, image_shape)
        case _:
            raise UserError(f"decoder must be 'none', 'fc', 'fc_unmasked' or 'conv', got {name!r}")


class CapsuleClassifier(nn.Module, ABC):
    """A network whose last layer has one capsule per class; a family adds `encode`."""

    decoder: FcDecoder | ConvDecoder | None

    def __init__(self, config: Any) -> None:
        super().__init__()
        if config.num_classes < 2:
            raise UserError(
                f"layer 'classes' needs a choice: num_classes must be at least 2, got {config.num_classes}"
            )
        if config.in_channels < 1:
            raise UserError(
                f"layer 'stem' sees nothing: in_channels must be at least 1, got {config.in_channels}"
            )
        self.config = config
        self.image_shape = (config.in_channels, config.image_size, config.image_size)

    @abstractmethod
    def encode(
        self, images: Float[Tensor, "batch channels height width"], *, return_coupling: bool = True
    ) -> tuple[LayerTrace, ...]:
        """Every routed layer up to the class capsules; couplings may be left out unless asked for."""

    def forward(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, " batch"] | None = None,
        *,
        return_routing: bool = False,
    ) -> CapsuleOutput:
        """Classify normalised images.

        Args:
            images: Of the size and channels in the config.
            labels: Choose the capsule that is decoded; without them the longest is.
            return_routing: Also return the result of every routed layer.
        """
        self._check(images)
        layers = self.encode(images, return_coupling=return_routing)
        poses, activations, _ = layers[-1].routed
        reconstruction = None
        if self.decoder is not None:
            reconstruction = self.decoder(poses, activations.argmax(1) if labels is None else labels)
        return CapsuleOutput(activations, poses, reconstruction, layers if return_routing else ())

    def _check(self, images: Tensor) -> None:
        if images.shape[1:] != self.image_shape:
            expected = "x".join(map(str, self.image_shape))
            got = "x".join(map(str, images.shape[1:]))
            raise UserError(
                f"layer 'stem' of this {type(self).__name__} takes images of {expected} "
                "(channels, height, width), "
                f"got {got}; "
                "resize them or build the model with in_channels=... and image_size=..."
            )
