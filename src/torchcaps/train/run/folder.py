"""What a run finds in its folder: nothing, a run to continue, or a finished one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote

from torchcaps.core import Plain, UserError
from torchcaps.data import FOLDER_PREFIX, find_info, resolve_data_dir
from torchcaps.data.folders import SUFFIXES, folder_path, folders_of_classes, parse_folder_name, visible_files

from ..recipe import Recipe, read_recipe, recipe_as_json
from .result import TRAINED

_WRITTEN_AT_START = ("recipe.json", "recipe.yaml", "data.json", "metrics.jsonl")  # recipe.json comes first
_WRITTEN = (*_WRITTEN_AT_START, "last.ckpt", "weights.safetensors", "result.json", TRAINED)


@contextmanager
def held_alone(out: Path) -> Iterator[None]:
    """While open, no other process may train in `out`; the lock of a killed process ends with it."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    out.mkdir(parents=True, exist_ok=True)
    path = out / "running.lock"
    with path.open("w", encoding="utf-8") as file:
        busy = f"another training is under way in {out}; wait for it or choose another --out"
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(busy) from error
        if not _is_at(path, file.fileno()):  # its last holder removed it: another process may hold a new one
            raise UserError(busy)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # an empty folder is removed
                out.rmdir()


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether an opened file is still the one at `path`."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextmanager
def removed_if_refused(out: Path) -> Iterator[None]:
    """Remove the files of a start from `out` if a user's error ends the run before it has weights."""
    try:
        yield
    except UserError:
        if not any((out / name).is_file() for name in ("last.ckpt", "weights.safetensors")):
            for name in _WRITTEN_AT_START:
                (out / name).unlink(missing_ok=True)
        raise


def check_outside_classes(recipe: Recipe, out: Path, data_dir: Path | None) -> None:
    """Raise where a run would lie among the class folders that it learns from: it would be taken for one."""
    if recipe.task.name != "classification" or not recipe.data.name.startswith(FOLDER_PREFIX):
        return
    images = parse_folder_name(recipe.data.name, resolve_data_dir(data_dir)).root
    for folder in folders_of_classes(images):
        if out.resolve().is_relative_to(folder.resolve()):
            raise UserError(
                f"{out} lies among the classes of {folder}, as if it were one; choose another --out"
            )


def require_no_run(out: Path, remedy: str = "choose another --out") -> None:
    """Raise where `out` holds a run already, with what to do instead, or files of the user."""
    if (out / "recipe.json").is_file():
        raise UserError(f"{out} already holds a run; {remedy}")
    _require_no_files(out)


def _require_no_files(out: Path) -> None:
    """Raise where a folder without a run holds what a run would overwrite, or images."""
    names = [name for name in _WRITTEN if (out / name).exists()]
    if names:
        raise UserError(f"{out / names[0]} is of no run and would be overwritten; choose another --out")
    images = visible_files(out, SUFFIXES) if out.is_dir() else []
    if images:
        raise UserError(f"{out} is a folder of images, such as {images[0].name}; choose another --out")


def check_folder(recipe: Recipe, out: Path, *, resume: bool) -> None:
    """Raise where training in `out` would mix two runs, or a run with files of the user.

    A run may be continued with more epochs than it was started with: nothing in training looks ahead to the
    last one, so it ends as if it had been started with them. A cosine schedule does look ahead.
    """
    if not (out / "recipe.json").is_file():
        _require_no_files(out)
        return
    if (out / "pruning.json").is_file():
        raise UserError(f"{out} holds the network that a search has pruned; choose another --out to train it")
    if not resume:
        require_no_run(out, "continue it with --resume or choose another --out")
    before = read_recipe(out)
    assert before is not None
    before = _with_moved_folder(before, recipe)
    now, then = _what_decides(recipe), _what_decides(before)
    changed = [key for key in now if now[key] != then[key]]
    if not changed:
        return
    if (out / "last.ckpt").is_file():
        _check_continues(recipe, before, changed, out)
        return
    kept = [name for name in ("result.json", "weights.safetensors") if (out / name).is_file()]
    if kept:
        raise UserError(
            f"{out} holds the network of another recipe (changed: {', '.join(changed)}), and no last.ckpt to "
            f"continue from; choose another --out, or delete {' and '.join(kept)} to train anew"
        )


def _check_continues(recipe: Recipe, before: Recipe, changed: list[str], out: Path) -> None:
    looks_ahead = recipe.optim.schedule == "cosine"
    if changed == ["epochs"] and recipe.epochs > before.epochs and not looks_ahead:
        return
    rule = "that one" if looks_ahead else "that one, or with more epochs"
    if looks_ahead and "epochs" in changed:
        rule += ", because a cosine schedule knows its last epoch"
    raise UserError(
        f"{out} was started with another recipe (changed: {', '.join(changed)}), and can only be continued "
        f"with {rule}; choose another --out, with --set {quote(f'start_from={out}')} to take over its weights"
    )


def _with_moved_folder(before: Recipe, recipe: Recipe) -> Recipe:
    """The recipe that a run began with; a folder of images that is gone since counts as moved to the new one.

    Whether the images are the same is checked when they are read.
    """
    old, new = before.data.name, recipe.data.name
    if not (old.startswith(FOLDER_PREFIX) and new.startswith(FOLDER_PREFIX)):
        return before
    if folder_path(old.removeprefix(FOLDER_PREFIX)).is_dir():
        return before
    return replace(before, data=replace(before.data, name=new))


def _what_decides(recipe: Recipe) -> Plain:
    """The settings that the numbers of a run depend on; `fit` matters only for files of several sizes."""
    settings, name = recipe_as_json(recipe), recipe.data.name
    if not name.startswith(FOLDER_PREFIX) and find_info(name).framed_reader is None:
        del settings["data"]["fit"]
    return settings


def is_finished(recipe: Recipe, out: Path) -> bool:
    """Whether `out` holds the result of this run, which asks for no more epochs than that has had."""
    if not (out / "result.json").is_file():
        return False
    before = read_recipe(out)
    can_continue = (out / "last.ckpt").is_file()
    return not (can_continue and before is not None and recipe.epochs > before.epochs)
