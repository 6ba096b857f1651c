"""Layers with scaled-distance routing in plain PyTorch, and the comparison of the fused ones with them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from torchcaps.core import Capsules
from torchcaps.layers import FcCaps

from kernels.layer_reference import LayerCase


@dataclass(frozen=True)
class DistanceCase(LayerCase):
    """A fully connected layer; the scale of its weights decides how many votes are limited."""

    batch: int = 3
    in_caps: int = 7
    in_pose: int = 3
    matrices: int | None = None
    out_caps: int = 5
    pose: int = 6
    iterations: int = 3
    bias: bool = True
    scale: float = 0.6
    scope: str = "sample"
    gradient: str = "full"

    def layer(self) -> FcCaps:
        """With random weights and biases, the same at every call."""
        torch.manual_seed(1)
        routing = {"name": "scaled_distance", "iterations": self.iterations, "bias": self.bias}
        routing |= {"scope": self.scope, "gradient": self.gradient}
        sizes = (self.in_caps, self.out_caps, self.in_pose, self.pose)
        layer = FcCaps(*sizes, matrices=self.matrices, routing=routing, init_std=self.scale)
        if self.bias:
            torch.nn.init.normal_(layer.routing.bias, std=0.3)
        return layer

    def children(self, seed: int = 0) -> list[Tensor]:
        """Poses and activations, a child that is absent among them.

        No vote is just as long as its child: there the gradient jumps, and rounding chooses the side.
        """
        torch.manual_seed(seed)
        poses = torch.randn(self.batch, self.in_caps, self.in_pose)
        activations = torch.rand(self.batch, self.in_caps) + 0.3
        lengths = self._vote_lengths(poses)
        while (near := ((lengths / activations[..., None] - 1).abs() < 1e-4).any(-1)).any():
            activations = torch.where(near, 1.01 * activations, activations)
        activations[0, 0] = 0
        return [poses, activations]

    def _vote_lengths(self, poses: Tensor) -> Tensor:
        layer = self.layer().double()
        seen: list[Tensor] = []
        layer.routing.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].norm(dim=-1)))
        with torch.no_grad():
            layer(Capsules(poses.double(), poses.double().norm(dim=-1)))
        return torch.cat(seen)


QUICK = {
    "odd": DistanceCase(batch=2, in_caps=3),
    "shared over positions, no bias": DistanceCase(batch=2, in_caps=4, matrices=2, bias=False, iterations=2),
    "one iteration": DistanceCase(iterations=1, in_caps=3),
    "long poses below": DistanceCase(batch=1, in_caps=2, in_pose=9, out_caps=3, pose=4, scale=0.3),
    "as in the thesis": DistanceCase(batch=2, in_caps=3, scope="batch", gradient="last"),
}
CASES = {
    "usual": DistanceCase(),
    "two parents": DistanceCase(out_caps=2),
    "one sample": DistanceCase(batch=1),
    "one child": DistanceCase(in_caps=1),
    "scalars": DistanceCase(in_pose=1, pose=1),
    "round": DistanceCase(batch=4, in_caps=8, in_pose=4, out_caps=8, pose=8),
    "one shared matrix": DistanceCase(in_caps=6, matrices=1),
    "ten iterations": DistanceCase(batch=2, in_caps=12, iterations=10, scale=0.3),
    "all votes limited": DistanceCase(scale=5.0),
    "no vote limited": DistanceCase(scale=0.01),
    "33 parents": DistanceCase(batch=2, in_caps=3, out_caps=33, pose=9),
    "mean over the batch": DistanceCase(scope="batch"),
    "couplings fixed": DistanceCase(gradient="last"),
    "couplings fixed, one round": DistanceCase(gradient="last", iterations=1),
    "couplings fixed, no bias": DistanceCase(gradient="last", bias=False, matrices=1),
}
