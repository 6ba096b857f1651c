"""LOBSTER: weights to which the loss is insensitive are pulled to zero, and stay there once cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from torchcaps.core import UserError, require_choice
from torchcaps.kernels import fused_keep_zeros, fused_shrink, pull_unsupported_reason
from torchcaps.layers import ConvCaps2d, FcCaps, LocalConvCaps2d, LocalDeconvCaps2d

Group = Literal["weight", "capsule", "type"]
Judge = Literal["loss", "metric"]

_PRUNABLE = (
    nn.Conv2d,
    nn.ConvTranspose2d,
    nn.Conv3d,
    FcCaps,
    ConvCaps2d,
    LocalConvCaps2d,
    LocalDeconvCaps2d,
)


@dataclass(frozen=True, kw_only=True)
class Lobster:
    """How a network is pruned while it learns; the defaults are those of REM (thesis, chapter 6).

    Only tensors named `weight` are pruned, biases never. A decoder is left alone unless `layers` begins with
    its name, "decoder" in a classifier.

    Attributes:
        strength: Share of an insensitive weight that each step takes away (lambda).
        decay: What the strength is multiplied by after each epoch.
        patience: Prune when the validation loss has not fallen by more than 1 % for so many epochs; -1 prunes
            after every epoch (PWE).
        tolerance: By which part pruning may raise the validation loss (TWT), or worsen the judging metric.
        layers: Pattern for the names of the convolutions and capsule layers to prune.
        search_images: Validation images on which a threshold is searched; 0 means all.
        min_metric: Prune only where the task's leading metric, such as the accuracy, is at least this good on
            the validation images; None prunes in any case.
        judge: What the cut is searched by, the validation loss or the task's leading metric; for a loss that
            says little of the network, as the mean over triplets that still cost something.
        group: What is cut as a whole: single weights, capsules, or capsule types (see `measure_units`).
    """

    strength: float = 1e-4
    decay: float = 0.99
    patience: int = -1
    tolerance: float = 0.0
    layers: str = "*"
    search_images: int = 0
    min_metric: float | None = None
    judge: Judge = "loss"
    group: Group = "weight"

    def __post_init__(self) -> None:
        for key in ("strength", "decay"):
            if not 0 <= getattr(self, key) <= 1:
                raise UserError(f"pruning.{key} must lie between 0 and 1, got {getattr(self, key)}")
        if self.patience < -1 or self.patience == 0:
            raise UserError(
                f"pruning.patience is -1 (after every epoch) or a number of epochs, got {self.patience}"
            )
        for key in ("tolerance", "search_images"):
            if not getattr(self, key) >= 0:
                raise UserError(f"pruning.{key} must not be negative, got {getattr(self, key)}")
        require_choice("pruning.group", self.group, get_args(Group))


def prunable_layers(network: nn.Module, pattern: str = "*") -> Iterator[tuple[str, nn.Module]]:
    """The convolutions and capsule layers of a network that learn and whose names match."""
    decoder = _decoder_name(network)
    spares_decoder = not pattern.startswith(decoder)
    for name, module in network.named_modules():
        if not isinstance(module, _PRUNABLE) or (spares_decoder and name.startswith(decoder)):
            continue
        if not isinstance(module.weight, nn.Parameter):
            continue  # it is computed from other numbers, which zeros in it would not reach
        if fnmatch(name, pattern) and module.weight.requires_grad:
            yield name, module


def _decoder_name(network: nn.Module) -> str:
    decoder = getattr(network, "decoder", None)
    return next((name for name, module in network.named_modules() if module is decoder), "decoder")


def prunable_weights(network: nn.Module, pattern: str = "*") -> list[nn.Parameter]:
    """The weights of `prunable_layers`; an error where there are none."""
    weights: list[nn.Parameter] = [layer.weight for _, layer in prunable_layers(network, pattern)]  # type: ignore[misc]
    if not weights:
        raise UserError(f"pruning needs a convolution or a capsule layer; none is named {pattern!r}")
    return weights


class Pull:
    """The part of LOBSTER that acts in each step: `shrink` before the optimizer, `keep_zeros` after it.

    Strength and masks are tensors that change in place, so that a captured step sees them change. On CUDA,
    kernels go over float32 weights once each, with the same results.
    """

    def __init__(self, weights: Sequence[nn.Parameter], settings: Lobster) -> None:
        self.settings = settings
        self._weights: list[Tensor] = list(weights)
        self._strength = torch.tensor(settings.strength, dtype=torch.float32, device=weights[0].device)
        # a kernel reads small masks sooner; plain operations would first turn them into numbers of full size
        kind = torch.bool if pull_unsupported_reason(weights, weights) is None else None
        self._masks = [torch.ones_like(weight, dtype=kind) for weight in weights]

    @torch.no_grad()
    def start_epoch(self, epoch: int) -> None:
        """Set the strength of this epoch; the weights that are zero now stay zero in it."""
        self._strength.fill_(self.settings.strength * self.settings.decay**epoch)
        for mask, weight in zip(self._masks, self._weights, strict=True):
            mask.copy_(weight != 0)

    @torch.no_grad()
    def shrink(self) -> None:
        """Take from each weight its share times ReLU(1 - |gradient|) (thesis eq. oleupdateRule)."""
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        if len(gradients) < len(self._weights):
            raise UserError("LOBSTER reads the gradient of each weight: call shrink after loss.backward()")
        if pull_unsupported_reason(self._weights, gradients) is None:
            fused_shrink(self._weights, gradients, self._strength)
        else:
            _shrink(self._weights, gradients, self._strength)

    @torch.no_grad()
    def keep_zeros(self) -> None:
        """Undo what the optimizer's momentum did to the weights that are cut."""
        if pull_unsupported_reason(self._weights, self._masks) is None:
            fused_keep_zeros(self._weights, self._masks)
        else:
            torch._foreach_mul_(self._weights, self._masks)


def _shrink(weights: list[Tensor], gradients: list[Tensor], strength: Tensor) -> None:
    pull = torch._foreach_abs(gradients)
    torch._foreach_neg_(pull)
    torch._foreach_add_(pull, 1.0)
    torch._foreach_clamp_min_(pull, 0.0)
    torch._foreach_mul_(pull, weights)
    torch._foreach_mul_(pull, strength)
    torch._foreach_sub_(weights, pull)
