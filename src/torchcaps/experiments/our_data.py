"""How the images of our runs differ from those that their publishers offer, in sentences for result pages."""

RECUT_SVHN = (
    "Images of SVHN were cut anew from the photographs of whole numbers, with the published boxes, and "
    "stored as JPEG. Numbers of images and classes are the published ones, the bytes are not; what that does "
    "to accuracies was not measured."
)
REDUCED_IMAGENETTE = "Images of Imagenette were reduced to 64 px and stored as JPEG before."
REDUCED_ETH80 = "Images of ETH-80 were reduced to 64 px and stored as JPEG before."
