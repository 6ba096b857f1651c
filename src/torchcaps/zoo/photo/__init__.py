"""Photographs of handwritten digits, made like those of MNIST."""

from .digit import Prepared, prepare_digit
from .ink import NoDigitError
from .turns import better_turns, say_turn

__all__ = ["NoDigitError", "Prepared", "better_turns", "prepare_digit", "say_turn"]
