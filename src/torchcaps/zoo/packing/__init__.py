"""A run becomes a pretrained network: its files, without paths of a machine, and its card."""

from .pack import Packing, pack_run

__all__ = ["Packing", "pack_run"]
