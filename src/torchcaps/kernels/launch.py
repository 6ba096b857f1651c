"""What the launches of all Triton kernels share: how many programs, how many slots, and the squash passes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from triton import cdiv

from .squash_kernels import squash_grad_kernel, squash_kernel

_PARTIAL_BYTES = 32 << 20


@lru_cache(maxsize=16)
def processors(device: torch.device) -> int:
    """Multiprocessors of a GPU; 1 in the interpreter."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


@lru_cache(maxsize=16)
def shared_memory(device: torch.device) -> int:
    """Bytes that a program may share; in the interpreter those of the smallest GPUs."""
    least = 99 << 10
    if device.type != "cuda":
        return least
    properties: Any = torch.cuda.get_device_properties(device)
    return int(getattr(properties, "shared_memory_per_block_optin", least))


def num_slots(items: int, *, wanted: int, slot_size: int, weight: Tensor) -> int:
    """Into how many equal groups `items` are divided that are summed apart: about `wanted`.

    Each group writes its partial sum to a slot of `slot_size` numbers. All slots together take at most 32 MB
    or half the weight's size.
    """
    affordable = max(_PARTIAL_BYTES, 2 * weight.numel()) // (4 * slot_size)
    per_group = cdiv(items, max(1, min(wanted, affordable, items)))
    return cdiv(items, per_group)


class Parents(NamedTuple):
    """Sizes of the poses `[batch, out_caps, pose]` that a squash pass works on."""

    batch: int
    out_caps: int
    pose: int
    pose_block: int  # `pose` rounded up to a power of two

    @property
    def numbers(self) -> int:
        """Numbers in all."""
        return self.batch * self.out_caps * self.pose

    def squash(
        self,
        partial: Tensor,
        bias: Tensor | None,
        pooled: Tensor,
        result: Tensor,
        *,
        direction: Tensor | None = None,
        first: bool = False,
        last: bool = True,
    ) -> None:
        """Launch `squash_kernel`, which adds the slots of `partial` and squashes.

        Args:
            partial: Partial sums, `[slots, batch, out_caps, pose]`.
            bias: Added to the sum.
            pooled: Receives the sum.
            result: Receives the squashed sum, plus `direction` unless `first` or `last`.
            direction: The sum of the earlier rounds' results; set to zero if `first`.
            first: Whether this is the first of several rounds that add up a direction.
            last: Whether the squashed sum is the result.
        """
        self._launch(
            squash_kernel,
            partial.shape[0],
            partial,
            partial if bias is None else bias,
            pooled,
            partial if direction is None else direction,
            result,
            BIAS=bias is not None,
            FIRST=first,
            LAST=last,
        )

    def squash_grad(
        self, grad: Tensor | None, partial: Tensor | None, pooled: Tensor, result: Tensor, total: Tensor
    ) -> None:
        """Launch `squash_grad_kernel`: `result` is the gradient of `pooled`.

        Args:
            grad: Gradient of the squashed sum.
            partial: Slots that add up to more of that gradient.
            pooled: What was squashed.
            result: Receives the gradient of `pooled`.
            total: Receives the gradient of the squashed sum where there is a `partial`.
        """
        self._launch(
            squash_grad_kernel,
            0 if partial is None else partial.shape[0],
            result if grad is None else grad,
            result if partial is None else partial,
            pooled,
            result,
            total,
            GRAD=grad is not None,
            PARTIAL=partial is not None,
        )

    def _launch(self, kernel: Any, slots: int, *tensors: Tensor, **constants: Any) -> None:
        """Launch programs that each see one sample and a few of its parents."""
        at_once = max(1, 64 // self.pose_block)
        kernel[(self.batch, cdiv(self.out_caps, at_once))](
            *tensors,
            slots,
            self.numbers,
            J=self.out_caps,
            P=self.pose,
            OUT=at_once,
            POSE=self.pose_block,
            **constants,
            num_warps=4,
        )
