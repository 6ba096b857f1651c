"""Batch normalisation of maps that have their channels last in memory, on a CPU."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.kernels.batch_norm import normalise_maps
from torchcaps.routing import is_transformed

Maps = Float[Tensor, "batch channels height width"]


class BatchNorm2d(nn.BatchNorm2d):
    """`nn.BatchNorm2d`, as accurate with channels last as it is without.

    With channels last PyTorch sums a channel of a batch on a CPU one number after the other in float32: the
    result is off by a thousand times what rounding costs otherwise. Here sums of short blocks are added in
    float64, and each number is read once for mean and variance together.
    """

    def forward(self, input: Maps) -> Maps:
        """What `nn.BatchNorm2d` gives."""
        return self._normalise(input) if self.takes(input) else super().forward(input)

    def of_rectified(self, input: Maps, added: Float[Tensor, " channels"] | None = None) -> Maps:
        """`self((input + added).relu())` in fewer passes over memory, for maps that it takes."""
        return self._normalise(input, added, rectified=True)

    def takes(self, maps: Tensor) -> bool:
        """Whether these maps are normalised here, and not by PyTorch."""
        if not self.learns_from(maps) or not maps.numel():  # `vmap` cannot tell where channels lie
            return False
        return maps.is_contiguous(memory_format=torch.channels_last) and not maps.is_contiguous()

    def learns_from(self, maps: Tensor) -> bool:
        """Whether maps like these are normalised here if they have their channels last."""
        is_plain = maps.device.type == "cpu" and maps.dtype == torch.float32
        is_learning = self.training and self.momentum is not None and self.affine
        return is_learning and is_plain and not (is_transformed() or torch.compiler.is_compiling())

    def _normalise(self, input: Maps, added: Tensor | None = None, *, rectified: bool = False) -> Maps:
        maps, mean, variance = normalise_maps(
            input, self.weight, self.bias, eps=self.eps, added=added, rectified=rectified
        )
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
