"""Routing over stored votes by the plain function, and the comparison of the fused one with it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from torchcaps.kernels import fused_local_dynamic_routing
from torchcaps.routing.dynamic import dynamic_routing

from kernels.routing_reference import assert_as_accurate_as


@dataclass(frozen=True)
class LocalCase:
    """Votes of one map and how they are routed."""

    batch: int = 2
    in_caps: int = 3
    positions: int = 5
    out_caps: int = 4
    pose: int = 6
    iterations: int = 3
    gradient: str = "full"
    leaky: bool = False
    bias: bool = True

    @property
    def settings(self) -> dict:
        return {"iterations": self.iterations, "gradient": self.gradient, "leaky": self.leaky}

    def inputs(self, dtype=torch.float32, device="cpu", seed=0) -> list[Tensor]:
        """Votes and, if any, bias."""
        draw = torch.Generator().manual_seed(seed)
        votes = torch.randn(
            self.batch, self.in_caps, self.positions, self.out_caps, self.pose, generator=draw
        )
        bias = 0.3 * torch.randn(self.out_caps, self.pose, generator=draw)
        return [x.to(device, dtype).requires_grad_() for x in ([votes, bias] if self.bias else [votes])]

    def outputs_and_gradients(self, function, dtype, device, seeds) -> list[Tensor]:
        """Poses, lengths and gradients, each `[seeds, ...]`."""
        rows = []
        for seed in range(seeds):
            inputs = self.inputs(dtype, device, seed)
            routed = function(*inputs, **self.settings)
            draw = torch.Generator().manual_seed(seed + 100)
            upstream = [torch.randn(x.shape, generator=draw).to(x) for x in routed]
            rows.append([*(x.detach() for x in routed), *torch.autograd.grad(routed, inputs, upstream)])
        return [torch.stack(values) for values in zip(*rows, strict=True)]


def plain_local_routing(votes: Tensor, bias: Tensor | None = None, **settings) -> tuple[Tensor, Tensor]:
    by_position = votes.transpose(1, 2)
    routed = dynamic_routing(by_position, by_position[..., 0, 0], bias=bias, **settings)
    return routed.poses.transpose(1, 2), routed.activations.transpose(1, 2)


def assert_as_accurate_as_the_plain_function(case: LocalCase, device="cpu", seeds=4) -> None:
    """Output and every gradient, in float32, against the plain function in float64."""
    exact = case.outputs_and_gradients(plain_local_routing, torch.float64, device, seeds)
    plain = case.outputs_and_gradients(plain_local_routing, torch.float32, device, seeds)
    fused = case.outputs_and_gradients(fused_local_dynamic_routing, torch.float32, device, seeds)
    for name, *values in zip(
        ["poses", "lengths", "grad votes", "grad bias"], fused, plain, exact, strict=False
    ):
        assert values[0].shape == values[2].shape, name
        assert_as_accurate_as(*values, name)


QUICK = {
    "odd": LocalCase(batch=1),
    "leaky, last, no bias": LocalCase(batch=1, leaky=True, gradient="last", bias=False),
}
CASES = {
    "larger": LocalCase(),
    "last": LocalCase(gradient="last"),
    "leaky": LocalCase(leaky=True, in_caps=4),
    "one iteration": LocalCase(iterations=1),
    "five iterations": LocalCase(iterations=5, positions=2),
    "one parent": LocalCase(out_caps=1),
    "one child": LocalCase(in_caps=1),
    "scalars": LocalCase(pose=1),
    "round": LocalCase(in_caps=4, positions=8, out_caps=2, pose=16),
}
