"""Losses as plain functions of activations, poses and labels."""

from .margin import margin_loss
from .reconstruction import reconstruction_loss
from .spread import margin_by_epoch, margin_by_step, spread_loss

__all__ = ["margin_by_epoch", "margin_by_step", "margin_loss", "reconstruction_loss", "spread_loss"]
