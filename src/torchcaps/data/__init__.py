"""Datasets, their synthetic twins, and what happens to images on their way to a network."""

from . import rendering
from .api import (
    DATASETS,
    FOLDER_PREFIX,
    Dataset,
    DatasetInfo,
    Frame,
    Outline,
    RemoteFile,
    Split,
    data_protocol,
    dataset_info,
    find_info,
    list_datasets,
    load_dataset,
    open_dataset,
    outline_dataset,
    resolve_data_dir,
)
from .augment import Augment, augment, augment_pairs, draw_numbers
from .check import FileFinding, check_dataset, has_files
from .check_folder import FolderFinding, check_folder, read_folder
from .corrupt import CORRUPTIONS, add_noise, blur, corrupt_images, occlude
from .derived.multi import overlay_digits
from .download import get_dataset
from .examples import (
    Examples,
    LabelledImages,
    MaskedImages,
    Mode,
    OverlaidImages,
    PlacedImages,
    PosedImages,
    split_validation,
)
from .fit import Fit, fit_picture, undo_fit
from .folders import (
    PICTURE_MODES,
    Deep,
    as_bytes,
    find_images,
    is_animation,
    open_any,
    opened_picture,
    without_transparency,
)
from .lazy_images import FileImages, LazyImages
from .maps.crops import Views, sample_crops
from .maps.places import PlacePlan, write_map_folder
from .maps.stack import SeasonStack, load_stack, save_stack
from .preprocess import (
    Preprocess,
    normalize,
    preprocess,
    resize_and_crop,
    resize_and_crop_pairs,
    resize_bytes,
    undo_resize_and_crop,
)
from .readers.eth80 import read_eth80_masks, read_eth80_views
from .readers.files import DamagedFileError
from .synthetic.partwhole.dataset import draw_named, partwhole_settings
from .synthetic.partwhole.design import Design
from .synthetic.partwhole.draw import PartWhole, draw_partwhole
from .synthetic.partwhole.files import load_partwhole, write_partwhole
from .synthetic.partwhole.grammar import Tree
from .synthetic.strokes import synthetic_images
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
from .warp import AffineLimits, affine, inverse_map, warp

__all__ = [
    "CORRUPTIONS",
    "DATASETS",
    "FOLDER_PREFIX",
    "PICTURE_MODES",
    "AffineLimits",
    "Augment",
    "DamagedFileError",
    "Dataset",
    "DatasetInfo",
    "Deep",
    "Design",
    "Examples",
    "FileFinding",
    "FileImages",
    "Fit",
    "FolderFinding",
    "Frame",
    "LabelledImages",
    "LazyImages",
    "MaskedImages",
    "Mode",
    "Outline",
    "OverlaidImages",
    "PartWhole",
    "PlacePlan",
    "PlacedImages",
    "PosedImages",
    "Preprocess",
    "RemoteFile",
    "SeasonStack",
    "Split",
    "Tree",
    "Views",
    "add_noise",
    "affine",
    "as_bytes",
    "augment",
    "augment_pairs",
    "blur",
    "center_crop",
    "check_dataset",
    "check_folder",
    "corrupt_images",
    "data_protocol",
    "dataset_info",
    "draw_named",
    "draw_numbers",
    "draw_partwhole",
    "erase",
    "find_images",
    "find_info",
    "fit_picture",
    "get_dataset",
    "has_files",
    "horizontal_flip",
    "inverse_map",
    "is_animation",
    "jitter",
    "list_datasets",
    "load_dataset",
    "load_partwhole",
    "load_stack",
    "normalize",
    "occlude",
    "open_any",
    "open_dataset",
    "opened_picture",
    "outline_dataset",
    "overlay_digits",
    "partwhole_settings",
    "preprocess",
    "random_crop",
    "read_eth80_masks",
    "read_eth80_views",
    "read_folder",
    "rendering",
    "resize_and_crop",
    "resize_and_crop_pairs",
    "resize_bytes",
    "resolve_data_dir",
    "sample_crops",
    "save_stack",
    "shift",
    "shift_in_margins",
    "split_validation",
    "standardize",
    "synthetic_images",
    "undo_fit",
    "undo_resize_and_crop",
    "warp",
    "without_transparency",
    "write_map_folder",
    "write_partwhole",
    "write_twin",
]
