"""What the command line gave the page: networks, and folders with flights, scans, poses or parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from torchcaps.core import UserError
from torchcaps.train import Recipe, read_recipe
from torchcaps.zoo import (
    Entry,
    entry_folder,
    find_entry,
    is_here,
    is_pretrained,
    list_weights,
    preparation_of,
)

Kind = Literal["flight", "pose", "slices", "parts"]
_PAGES: dict[Kind, tuple[str, str]] = {  # a page, and what is written beside it
    "flight": ("flight.html", "summary.json"),
    "slices": ("page.html", "nodules.csv"),
}
_UNREADY = {
    "*.dcm": "torchcaps lung segment {folder} --run RUN --out found, then torchcaps app found",
    "flight.csv": "torchcaps uav localize MAP.tcmap {folder}/flight.csv {folder}/images --run RUN "
    "--out flown, then torchcaps app flown",
}


@dataclass(frozen=True)
class Choice:
    """A network to choose: a pretrained one by its name, or the folder of a run."""

    key: str
    title: str
    source: str | Path
    has_rem: bool
    pictures: str  # what it learnt from: networks of the same pictures can be asked of one


@dataclass
class Given:
    """All that the page offers; a tab has the folders, or the one page, that it shows."""

    choices: list[Choice] = field(default_factory=list)
    tabs: dict[Kind, list[Path]] = field(default_factory=dict)
    first: int = 0  # networks that the user named
    filled: set[Kind] = field(default_factory=set)  # tabs with pretrained networks, not the user's

    def add_tab(self, kind: Kind, path: Path) -> None:
        """Show a folder or a page in a tab."""
        self.tabs.setdefault(kind, []).append(path)

    def add_choice(self, title: str, source: str | Path, recipe: Recipe) -> None:
        """Offer a network."""
        pictures = preparation_of(recipe.data.name) or recipe.data.name
        has_rem = recipe.pruning is not None
        self.choices.append(Choice(str(len(self.choices)), title, source, has_rem, pictures))


def read_given(names: Sequence[str]) -> Given:
    """Sort what was given; runs come first, then the pretrained networks that nobody named."""
    given = Given()
    for name in names:
        if is_pretrained(name):
            _add_pretrained(given, find_entry(name))
        else:
            _add_folder(given, Path(name))
    given.first = len(given.choices)
    named = {choice.source for choice in given.choices}
    for entry in sorted(list_weights(), key=_rank):
        if entry.name not in named and entry.task == "classification" and is_here(entry):
            _add_entry(given, entry)
    _fill_empty_tabs(given)
    return given


def _fill_empty_tabs(given: Given) -> None:
    """Show pretrained networks in the tabs for which nothing was given."""
    for entry in sorted(list_weights(), key=_accuracy_with_even):
        kind = _tab_of(entry)
        if kind is None or not is_here(entry) or (kind in given.tabs and kind not in given.filled):
            continue
        given.add_tab(kind, entry_folder(entry))
        given.filled.add(kind)


def _accuracy_with_even(entry: Entry) -> float:
    """Networks that need their couplings most come first; those of which it is not known come last."""
    found = () if entry.evidence is None else entry.evidence.metrics
    return next((each.mean for each in found if each.metric == "accuracy_with_even"), 1.0)


def _tab_of(entry: Entry) -> Kind | None:
    if entry.task == "pose":
        return "pose"
    return "parts" if _knows_parts(entry.data) else None


def _knows_parts(data_name: str) -> bool:
    return data_name.partition(":")[0] == "partwhole"


def _rank(entry: Entry) -> tuple[bool, float]:
    """Networks that read a drawn digit come first, and of these the most accurate."""
    return entry.prepare != "digit", -entry.metrics.get("test_accuracy", 0.0)


def _add_pretrained(given: Given, entry: Entry) -> None:
    if entry.task != "classification":
        _add_run(given, entry_folder(entry))
        return
    _add_entry(given, entry)
    if _tab_of(entry) == "parts":
        given.add_tab("parts", entry_folder(entry))


def _add_entry(given: Given, entry: Entry) -> None:
    given.add_choice(f"{entry.name} (pretrained)", entry.name, _recipe_of(entry_folder(entry)))


def _add_folder(given: Given, folder: Path) -> None:
    if not folder.is_dir():
        raise UserError(f"{folder} is neither a folder nor a pretrained network (torchcaps weights list)")
    runs = [path for path in (folder, folder / "run", folder / "rem") if (path / "recipe.json").is_file()]
    for path in runs:
        _add_run(given, path)
    pages = {kind: folder / files[0] for kind, files in _PAGES.items() if _holds(folder, files)}
    for kind, page in pages.items():
        given.add_tab(kind, page)
    if not runs and not pages:
        _refuse(folder)


def _holds(folder: Path, files: Sequence[str]) -> bool:
    return all((folder / name).is_file() for name in files)


def _add_run(given: Given, folder: Path) -> None:
    recipe = _recipe_of(folder)
    if recipe.task.name == "pose":
        given.add_tab("pose", folder)
    elif recipe.task.name == "classification":
        given.add_choice(_title(folder, recipe), folder, recipe)
        if _knows_parts(recipe.data.name):
            given.add_tab("parts", folder)
    else:
        raise UserError(f"{folder} is a run of {recipe.task.name}; the page shows classification and pose")


def _recipe_of(folder: Path) -> Recipe:
    recipe = read_recipe(folder)
    assert recipe is not None  # its file is there
    return recipe


def _title(folder: Path, recipe: Recipe) -> str:
    """Its folder and model, and whether it was pruned while it learnt."""
    with_rem = ", with REM" if recipe.pruning is not None else ""
    return f"{folder.resolve().name}: {recipe.model['name']}{with_rem}"


def _refuse(folder: Path) -> None:
    for pattern, advice in _UNREADY.items():
        if next(folder.glob(pattern), None) is not None:
            raise UserError(f"{folder} is not ready to be shown; run {advice.format(folder=folder)}")
    raise UserError(
        f"{folder} holds nothing that the page shows: give run folders, or folders that torchcaps uav "
        "localize or torchcaps lung segment wrote"
    )
