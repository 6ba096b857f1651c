"""Pretrained networks by name: what is known of each, and the files that belong to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

from torchcaps.core import UserError, build_dataclass, convert, metric_of, unknown_name
from torchcaps.storage import expanded, read_json

from .measured import Evidence, Rounding

Preparation = Literal["", "digit"]
PACKAGED = Path(__file__).parent / "files"
ENTRY, WEIGHTS = "entry.json", "weights.safetensors"
_CACHE = "TORCHCAPS_WEIGHTS"  # environment variable: the folder of networks outside the package
_DIGITS = ("mnist", "mnist5k")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A pretrained network: a run folder without its history, with a card and checksums.

    Attributes:
        name: `<model>.<what it was trained on>`.
        task: What the network is for.
        model: The registered model.
        parameters: How many numbers it learnt.
        data: The dataset, as its recipe names it; a folder has the name of what lay in it.
        licence: Of the data.
        data_note: In a sentence, how the data differ from those that their publisher offers; else "".
        metrics: Of the test images, the leading one first, as the run measured them, or as a command measured
            the stored weights; shares, not percent.
        seed: That of the run.
        evidence: The same network over several seeds, where a result file has it.
        prepare: What is done to a photograph first; "digit" finds, turns and centres a handwritten one.
        trained_in: Precision of its training: "32" or "bf16".
        rounding: What storing the weights as float16 changed; None where they are float32.
        bytes: Size of the weights.
        sha256: Of each file, by its name.
    """

    name: str
    task: str
    model: str
    parameters: int
    data: str
    licence: str
    data_note: str = ""
    metrics: Mapping[str, float]
    seed: int
    evidence: Evidence | None = None
    prepare: Preparation = ""
    trained_in: str = "32"
    rounding: Rounding | None = None
    bytes: int
    sha256: Mapping[str, str]

    @property
    def trained_on(self) -> str:
        """What the name says of the data."""
        return self.name.removeprefix(f"{self.model}.")

    @property
    def stored_as(self) -> str:
        """The type of the stored weights."""
        return "float32" if self.rounding is None else "float16"

    @property
    def leading(self) -> str:
        """The metric that people quote, of this network, in words."""
        if not self.metrics:
            return "not measured"
        key, value = next(iter(self.metrics.items()))
        return f"{metric_of(key).title} {metric_of(key).format(value)}"

    @classmethod
    def from_plain(cls, values: Any, where: str) -> Entry:
        """From the mapping in a file; names that lead out of its folder are refused."""
        for part, kind in (("metrics", float), ("sha256", str)):
            found = values.get(part) if isinstance(values, Mapping) else None
            for name, value in found.items() if isinstance(found, Mapping) else ():
                convert(kind, value, f"{where}.{part}.{name}")
        entry = build_dataclass(cls, values, where)
        for name in (entry.name, *entry.sha256):
            if not _is_plain(name):
                raise UserError(f"{where}: {name!r} is no plain file name")
        return entry


def _is_plain(name: str) -> bool:
    """Whether a name is that of a file in a folder, on any system."""
    leads_out = Path(name).name != name or "\\" in name or name.startswith(".")
    return bool(name) and name.isprintable() and not leads_out


def preparation_of(data: str) -> Preparation:
    """What is done first to a photograph for a network that was trained on a dataset."""
    return "digit" if data in _DIGITS else ""


def cache_folder() -> Path:
    """Where networks outside the package are: `$TORCHCAPS_WEIGHTS`, else below the user's cache."""
    return expanded(os.environ.get(_CACHE) or "~/.cache/torchcaps/weights")


def list_weights(pattern: str = "*") -> list[Entry]:
    """What is known of every pretrained network whose name matches a shell pattern, by name.

    Beside those of the package there are those that a user packed into `cache_folder()`.

    Examples:
        >>> [entry.name for entry in list_weights("parse*")]
        ['parse_capsnet.cifar10', 'parse_capsnet.partwhole']
    """
    found = {**_entries_in(cache_folder()), **_entries_in(PACKAGED)}
    return [found[name] for name in sorted(found) if fnmatch(name, pattern)]


def packaged_weights() -> list[Entry]:
    """What is known of the pretrained networks of the package alone, by name."""
    return sorted(_entries_in(PACKAGED).values(), key=lambda entry: entry.name)


def _entries_in(folder: Path) -> dict[str, Entry]:
    entries = (Entry.from_plain(read_json(path), str(path)) for path in sorted(folder.glob(f"*/{ENTRY}")))
    return {entry.name: entry for entry in entries}


def find_entry(name: str) -> Entry:
    """The pretrained network of that name; another name is answered with near ones."""
    entries = {entry.name: entry for entry in list_weights()}
    if name not in entries:
        raise unknown_name("pretrained network", name, list(entries))
    return entries[name]


def entry_of_model(model: str, data: str = "") -> Entry:
    """The pretrained network of a model: for `data`, else for what the name ends with, else the only one."""
    found = [entry for entry in list_weights() if entry.model == model]
    wanted = f"{model}.{data or model.rpartition('_')[2]}"
    chosen = [entry for entry in found if entry.name == wanted]
    if not chosen and not data:
        chosen = found
    if len(chosen) == 1:
        return chosen[0]
    if found:
        names = ", ".join(repr(entry.name.removeprefix(f"{model}.")) for entry in found)
        raise UserError(f"{model!r} has pretrained weights for {names}: choose with pretrained=one of these")
    known = ", ".join(sorted({entry.model for entry in list_weights()}))
    raise UserError(
        f"there are no pretrained weights of {model!r} (there are: {known}); train it (torchcaps train "
        "RECIPE) or convert published ones (torchcaps import-weights)"
    )
