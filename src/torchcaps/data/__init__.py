"""Datasets, their synthetic twins, and what happens to images on their way to a network."""

from .api import (
    DATASETS,
    DatasetInfo,
    LabelledImages,
    RemoteFile,
    Split,
    dataset_info,
    list_datasets,
    load_dataset,
    resolve_data_dir,
)
from .augment import Augment, augment, draw_numbers
from .check import FileFinding, check_dataset, has_files
from .download import get_dataset
from .preprocess import Preprocess, normalize, preprocess, resize_and_crop, to_unit
from .readers import (
    DamagedFileError,
    SmallNorbInfo,
    middle_square,
    opened_picture,
    read_cifar10,
    read_idx_split,
    read_image_folder,
    read_imagenette,
    read_mnist5k,
    read_smallnorb,
    read_smallnorb_info,
    read_svhn,
)
from .split import split_indices, split_validation
from .synthetic import synthetic_images
from .transforms import (
    center_crop,
    erase,
    horizontal_flip,
    jitter,
    random_crop,
    shift,
    shift_in_margins,
    standardize,
)
from .twin import write_twin
from .warp import AffineLimits, affine, squish, warp

__all__ = [
    "DATASETS",
    "AffineLimits",
    "Augment",
    "DamagedFileError",
    "DatasetInfo",
    "FileFinding",
    "LabelledImages",
    "Preprocess",
    "RemoteFile",
    "SmallNorbInfo",
    "Split",
    "affine",
    "augment",
    "center_crop",
    "check_dataset",
    "dataset_info",
    "draw_numbers",
    "erase",
    "get_dataset",
    "has_files",
    "horizontal_flip",
    "jitter",
    "list_datasets",
    "load_dataset",
    "middle_square",
    "normalize",
    "opened_picture",
    "preprocess",
    "random_crop",
    "read_cifar10",
    "read_idx_split",
    "read_image_folder",
    "read_imagenette",
    "read_mnist5k",
    "read_smallnorb",
    "read_smallnorb_info",
    "read_svhn",
    "resize_and_crop",
    "resolve_data_dir",
    "shift",
    "shift_in_margins",
    "split_indices",
    "split_validation",
    "squish",
    "standardize",
    "synthetic_images",
    "to_unit",
    "warp",
    "write_twin",
]
