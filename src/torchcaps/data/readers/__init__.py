"""One reader for each dataset, in the file formats of the publishers."""

from .cifar10 import CIFAR10, read_cifar10
from .files import DamagedFileError
from .folder import parse_folder_name
from .idx import FASHION_MNIST, MNIST, read_idx_split
from .imagenette import IMAGENETTE, read_imagenette
from .mnist5k import MNIST5K, read_mnist5k
from .picture import as_bytes, find_images, open_any, opened_picture
from .smallnorb import SMALLNORB, SmallNorbInfo, read_smallnorb, read_smallnorb_info
from .svhn import SVHN, read_svhn

__all__ = [
    "CIFAR10",
    "FASHION_MNIST",
    "IMAGENETTE",
    "MNIST",
    "MNIST5K",
    "SMALLNORB",
    "SVHN",
    "DamagedFileError",
    "SmallNorbInfo",
    "as_bytes",
    "find_images",
    "open_any",
    "opened_picture",
    "parse_folder_name",
    "read_cifar10",
    "read_idx_split",
    "read_imagenette",
    "read_mnist5k",
    "read_smallnorb",
    "read_smallnorb_info",
    "read_svhn",
]
