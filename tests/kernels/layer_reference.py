"""The comparison of a layer's fused kernel with the layer in plain PyTorch."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from torchcaps.core import Capsules
from torchcaps.models import create_model

from kernels.routing_reference import share_of_the_allowed_error


class LayerCase(ABC):
    """Sizes of a layer and its children."""

    @abstractmethod
    def layer(self) -> nn.Module:
        """With random weights, the same at every call."""

    @abstractmethod
    def children(self, seed: int) -> list[Tensor]:
        """Poses and activations."""

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


def assert_answers_alike(layer: nn.Module, children: Capsules, **tolerance: float) -> None:
    """Poses, activations and the gradients of parameters are the same without the kernel and with it."""
    results = []
    for layer.backend in ("torch", "fused"):
        routed = layer(children, return_coupling=False)
        loss = routed.poses.square().sum() + routed.activations.sum()
        results.append([*routed[:2], *torch.autograd.grad(loss, list(layer.parameters()))])
    torch.testing.assert_close(*results, **tolerance)


def assert_as_accurate_as_the_plain_layer(case: LayerCase, device: str = "cpu", seeds: int = 4) -> None:
    """Output and every gradient of the fused layer, in float32, against the plain one in float64.

    Each draw is compared for itself, and the geometric mean decides: ten rounds turn a rounding into 1e-4 on
    some draws, for either side, and a sum over draws would be that of the unluckiest. Some gradients of one
    draw are a single number, so it takes many.
    """
    exact = case.outputs_and_gradients("torch", torch.float64, device, seeds)
    plain = case.outputs_and_gradients("torch", torch.float32, device, seeds)
    fused = case.outputs_and_gradients("fused", torch.float32, device, seeds)
    names = ["poses", "activations", "grad poses", "grad activations"]
    names += [f"grad {name}" for name, _ in case.layer().named_parameters()]
    for name, *values in zip(names, fused, plain, exact, strict=True):
        assert values[0].shape == values[2].shape, name
        shares = share_of_the_allowed_error(*(value.flatten(1) for value in values))
        mean = shares.clamp(min=0.1).log().mean().exp()  # an exact draw does not excuse the others
        assert mean <= 1, f"{name}: {mean:.2f} of the allowed error, {shares.tolist()}"


def capture(step):
    """A CUDA graph of a step, and the tensors that a replay fills."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        return graph, step()


def assert_a_model_learns_the_same_with_kernels(name: str, **options: int) -> None:
    """The losses of some steps on a GPU, with and without the kernels of its layers."""

    def losses(backend):
        torch.manual_seed(0)
        model = create_model(name, **options).cuda()
        for layer in model.modules():
            if hasattr(layer, "fallback_reason"):
                layer.backend = backend
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        images = torch.rand(4, *model.image_shape, device="cuda")
        values = []
        for _ in range(5):
            loss = (model(images).activations - 0.7).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            values.append(loss.detach())
        return torch.stack(values)

    with torch.backends.cudnn.flags(allow_tf32=False):
        plain, fused = losses("torch"), losses("auto")
    torch.testing.assert_close(plain, fused, rtol=1e-4, atol=1e-6)


def assert_a_captured_step_replays(name: str, batch: int) -> None:
    """The gradients of a model with kernels, from a CUDA graph, on images that it was not captured with."""
    torch.manual_seed(0)
    model = create_model(name).cuda()
    side = model.config.image_size
    images = torch.rand(batch, model.config.in_channels, side, side, device="cuda")
    learned = list(model.parameters())

    def step():
        return torch.autograd.grad(model(images).activations.square().sum(), learned, allow_unused=True)

    graph, captured = capture(step)
    with torch.no_grad():
        images.copy_(torch.rand(images.shape))
    graph.replay()
    torch.testing.assert_close(captured, step(), rtol=1e-3, atol=1e-5)
