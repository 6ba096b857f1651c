"""Pretrained networks, ready to use: as models, and as runs wherever a command takes one."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path

from torchcaps import models
from torchcaps.core import UserError
from torchcaps.models import Network
from torchcaps.train import Run, load_run

from .entry import PACKAGED, cache_folder, entry_of_model, find_entry, list_weights
from .store import entry_folder

_ALIKE = 0.8  # a name that is as similar as this to a known one is taken for misspelt


def create_model(name: str, *, pretrained: bool | str = False, **overrides: object) -> Network:
    """Build a registered model, with random initial weights or with pretrained ones.

    Args:
        name: A name from `list_models()`, or the full one of a pretrained network: "MODEL.DATA".
        pretrained: True takes the weights of the model, or a name such as "mnist" says what they were trained
            on where there are several; they are verified by checksum. The model is in evaluation mode then:
            call `train()` before you train it further. Many want images scaled as in their training:
            `load_pretrained(...)` gives the model with the `prepare` that does it.
        **overrides: Fields of the model's config, as in `torchcaps.models.create_model`. Pretrained weights
            have their own; give none, and change the classes afterwards with `change_classes`.

    Examples:
        >>> model = create_model("dr_capsnet_minimal", pretrained=True).eval()
        >>> model(torch.rand(2, 1, 28, 28)).activations.shape
        torch.Size([2, 10])
        >>> model = create_model("dr_capsnet_small", routing={"name": "em", "iterations": 2})
    """
    if not pretrained and "." in name and name in {entry.name for entry in list_weights()}:
        raise UserError(f"{name!r} is a pretrained network: create_model({name!r}, pretrained=True) loads it")
    if not pretrained:
        return models.create_model(name, **overrides)
    if pretrained is True and "." in name:
        name, _, pretrained = name.partition(".")
    if overrides:
        raise UserError(
            f"pretrained weights have their own fields, so {', '.join(overrides)} cannot be set; other "
            "classes are made with torchcaps.change_classes(model, NUMBER)"
        )
    entry = entry_of_model(name, pretrained if isinstance(pretrained, str) else "")
    return load_run(entry_folder(entry)).model


def load_pretrained(name: str, device: str = "cpu") -> Run:
    """A pretrained network as a run, by its full name: its `model`, and `prepare` for images as they look.

    Examples:
        >>> run = load_pretrained("dr_capsnet_minimal.mnist")
        >>> run.model(run.prepare(torch.rand(2, 1, 28, 28))).activations.shape
        torch.Size([2, 10])
    """
    return load_run(entry_folder(find_entry(name)), device)


def find_run(source: os.PathLike[str] | str) -> Path:
    """The folder of a run: a folder as it is, or that of the pretrained network of this name, verified.

    Every command that takes a run asks here. A name that is nearly that of a pretrained network is an error.
    """
    if not isinstance(source, os.PathLike | str):
        raise UserError(
            "a run is named by its folder, or as `torchcaps weights list` names pretrained networks, got a "
            f"{type(source).__name__}"
        )
    name, path = str(source), Path(source)
    if is_pretrained(name):
        return entry_folder(find_entry(name))
    known = [entry.name for entry in list_weights()]
    if path.name == name and not path.exists() and get_close_matches(name, known, cutoff=_ALIKE):
        find_entry(name)  # says which it may be
    return path


def given_name(run_folder: Path) -> str:
    """How a user names a run: by its folder as given, or by the name of a pretrained network."""
    is_shared = run_folder.parent in (PACKAGED, cache_folder())
    return run_folder.name if is_shared else str(run_folder)


def output_folder(run_folder: Path) -> Path:
    """Where results about a run go: into its folder; for a pretrained network, into one of its name here."""
    return Path(given_name(run_folder))


def sibling_folder(run_folder: Path, ending: str) -> Path:
    """Where a network that is made of a run goes: beside the run, by its name with `ending`."""
    folder = output_folder(run_folder)
    if folder.name in ("", ".."):  # the folder that a command is called in, or the one above
        folder = folder.resolve()
    return folder.parent / f"{folder.name}{ending}"


def is_pretrained(name: str) -> bool:
    """Whether `name` is that of a pretrained network, and no file or run folder of the user is called so."""
    path = Path(name)
    is_taken = path.is_file() or (path / "recipe.json").is_file()
    return not is_taken and any(entry.name == name for entry in list_weights())
