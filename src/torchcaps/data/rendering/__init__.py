"""Images of objects in known rotations: meshes, a camera with lights, and a rasteriser for any device."""

from .mesh import Mesh, MeshSet, NamedMesh, load_meshes, save_meshes
from .rasterise import Rendered, rasterise
from .solids import cube, cube_tetrahedron, tetrahedron
from .view import Camera, Light, View

__all__ = [
    "Camera",
    "Light",
    "Mesh",
    "MeshSet",
    "NamedMesh",
    "Rendered",
    "View",
    "cube",
    "cube_tetrahedron",
    "load_meshes",
    "rasterise",
    "save_meshes",
    "tetrahedron",
]
