"""The card of a pretrained network: what it is, what it reaches, on what, and where it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchcaps.core import Plain, counted, metric_of
from torchcaps.data import FOLDER_PREFIX
from torchcaps.models import MODELS
from torchcaps.storage import read_json

from ..entry import Entry
from ..measured import (
    PHOTOGRAPHS,
    TRUTH,
    TURNS,
    VIEWS,
    Evidence,
    MeasuredPhotographs,
    MeasuredTurns,
    MeasuredViews,
    describe_truth,
)

CARD = "card.md"
_MOST_CLASSES = 20  # named on a card
_PRUNED = {"type": "capsule types", "capsule": "capsules"}
_BITS = {"32": "float32", "bf16": "bfloat16 with float32 sums"}
SUITE_FILES: Mapping[str, Callable[[Plain], str]] = {  # what a card says of files that suites printed
    TRUTH: describe_truth,
    TURNS: lambda found: str(MeasuredTurns.from_plain(found)),
    PHOTOGRAPHS: lambda found: str(MeasuredPhotographs.from_plain(found)),
}


@dataclass(frozen=True)
class _Words:
    """How a card speaks of the networks of one task."""

    gives: str
    limits: str
    command: str


_SEEN = "It was tested on images like those it was trained on."
WORDS: Mapping[str, _Words] = {
    "classification": _Words(
        "one of its classes for each image",
        f"it names one of its classes for every image, whatever it shows. {_SEEN}",
        "torchcaps predict {name} IMAGE",
    ),
    "overlap": _Words(
        "the two classes that overlap in an image",
        f"it names two of its classes for every image, whatever it shows. {_SEEN}",
        "torchcaps predict {name} IMAGE",
    ),
    "segmentation": _Words(
        "a mask of the pixels that belong to an object",
        f"it marks what looks like the objects of its training, at their size and contrast. {_SEEN} It is no "
        "medical device.",
        "torchcaps predict {name} IMAGE --out masks",
    ),
    "pose": _Words(
        "the object in an image and its rotation as a quaternion (w, x, y, z)",
        "it knows these objects alone, one in an image, under the camera and light of its training. Errors "
        "are in degrees, of objects that were rendered.",
        "torchcaps pose predict {name} IMAGE",
    ),
    "retrieval": _Words(
        "a descriptor: images of the same place have near ones",
        "it was tested on places next to those of its training; elsewhere, compile a map and measure there.",
        "torchcaps uav compile-map MAP.tif --run {name} --out MAP.tcmap",
    ),
}

# of a task that another package registered
_OF_OTHERS = _Words("what its task gives", "those of its training images.", "torchcaps predict {name} IMAGE")


def describe_entry(entry: Entry, folder: Path) -> str:
    """The card of a network as Markdown, from its entry and the files in its folder."""
    result, data, ground = (_read(folder / name) for name in ("result.json", "data.json", "matching.json"))
    measured = [
        f"Test images: {_measured(entry)}, {_how_measured(entry, _read(folder / VIEWS))}",
        _over_seeds(entry.evidence),
        *(say(read_json(folder / file)) for file, say in SUITE_FILES.items() if (folder / file).is_file()),
    ]
    return _card(entry, result, data.get("classes", ()), ground, measured)


def _read(path: Path) -> Plain:
    return read_json(path) if path.is_file() else {}


def _card(entry: Entry, result: Plain, classes: Sequence[str], ground: Plain, measured: Sequence[str]) -> str:
    words = WORDS.get(entry.task, _OF_OTHERS)
    lines = [
        f"Use: `{words.command.format(name=entry.name)}`. It gives {words.gives}."
        + _named(entry, classes)
        + _ground(ground),
        f"Data: {entry.data.removeprefix(FOLDER_PREFIX)}; licence: {entry.licence}."
        + (f" {entry.data_note}" if entry.data_note else ""),
        *measured,
        f"Size: {entry.parameters:,} parameters in {entry.bytes / 1e6:.2f} MB, stored as {entry.stored_as}; "
        f"trained in {_BITS.get(entry.trained_in, entry.trained_in)}.{_rounded(entry)}",
        f"Training: {_training(result)}seed {entry.seed}, commit {result.get('commit')}, "
        f"{result.get('device', 'an unknown device')}; `recipe.yaml` and `result.json` beside this card.",
        f"Limits: {words.limits}",
        f"Cite torchcaps (`CITATION.cff`), the model (`{MODELS[entry.model].paper}` in "
        "`docs/references.bib`) and the data.",
    ]
    return f"# {entry.name}\n\n" + "".join(f"- {line}\n" for line in lines)


def _named(entry: Entry, classes: Sequence[str]) -> str:
    if entry.task == "retrieval" or not 2 <= len(classes) <= _MOST_CLASSES:
        return ""
    kind = "Objects" if entry.task in ("pose", "segmentation") else "Classes"
    return f" {kind}: {', '.join(classes)}."


def _ground(ground: Plain) -> str:
    if not ground:
        return ""
    return (
        f" It describes squares of {ground['side'] * ground['pixel']:g} m of ground, {ground['side']} pixels "
        f"of {ground['pixel']:g} m; maps are read at that."
    )


def _measured(entry: Entry) -> str:
    found = (f"{metric_of(key).title} {metric_of(key).format(value)}" for key, value in entry.metrics.items())
    return ", ".join(found) or "not measured"


def _how_measured(entry: Entry, views: Plain) -> str:
    """By which command, where one wrote a file; else in training, which stored weights may not repeat."""
    if views:
        return f"of this one run, {MeasuredViews.from_plain(views).words(entry.name)}."
    if entry.rounding is None and entry.trained_in == "32":
        return "of this one run."
    return (
        "of this one run. They were measured in the precision of its training; as stored it may answer a few "
        "images in 10,000 otherwise."
    )


def _training(result: Plain) -> str:
    """How long it learnt, and what was done to it meanwhile."""
    metrics, recipe = result.get("metrics", {}), result.get("recipe", {})
    annealing, pruning = recipe.get("annealing"), recipe.get("pruning")
    parts = (
        f"{metrics['epochs']} epochs" if "epochs" in metrics else "",
        f"routing iterations annealed from {annealing['r0']} to {metrics.get('iterations')}"
        if annealing
        else "",
        f"pruned by {_PRUNED.get(pruning.get('group', ''), 'single weights')}" if pruning else "",
    )
    return "".join(f"{part}, " for part in parts if part)


def _over_seeds(evidence: Evidence | None) -> str:
    if evidence is None:
        return "Over seeds: not measured; the numbers above are of one run."
    found, seeds = ", ".join(map(str, evidence.metrics)), counted(evidence.metrics[0].seeds, "seed")
    return (
        f"Over seeds: {found} ({seeds}; {evidence.protocol}), of “{evidence.setting}” in `{evidence.file}`."
    )


def _rounded(entry: Entry) -> str:
    return "" if entry.rounding is None else f" Rounding: {entry.rounding}."
