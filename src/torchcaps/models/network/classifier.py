"""What all classification networks share: input check, class capsules, decoder, result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor, nn

from torchcaps.core import CapsuleOutput, Capsules, LayerTrace, UserError
from torchcaps.layers import ConvDecoder, FcDecoder

from .network import ModelConfig, Network

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


def route_in_turn(
    layers: Iterable[nn.Module], children: Capsules, *, return_coupling: bool
) -> tuple[LayerTrace, ...]:
    """Route each layer on the parents of the one before it, and the first one on `children`."""
    traces: list[LayerTrace] = []
    for layer in layers:
        traces.append(LayerTrace(children, layer(children, return_coupling=return_coupling)))
        children = traces[-1].routed.capsules
    return tuple(traces)


class CapsuleClassifier(Network, ABC):
    """A network whose last layer has one capsule per class; a family adds `encode`."""

    decoder: FcDecoder | ConvDecoder | None

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        if config.num_classes < 2:
            raise UserError(
                f"layer 'classes' needs a choice: num_classes must be at least 2, got {config.num_classes}"
            )

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
        self.require_shape(images)
        layers = self.encode(images, return_coupling=return_routing)
        poses, activations, _ = layers[-1].routed
        reconstruction = None
        if self.decoder is not None:
            reconstruction = self.decoder(poses, activations.argmax(1) if labels is None else labels)
        return CapsuleOutput(activations, poses, reconstruction, layers if return_routing else ())


class PlainClassifier(CapsuleClassifier):
    """A network without capsules: the pose of a class is its logit, its activation is its probability."""

    decoder: None = None

    @abstractmethod
    def logits(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch num_classes"]:
        """The numbers that the softmax is taken of."""

    def encode(
        self, images: Float[Tensor, "batch channels height width"], *, return_coupling: bool = True
    ) -> tuple[LayerTrace, ...]:
        """An empty tuple, because no layer is routed."""
        del images, return_coupling
        return ()

    def forward(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, " batch"] | None = None,
        *,
        return_routing: bool = False,
    ) -> CapsuleOutput:
        """Probabilities as activations and logits as poses; labels and `return_routing` change nothing."""
        del labels, return_routing
        self.require_shape(images)
        logits = self.logits(images)
        logits = logits.to(self.a_weight().dtype)  # a softmax in bfloat16 would not sum to one
        return CapsuleOutput(logits.softmax(-1), logits.unsqueeze(-1))
