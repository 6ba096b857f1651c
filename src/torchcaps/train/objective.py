"""The loss of a recipe: that of the task, plus reconstruction and coupling entropy where they have weight."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from torchcaps.core import Output, Plain, Targets, UserError, as_plain, build_dataclass, convert, shown
from torchcaps.losses import LOSSES, AnyLoss, MarginLoss, coupling_entropy_loss, reconstruction_loss
from torchcaps.models import Network

_WEIGHTS = ("reconstruction", "coupling_entropy")


@dataclass(frozen=True, kw_only=True)
class LossSettings:
    """What is minimised.

    Attributes:
        task_loss: The settings of the loss that `name` chooses, beside the two weights in a recipe.
        reconstruction: Weight of the sum of squared pixel errors of a decoder.
        coupling_entropy: Weight of the entropy of the last routed layer's couplings, in bits, which asks for
            few parse trees; in training alone.
    """

    task_loss: AnyLoss = field(default_factory=MarginLoss)
    reconstruction: float = 0.0
    coupling_entropy: float = 0.0

    def __post_init__(self) -> None:
        for key in _WEIGHTS:
            if getattr(self, key) < 0:
                raise UserError(f"recipe.loss.{key} must not be negative, got {getattr(self, key)}")

    @property
    def name(self) -> str:
        """The name of the task's loss."""
        return next(name for name in LOSSES.names() if LOSSES[name] is type(self.task_loss))

    @classmethod
    def from_plain(cls, values: object, where: str) -> LossSettings:
        """From the mapping of a recipe: a name, the settings of that loss, and weights."""
        if not isinstance(values, Mapping):
            raise UserError(f"{where}: expected a mapping of keys such as name, got {shown(values)}")
        own = dict(values)
        weights = {key: convert(float, own.pop(key), f"{where}.{key}") for key in _WEIGHTS if key in own}
        kind = LOSSES[convert(str, own.pop("name", "margin"), f"{where}.name")]
        return cls(task_loss=build_dataclass(kind, own, where), **weights)

    def to_plain(self) -> Plain:
        """The mapping that `from_plain` reads."""
        settings = as_plain(self.task_loss)
        return {"name": self.name, **settings, **{key: getattr(self, key) for key in _WEIGHTS}}


class Objective:
    """The loss as the training step calls it.

    What the task's loss changes with the epochs is kept in tensors, so that a captured step sees it change.
    """

    def __init__(
        self, settings: LossSettings, *, has_decoder: bool, device: torch.device | str = "cpu"
    ) -> None:
        if has_decoder != (settings.reconstruction > 0):
            weight, decoder = ("0.0005", "none") if has_decoder else ("0", "fc")
            raise UserError(
                "a decoder and recipe.loss.reconstruction belong together: "
                f"the model has {'a' if has_decoder else 'no'} decoder, "
                f"the weight is {settings.reconstruction}; set loss.reconstruction={weight}, or "
                f"model.decoder={decoder} (model.reconstruction of a SegCaps)"
            )
        self.settings = settings
        self.reads_couplings = settings.coupling_entropy > 0  # of a network that is trained
        self._now, self._final = (
            {
                name: torch.tensor(value, device=device)
                for name, value in settings.task_loss.schedule(epoch).items()
            }
            for epoch in (0, math.inf)
        )

    @classmethod
    def of_network(cls, network: Network, settings: LossSettings, device: torch.device) -> Objective:
        """The loss of a network, which draws its images or does not."""
        return cls(settings, has_decoder=network.decoder is not None, device=device)

    def start_epoch(self, epoch: int) -> None:
        """Move to the values of this epoch."""
        for name, value in self.settings.task_loss.schedule(epoch).items():
            self._now[name].fill_(value)

    def __call__(self, output: Output, targets: Targets, images: Tensor) -> Tensor:
        """The loss of this epoch in training; `images` are what the decoder should draw."""
        loss = self._of_answers(output, targets, images, self._now)
        if self.reads_couplings:
            loss = loss + self.settings.coupling_entropy * _entropy_of_couplings(output, targets)
        return loss

    def evaluate(self, output: Output, targets: Targets, images: Tensor) -> Tensor:
        """The loss with its final values: losses of different epochs must compare."""
        return self._of_answers(output, targets, images, self._final)

    def _of_answers(
        self, output: Output, targets: Targets, images: Tensor, values: Mapping[str, Tensor]
    ) -> Tensor:
        """The task's loss with some values of what changes with the epochs, and the error of a decoder."""
        loss = self.settings.task_loss(output, targets, **values)
        if output.reconstruction is None:
            return loss
        error = reconstruction_loss(output.reconstruction.float(), images)
        return loss + self.settings.reconstruction * error


def _entropy_of_couplings(output: Output, targets: Targets) -> Tensor:
    coupling = output.layers[-1].routed.coupling if output.layers else None
    if coupling is None or not coupling.requires_grad:
        raise UserError(
            "recipe.loss.coupling_entropy needs couplings that learn; this network has none or holds them "
            "constant (with dynamic routing set model.routing.gradient=full)"
        )
    if not isinstance(targets, Tensor) or targets.ndim != 1:
        raise UserError("recipe.loss.coupling_entropy needs one class for each image")
    return coupling_entropy_loss(coupling, targets)
