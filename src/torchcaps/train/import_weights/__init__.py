"""Weights of other libraries: read, converted to ours, and written as our files."""

from .files import (
    import_efficient_capsnet_run,
    import_resnet_trunk,
    import_trunk_file,
    read_keras_h5,
)
from .keras import keras_efficient_capsnet
from .torchvision import torchvision_resnet

__all__ = [
    "import_efficient_capsnet_run",
    "import_resnet_trunk",
    "import_trunk_file",
    "keras_efficient_capsnet",
    "read_keras_h5",
    "torchvision_resnet",
]
