"""Batch normalisation of maps that have their channels last in memory, on a CPU."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

_BLOCK = 1 << 18  # numbers that are worked on at a time: 1 MB, which stays in a core's cache
Maps = Float[Tensor, "batch channels height width"]


class BatchNorm2d(nn.BatchNorm2d):
    """`nn.BatchNorm2d`, as accurate with channels last as it is without.

    With channels last PyTorch sums a channel of a batch on a CPU one number after the other in float32: the
    result is off by a thousand times what rounding costs otherwise. Here sums of short blocks are added in
    float64, and each number is read once for mean and variance together.
    """

    def forward(self, input: Maps) -> Maps:
        """What `nn.BatchNorm2d` gives."""
        if not (self.training and self.momentum is not None and _takes(input)):
            return super().forward(input)
        maps, mean, variance = _Normalise.apply(input, self.weight, self.bias, self.eps)  # type: ignore[no-untyped-call]
        if self.track_running_stats:
            self._follow(mean, variance * (input.numel() / max(1, input.numel() - self.num_features)))
        return maps

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor) -> None:
        if self.num_batches_tracked is not None:
            self.num_batches_tracked += 1
        for running, new in ((self.running_mean, mean), (self.running_var, variance)):
            if running is not None:
                running.lerp_(new.to(running.dtype), self.momentum or 0.0)


def _takes(maps: Tensor) -> bool:
    is_last = maps.is_contiguous(memory_format=torch.channels_last) and not maps.is_contiguous()
    is_plain = maps.device.type == "cpu" and maps.dtype == torch.float32
    return is_plain and is_last and maps.numel() > 0 and not torch.compiler.is_compiling()


class _Normalise(torch.autograd.Function):
    """Maps of mean zero and variance one times `weight` plus `bias`; also mean and variance, in float64."""

    @staticmethod
    def forward(ctx: Any, maps: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, ...]:
        blocks = _blocks(maps)
        mean, variance = _moments(blocks)
        inverse = (variance + eps).rsqrt()
        scale = weight * inverse
        shift = (bias - mean * scale).to(maps.dtype)
        result = torch.empty_like(maps)
        for block, out in zip(blocks, _blocks(result), strict=True):
            torch.addcmul(shift, block, scale.to(maps.dtype), out=out)
        ctx.save_for_backward(maps, weight, mean, inverse)
        ctx.mark_non_differentiable(mean, variance)
        return result, mean, variance

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        maps, weight, mean, inverse = ctx.saved_tensors
        blocks, grads = _blocks(maps), _blocks(grad.contiguous(memory_format=torch.channels_last))
        grad_bias, along = _grad_sums(blocks, grads, mean)
        grad_weight, scale = along * inverse, weight * inverse
        count = maps.numel() // maps.shape[1]
        slope = -scale * inverse * grad_weight / count
        shift = -scale * grad_bias / count - mean * slope
        factors = [each.to(maps.dtype) for each in (shift, slope, scale)]
        result = torch.empty_like(maps)
        for block, grad_block, out in zip(blocks, grads, _blocks(result), strict=True):
            torch.addcmul(factors[0], block, factors[1], out=out).addcmul_(grad_block, factors[2])
        return result, grad_weight.to(weight.dtype), grad_bias.to(weight.dtype), None


def _blocks(maps: Tensor) -> tuple[Tensor, ...]:
    """The maps as rows of all channels, a few thousand rows at a time."""
    rows = maps.permute(0, 2, 3, 1).reshape(-1, maps.shape[1])
    return rows.split(max(1, _BLOCK // maps.shape[1]))  # type: ignore[no-untyped-call]


def _moments(blocks: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """Mean and variance of each channel, from those of the blocks (Chan, Golub & LeVeque 1979)."""
    scratch, means, rests, squares = torch.empty_like(blocks[0]), [], [], []
    for block in blocks:
        means.append(block.mean(0))
        centred = torch.sub(block, means[-1], out=scratch[: len(block)])
        rests.append(centred.sum(0))  # not zero: the mean was rounded
        squares.append(centred.square_().sum(0))
    counts = torch.tensor([float(len(block)) for block in blocks], dtype=torch.float64).unsqueeze(1)
    of_blocks = torch.stack(means).double() + torch.stack(rests).double() / counts
    mean = (counts * of_blocks).sum(0) / counts.sum()
    between = (counts * (of_blocks - mean).square()).sum(0)
    return mean, (torch.stack(squares).double().sum(0) + between) / counts.sum()


def _grad_sums(blocks: tuple[Tensor, ...], grads: tuple[Tensor, ...], mean: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of the gradient of each channel, and its sum times the distance from the mean."""
    scratch, sums, products = torch.empty_like(blocks[0]), [], []
    rounded = mean.to(blocks[0].dtype)
    for block, grad in zip(blocks, grads, strict=True):
        sums.append(grad.sum(0))
        products.append(torch.sub(block, rounded, out=scratch[: len(block)]).mul_(grad).sum(0))
    total = torch.stack(sums).double().sum(0)
    return total, torch.stack(products).double().sum(0) - (mean - rounded) * total
