"""Maps of one place on several dates, and crops of them as training images."""

from .crops import Views, sample_crops
from .places import PlacePlan, write_map_folder
from .stack import SeasonStack, load_stack, save_stack

__all__ = [
    "PlacePlan",
    "SeasonStack",
    "Views",
    "load_stack",
    "sample_crops",
    "save_stack",
    "write_map_folder",
]
