"""The pretrained networks of the package, and how they read photographs, as tables for documents."""

from __future__ import annotations

from collections.abc import Mapping

from torchcaps.core import markdown_table
from torchcaps.data import FOLDER_PREFIX
from torchcaps.storage import read_json

from .entry import PACKAGED, Entry, packaged_weights
from .measured import PHOTOGRAPHS, MeasuredPhotographs

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


def render_photographs() -> str:
    """A row of Markdown for each condition of drawn photographs, a column for each network that has them."""
    paths = [PACKAGED / entry.name / PHOTOGRAPHS for entry in packaged_weights()]
    found = {
        path.parent.name: MeasuredPhotographs.from_plain(read_json(path)) for path in paths if path.is_file()
    }
    conditions = dict.fromkeys(key for measured in found.values() for key in measured.shares)
    rows = (
        (group, name, *(_shares(measured.shares.get((group, name), {})) for measured in found.values()))
        for group, name in conditions
    )
    made = (
        f"`{name}`: {'' if measured.limit is None else f'{measured.limit:,} '}digits under each condition, "
        f"commit {measured.made[0]}, {measured.made[1]}."
        for name, measured in found.items()
    )
    table = markdown_table(("what changes", "condition", *(f"`{name}`" for name in found)), rows)
    return f"{table}\n" + "\n".join(made) + "\n"


def _shares(shares: Mapping[str, float]) -> str:
    """Percentages: right, refused and wrong, or the only one there is."""
    if list(shares) == ["refused"]:
        return f"refused {100 * shares['refused']:.1f}"
    return " / ".join(f"{100 * share:.1f}" for share in shares.values())
