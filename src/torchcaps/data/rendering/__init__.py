"""Images of objects in known rotations: meshes, a camera with lights, and a rasteriser for any device."""

from .datasets import TINY_FILE
from .mesh import RADIUS, Mesh, MeshSet, NamedMesh, load_meshes, save_meshes
from .poses import (
    Poses,
    grid_poses,
    held_out_instances,
    leaked_share,
    posed_images,
    thesis_poses,
    uniform_poses,
)
from .rasterise import Rendered, rasterise
from .rendered import RenderedImages, render_smooth
from .shade import shade_faces
from .solids import cube, cube_tetrahedron, tetrahedron
from .view import THESIS_LIGHTS, Camera, Light, View

__all__ = [
    "RADIUS",
    "THESIS_LIGHTS",
    "TINY_FILE",
    "Camera",
    "Light",
    "Mesh",
    "MeshSet",
    "NamedMesh",
    "Poses",
    "Rendered",
    "RenderedImages",
    "View",
    "cube",
    "cube_tetrahedron",
    "grid_poses",
    "held_out_instances",
    "leaked_share",
    "load_meshes",
    "posed_images",
    "rasterise",
    "render_smooth",
    "save_meshes",
    "shade_faces",
    "tetrahedron",
    "thesis_poses",
    "uniform_poses",
]
