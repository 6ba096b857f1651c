"""Blender as an engine, in a process and an environment of its own: `bpy` fits one version of Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from torchcaps.core import UserError, as_plain
from torchcaps.data.rendering import Mesh, MeshSet, NamedMesh, Rendered, View, save_meshes
from torchcaps.storage import write_json

PYTHON_VARIABLE = "TORCHCAPS_BLENDER_PYTHON"
_SCRIPT = Path(__file__).with_name("blender_script.py")
_SECONDS_PER_IMAGE, _SECONDS_TO_START = 60, 300  # in software, on a busy machine


class BlenderEngine:
    """Renders with EEVEE.

    Args:
        python: A Python interpreter that can import `bpy`; by default the one that the environment variable
            TORCHCAPS_BLENDER_PYTHON names, or the program `blender`.
    """

    kind = "blender"
    at_once = 32  # images of one process: an interruption loses no more

    def __init__(self, python: Path | None = None) -> None:
        named = str(python) if python else os.environ.get(PYTHON_VARIABLE, "")
        blender = shutil.which("blender")
        if named:
            self.command = [named, str(_SCRIPT)]
        elif blender:
            self.command = [blender, "--background", "--python", str(_SCRIPT), "--"]
        else:
            raise UserError(
                "Blender is missing: make an environment for it (python3.11 -m venv blender && "
                f"blender/bin/pip install bpy) and set {PYTHON_VARIABLE}=blender/bin/python, or use "
                "--engine torch"
            )

    @torch.no_grad()
    def __call__(self, mesh: Mesh, rotations: Float[Tensor, "batch 4"], view: View) -> Rendered:
        """As `rasterise`; EEVEE also casts shadows, and objects throw light on each other."""
        with tempfile.TemporaryDirectory(prefix="torchcaps-blender-") as name:
            folder = Path(name)
            save_meshes(folder / "mesh.npz", MeshSet(("object",), (NamedMesh("object", 0, mesh.to("cpu")),)))
            job = {"view": as_plain(view), "rotations": rotations.tolist()}
            write_json(folder / "job.json", job)
            self._run(folder, len(rotations))
            pixels = [_read(folder / f"{number}.png", view) for number in range(len(rotations))]
        whole = torch.stack(pixels)
        return Rendered(whole[:, :3], whole[:, 3:])

    def _run(self, folder: Path, count: int) -> None:
        limit = _SECONDS_TO_START + count * _SECONDS_PER_IMAGE
        try:
            done = subprocess.run(
                [*self.command, str(folder)], capture_output=True, text=True, timeout=limit, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise UserError(f"Blender did not end within {limit} seconds; use --engine torch") from error
        except OSError as error:
            raise UserError(f"Blender does not run ({error}); check {PYTHON_VARIABLE}") from error
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1][:200]
            raise UserError(f"Blender failed: {last}")


def _read(path: Path, view: View) -> Tensor:
    """Red, green, blue and mask of a picture with transparent background."""
    if not path.is_file():
        raise UserError("Blender ended without an error, but pictures are missing")
    with Image.open(path) as picture:
        pixels = torch.from_numpy(np.array(picture.convert("RGBA"))).permute(2, 0, 1)
    colour, alpha = pixels[:3].float(), pixels[3:].float() / 255
    background = torch.tensor(view.background).view(3, 1, 1) * 255
    mixed = (colour * alpha + background * (1 - alpha)).round().byte()
    return torch.cat((mixed, torch.where(alpha > 0.5, 255, 0).byte()))
