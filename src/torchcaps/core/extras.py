"""Optional modules, which the extras of the package install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .errors import UserError

EXTRAS = {  # the one that brings a package, by the name under which it is imported
    "matplotlib": "demo",
    "mlxtend": "demo",
    "tensorboard": "viz",
    "pooch": "download",
    "scipy": "mat",
    "h5py": "keras",
    "onnx": "export",
    "onnxscript": "export",
    "onnxruntime": "export",
    "ray": "cluster",
    "pydicom": "lung",
    "nibabel": "lung",
    "highdicom": "lung",
    "defusedxml": "lung",
    "trimesh": "pose",
    "moderngl": "pose",
    "numba": "uav",
    "rasterio": "uav",
    "pyproj": "uav",
    "cv2": "uav",
    "pymavlink": "uav",
}


def need(name: str, purpose: str = "this") -> Any:
    """A module, or an error that says what needs it and names the command that installs it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise UserError(f'{purpose} needs {package}: pip install "torchcaps[{EXTRAS[package]}]"') from error
