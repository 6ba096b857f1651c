"""Maps: orthophotos, drawn terrain, and the descriptors of all voxels compiled to one file."""

from .compile import CompileSettings, StorageLoss, compile_map, grid_of, storage_loss
from .map_file import CompiledMap, MapInfo, open_map, verify_map, write_map
from .maps import open_maps, read_maps, write_geotiff
from .terrain import Terrain, write_seasons

__all__ = [
    "CompileSettings",
    "CompiledMap",
    "MapInfo",
    "StorageLoss",
    "Terrain",
    "compile_map",
    "grid_of",
    "open_map",
    "open_maps",
    "read_maps",
    "storage_loss",
    "verify_map",
    "write_geotiff",
    "write_map",
    "write_seasons",
]
