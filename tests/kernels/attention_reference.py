"""Children of many sizes, and the plain self-attention routing that the kernel answers to."""

from typing import NamedTuple

import torch

from torchcaps.kernels import fused_self_attention_routing
from torchcaps.layers.vote import cast_votes
from torchcaps.routing import self_attention_routing


class AttentionCase(NamedTuple):
    samples: int = 2
    in_caps: int = 6
    matrices: int = 6
    in_pose: int = 3
    out_caps: int = 5
    pose: int = 4
    has_prior: bool = True

    def inputs(self, dtype=torch.float32, device="cpu", seed=0):
        source = torch.Generator().manual_seed(seed)
        drawn = [
            torch.randn(self.samples, self.in_caps, self.in_pose, generator=source),
            torch.randn(self.matrices, self.in_pose, self.out_caps, self.pose, generator=source),
            0.3 * torch.randn(self.in_caps, self.out_caps, generator=source),
        ]
        return [x.to(device, dtype).requires_grad_() for x in drawn[: 3 if self.has_prior else 2]]

    def results(self, route, dtype=torch.float32, device="cpu", seed=0):
        """Parents, lengths and couplings, and the gradients of a weighted sum of parents and lengths."""
        inputs = self.inputs(dtype, device, seed)
        outputs = route(*inputs)
        source = torch.Generator().manual_seed(seed + 1)
        weights = [torch.randn(x.shape, generator=source).to(device, dtype) for x in outputs[:2]]
        gradients = torch.autograd.grad(outputs[:2], inputs, weights)
        return [x.detach().double() for x in (*outputs, *gradients)]


QUICK = {
    "each child its own matrices": AttentionCase(),
    "no prior": AttentionCase(has_prior=False),
    "shared matrices": AttentionCase(in_caps=6, matrices=2),
    "one matrix for all": AttentionCase(in_caps=5, matrices=1, out_caps=3),
    "more children than a program holds": AttentionCase(in_caps=37, matrices=37, out_caps=10, pose=16),
    "one child": AttentionCase(in_caps=1, matrices=1),
    "one parent": AttentionCase(out_caps=1),
    "one number": AttentionCase(pose=1),
}


def plain(poses, weight, prior=None):
    votes = cast_votes(poses, weight)
    return self_attention_routing(votes, votes.new_ones(votes.shape[:-2]), prior=prior)


def assert_as_accurate_as_the_plain_function(case, device="cpu", seeds=2):
    """Errors against float64 are at most twice those of plain float32, and a few roundings."""
    for seed in range(seeds):
        exact = case.results(plain, torch.float64, device, seed)
        close = case.results(plain, torch.float32, device, seed)
        fused = case.results(fused_self_attention_routing, torch.float32, device, seed)
        for plain_one, fused_one, true in zip(close, fused, exact, strict=True):
            allowed = 2 * (plain_one - true).abs().max() + 1e-6 * true.abs().max()
            assert (fused_one - true).abs().max() <= allowed
