"""One reader for each dataset, in the file formats of the publishers."""

from .affnist import AFFNIST, read_affnist, read_affnist_file
from .cifar10 import CIFAR10, read_cifar10
from .eth80 import Eth80, read_eth80_masks, read_eth80_views
from .files import DamagedFileError
from .idx import FASHION_MNIST, MNIST, read_idx_split
from .imagenette import IMAGENETTE, read_imagenette
from .mnist5k import MNIST5K, read_mnist5k
from .smallnorb import SMALLNORB, SmallNorbInfo, read_smallnorb, read_smallnorb_info
from .smallnorb_views import SMALLNORB_VIEWS
from .svhn import SVHN, read_svhn

__all__ = [
    "AFFNIST",
    "CIFAR10",
    "FASHION_MNIST",
    "IMAGENETTE",
    "MNIST",
    "MNIST5K",
    "SMALLNORB",
    "SMALLNORB_VIEWS",
    "SVHN",
    "DamagedFileError",
    "Eth80",
    "SmallNorbInfo",
    "read_affnist",
    "read_affnist_file",
    "read_cifar10",
    "read_eth80_masks",
    "read_eth80_views",
    "read_idx_split",
    "read_imagenette",
    "read_mnist5k",
    "read_smallnorb",
    "read_smallnorb_info",
    "read_svhn",
]
