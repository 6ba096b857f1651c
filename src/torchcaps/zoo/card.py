"""The card of a pretrained network: what it is, what it reaches, on what, and where it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchcaps.core.metric import metric_of
from torchcaps.data import FOLDER_PREFIX
from torchcaps.models import MODELS

from .entry import Entry
from .evidence import Evidence

_MOST_CLASSES = 20  # named on a card
_BITS = {"32": "float32", "bf16": "bfloat16 with float32 sums"}


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


def write_card(
    entry: Entry, result: Mapping[str, Any], classes: Sequence[str], ground: Mapping[str, Any] | None
) -> str:
    """The card as Markdown.

    Args:
        entry: The network.
        result: Of its run.
        classes: Their names.
        ground: Pixels and metres of a descriptor of the ground, where the run has them.
    """
    words = WORDS[entry.task]
    lines = [
        f"Use: `{words.command.format(name=entry.name)}`. It gives {words.gives}."
        + _named(entry, classes)
        + _ground(ground),
        f"Data: {_data(entry)}; licence: {entry.licence}.",
        f"Test images: {_measured(entry)}, of this one run: seed {entry.seed}, {_epochs(result)}commit "
        f"{result.get('commit')}, {result.get('device', 'an unknown device')}.",
        *_over_seeds(entry.evidence),
        f"Size: {entry.parameters:,} parameters in {entry.bytes / 1e6:.2f} MB, stored as {entry.stored_as}; "
        f"trained in {_BITS.get(entry.trained_in, entry.trained_in)}.{_rounded(entry)}",
        "Recipe: `recipe.yaml` beside this card; result: `result.json`.",
        f"Limits: {words.limits}",
        f"Cite torchcaps (`CITATION.cff`), the model (`{MODELS[entry.model].paper}` in "
        "`docs/references.bib`) and the data.",
    ]
    return f"# {entry.name}\n\n" + "".join(f"- {line}\n" for line in lines)


def _data(entry: Entry) -> str:
    return entry.data.removeprefix(FOLDER_PREFIX)


def _named(entry: Entry, classes: Sequence[str]) -> str:
    if entry.task == "retrieval" or not 2 <= len(classes) <= _MOST_CLASSES:
        return ""
    kind = "Objects" if entry.task in ("pose", "segmentation") else "Classes"
    return f" {kind}: {', '.join(classes)}."


def _ground(ground: Mapping[str, Any] | None) -> str:
    if ground is None:
        return ""
    return (
        f" It describes squares of {ground['side'] * ground['pixel']:g} m of ground, {ground['side']} pixels "
        f"of {ground['pixel']:g} m; maps are read at that."
    )


def _measured(entry: Entry) -> str:
    found = (f"{metric_of(key).title} {metric_of(key).format(value)}" for key, value in entry.metrics.items())
    return ", ".join(found) or "not measured"


def _epochs(result: Mapping[str, Any]) -> str:
    epochs = result.get("metrics", {}).get("epochs")
    return f"{epochs} epochs, " if epochs else ""


def _over_seeds(evidence: Evidence | None) -> list[str]:
    if evidence is None:
        return ["Over seeds: not measured; the numbers above are of one run."]
    found = ", ".join(map(str, evidence.metrics))
    seeds = evidence.metrics[0].seeds
    return [
        f"Over seeds: {found} ({seeds} {'seed' if seeds == 1 else 'seeds'}; {evidence.protocol}), of "
        f"“{evidence.setting}” in `{evidence.file}`."
    ]


def _rounded(entry: Entry) -> str:
    return "" if entry.rounding is None else f" Rounding: {entry.rounding}."
