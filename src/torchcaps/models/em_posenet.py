"""EM-CapsNet for class and rotation (thesis, chapter on rotations): capsules are unit quaternions.

Weights with k channels, 28 px, E classes: stem 81 * 256k + 256; activations 81 * 256 * 32 + 32; poses
81 * 256 * 128 + 128; 1,152 children with a 4x4 matrix for each class, 18,432E; two costs a class. k = 3 and
E = 6 give 62,464 + 663,584 + 2,654,336 + 110,592 + 12 = 3,490,988.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from torchcaps.core import Capsules, LayerTrace, PoseOutput
from torchcaps.layers import FcCaps, flatten_grid, map_sizes, use_quaternion_votes
from torchcaps.routing import RoutingSpec

from .api import register_variants
from .dr_capsnet import PrimaryGridConfig
from .network import CapsuleGrid
from .pose_networks import QUATERNION, PoseNetwork

VoteName = Literal["matrix", "quaternion"]


@dataclass(frozen=True, kw_only=True)
class EMPoseNetConfig(PrimaryGridConfig):
    """Sizes of an EM pose network; the defaults are those of the thesis."""

    in_channels: int = 3
    num_classes: int = 6
    votes: VoteName = "matrix"
    routing: RoutingSpec = "em"


class EMPoseNet(PoseNetwork):
    """A convolution, primary capsules that are unit quaternions, and class capsules by EM routing."""

    config: EMPoseNetConfig

    def __init__(self, config: EMPoseNetConfig) -> None:
        super().__init__(config)
        height, width = map_sizes(config.image_size, config.stages)[-1]
        channels, types = config.stem_channels, config.primary_types
        self.stem = nn.Conv2d(config.in_channels, channels, config.kernel_size)
        self.activations = nn.Conv2d(channels, types, config.kernel_size, 2)
        self.poses = nn.Conv2d(channels, types * QUATERNION, config.kernel_size, 2)
        children = height * width * types
        self.classes = FcCaps(
            children,
            config.num_classes,
            QUATERNION,
            QUATERNION,
            routing=config.routing,
            init_std=QUATERNION**-0.5,  # keeps the length of the poses
        )
        if config.votes == "quaternion":
            use_quaternion_votes(self.classes)

    def primary(self, images: Float[Tensor, "batch channels height width"]) -> Capsules:
        """Capsules of all positions in one axis, in at least float32."""
        features = self.stem(images).relu()
        dtype = self.poses.weight.dtype
        poses = rearrange(self.poses(features).to(dtype), "b (t d) h w -> b h w t d", d=QUATERNION)
        logits = rearrange(self.activations(features).to(dtype), "b t h w -> b h w t")
        return flatten_grid(Capsules(F.normalize(poses, dim=-1), logits.sigmoid()))

    def forward(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, " batch"] | None = None,
        *,
        return_routing: bool = False,
    ) -> PoseOutput:
        """Class and rotation of normalised images; a capsule's mean, brought to length 1, is its rotation."""
        del labels
        self.require_shape(images)
        capsules = self.primary(images)
        routed = self.classes(capsules, return_coupling=return_routing)
        layers = (LayerTrace(capsules, routed),) if return_routing else ()
        return PoseOutput(routed.activations, F.normalize(routed.poses, dim=-1), layers=layers)

    def capsule_grids(self) -> tuple[CapsuleGrid, ...]:
        """The primary capsules, which the class capsules see."""
        return (CapsuleGrid(self.config.stages, self.config.primary_types),)


register_variants(
    EMPoseNet,
    family="em_posenet",
    paper="renzulli2023thesis",
    task="pose",
    variants={
        "em_posenet": EMPoseNetConfig(),
        "em_posenet_hemisphere": EMPoseNetConfig(routing="em_rotation"),
        "em_posenet_quaternion": EMPoseNetConfig(votes="quaternion", routing="em_rotation"),
        "em_posenet_tiny_test": EMPoseNetConfig(
            image_size=16,
            num_classes=3,
            stem_channels=6,
            primary_types=3,
            kernel_size=5,
            votes="quaternion",
            routing="em_rotation",
        ),
    },
)
