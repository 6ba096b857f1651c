"""The squash of many poses on a GPU, against the plain function in float64."""

import pytest
import torch

from torchcaps.kernels import fused_squash
from torchcaps.layers import PrimaryCaps

from kernels.poison import poison_fresh_memory
from kernels.squash_reference import FUNCTIONS, SHAPES, assert_as_accurate_as_the_plain_function, draw, plain

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("exact_products")]

LARGE = {"a map of DeepCaps": (16, 32, 32, 32, 4), "primary capsules": (128, 6, 6, 32, 8)}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("shape", (SHAPES | LARGE).values(), ids=SHAPES | LARGE)
def test_it_is_as_accurate_as_the_plain_function(shape, function, monkeypatch):
    poison_fresh_memory(monkeypatch)
    assert_as_accurate_as_the_plain_function(shape, function, "cuda")


def test_half_precision_poses_are_squashed_in_float32():
    poses = draw((64, 8), "cuda").bfloat16()
    torch.testing.assert_close(fused_squash(poses), plain(poses.float()))


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_primary_capsules_learn_the_same_with_and_without_the_kernel(precision):
    torch.manual_seed(0)
    layer = PrimaryCaps(16, 8, 8, kernel_size=3, stride=2).cuda().to(memory_format=torch.channels_last)
    images, results = torch.randn(4, 16, 15, 15, device="cuda"), []
    for backend in ("torch", "auto"):
        layer.backend = backend
        with torch.autocast("cuda", precision, enabled=precision != torch.float32):
            capsules = layer(images)
        loss = capsules.poses.square().sum() + capsules.activations.sum()
        results.append([*capsules, *torch.autograd.grad(loss, list(layer.parameters()))])
    tolerance = {"rtol": 1e-2, "atol": 1e-3} if precision == torch.float32 else {"rtol": 2e-2, "atol": 2e-2}
    torch.testing.assert_close(*results, **tolerance)


def test_primary_capsules_take_the_kernel(monkeypatch):
    from torchcaps.kernels.squashed import launch

    calls = []
    squash_poses = launch.squash_poses
    monkeypatch.setattr(launch, "squash_poses", lambda *given: calls.append(given) or squash_poses(*given))
    layer = PrimaryCaps(3, 2, 4, kernel_size=3).cuda()
    layer(torch.randn(2, 3, 8, 8, device="cuda"))
    layer.backend = "torch"
    layer(torch.randn(2, 3, 8, 8, device="cuda"))
    assert len(calls) == 1
