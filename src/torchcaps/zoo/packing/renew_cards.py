"""Write the cards of the packaged networks anew, in a clone: `python -m torchcaps.zoo.packing.renew_cards`.

What a card says of several seeds is read again from the result file that it names; what was measured of the
stored weights, from files in the folder of the network: `views.json` is what `torchcaps uav eval` wrote as
its `--out`, the files of `SUITE_FILES` are what `torchcaps eval NAME --suite SUITE --json` printed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torchcaps.core import as_plain
from torchcaps.storage import checksum_of, read_json, write_json, write_text

from ..entry import ENTRY, PACKAGED, WEIGHTS, Entry, packaged_weights
from ..measured import VIEWS, MeasuredViews, read_evidence
from .card import CARD, SUITE_FILES, describe_entry


def renewed(entry: Entry, clone: Path, folder: Path) -> Entry:
    """The entry with what the result files of a clone, and those beside its weights in `folder`, say now."""
    entry = _with_views(_with_evidence(entry, clone), folder)
    files = (file for file in (VIEWS, *SUITE_FILES) if (folder / file).is_file())
    measured = {file: checksum_of(folder / file) for file in files}
    return replace(entry, sha256={**entry.sha256, **measured})


def _with_evidence(entry: Entry, clone: Path) -> Entry:
    told = entry.evidence
    if told is None:
        return entry
    return replace(entry, evidence=read_evidence(clone / told.file, told.setting, entry.model))


def _with_views(entry: Entry, folder: Path) -> Entry:
    path = folder / VIEWS
    if not path.is_file():
        return entry
    found = MeasuredViews.from_plain(read_json(path))
    return replace(entry, metrics=found.metrics_of(entry.sha256[WEIGHTS]))


if __name__ == "__main__":
    for packed in packaged_weights():
        folder = PACKAGED / packed.name
        entry = renewed(packed, Path(), folder)
        write_json(folder / ENTRY, as_plain(entry))
        write_text(folder / CARD, describe_entry(entry, folder))
