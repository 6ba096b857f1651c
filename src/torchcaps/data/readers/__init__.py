"""One reader for each dataset, in the file formats of the publishers."""

from .cifar10 import CIFAR10, read_cifar10
from .files import DamagedFileError
from .idx import FASHION_MNIST, MNIST, read_idx_split
from .image_folder import read_image_folder
from .mnist5k import MNIST5K, read_mnist5k
from .picture import opened_picture
from .smallnorb import SMALLNORB, SmallNorbInfo, read_smallnorb, read_smallnorb_info
from .svhn import SVHN, read_svhn

__all__ = [
    "CIFAR10",
    "FASHION_MNIST",
    "MNIST",
    "MNIST5K",
    "SMALLNORB",
    "SVHN",
    "DamagedFileError",
    "SmallNorbInfo",
    "opened_picture",
    "read_cifar10",
    "read_idx_split",
    "read_image_folder",
    "read_mnist5k",
    "read_smallnorb",
    "read_smallnorb_info",
    "read_svhn",
]
