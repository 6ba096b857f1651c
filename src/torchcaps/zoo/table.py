"""The pretrained networks of the package as a table for documents."""

from __future__ import annotations

from torchcaps.core import markdown_table
from torchcaps.data import FOLDER_PREFIX

from .entry import Entry, packaged_weights

_COLUMNS = (
    "network",
    "task",
    "data",
    "this network",
    "over seeds",
    "parameters",
    "MB",
    "licence of the data",
)


def render_weights() -> str:
    """A row of Markdown for each network, by task and name, and what they take together."""
    entries = sorted(packaged_weights(), key=lambda entry: (entry.task, entry.name))
    total = sum(entry.bytes for entry in entries) / 1e6
    table = markdown_table(_COLUMNS, map(_cells, entries))
    return f"{table}\n{len(entries)} networks, {total:.1f} MB together.\n"


def _cells(entry: Entry) -> tuple[str, ...]:
    return (
        f"[`{entry.name}`](../src/torchcaps/zoo/files/{entry.name}/card.md)",
        entry.task,
        entry.data.removeprefix(FOLDER_PREFIX),
        entry.leading,
        _over_seeds(entry),
        f"{entry.parameters:,}",
        f"{entry.bytes / 1e6:.2f}",
        entry.licence,
    )


def _over_seeds(entry: Entry) -> str:
    """The leading metric over several seeds, where a result file has it."""
    leading = next(iter(entry.metrics), "")
    if entry.evidence is None:
        return ""
    found = [each for each in entry.evidence.metrics if each.metric == leading]
    label = entry.evidence.file.removeprefix("results/").removesuffix(".json")
    return "".join(f"{each}, n = {each.seeds} (`{label}`)" for each in found if each.seeds > 1)
