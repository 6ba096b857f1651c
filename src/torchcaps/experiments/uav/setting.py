"""The settings of the chapter on flights, and how one of them is run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch

from torchcaps.apps.uav import (
    AbBrief,
    BuildingRatio,
    CompiledMap,
    CompileSettings,
    Describer,
    Localizer,
    Matching,
    Pairing,
    compile_map,
    load_describer,
    measure_matching,
    open_map,
)
from torchcaps.apps.uav.filter import FilterSettings, Storage
from torchcaps.data import PlacePlan, write_map_folder
from torchcaps.train import Recipe, StoppedError, Watcher

from ..plan import Job, Outcome, Setting
from ..records import Budget
from .flights import FlownFlight, flight_details, fly, measure_flights
from .world import HOMES, Ground, Scale, World, make_world, scale_of

Kind = Literal["network", "abbrief", "building ratio", "odometry"]
LEARNT = "learnt"  # folder of the maps to learn on, in the store of a ground


@dataclass(frozen=True, kw_only=True)
class FlightSetting(Setting):
    """A descriptor, a likelihood and a form of storage, on a ground.

    Attributes:
        kind: What describes crops; "odometry" looks at none.
        likelihood: One of `LIKELIHOODS`.
        storage: Of the descriptors of the map.
        ground: Where flights are flown.
        taught: The ground on which a network learnt; None for that of the flights.
        exponent: Of the likelihood `ratio`.
        step: Metres between updates, over as long a way; 0 for those of the budget.
    """

    kind: Kind = "network"
    likelihood: str = "bayesian"
    storage: Storage = "int8"
    ground: Ground = "naip"
    taught: Ground | None = None
    exponent: float = 1.0
    step: float = 0.0


@dataclass(frozen=True)
class _Site:
    """A ground with the folder of what its runs share: maps, networks, compiled maps."""

    world: World
    scale: Scale
    store: Path
    setting: FlightSetting


def localize_flights(job: Job) -> None:
    """Train the descriptor where no other run did, compile its map, fly all flights and measure them.

    Networks and compiled maps lie beside the runs in `uav/`: settings that differ in likelihood alone share
    both, those that differ in storage share the network.
    """
    setting = job.run.setting
    assert isinstance(setting, FlightSetting)
    site = _site(setting.ground, job)
    outcome = Outcome(metrics={}, parameters=0, seconds=0.0, precision="32")
    if setting.kind == "network":
        school = site if setting.taught is None else _site(setting.taught, job)
        outcome, describer = _trained(school, job)
    else:
        describer = _handmade(setting.kind, int(job.run.recipe.model["image_size"]), job.device)
    pairing = Pairing(cell=site.scale.cell, heading_step=2 * torch.pi / site.scale.headings)
    matching = measure_matching(describer, [site.world.learnt], pairing)
    compiled = _compiled(site, describer, job.watcher)
    flights = list(_watched(_flights(site, compiled, describer, matching, job.run.seed), job.watcher))
    metrics = measure_flights(flights, site.scale.converged)
    outcome = outcome.with_metrics({**metrics, "map_mb": compiled.path.stat().st_size / 1e6})
    job.leave_result(replace(outcome, details=flight_details(flights)))


def _site(ground: Ground, job: Job) -> _Site:
    setting, budget = job.run.setting, job.run.budget
    assert isinstance(setting, FlightSetting)
    world = make_world(ground, budget, job.data_dir)
    store = job.out / "uav" / "ground" / f"{HOMES.get(ground, ground).replace(' ', '-')}-{budget}"
    return _Site(world, _scale(ground, budget, setting.step), store, setting)


def _scale(ground: Ground, budget: Budget, step: float) -> Scale:
    scale = scale_of(ground, budget)
    return replace(scale, step=step, updates=round(scale.updates * scale.step / step)) if step else scale


def _flights(
    site: _Site, compiled: CompiledMap, describer: Describer, matching: Matching, seed: int
) -> Iterator[FlownFlight]:
    likelihood = matching.likelihood(site.setting.likelihood, site.setting.exponent)
    seeing = None if site.setting.kind == "odometry" else describer
    limits = FilterSettings(converged=site.scale.converged)

    def start() -> Localizer:
        return Localizer(compiled, seeing, likelihood, limits)

    return fly(site.world, describer.side, site.scale, start, seed=seed)


def _trained(site: _Site, job: Job) -> tuple[Outcome, Describer]:
    recipe = job.run.recipe
    plan = PlacePlan(places=site.scale.places, views=site.scale.views)
    if not (site.store / LEARNT / "places.json").is_file():  # written last
        write_map_folder(site.store / LEARNT, [site.world.learnt], plan)
    folder = site.store / "networks" / f"{_network_name(recipe)}-{recipe.seed}"
    outcome = job.with_data(site.store).train_and_tidy(recipe, folder)
    return outcome, load_describer(folder, job.device)


def _network_name(recipe: Recipe) -> str:
    techniques = [name for name in ("annealing", "pruning") if getattr(recipe, name) is not None]
    return "-".join([str(recipe.model["name"]), str(recipe.model.get("descriptor", 16)), *techniques])


def _handmade(kind: Kind, side: int, device: torch.device) -> Describer:
    return BuildingRatio(side, device=device) if kind == "building ratio" else AbBrief(side, device=device)


def _compiled(site: _Site, describer: Describer, watcher: Watcher) -> CompiledMap:
    """The map of a descriptor, which is compiled unless another run did."""
    path = site.store / "compiled" / f"{describer.name.replace(' ', '-')}-{site.setting.storage}.tcmap"

    def stop_in_time(done: int, planned: int) -> None:
        del done, planned
        if watcher.wants_to_stop:
            raise StoppedError  # what was compiled is kept

    if not path.is_file():
        settings = CompileSettings(site.scale.cell, site.scale.headings, site.setting.storage)
        compile_map(site.world.mapped, describer, path, settings, on_described=stop_in_time)
    return open_map(path)


def _watched(flights: Iterator[FlownFlight], watcher: Watcher) -> Iterator[FlownFlight]:
    for flight in flights:
        if watcher.wants_to_stop:
            raise StoppedError
        yield flight
