"""OpenGL without a screen (moderngl on EGL): many rotations in one picture, drawn by one call."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from torchcaps.core import UserError, rotation_matrices
from torchcaps.data.rendering import Mesh, Rendered, View, shade_faces

_ATLAS = 2048  # pixels a side of the picture that holds many images
_NEAR, _FAR = 0.01, 1000.0

# Each instance is one image. Its corner of the atlas is chosen by moving it in clip space, and clip distances
# keep it inside.
_VERTEX = """
#version 330
in vec3 position;
in vec3 row_x;
in vec3 row_y;
in vec3 row_w;
in vec3 shift;
uniform sampler2D colours;
uniform int tiles;
uniform int rows;
uniform vec2 near_far;
flat out vec3 colour;
out float gl_ClipDistance[4];
void main() {
    vec3 place = vec3(dot(row_x, position), dot(row_y, position), dot(row_w, position)) + shift;
    float w = place.z;
    gl_ClipDistance[0] = w + place.x;
    gl_ClipDistance[1] = w - place.x;
    gl_ClipDistance[2] = w + place.y;
    gl_ClipDistance[3] = w - place.y;
    vec2 tile = vec2(gl_InstanceID % tiles, gl_InstanceID / tiles);
    vec2 middle = (2.0 * tile + 1.0) / float(tiles) - 1.0;
    float depth = (w * (near_far.y + near_far.x) - 2.0 * near_far.x * near_far.y) / (near_far.y - near_far.x);
    gl_Position = vec4(place.xy / float(tiles) + middle * w, depth, w);
    int face = gl_VertexID / 3;
    int width = textureSize(colours, 0).x;
    colour = texelFetch(colours, ivec2(face % width, gl_InstanceID * rows + face / width), 0).rgb;
}
"""
_FRAGMENT = """
#version 330
flat in vec3 colour;
out vec4 shown;
void main() { shown = vec4(colour, 1.0); }
"""
_TEXTURE = 4096  # side of a texture that every driver has
_CLIP_DISTANCE = 0x3000  # GL_CLIP_DISTANCE0


class OpenGLRenderer:
    """Draws with the graphics driver of the machine, in software where there is no graphics card."""

    kind = "opengl"
    at_once = 256

    def __init__(self) -> None:
        import moderngl

        try:
            self.context: Any = moderngl.create_context(standalone=True, backend="egl")  # type: ignore[arg-type]
        except Exception as error:  # drivers fail in their own ways
            raise UserError(
                f"OpenGL without a screen does not start ({error}); install libegl1 and a driver such as "
                "libgl1-mesa-dri, or use --engine torch"
            ) from error
        self.context.enable(moderngl.DEPTH_TEST)
        for plane in range(4):
            self.context.enable_direct(_CLIP_DISTANCE + plane)
        self._program: Any = self.context.program(vertex_shader=_VERTEX, fragment_shader=_FRAGMENT)

    @torch.no_grad()
    def __call__(self, mesh: Mesh, rotations: Float[Tensor, "batch 4"], view: View) -> Rendered:
        """As `rasterise`; the result is in the memory of the CPU."""
        mesh, rotations = mesh.to("cpu"), rotations.float().cpu()
        rows = _rows_of_colours(mesh)
        tiles = max(1, min(_ATLAS // max(view.height, view.width), int((_TEXTURE // rows) ** 0.5)))
        parts = [self._draw(mesh, part, view, tiles) for part in torch.split(rotations, tiles * tiles)]
        pixels = torch.cat(parts).permute(0, 3, 1, 2)
        return Rendered(pixels[:, :3], pixels[:, 3:])

    def _draw(self, mesh: Mesh, rotations: Tensor, view: View, tiles: int) -> Tensor:
        context, program = self.context, self._program
        height, width = tiles * view.height, tiles * view.width
        target = self._target(height, width)
        target.use()
        if mesh.is_closed:
            context.enable(context.CULL_FACE)
        else:
            context.disable(context.CULL_FACE)
        target.clear(*view.background, 0.0)
        corners = context.buffer(mesh.corners.contiguous().numpy().tobytes())
        instances = context.buffer(_instances(rotations, view).tobytes())
        colours = self._colours(mesh, rotations, view)
        colours.use(0)
        program["tiles"], program["rows"], program["near_far"] = tiles, _rows_of_colours(mesh), (_NEAR, _FAR)
        array = context.vertex_array(
            program,
            [(corners, "3f", "position"), (instances, "3f 3f 3f 3f/i", "row_x", "row_y", "row_w", "shift")],
        )
        array.render(instances=len(rotations))
        pixels = torch.frombuffer(bytearray(target.read(components=4)), dtype=torch.uint8)
        for resource in (array, corners, instances, colours):
            resource.release()
        return _cut(pixels.view(height, width, 4), tiles)[: len(rotations)]

    def _colours(self, mesh: Mesh, rotations: Tensor, view: View) -> Any:
        shaded = shade_faces(mesh, rotation_matrices(rotations), view).mul(255).round().byte()
        rows, width = _rows_of_colours(mesh), min(_TEXTURE, len(mesh.faces))
        padded = torch.nn.functional.pad(shaded, (0, 1, 0, rows * width - len(mesh.faces)))
        return self.context.texture((width, rows * len(rotations)), 4, padded.numpy().tobytes())

    @cache  # noqa: B019  one renderer lives as long as the process
    def _target(self, height: int, width: int) -> Any:
        size = (width, height)
        return self.context.framebuffer(
            [self.context.texture(size, 4)], self.context.depth_renderbuffer(size)
        )


def _rows_of_colours(mesh: Mesh) -> int:
    """Rows of a texture that the colours of one image fill."""
    return -(-len(mesh.faces) // _TEXTURE)


def _instances(rotations: Tensor, view: View) -> np.ndarray:
    """For each image the rows that give x, y and depth in clip space, and what is added to them."""
    inner = view.matrix()
    to_clip = torch.tensor(
        [[2 / view.width, 0, -1], [0, -2 / view.height, 1], [0, 0, 1]], dtype=torch.float64
    )  # OpenGL counts rows from below
    camera = (to_clip @ inner).float()
    rows = camera[:, :3] @ rotation_matrices(rotations)
    shift = camera[:, 3].expand(len(rotations), 1, 3)
    return torch.cat((rows, shift), dim=1).contiguous().numpy()


def _cut(atlas: Tensor, tiles: int) -> Tensor:
    """The images of an atlas, whose rows run upwards, one after the other."""
    height, width = (side // tiles for side in atlas.shape[:2])
    grid = atlas.view(tiles, height, tiles, width, 4).permute(0, 2, 1, 3, 4)
    return grid.flip(2).flatten(0, 1)


@cache
def opengl_renderer() -> OpenGLRenderer:
    """The renderer of this process; an error says what is missing."""
    return OpenGLRenderer()
