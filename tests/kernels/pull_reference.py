"""Weights with gradients, and what a step of LOBSTER makes of them with its kernels and without."""

import pytest
import torch
from torch import Tensor, nn

from torchcaps.prune import Lobster, Pull, lobster

SHAPES = {
    "one number": [(1,)],
    "a network": [(5, 1, 3, 3), (7, 5, 3, 3), (6, 4, 3, 8)],
    "more than a program takes": [(1030,), (3, 700), (2048,)],
    "more than a launch takes": [(number, 3) for number in range(1, 21)],
    "an empty one": [(4,), (0, 3), (5,)],
}
STRANGE = [0.0, -0.0, 1.0, -1.0, 1e-30, -3.0, torch.inf, -torch.inf, torch.nan]


def draw(shapes, device="cpu", memory_format=torch.channels_last):
    """Weights, images of them channels last, with zeros among them, and gradients about as large as one."""
    source = torch.Generator().manual_seed(0)
    weights = []
    for shape in shapes:
        values, slopes = torch.randn(2, *shape, generator=source)
        values[values.abs() < 0.2] = 0.0
        weights.append(with_gradient(values.to(device), slopes.to(device)))
        if len(shape) == 4:
            weights[-1].data = weights[-1].data.contiguous(memory_format=memory_format)
            weights[-1].grad = weights[-1].grad.contiguous(memory_format=memory_format)
    return weights


def strange(device="cpu"):
    """Every strange number as a weight, with every one as its gradient."""
    values = torch.tensor(STRANGE, device=device)
    return [with_gradient(*(grid.contiguous() for grid in torch.meshgrid(values, values, indexing="ij")))]


def with_gradient(values, slopes):
    weight = nn.Parameter(values)
    weight.grad = slopes
    return weight


@torch.no_grad()
def a_step(weights, *, is_plain: bool) -> list[Tensor]:
    """The weights after `shrink`, and after an optimizer and `keep_zeros`."""
    with pytest.MonkeyPatch.context() as patch:
        if is_plain:
            patch.setattr(lobster, "pull_unsupported_reason", lambda *given: "this one is to be plain")
        pull = Pull(weights, Lobster(strength=0.3))
        pull.start_epoch(1)
        pull.shrink()
        shrunk = [weight.clone() for weight in weights]
        for weight in weights:
            weight -= 0.1
        pull.keep_zeros()
    return [*shrunk, *(weight.detach() for weight in weights)]


def assert_same_bits(found, expected):
    """Numbers are equal, and the signs of zeros too; what is no number in one is none in the other."""
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one[~one.isnan()].signbit(), other[~other.isnan()].signbit())


def counted_launches(monkeypatch):
    """A list that grows by the name of each kernel's launch for all weights."""
    from torchcaps.kernels.pull import launch

    calls = []

    def count(name):
        call = getattr(launch, name)
        monkeypatch.setattr(launch, name, lambda *given: calls.append(name) or call(*given))

    count("shrink")
    count("keep_zeros")
    return calls
