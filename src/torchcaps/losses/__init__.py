"""Losses as plain functions, and by name with their settings."""

from .api import LOSSES, AnyLoss, Loss, list_losses
from .coupling_entropy import coupling_entropy_loss
from .cross_entropy import CrossEntropyLoss, cross_entropy_loss
from .dice import DiceCrossEntropyLoss, class_masks, pixel_cross_entropy, soft_dice_loss
from .margin import MarginLoss, margin_loss
from .pair import PairCrossEntropyLoss, PairMarginLoss, pair_margin_loss
from .reconstruction import reconstruction_loss
from .rotation import SpreadRotationLoss, nearest_symmetric, render_loss, rotation_loss, rotations_of
from .spread import SpreadLoss, margin_by_epoch, spread_loss
from .triplet import TripletLoss, batch_all_triplet_loss

__all__ = [
    "LOSSES",
    "AnyLoss",
    "CrossEntropyLoss",
    "DiceCrossEntropyLoss",
    "Loss",
    "MarginLoss",
    "PairCrossEntropyLoss",
    "PairMarginLoss",
    "SpreadLoss",
    "SpreadRotationLoss",
    "TripletLoss",
    "batch_all_triplet_loss",
    "class_masks",
    "coupling_entropy_loss",
    "cross_entropy_loss",
    "list_losses",
    "margin_by_epoch",
    "margin_loss",
    "nearest_symmetric",
    "pair_margin_loss",
    "pixel_cross_entropy",
    "reconstruction_loss",
    "render_loss",
    "rotation_loss",
    "rotations_of",
    "soft_dice_loss",
    "spread_loss",
]
