"""One reader for each dataset, in the file formats of the publishers."""

from . import affnist, cifar10, idx, imagenette, mnist5k, smallnorb_views, svhn  # noqa: F401  # register datasets
