"""A flight while it is localized: what each update gave, and the numbers of the whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import Plain

from .flight import FlightStep
from .localize import Localizer, Update, read_image

# radius of 95 % over the root mean square distance, of a round normal law
_IN_95 = math.sqrt(-math.log(0.05))


@dataclass
class Recorder:
    """Collects a flight while it is localized, with some of its beliefs; `record_flight` adds the last."""

    every: int = 1
    steps: list[FlightStep] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)
    beliefs: dict[int, NDArray[np.float64]] = field(default_factory=dict)

    def add(self, step: FlightStep, update: Update, places: NDArray[np.float64] | None) -> None:
        """Take in an update, and the probability of each cell where it is to be shown."""
        if places is not None:
            self.beliefs[len(self.steps)] = places
        self.steps.append(step)
        self.updates.append(update)

    @property
    def wants_belief(self) -> bool:
        """Whether the belief after the next update is to be shown."""
        return len(self.steps) % self.every == 0

    @property
    def errors(self) -> list[float | None]:
        """Metres between estimate and truth, where it is known."""
        return [
            None if step.truth is None else math.dist((update.estimate.x, update.estimate.y), step.truth)
            for step, update in zip(self.steps, self.updates, strict=True)
        ]


def record_flight(
    localizer: Localizer,
    steps: Iterable[FlightStep],
    recorder: Recorder,
    on_update: Callable[[int], None] = lambda done: None,
) -> None:
    """Localize a whole flight and keep what it gave."""
    for step in steps:
        found = localizer.update(read_image(step.image), step.odometry, step.heading, step.ahead)
        places = localizer.places() if recorder.wants_belief else None
        recorder.add(step, Update(found.estimate, step.problems + found.problems), places)
        on_update(len(recorder.steps))
    if recorder.steps:  # the last belief is written as a map of its own
        recorder.beliefs.setdefault(len(recorder.steps) - 1, localizer.places())


def summarize(recorder: Recorder, seconds: float) -> Plain:
    """The numbers of a flight."""
    found = [update.estimate for update in recorder.updates]
    first = next((k for k, each in enumerate(found) if each.converged), None)
    start = len(found) if first is None else first
    errors = recorder.errors
    after = zip(errors[start:], found[start:], strict=True)
    known = [(error, each.sigma) for error, each in after if error is not None]
    mean = sum(error for error, _ in known) / len(known) if known else None
    inside = sum(error <= _IN_95 * sigma for error, sigma in known)
    return {
        "updates": len(found),
        "converged": first is not None,
        "updates_to_convergence": None if first is None else first + 1,
        "mean_error_after_convergence_m": mean,
        "share_of_truth_in_95_percent_region": inside / len(known) if known else None,
        "final_error_m": errors[-1] if errors else None,
        "final_sigma_m": found[-1].sigma if found else None,
        "restarts": sum(each.restarted for each in found),
        "updates_with_problems": sum(bool(update.problems) for update in recorder.updates),
        "largest_discarded_share": max((each.discarded for each in found), default=0.0),
        "seconds_per_update": seconds / max(len(found), 1),
    }
