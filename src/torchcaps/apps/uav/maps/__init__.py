"""Maps: orthophotos, drawn terrain, and the descriptors of all voxels compiled to one file."""

from .compile import CompileSettings, compile_map
from .map_file import CompiledMap, MapInfo, open_map, verify_map
from .maps import open_maps, write_geotiff
from .terrain import Terrain, write_seasons

__all__ = [
    "CompileSettings",
    "CompiledMap",
    "MapInfo",
    "Terrain",
    "compile_map",
    "open_map",
    "open_maps",
    "verify_map",
    "write_geotiff",
    "write_seasons",
]
