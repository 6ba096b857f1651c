"""Write the cards of the packaged networks anew, in a clone: `python -m torchcaps.zoo.renew_cards`.

What a card says of several seeds is read again from the result file that it names.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torchcaps.core import as_plain
from torchcaps.storage import write_json, write_text

from .card import CARD, describe_entry
from .entry import ENTRY, PACKAGED, Entry, packaged_weights
from .evidence import read_evidence


def renewed(entry: Entry, clone: Path) -> Entry:
    """The entry with what the result files of a clone say now."""
    if entry.evidence is None:
        return entry
    told = entry.evidence
    return replace(
        entry, evidence=replace(read_evidence(clone / told.file, told.setting, entry.model), file=told.file)
    )


if __name__ == "__main__":
    for packed in packaged_weights():
        entry, folder = renewed(packed, Path()), PACKAGED / packed.name
        write_json(folder / ENTRY, as_plain(entry))
        write_text(folder / CARD, describe_entry(entry, folder))
