"""Runs inside Blender's Python, without torchcaps: reads a job from a folder and renders its pictures."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any


def main(folder: Path) -> None:
    """Render each rotation of the job to NUMBER.png, with a transparent background."""
    import bpy  # type: ignore[import-not-found]

    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene, view = bpy.context.scene, job["view"]
    _set_output(scene, view)
    _add_camera(bpy, scene, view["camera"])
    for number, light in enumerate(view["lights"]):
        _add_light(bpy, scene, light, number)
    _set_world(bpy, scene, view["ambient"])
    thing = _add_mesh(bpy, scene, folder / "mesh.npz")
    thing.rotation_mode = "QUATERNION"
    for number, rotation in enumerate(job["rotations"]):
        thing.rotation_quaternion = rotation  # w, x, y, z in Blender too
        scene.render.filepath = str(folder / f"{number}.png")
        bpy.ops.render.render(write_still=True)


def _set_output(scene: Any, view: dict[str, Any]) -> None:
    engines = {item.identifier for item in scene.render.bl_rna.properties["engine"].enum_items}
    scene.render.engine = "BLENDER_EEVEE_NEXT" if "BLENDER_EEVEE_NEXT" in engines else "BLENDER_EEVEE"
    scene.render.resolution_x, scene.render.resolution_y = view["width"], view["height"]
    scene.render.resolution_percentage = 100
    scene.eevee.taa_render_samples = 16  # of each pixel; without a graphics card, 64 take a minute an image
    scene.render.film_transparent = True
    scene.render.image_settings.file_format = "PNG"
    scene.render.image_settings.color_mode = "RGBA"
    scene.view_settings.view_transform = "Standard"


def _add_camera(bpy: Any, scene: Any, camera: dict[str, Any]) -> None:
    from mathutils import Matrix, Vector  # type: ignore[import-not-found]

    data = bpy.data.cameras.new("camera")
    data.angle = math.radians(camera["field_of_view"])
    thing = bpy.data.objects.new("camera", data)
    position, target, up = (Vector(camera[key]) for key in ("position", "target", "up"))
    forward = (target - position).normalized()
    right = forward.cross(up).normalized()
    above = right.cross(forward)
    axes = Matrix((right, above, -forward)).transposed().to_4x4()
    thing.matrix_world = Matrix.Translation(position) @ axes
    scene.collection.objects.link(thing)
    scene.camera = thing


def _add_light(bpy: Any, scene: Any, light: dict[str, Any], number: int) -> None:
    data = bpy.data.lights.new(f"light {number}", "POINT")
    data.energy, data.color = light["energy"], light["colour"]
    thing = bpy.data.objects.new(f"light {number}", data)
    thing.location = light["position"]
    scene.collection.objects.link(thing)


def _set_world(bpy: Any, scene: Any, ambient: float) -> None:
    scene.world = bpy.data.worlds.new("world")
    scene.world.use_nodes = True
    scene.world.node_tree.nodes["Background"].inputs["Color"].default_value = (ambient, ambient, ambient, 1)


def _add_mesh(bpy: Any, scene: Any, path: Path) -> Any:
    import numpy as np

    with np.load(path, allow_pickle=False) as arrays:
        vertices, faces, colours = (arrays[key] for key in ("vertices", "faces", "colours"))
    mesh = bpy.data.meshes.new("object")
    mesh.from_pydata(vertices.tolist(), [], faces.tolist())
    kinds, which = np.unique(colours, axis=0, return_inverse=True)
    for kind in kinds:
        material = bpy.data.materials.new("colour")
        material.use_nodes = True
        shader = material.node_tree.nodes["Principled BSDF"].inputs
        shader["Base Color"].default_value = (*(kind / 255).tolist(), 1)
        shader["Roughness"].default_value = 1.0
        mesh.materials.append(material)
    mesh.polygons.foreach_set("material_index", which.astype("int32").ravel())
    thing = bpy.data.objects.new("object", mesh)
    scene.collection.objects.link(thing)
    return thing


if __name__ == "__main__":
    main(Path(sys.argv[-1]))
