"""How well a run does on photographs in folders, each read and prepared as for `predict`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torch import Tensor

from torchcaps import train
from torchcaps.core import Plain, UserError
from torchcaps.data import FOLDER_PREFIX, Examples, resolve_data_dir
from torchcaps.data.folders import parse_folder_name, read_test_folders
from torchcaps.train import Pipeline, Run, load_run, load_split

from .answers import read_photo
from .entry import preparation_of
from .load import find_run, given_name


def evaluate_run(
    run: Run | Path | str,
    split: str = "test",
    *,
    data_name: str | None = None,
    data_dir: Path | None = None,
) -> Plain:
    """Loss, metrics and tables of a run on one split, of its own dataset or another, as plain data.

    Args:
        run: A run or its folder, or the name of a pretrained network.
        split: "test", "validation" or "train".
        data_name: Another dataset of the same shape, or `folder:PATH`; see `load_photos`.
        data_dir: Folder of the datasets.

    Examples:
        >>> found = evaluate_run("runs/mine", data_name="synthetic_mnist")
        >>> found["images"], len(found["confusion"])
        (128, 10)
    """
    if not isinstance(run, Run):
        run = load_run(find_run(run))
    found = train.evaluate_run(run, split, data_name=data_name, data_dir=data_dir, load=load_photos)
    return {**found, "run": given_name(run.folder)}


def load_photos(
    run: Run, split: str, *, data_name: str | None = None, data_dir: Path | None = None
) -> tuple[Examples, Pipeline]:
    """`torchcaps.train.load_split`, where the images in a folder `test` are read as `predict` reads them.

    A network of digits learnt from no photograph: without a folder `test`, all of them are test images.
    """
    if data_name is None or not data_name.startswith(FOLDER_PREFIX):
        return load_split(run, split, data_name=data_name, data_dir=data_dir)
    root = parse_folder_name(data_name, resolve_data_dir(data_dir)).root
    reads_digits = preparation_of(run.recipe.data.name) == "digit"
    is_test_folder = split == "test" and (root / "test").is_dir() and run.task.name == "classification"
    if not reads_digits and not is_test_folder:
        return load_split(run, split, data_name=data_name, data_dir=data_dir)
    if split != "test":
        raise UserError(
            f"{data_name} has no {split} images: the network learnt from none of them, so all are for testing"
        )
    info = run.info(data_dir)

    def read(path: Path) -> Tensor:
        return read_photo(run, path, info).image[0]

    found = read_test_folders(root, info.classes, read).to(run.device)
    return found, Pipeline(replace(run.recipe.data, name=data_name), info)
