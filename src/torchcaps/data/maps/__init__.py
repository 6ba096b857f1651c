"""Maps of one place on several dates, and crops of them as training images."""

from .crops import MapImages, Views, sample_crops
from .places import PlacedCrops, PlacePlan, open_map_folder, write_map_folder
from .stack import SeasonStack, load_stack, save_stack

__all__ = [
    "MapImages",
    "PlacePlan",
    "PlacedCrops",
    "SeasonStack",
    "Views",
    "load_stack",
    "open_map_folder",
    "sample_crops",
    "save_stack",
    "write_map_folder",
]
