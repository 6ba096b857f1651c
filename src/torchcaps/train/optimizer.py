"""Optimizers and learning rates, from torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, LRScheduler, SequentialLR

from torchcaps.core import UserError

_WARM_UP_START = 0.01  # share of the learning rate that the first step gets


@dataclass(frozen=True, kw_only=True)
class Optim:
    """The optimizer, and how its learning rate changes.

    Attributes:
        name: "adam", "adamw" (weight decay apart from the gradient) or "sgd" (with Nesterov momentum).
        learning_rate: Rate of the first epoch, after `warm_up`.
        schedule: "exponential" multiplies it by `decay` each epoch, or smoothly every `decay_steps` steps;
            "step" multiplies it by `decay` every `step_epochs` epochs; "cosine" lets it fall to `floor` in
            the last epoch.
        decay: Factor of "exponential" and "step"; 1 keeps the rate as it is.
        decay_steps: Steps in which "exponential" multiplies by `decay` once; 0 is an epoch.
        step_epochs: Epochs between two falls of "step".
        floor: The rate does not fall below this.
        warm_up: Epochs in which the rate rises linearly to `learning_rate`.
        momentum: Momentum of "sgd".
        weight_decay: Pull of all weights to zero.
        clip: Largest norm of the gradient of all weights together; 0 does not clip.
        average: Share of the moving average of the weights that stays in each step, such as 0.999; where it
            is not 0, the average is evaluated and kept instead of the weights.
    """

    name: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: float = 1e-3
    schedule: Literal["exponential", "step", "cosine"] = "exponential"
    decay: float = 1.0
    decay_steps: int = 0
    step_epochs: int = 30
    floor: float = 0.0
    warm_up: float = 0.0
    momentum: float = 0.9
    weight_decay: float = 0.0
    clip: float = 0.0
    average: float = 0.0

    def __post_init__(self) -> None:
        for key in ("learning_rate", "decay", "step_epochs"):
            if getattr(self, key) <= 0:
                raise UserError(f"recipe.optim.{key} must be positive, got {getattr(self, key)}")
        for key in ("decay_steps", "floor", "warm_up", "weight_decay", "clip"):
            if getattr(self, key) < 0:
                raise UserError(f"recipe.optim.{key} must not be negative, got {getattr(self, key)}")
        for key in ("momentum", "average"):
            if not 0 <= getattr(self, key) < 1:
                raise UserError(f"recipe.optim.{key} must lie in [0, 1), got {getattr(self, key)}")
        if self.decay > 1e6:
            raise UserError(f"recipe.optim.decay multiplies the learning rate, got {self.decay:g}")


def make_optimizer(model: nn.Module, settings: Optim, device: torch.device) -> Optimizer:
    """The optimizer of the trainable parameters; on a GPU with a rate that a captured step sees change."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    decay = settings.weight_decay
    is_cuda, is_fused = device.type == "cuda", device.type in ("cpu", "cuda")  # one pass over each weight
    rate: float | Tensor = settings.learning_rate
    if is_cuda:
        rate = torch.tensor(settings.learning_rate, device=device)
    if settings.name == "sgd":
        has_momentum = settings.momentum > 0
        return SGD(
            parameters, rate, settings.momentum, weight_decay=decay, nesterov=has_momentum, fused=is_fused
        )
    kind = {"adam": Adam, "adamw": AdamW}[settings.name]
    return kind(parameters, rate, weight_decay=decay, fused=is_fused, capturable=is_cuda)


def make_schedule(optimizer: Optimizer, settings: Optim, *, steps: int, epochs: int) -> LRScheduler:
    """The learning rate of each step, for epochs of so many steps; it is to be stepped after each update."""
    # not refused by `Optim`: runs that were trained so can still be read
    if settings.floor > settings.learning_rate:
        raise UserError(
            f"recipe.optim.floor must not be above learning_rate, {settings.learning_rate:g}, "
            f"got {settings.floor:g}"
        )
    warm_up = round(settings.warm_up * steps)
    after = _schedule(optimizer, settings, steps, total=max(1, epochs * steps - warm_up))
    if not warm_up:
        return after
    rise = LinearLR(optimizer, _WARM_UP_START, total_iters=warm_up)
    return SequentialLR(optimizer, [rise, after], milestones=[warm_up])


def _schedule(optimizer: Optimizer, settings: Optim, steps: int, total: int) -> LRScheduler:
    if settings.schedule == "cosine":
        return CosineAnnealingLR(optimizer, total, eta_min=settings.floor)
    is_stepped = settings.schedule == "step"
    period = settings.step_epochs if is_stepped else 1
    is_smooth = settings.decay_steps > 0 and not is_stepped

    def factor(step: int) -> float:
        exponent = step / settings.decay_steps if is_smooth else step // steps // period
        try:
            share = settings.decay**exponent
        except OverflowError as error:
            raise UserError(f"recipe.optim.decay {settings.decay:g} makes the rate infinite") from error
        return max(share, settings.floor / settings.learning_rate)

    return LambdaLR(optimizer, factor)
