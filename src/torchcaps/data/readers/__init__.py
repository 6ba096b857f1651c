"""One reader for each dataset, in the file formats of the publishers."""

from . import cifar10, idx, imagenette, mnist5k, smallnorb_views, svhn  # noqa: F401  # register datasets
from .affnist import read_affnist_file
from .eth80 import Eth80, read_eth80_masks, read_eth80_views
from .files import DamagedFileError
from .smallnorb import SmallNorbInfo, read_smallnorb_info

__all__ = [
    "DamagedFileError",
    "Eth80",
    "SmallNorbInfo",
    "read_affnist_file",
    "read_eth80_masks",
    "read_eth80_views",
    "read_smallnorb_info",
]
