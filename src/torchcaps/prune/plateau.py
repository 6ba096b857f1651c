"""When it is time to prune."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

_PROGRESS = 0.01  # the part by which a loss must fall to count as better


@dataclass
class Plateau:
    """Whether a validation loss has stopped falling; a negative `patience` makes every epoch a plateau."""

    patience: int
    best_loss: float = inf
    waited: int = 0

    def is_reached(self, loss: float) -> bool:
        """Take in the loss of one epoch; after a plateau the count starts anew from there."""
        if loss < self.best_loss * (1 - _PROGRESS):
            self.best_loss, self.waited = loss, 0
        else:
            self.waited += 1
        if self.waited < self.patience:
            return False
        self.best_loss, self.waited = loss, 0
        return True
