"""Photographs of handwritten digits, made like those of MNIST."""

from .digit import Prepared, prepare_digit
from .turns import better_turns, say_turn

__all__ = ["Prepared", "better_turns", "prepare_digit", "say_turn"]
