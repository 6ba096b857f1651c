"""Layers of EM capsules in plain PyTorch, and the comparison of the fused ones with them."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from torchcaps.layers import ConvCaps2d, CoordinateAddition, FcCaps, PositionalEM
from torchcaps.routing import EMRouting, RoutingShape

from kernels.layer_reference import LayerCase


@dataclass(frozen=True)
class EMCase(LayerCase):
    """A convolutional layer of matrix capsules, or a fully connected one if `kernel` is 0."""

    batch: int = 2
    height: int = 5
    width: int = 7
    in_types: int = 2
    out_types: int = 3
    rows: int = 2
    in_columns: int = 2
    out_columns: int = 2
    kernel: int = 3
    stride: int = 2
    iterations: int = 3
    share_types: bool = False
    coordinates: bool = False
    competing: bool = True  # parents of all windows, or those of one alone

    def layer(self) -> nn.Module:
        """With random weights and costs, the same at every call."""
        torch.manual_seed(1)
        in_pose, out_pose = self.rows * self.in_columns, self.rows * self.out_columns
        settings = {"pose_rows": self.rows, "init_std": self.in_columns**-0.5}
        if self.kernel:
            children = self.kernel**2 * self.in_types
            window = {"kernel_size": self.kernel, "stride": self.stride}
            shape = RoutingShape(children, self.out_types, out_pose)
            routing = (
                PositionalEM(shape, **window, iterations=self.iterations)
                if self.competing
                else EMRouting(shape, iterations=self.iterations)
            )
            settings |= {**window, "share_types": self.share_types, "routing": routing}
            layer = ConvCaps2d(self.in_types, self.out_types, in_pose, out_pose, **settings)
        else:
            children = self.height * self.width * self.in_types
            shape = RoutingShape(children, self.out_types, out_pose)
            routing = EMRouting(shape, iterations=self.iterations)
            if self.coordinates:
                routing = CoordinateAddition(routing, torch.rand(children, 2), (0, 1), pose=out_pose)
            settings |= {"matrices": self.in_types, "routing": routing}
            layer = FcCaps(children, self.out_types, in_pose, out_pose, **settings)
        for name, parameter in layer.named_parameters():
            if name.endswith("cost"):
                nn.init.normal_(parameter, std=0.3)
        return layer

    def children(self, seed: int) -> list[Tensor]:
        """Poses and activations, a child that is absent among them."""
        torch.manual_seed(seed)
        shape = (self.batch, self.height, self.width, self.in_types)
        poses, activations = torch.randn(*shape, self.rows * self.in_columns), torch.rand(shape)
        activations[0, 0, 0, 0] = 0
        return [poses, activations]


QUICK = {
    "odd": EMCase(batch=1, height=5, width=3, out_types=2),
    "each window by itself": EMCase(batch=1, height=5, width=3, out_types=2, competing=False),
    "fully connected, with coordinates": EMCase(
        batch=6, height=2, width=1, out_types=2, kernel=0, iterations=2, coordinates=True
    ),
}
CASES = {
    "stride 1": EMCase(height=4, width=5, stride=1),
    "stride beyond the window": EMCase(kernel=2, stride=3),
    "shared by types": EMCase(share_types=True),
    "vectors": EMCase(rows=1, in_columns=3, out_columns=5),
    "one iteration": EMCase(iterations=1),
    "four iterations": EMCase(height=3, width=5, iterations=4),
    "one type": EMCase(out_types=1),
    "fully connected": EMCase(height=2, width=2, kernel=0),
}
