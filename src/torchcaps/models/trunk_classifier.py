"""A plain classifier on a convolutional trunk: what a trunk is trained as before capsules stand on it."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from torchcaps.core.types import CapsuleOutput, LayerTrace

from .api import register_variants
from .backbone_capsnet import build_trunk
from .classifier import CapsuleClassifier


@dataclass(frozen=True, kw_only=True)
class TrunkClassifierConfig:
    """Trunk and image; `trunk_widths` replaces the trunk's channels, as pruning does."""

    in_channels: int = 3
    image_size: int = 64
    num_classes: int = 10
    trunk: str = "resnet50"
    trunk_widths: tuple[int, ...] | None = None


class TrunkClassifier(CapsuleClassifier):
    """The mean of the trunk's map and a linear layer, in the clothes of a capsule network.

    The pose of a class is its logit, one number; the activation is its probability. The trunk has the same
    name as in a `BackboneCapsNet`, which can start from its weights.
    """

    config: TrunkClassifierConfig

    def __init__(self, config: TrunkClassifierConfig) -> None:
        super().__init__(config)
        self.trunk = build_trunk(config)
        channels = int(self.trunk.out_channels)  # type: ignore[arg-type]
        self.classifier = nn.Linear(channels, config.num_classes)
        self.decoder = None

    def encode(
        self, images: Float[Tensor, "batch channels height width"], *, return_coupling: bool = True
    ) -> tuple[LayerTrace, ...]:
        """Nothing: no layer is routed."""
        del images, return_coupling
        return ()

    def forward(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, " batch"] | None = None,
        *,
        return_routing: bool = False,
    ) -> CapsuleOutput:
        """Probabilities as activations and logits as poses; labels and routing have nothing to act on."""
        del labels, return_routing
        self._check(images)
        logits = self.classifier(self.trunk(images).mean((2, 3)))
        logits = logits.to(self.classifier.weight.dtype)  # a softmax in bfloat16 would not sum to one
        return CapsuleOutput(logits.softmax(-1), logits.unsqueeze(-1))


register_variants(
    TrunkClassifier,
    family="trunk_classifier",
    paper="renzulli2022towards",
    variants={
        "resnet50_classifier": TrunkClassifierConfig(),
        "mobilenetv1_classifier": TrunkClassifierConfig(trunk="mobilenetv1"),
        "trunk_classifier_tiny_test": TrunkClassifierConfig(
            in_channels=1, image_size=16, num_classes=4, trunk="mobilenet_tiny"
        ),
    },
)
