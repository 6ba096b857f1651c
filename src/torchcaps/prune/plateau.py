"""When it is time to prune."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

_PROGRESS = 0.01  # the part by which a loss must fall to count as better


@dataclass
class Plateau:
    """How long a validation loss has not fallen."""

    best_loss: float = inf
    waited: int = 0

    def is_reached(self, loss: float, patience: int) -> bool:
        """Take in the loss of one epoch; return whether it ends so many epochs without progress.

        After a plateau the count starts anew from there. A negative `patience` makes every epoch a plateau.
        """
        if loss < self.best_loss * (1 - _PROGRESS):
            self.best_loss, self.waited = loss, 0
        else:
            self.waited += 1
        if self.waited < patience:
            return False
        self.best_loss, self.waited = loss, 0
        return True
