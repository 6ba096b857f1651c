"""A plain classifier on a convolutional trunk, to train the trunk before capsules replace its head."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float, Int64
from torch import Tensor, nn

from torchcaps.core import ImageSize

from ..api import register_variants
from ..backbone_capsnet import build_trunk
from ..network import Cut, PlainClassifier


@dataclass(frozen=True, kw_only=True)
class TrunkClassifierConfig:
    """Trunk and image; `trunk_widths` replaces the trunk's channels, as pruning does."""

    in_channels: int = 3
    image_size: ImageSize = 64
    num_classes: int = 10
    trunk: str = "resnet50"
    trunk_widths: tuple[int, ...] | None = None


class TrunkClassifier(PlainClassifier):
    """The mean of the trunk's map and a linear layer.

    The trunk has the same name as in a `BackboneCapsNet`, which can start from its weights.
    """

    config: TrunkClassifierConfig

    def __init__(self, config: TrunkClassifierConfig) -> None:
        super().__init__(config)
        self.trunk = build_trunk(config)
        self.classifier = nn.Linear(self.trunk.out_channels, config.num_classes)

    @property
    def least_channels(self) -> int:
        """A linear layer takes any number of channels."""
        return 1

    def head_cuts(self, channels: Int64[Tensor, " kept"]) -> dict[str, Cut]:
        """The linear layer reads the channels that are kept."""
        return {"classifier.weight": (None, channels)}

    def logits(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch num_classes"]:
        """The numbers that the softmax is taken of."""
        return self.classifier(self.trunk(images).mean((2, 3)))


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
