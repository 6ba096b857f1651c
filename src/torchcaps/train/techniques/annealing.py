"""Routing annealing: the number of iterations is found while training (thesis, algorithm 3)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from math import inf
from typing import Literal

from torch import nn

from torchcaps.core import Plain, UserError
from torchcaps.routing import iterations_of


@dataclass(frozen=True, kw_only=True)
class Annealing:
    """How iterations grow while training.

    Attributes:
        r0: Iterations at the start.
        r_max: Iterations at the end.
        step: How many are added each time.
        patience: Epochs without a lower validation loss after which they are added.
        optimizer: What happens to Adam's moments when the best weights of the last step are restored;
            the thesis leaves it open.
        layers: Pattern for the names of the driven routings.
        order: "together" lets all of them iterate equally often; "one_by_one" drives them in the
            order of the network, while those before keep the best number found and those after wait at `r0`.
    """

    r0: int = 1
    r_max: int = 50
    step: int = 1
    patience: int = 10
    optimizer: Literal["reset", "keep"] = "reset"
    layers: str = "*"
    order: Literal["together", "one_by_one"] = "together"

    def __post_init__(self) -> None:
        for key in ("r0", "step", "patience"):
            if getattr(self, key) < 1:
                raise UserError(f"annealing.{key} must be at least 1, got {getattr(self, key)}")
        if self.r0 > self.r_max:
            raise UserError(f"annealing.r0 is {self.r0}, more than r_max, {self.r_max}")


def check_driven(network: nn.Module, settings: Annealing) -> None:
    """An error where there is nothing to anneal."""
    if not iterations_of(network, settings.layers):
        raise UserError(f"annealing needs a routing with iterations; none is named {settings.layers!r}")


class Decision(Enum):
    """What a validation loss means for the run."""

    IMPROVED = "improved"  # best of this step: keep the weights
    WAIT = "wait"
    NEXT_STEP = "next step"  # patience is lost: restore the weights of `source` and iterate more
    DONE = "done"  # r_max was the last


@dataclass(frozen=True)
class AnnealingStep:
    """What the training with one number of iterations came to: its lowest loss, and the epoch of that."""

    iterations: int | dict[str, int]
    loss: float
    epoch: int


@dataclass
class Annealer:
    """The state of algorithm 3; `epoch` counts evaluations, as in the thesis.

    Routings that are driven together are one group; groups are annealed one after the other.
    """

    settings: Annealing
    layers: tuple[str, ...]
    rounds: dict[str, int] = field(default_factory=dict)  # iterations of each driven routing
    group: int = 0
    step: int = 0
    source: int = 0  # the step whose best weights the present one started from
    epoch: int = 0
    best_loss: float = inf
    best_epoch: int = 0
    steps: list[AnnealingStep] = field(default_factory=list)  # finished ones

    def __post_init__(self) -> None:
        self.rounds = self.rounds or dict.fromkeys(self.layers, self.settings.r0)

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """Names of the routings that are driven at the same time, in the order of their turns."""
        return [self.layers] if self.settings.order == "together" else [(name,) for name in self.layers]

    @property
    def iterations(self) -> int | dict[str, int]:
        """One number where all driven routings share it by design, else a number for each name."""
        return self.rounds[self.layers[0]] if len(self.groups) == 1 else dict(self.rounds)

    @property
    def is_done(self) -> bool:
        """Whether all numbers of iterations have been tried."""
        return self.group >= len(self.groups)

    @property
    def tried(self) -> list[AnnealingStep]:
        """The finished steps, and the one under way if it has a best epoch."""
        return [*self.steps, self._summary()] if self.best_loss < inf else self.steps

    def observe(self, loss: float) -> Decision:
        """Take in the validation loss of one epoch."""
        decision = Decision.WAIT
        if loss < self.best_loss:
            self.best_loss, self.best_epoch = loss, self.epoch
            decision = Decision.IMPROVED
        elif self.epoch - self.best_epoch >= self.settings.patience:
            self._take_step()
            decision = Decision.DONE if self.is_done else Decision.NEXT_STEP
        self.epoch += 1
        return decision

    def _take_step(self) -> None:
        settings = self.settings
        self.steps.append(self._summary())
        self.source = self.step
        self.step += 1
        self.best_loss, self.best_epoch = inf, 0
        more = self.rounds[self.groups[self.group][0]] + settings.step
        if more > settings.r_max:
            more = self._start_next_group()
        if not self.is_done:
            self.rounds |= dict.fromkeys(self.groups[self.group], more)

    def _start_next_group(self) -> int:
        """Go on from the best step of all, which has tried the next group with r0 already."""
        first = self.settings.r0 + self.settings.step
        self.group = self.group + 1 if first <= self.settings.r_max else len(self.groups)
        self.source = min(range(len(self.steps)), key=lambda number: self.steps[number].loss)
        best = self.steps[self.source].iterations
        self.rounds = dict.fromkeys(self.layers, best) if isinstance(best, int) else dict(best)
        return first

    def _summary(self) -> AnnealingStep:
        return AnnealingStep(self.iterations, self.best_loss, self.best_epoch)

    def state(self) -> Plain:
        """Plain data for a checkpoint."""
        return {key: value for key, value in asdict(self).items() if key not in ("settings", "layers")}

    def restored(self, state: Plain) -> Annealer:
        """The annealer that `state` was taken of."""
        steps = [AnnealingStep(**step) for step in state.get("steps", ())]
        return replace(self, **{**state, "steps": steps})
