"""Losses as plain functions of activations, poses and labels."""

from .coupling_entropy import coupling_entropy_loss
from .cross_entropy import cross_entropy_loss
from .dice import dice_cross_entropy_loss, pixel_cross_entropy, soft_dice_loss
from .margin import margin_loss
from .reconstruction import reconstruction_loss
from .spread import FINAL_MARGIN, margin_by_epoch, margin_by_step, spread_loss

__all__ = [
    "FINAL_MARGIN",
    "coupling_entropy_loss",
    "cross_entropy_loss",
    "dice_cross_entropy_loss",
    "margin_by_epoch",
    "margin_by_step",
    "margin_loss",
    "pixel_cross_entropy",
    "reconstruction_loss",
    "soft_dice_loss",
    "spread_loss",
]
