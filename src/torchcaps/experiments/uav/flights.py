"""Many simulated flights with one map, and what they say of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from torchcaps.apps.uav import FlightPlan, Localizer, Recorder, simulate_flight, summarize
from torchcaps.core import Number, Plain

from ..records import Details
from .world import Scale, World

_CURVES = {"low": 10, "median": 50, "high": 90}  # percentiles over flights


@dataclass(frozen=True)
class FlownFlight:
    """The errors and spreads in metres of a flight after each update, and its summary."""

    errors: tuple[float, ...]
    sigmas: tuple[float, ...]
    summary: Plain


def fly(
    world: World, side: int, scale: Scale, start: Callable[[], Localizer], *, seed: int
) -> Iterator[FlownFlight]:
    """The flights of a seed, one after the other, each on the next of the dates that may be seen.

    Flights depend on the seed alone: settings that are compared fly the same ones.
    """
    for number in range(scale.flights):
        plan = FlightPlan(updates=scale.updates, step=scale.step, seed=1000 * seed + number)
        flight = simulate_flight(world.seen[number % len(world.seen)], side, plan)
        localizer, recorder = start(), Recorder()
        began = time.perf_counter()
        for step, image in zip(flight.steps, flight.images, strict=True):
            recorder.add(step, localizer.update(image, step.odometry, step.heading, step.ahead), None)
        summary = summarize(recorder, time.perf_counter() - began)
        errors = tuple(float(error) for error in recorder.errors if error is not None)
        yield FlownFlight(errors, tuple(each.estimate.sigma for each in recorder.updates), summary)


def measure_flights(flights: Sequence[FlownFlight], near: float) -> dict[str, Number]:
    """Metrics of a setting; those after convergence are left out where no flight converges.

    Args:
        flights: All of them.
        near: Metres of error at the end below which a converged flight was found.
    """
    summaries = [flight.summary for flight in flights]
    converged = [each for each in summaries if each["converged"]]
    found = [each for each in converged if each["final_error_m"] < near]
    metrics: dict[str, Number] = {
        "converged_share": len(converged) / len(flights),
        "found_share": len(found) / len(flights),
        "final_error": float(np.median([flight.errors[-1] for flight in flights])),
    }
    if converged:
        metrics["updates_to_convergence"] = mean(each["updates_to_convergence"] for each in converged)
        metrics["converged_error"] = mean(each["mean_error_after_convergence_m"] for each in converged)
        metrics["inside_95_share"] = mean(each["share_of_truth_in_95_percent_region"] for each in converged)
    return metrics


def flight_details(flights: Sequence[FlownFlight]) -> Details:
    """Percentiles over flights after each update, and the numbers of each flight; -1 where it has none."""
    curves = {
        f"{name} {level}": np.percentile([getattr(flight, part) for flight in flights], share, axis=0).round(
            1
        )
        for name, part in (("error", "errors"), ("sigma", "sigmas"))
        for level, share in _CURVES.items()
    }
    each = {
        name: np.array([_number(flight.summary[key]) for flight in flights])
        for name, key in (
            ("updates to convergence", "updates_to_convergence"),
            ("converged error", "mean_error_after_convergence_m"),
            ("inside 95", "share_of_truth_in_95_percent_region"),
        )
    }
    return Details(series={**curves, **each})


def _number(value: Number | None) -> float:
    return -1.0 if value is None else round(float(value), 3)
