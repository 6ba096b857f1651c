"""The demonstration: trains a small capsule network, and writes a page about what it learnt."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from torchcaps.storage import read_json, write_bytes
from torchcaps.train import (
    Machine,
    Recipe,
    Watcher,
    load_labelled,
    load_recipe,
    load_run,
    recipe_as_json,
    train,
)
from torchcaps.viz import Report, to_png

from .compare import RunSummary, summarise_run
from .demo_page import DemoPage

RECIPE = "mnist5k/gamma_capsnet_small"
REM_RECIPE = "mnist5k/gamma_capsnet_small_rem"


@dataclass(frozen=True, kw_only=True)
class Demo:
    """What the demonstration gave: the page, both networks, and how long it took."""

    page: Path
    plain: RunSummary
    rem: RunSummary
    seconds: float


def run_demo(
    out: Path,
    *,
    recipe: str | Path = RECIPE,
    rem_recipe: str | Path = REM_RECIPE,
    watcher: Watcher | None = None,
) -> Demo:
    """Train a network and its twin with REM on the CPU, and write `report.html`."""
    started = perf_counter()
    runs = {"run": load_recipe(recipe), "rem": load_recipe(rem_recipe)}
    for name, settings in runs.items():
        _remove_earlier(out / name, settings)
        train(settings, out / name, Machine(device="cpu"), watcher=watcher)
    run, pruned = (load_run(out / name) for name in runs)
    page = DemoPage(run, load_labelled(run, "test")[0])
    summaries = summarise_run(run), summarise_run(pruned)
    report = page.build(summaries[0])
    page.compare(report, DemoPage(pruned, page.test), summaries)
    _offer_next_steps(report, out)
    path = report.save(out / "report.html")
    write_bytes(out / "tree.png", to_png(page.tree(page.examples[0])))
    write_bytes(out / "where.png", to_png(page.evidence(page.examples[1:7])))
    plain, rem = summaries
    return Demo(page=path, plain=plain, rem=rem, seconds=perf_counter() - started)


def _remove_earlier(folder: Path, settings: Recipe) -> None:
    """Delete the run of an earlier demonstration; a folder that holds another recipe is left as it is."""
    saved = folder / "recipe.json"
    if saved.is_file() and read_json(saved) == recipe_as_json(settings):
        shutil.rmtree(folder)


def _offer_next_steps(report: Report, out: Path) -> None:
    steps = {
        "explain a digit it never saw": f"torchcaps explain {out / 'run'} test:7",
        "explain a picture of yours": f"torchcaps explain {out / 'run'} digit.png",
        "count its parse trees": f"torchcaps parse {out / 'run'}",
        "train on all of MNIST": "torchcaps data get mnist && torchcaps train mnist/gamma_capsnet",
    }
    report.section("What next", table=[{"to": aim, "type": line} for aim, line in steps.items()])
