"""The loss of a recipe, as one object that the training step calls."""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.core.errors import UserError
from torchcaps.core.types import CapsuleOutput
from torchcaps.losses import (
    FINAL_MARGIN,
    coupling_entropy_loss,
    cross_entropy_loss,
    margin_by_epoch,
    margin_loss,
    reconstruction_loss,
    spread_loss,
)

from .recipe import Loss


class Objective:
    """Class loss plus weighted reconstruction.

    The spread margin grows with the epochs; it is kept in a tensor so that a captured step sees it change.
    """

    def __init__(self, settings: Loss, *, has_decoder: bool, device: torch.device | str = "cpu") -> None:
        if has_decoder != (settings.reconstruction > 0):
            raise UserError(
                "a decoder and recipe.loss.reconstruction belong together: "
                f"the model has {'a' if has_decoder else 'no'} decoder, "
                f"the weight is {settings.reconstruction}"
            )
        self.settings = settings
        self._margin = torch.tensor(margin_by_epoch(0), device=device)
        self._final_margin = torch.tensor(FINAL_MARGIN, device=device)

    @property
    def reads_couplings(self) -> bool:
        """Whether the network has to return its couplings in training."""
        return self.settings.coupling_entropy > 0

    def start_epoch(self, epoch: int) -> None:
        """Move to the margin of this epoch."""
        self._margin.fill_(margin_by_epoch(epoch))

    def __call__(self, output: CapsuleOutput, labels: Tensor, images: Tensor) -> Tensor:
        """The loss of this epoch; `images` in [0, 1] are what the decoder should draw."""
        loss = self._loss(output, labels, images, self._margin)
        if self.reads_couplings:
            loss = loss + self.settings.coupling_entropy * _entropy_of_couplings(output, labels)
        return loss

    def evaluate(self, output: CapsuleOutput, labels: Tensor, images: Tensor) -> Tensor:
        """The loss at the final margin: losses of different epochs must compare."""
        return self._loss(output, labels, images, self._final_margin)

    def _loss(self, output: CapsuleOutput, labels: Tensor, images: Tensor, margin: Tensor) -> Tensor:
        settings = self.settings
        if settings.name == "spread":
            loss = spread_loss(output.activations, labels, margin=margin)
        elif settings.name == "cross_entropy":
            loss = cross_entropy_loss(output.activations, labels)
        else:
            loss = margin_loss(
                output.activations,
                labels,
                present=settings.present,
                absent=settings.absent,
                absent_weight=settings.absent_weight,
            )
        if output.reconstruction is not None:
            loss = loss + settings.reconstruction * reconstruction_loss(output.reconstruction.float(), images)
        return loss


def _entropy_of_couplings(output: CapsuleOutput, labels: Tensor) -> Tensor:
    coupling = output.layers[-1].routed.coupling if output.layers else None
    if coupling is None or not coupling.requires_grad:
        raise UserError(
            "recipe.loss.coupling_entropy needs couplings that learn; this network has none or holds them "
            "constant (with dynamic routing set model.routing.gradient=full)"
        )
    return coupling_entropy_loss(coupling, labels)
