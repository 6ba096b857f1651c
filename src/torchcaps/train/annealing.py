"""Routing annealing: the number of iterations is found while training (thesis, algorithm 3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from enum import Enum
from fnmatch import fnmatch
from math import inf
from typing import Any, Literal

from torch import nn

from torchcaps.core.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Annealing:
    """How iterations grow: by `step` from `r0` to `r_max`, each time `patience` epochs brought no lower loss.

    `optimizer` says what happens to Adam's moments when the best weights of the last step are restored; the
    thesis leaves it open. `layers` is a pattern for the names of the driven routings, all by default.
    """

    r0: int = 1
    r_max: int = 50
    step: int = 1
    patience: int = 10
    optimizer: Literal["reset", "keep"] = "reset"
    layers: str = "*"

    def __post_init__(self) -> None:
        for key in ("r0", "step", "patience"):
            if getattr(self, key) < 1:
                raise UserError(f"annealing.{key} must be at least 1, got {getattr(self, key)}")
        if self.r0 > self.r_max:
            raise UserError(f"annealing.r0 is {self.r0}, more than r_max, {self.r_max}")


def iterative_routings(network: nn.Module, pattern: str = "*") -> Iterator[tuple[str, Any]]:
    """The routings of a network that iterate, by name."""
    for name, module in network.named_modules():
        if isinstance(getattr(module, "iterations", None), int) and fnmatch(name, pattern):
            yield name, module


def check_driven(network: nn.Module, settings: Annealing) -> None:
    """An error where there is nothing to anneal."""
    if not any(iterative_routings(network, settings.layers)):
        raise UserError(f"annealing needs a routing with iterations; none is named {settings.layers!r}")


def set_iterations(network: nn.Module, iterations: int, pattern: str = "*") -> None:
    """Let every driven routing iterate this often."""
    for _, routing in iterative_routings(network, pattern):
        routing.iterations = iterations


class Verdict(Enum):
    """What a validation loss means for the run."""

    IMPROVED = "improved"  # best of this step: keep the weights
    WAIT = "wait"
    NEXT_STEP = "next step"  # patience is lost: restore the best weights and iterate more
    DONE = "done"  # r_max was the last


@dataclass
class Annealer:
    """The state of algorithm 3; `epoch` counts evaluations, as in the thesis."""

    settings: Annealing
    iterations: int = 0
    step: int = 0
    epoch: int = 0
    best_loss: float = inf
    best_epoch: int = 0
    steps: list[dict[str, Any]] = field(default_factory=list)  # iterations, loss and epoch of finished steps

    def __post_init__(self) -> None:
        self.iterations = self.iterations or self.settings.r0

    @property
    def is_done(self) -> bool:
        """Whether all numbers of iterations have been tried."""
        return self.iterations > self.settings.r_max

    def observe(self, loss: float) -> Verdict:
        """Take in the validation loss of one epoch."""
        verdict = Verdict.WAIT
        if loss < self.best_loss:
            self.best_loss, self.best_epoch = loss, self.epoch
            verdict = Verdict.IMPROVED
        elif self.epoch - self.best_epoch >= self.settings.patience:
            verdict = self._take_step()
        self.epoch += 1
        return verdict

    def _take_step(self) -> Verdict:
        self.steps.append({"iterations": self.iterations, "loss": self.best_loss, "epoch": self.best_epoch})
        self.step += 1
        self.iterations += self.settings.step
        self.best_loss, self.best_epoch = inf, 0
        return Verdict.DONE if self.is_done else Verdict.NEXT_STEP

    def state(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        return {key: value for key, value in asdict(self).items() if key != "settings"}
