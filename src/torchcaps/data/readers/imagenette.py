"""Imagenette: photographs of ten classes of ImageNet that are easily told apart, in a folder per class."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from ..api import DATASETS, DatasetInfo, Frame, RemoteFile, Split
from ..examples import LabelledImages
from ..folders import list_files
from .files import DamagedFileError, find_folder, read_photograph

SIDE = 64
_OWN = Frame(SIDE, SIDE)
SPLIT_FOLDERS: dict[Split, str] = {"train": "train", "test": "val"}
CLASSES = {  # by the name of their folder, in the publisher's order
    "n01440764": "tench",
    "n02102040": "English springer",
    "n02979186": "cassette player",
    "n03000684": "chain saw",
    "n03028079": "church",
    "n03394916": "French horn",
    "n03417042": "garbage truck",
    "n03425413": "gas pump",
    "n03445777": "golf ball",
    "n03888257": "parachute",
}


def read_imagenette(data_dir: Path, split: Split, frame: Frame = _OWN) -> LabelledImages:
    """One split of Imagenette in colour, each photograph brought to the size of `frame`.

    Photographs are decoded by threads, each into its place: no more of them than threads are held at once.
    """
    folder = find_folder(IMAGENETTE, SPLIT_FOLDERS[split], data_dir)
    files = list_files(folder.parent, split, tuple(CLASSES))
    labels = torch.tensor([label for _, label in files])
    for label, (name, words) in enumerate(CLASSES.items()):
        if not (labels == label).any():
            raise DamagedFileError(folder, f"has no images of {words} in a folder {name}", "imagenette")
    images = torch.empty(len(files), 3, frame.height, frame.width, dtype=torch.uint8)

    def read(number: int) -> None:
        images[number] = read_photograph(files[number][0], frame, "imagenette")

    with ThreadPoolExecutor() as threads:  # pillow decodes and resizes without holding up other threads
        for _ in threads.map(read, range(len(files))):
            pass
    return LabelledImages(images, labels, IMAGENETTE.classes)


IMAGENETTE = DATASETS.register("imagenette")(
    DatasetInfo(
        name="imagenette",
        title="Imagenette photographs",
        channels=3,
        height=SIDE,
        width=SIDE,
        classes=tuple(CLASSES.values()),
        mean=(0.4623, 0.4578, 0.4302),  # of the training images at 64 px
        std=(0.2727, 0.2706, 0.2920),
        num_train=9_469,
        num_test=3_925,
        licence="images: ImageNet's terms, non-commercial research; selection: Apache-2.0 (fast.ai)",
        reader=read_imagenette,
        framed_reader=read_imagenette,
        files=(
            RemoteFile(
                "imagenette2-160.tgz",
                url="https://s3.amazonaws.com/fast-ai-imageclas/imagenette2-160.tgz",
                size=99_003_388,
                sha256="64d0c4859f35a461889e0147755a999a48b49bf38a7e0f9bd27003f10db02fe5",
                md5="e793b78cc4c9e9a4ccc0c1155377a412",
                contains=(
                    RemoteFile("imagenette2-160/train", split="train", num_images=9_469),
                    RemoteFile("imagenette2-160/val", split="test", num_images=3_925),
                ),
            ),
        ),
        # the larger photographs first: small ones cannot be made sharp
        folders=("imagenette2", "imagenette2-320", "imagenette2-160", "imagenette2-64"),
    )
)
