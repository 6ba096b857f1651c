"""The textbook loop that the fused kernels answer to, and the comparison with it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from torchcaps.core import squash


@dataclass(frozen=True)
class Case:
    """One layer and how it is routed."""

    batch: int = 3
    in_caps: int = 37
    in_pose: int = 5
    matrices: int = 37
    out_caps: int = 7
    pose: int = 6
    iterations: int = 3
    gradient: str = "full"
    leaky: bool = False
    bias: bool = True

    def inputs(self, dtype=torch.float64, device="cpu", seed=0) -> list[Tensor]:
        """Poses, weight and bias (if any); the same numbers in every dtype that can hold them."""
        draw = torch.Generator().manual_seed(seed)
        shapes = [
            (self.batch, self.in_caps, self.in_pose),
            (self.matrices, self.in_pose, self.out_caps, self.pose),
            (self.out_caps, self.pose),
        ]
        scales = [1.0, max(1, self.in_caps) ** -0.5, 0.3]
        return [
            (scale * torch.randn(shape, generator=draw)).to(device, dtype).requires_grad_()
            for shape, scale in zip(shapes[: 2 + self.bias], scales, strict=False)
        ]

    def incoming(self, dtype=torch.float64, device="cpu") -> Tensor:
        """A gradient to send back."""
        shape = (self.batch, self.out_caps, self.pose)
        return torch.randn(shape, generator=torch.Generator().manual_seed(9)).to(device, dtype)

    @property
    def routing(self) -> dict:
        return {"iterations": self.iterations, "gradient": self.gradient, "leaky": self.leaky}


def textbook_routing(poses, weight, bias=None, *, iterations, gradient, leaky) -> tuple[Tensor, Tensor]:
    """Output poses and couplings of the last iteration, with every vote stored."""
    matrices = weight.repeat(poses.shape[1] // weight.shape[0], 1, 1, 1)
    votes = torch.einsum("bip,ipod->biod", poses, matrices)
    logits = votes.new_zeros(votes.shape[:-1])
    for step in range(iterations):
        padded = torch.cat([logits, torch.zeros_like(logits[..., :1])], -1) if leaky else logits
        coupling = padded.softmax(-1)[..., : votes.shape[2]]
        if gradient == "last":
            coupling = coupling.detach()
        is_inner = step < iterations - 1
        heard = votes.detach() if gradient == "last_votes" and is_inner else votes
        pooled = torch.einsum("bio,biod->bod", coupling, heard)
        routed = squash(pooled if bias is None else pooled + bias)
        if is_inner:
            logits = logits + torch.einsum("biod,bod->bio", heard, routed)
    return routed, coupling


def outputs_and_gradients(function, case: Case, dtype, device="cpu", seeds=1) -> dict[str, Tensor]:
    """Output and gradients of `function` by name, each of shape `[seeds, ...]`."""
    rows = []
    for seed in range(seeds):
        inputs = case.inputs(dtype, device, seed)
        routed = function(*inputs, **case.routing)
        gradients = torch.autograd.grad(routed, inputs, case.incoming(routed.dtype, device))
        rows.append([routed.detach(), *gradients])
    names = ["routed", "grad poses", "grad weight", "grad bias"]
    return {name: torch.stack(values) for name, *values in zip(names, *rows, strict=False)}


def textbook_poses(*inputs, **routing) -> Tensor:
    return textbook_routing(*inputs, **routing)[0]


def assert_as_accurate_as_the_textbook(function, case: Case, device="cpu", seeds=4) -> None:
    """Output and every gradient, in float32, against the textbook loop in float64."""
    exact = outputs_and_gradients(textbook_poses, case, torch.float64, device, seeds)
    plain = outputs_and_gradients(textbook_poses, case, torch.float32, device, seeds)
    fused = outputs_and_gradients(function, case, torch.float32, device, seeds)
    assert fused.keys() == exact.keys()
    for name, value in fused.items():
        assert value.shape == exact[name].shape, name
        assert_as_accurate_as(value, plain[name], exact[name], name)


def assert_as_accurate_as(candidate: Tensor, plain: Tensor, exact: Tensor, name: str) -> None:
    """The candidate's error may be twice that of plain torch, by root mean square.

    The largest single error of these small tensors is a matter of luck: it can differ threefold between two
    orders of the same sum.
    """
    share = share_of_the_allowed_error(*(value.reshape(1, -1) for value in (candidate, plain, exact))).item()
    assert share <= 1, f"{name}: {share:.2f} of the allowed error"


def share_of_the_allowed_error(candidate: Tensor, plain: Tensor, exact: Tensor) -> Tensor:
    """The candidate's error, in the unit of twice that of plain torch and one rounding, for each row."""

    def error(value: Tensor) -> Tensor:
        return (value.double() - exact).norm(dim=1)

    allowed = 2 * error(plain) + torch.finfo(torch.float32).eps * exact.norm(dim=1)
    return error(candidate) / allowed.clamp(min=1e-300)  # where all is zero, nothing else is allowed


CASES = {
    "odd": Case(),
    "odd, last": Case(gradient="last"),
    "odd, votes in the last": Case(gradient="last_votes"),
    "leaky": Case(leaky=True),
    "leaky, last, no bias": Case(leaky=True, gradient="last", bias=False),
    "no bias": Case(bias=False),
    "round": Case(batch=4, in_caps=32, matrices=32, in_pose=8, out_caps=8, pose=16, bias=False),
    "shared over positions": Case(in_caps=36, matrices=4),
    "shared over positions, last, leaky": Case(in_caps=36, matrices=4, gradient="last", leaky=True),
    "one shared matrix": Case(matrices=1),
    "one iteration": Case(iterations=1),
    "one iteration, leaky, last": Case(iterations=1, leaky=True, gradient="last"),
    "two iterations": Case(iterations=2),
    "ten iterations": Case(iterations=10, batch=2, in_caps=9, matrices=9),
    "one class": Case(out_caps=1),
    "one class, leaky": Case(out_caps=1, leaky=True),
    "one sample": Case(batch=1),
    "one child": Case(in_caps=1, matrices=1),
    "scalars": Case(in_pose=1, pose=1),
}
