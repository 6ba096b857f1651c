"""Write the cards of the packaged networks anew: `python -m torchcaps.zoo.renew_cards`."""

from __future__ import annotations

from torchcaps.storage import write_text

from .card import CARD, describe_entry
from .entry import PACKAGED, packaged_weights

if __name__ == "__main__":
    for entry in packaged_weights():
        write_text(PACKAGED / entry.name / CARD, describe_entry(entry, PACKAGED / entry.name))
