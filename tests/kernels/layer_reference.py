"""The comparison of a layer's fused kernel with the layer in plain PyTorch."""

import torch
from torch import Tensor, nn

from torchcaps.core import Capsules

from kernels.routing_reference import assert_as_accurate_as


class LayerCase:
    """Sizes of a layer and its children."""

    def layer(self) -> nn.Module:
        """With random weights, the same at every call."""
        raise NotImplementedError

    def children(self, seed: int) -> list[Tensor]:
        """Poses and activations."""
        raise NotImplementedError

    def outputs_and_gradients(
        self, backend: str, dtype: torch.dtype, device: str, seeds: int
    ) -> list[Tensor]:
        """Poses, activations and the gradients of children and parameters, each `[seeds, ...]`."""
        layer = self.layer().to(device, dtype)
        layer.backend = backend
        rows = []
        for seed in range(seeds):
            inputs = [x.to(device, dtype).requires_grad_() for x in self.children(seed)]
            routed = layer(Capsules(*inputs), return_coupling=False)[:2]
            torch.manual_seed(seed + 100)
            upstream = [torch.randn(x.shape).to(device, dtype) for x in routed]
            learned = [*inputs, *layer.parameters()]
            rows.append([*(x.detach() for x in routed), *torch.autograd.grad(routed, learned, upstream)])
        return [torch.stack(values) for values in zip(*rows, strict=True)]


def assert_as_accurate_as_the_plain_layer(case: LayerCase, device: str = "cpu", seeds: int = 4) -> None:
    """Output and every gradient of the fused layer, in float32, against the plain one in float64."""
    exact = case.outputs_and_gradients("torch", torch.float64, device, seeds)
    plain = case.outputs_and_gradients("torch", torch.float32, device, seeds)
    fused = case.outputs_and_gradients("fused", torch.float32, device, seeds)
    names = ["poses", "activations", "grad poses", "grad activations"]
    names += [f"grad {name}" for name, _ in case.layer().named_parameters()]
    for name, *values in zip(names, fused, plain, exact, strict=True):
        assert values[0].shape == values[2].shape, name
        assert_as_accurate_as(*values, name)
