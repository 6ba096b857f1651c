"""What a user's folder holds: the images of each split, and those that training leaves out or tests twice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchcaps.storage import checksum_of

from .api import open_dataset, resolve_data_dir
from .folders.class_folders import folders_of_classes, list_splits
from .folders.folder import guess_task, parse_folder_name
from .folders.layout import has_split_folders
from .folders.listing import OF_PHONES, SUFFIXES, files_below, is_visible, skipped_images

_SIDE = 32  # pixels that photographs are brought to when they are only checked


@dataclass(frozen=True)
class FolderFinding:
    """What was found in a folder of which all images can be read."""

    images: dict[str, int]  # how many train, test and, where the folder says which do, validate
    skipped: list[Path]  # because of how their names end
    outside: list[Path]  # images beside the folders of the splits
    copies: dict[Path, Path]  # test images, each with a training image of the same bytes


def check_folder(name: str, data_dir: Path | str | None = None) -> FolderFinding:
    """Read all files of the folder called `name`, and find what its owner may not know.

    Images outside of the splits and copies are looked for where each class has a folder.
    """
    folder = resolve_data_dir(data_dir)
    counts, root = read_folder(name, folder), parse_folder_name(name, folder).root
    has_classes = guess_task(name, folder) == "classification"
    return FolderFinding(
        images=counts,
        skipped=skipped_images(root),
        outside=_outside_images(root) if has_classes else [],
        copies=_copies(root) if has_classes else {},
    )


def read_folder(name: str, data_dir: Path | str | None = None) -> dict[str, int]:
    """Read all files of a folder, which may differ in size as photographs do: training brings them to one.

    Returns:
        How many images train, test and, where the folder says which do, validate.
    """
    folder = resolve_data_dir(data_dir)
    size = parse_folder_name(name, folder).size or _SIDE
    opened = open_dataset(name, folder, size=size, task=guess_task(name, folder))
    counts = {"training": len(opened.examples("train"))}
    if opened.validation is not None:
        counts["validation"] = len(opened.validation())
    return counts | {"test": len(opened.examples("test"))}


def _outside_images(root: Path) -> list[Path]:
    if not has_split_folders(root):
        return []
    splits = folders_of_classes(root)
    images = (path for path in files_below(root) if path.suffix.lower() in SUFFIXES | OF_PHONES)
    others = (path for path in images if not any(path.is_relative_to(split) for split in splits))
    return [path for path in others if is_visible(path, root)]


def _copies(root: Path) -> dict[Path, Path]:
    files = list_splits(root)
    sizes = {path.stat().st_size for path in files["test"]}
    train = {checksum_of(path): path for path in files["train"] if path.stat().st_size in sizes}
    found = ((path, train.get(checksum_of(path))) for path in files["test"])
    return {path: copied for path, copied in found if copied is not None}
