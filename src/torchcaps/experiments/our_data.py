"""How the images of our runs differ from those that their publishers offer, in sentences for result pages."""

RECUT_SVHN = (
    "Images of SVHN were cut anew from the photographs of whole numbers, with the published boxes, and "
    "stored as JPEG, which changes a level by 1.8 of 255 (root mean square). Numbers of images and classes "
    "are the published ones, the bytes are not: accuracies may differ a little from those on the published "
    "files."
)
REDUCED_IMAGENETTE = "Images of Imagenette were reduced to 64 px and stored as JPEG of quality 90 before."
REDUCED_ETH80 = (
    "Images of ETH-80 were reduced from 256 to 64 px and stored as JPEG before, which changes a level by 2.8 "
    "of 255 (root mean square)."
)
