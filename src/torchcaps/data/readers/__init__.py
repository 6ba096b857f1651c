"""One reader for each dataset, in the file formats of the publishers."""

from .affnist import AFFNIST, read_affnist, read_affnist_file
from .cifar10 import CIFAR10, read_cifar10
from .class_folders import folders_of_classes
from .eth80 import ETH80, Eth80, Eth80Settings, read_eth80, read_eth80_masks, read_eth80_views
from .files import DamagedFileError
from .folder import folder_path, parse_folder_name
from .idx import FASHION_MNIST, MNIST, read_idx_split
from .imagenette import IMAGENETTE, read_imagenette
from .mnist5k import MNIST5K, read_mnist5k
from .picture import (
    PICTURE_MODES,
    SUFFIXES,
    as_bytes,
    find_images,
    open_any,
    opened_picture,
    visible_files,
    visible_folders,
    without_transparency,
)
from .smallnorb import SMALLNORB, SmallNorbInfo, read_smallnorb, read_smallnorb_info
from .smallnorb_views import SMALLNORB_VIEWS, SmallNorbViews, read_smallnorb_views
from .svhn import SVHN, read_svhn

__all__ = [
    "AFFNIST",
    "CIFAR10",
    "ETH80",
    "FASHION_MNIST",
    "IMAGENETTE",
    "MNIST",
    "MNIST5K",
    "PICTURE_MODES",
    "SMALLNORB",
    "SMALLNORB_VIEWS",
    "SUFFIXES",
    "SVHN",
    "DamagedFileError",
    "Eth80",
    "Eth80Settings",
    "SmallNorbInfo",
    "SmallNorbViews",
    "as_bytes",
    "find_images",
    "folder_path",
    "folders_of_classes",
    "open_any",
    "opened_picture",
    "parse_folder_name",
    "read_affnist",
    "read_affnist_file",
    "read_cifar10",
    "read_eth80",
    "read_eth80_masks",
    "read_eth80_views",
    "read_idx_split",
    "read_imagenette",
    "read_mnist5k",
    "read_smallnorb",
    "read_smallnorb_info",
    "read_smallnorb_views",
    "read_svhn",
    "visible_files",
    "visible_folders",
    "without_transparency",
]
