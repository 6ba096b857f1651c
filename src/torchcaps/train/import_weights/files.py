"""Reads weight files of other libraries and writes them as our own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from torchcaps.core import MissingDataError, UserError, need
from torchcaps.data import DATASETS, resize_and_crop
from torchcaps.layers.backbone import ResNetTrunk, create_trunk
from torchcaps.models import EfficientCapsNet, build_model
from torchcaps.storage import save_weights

from ..recipe import Recipe
from ..run import require_no_run, write_untrained
from .keras import keras_efficient_capsnet
from .torchvision import torchvision_resnet


def read_keras_h5(path: Path) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """Every array of an HDF5 file by its path inside, such as "Efficient_CapsNet/conv2d/kernel:0"."""
    h5py = need("h5py", "reading .h5 weights")
    arrays: dict[str, np.ndarray[Any, np.dtype[Any]]] = {}

    def collect(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = np.asarray(item)

    _require_file(path)
    try:
        with h5py.File(path, "r") as file:
            file.visititems(collect)
    except OSError as error:
        raise UserError(f"{path} cannot be read as an HDF5 file: {error}") from error
    return arrays


def import_efficient_capsnet_run(path: Path, recipe: Recipe, out: Path) -> EfficientCapsNet:
    """Write a run in folder `out` that holds the authors' Keras weights; it has no history of training.

    The model and its decoder are those of `recipe`.
    """
    require_no_run(out)
    model = build_model(recipe.model)
    if not isinstance(model, EfficientCapsNet):
        raise UserError(f"{recipe.model['name']!r} is no Efficient-CapsNet; choose another --recipe")
    _require_fitting_data(model, recipe)
    model.load_state_dict(keras_efficient_capsnet(read_keras_h5(path), model.config))
    write_untrained(out, recipe, model)
    return model


def _require_fitting_data(model: EfficientCapsNet, recipe: Recipe) -> None:
    """Raise where the network of a recipe takes other images than its dataset has, or has other classes."""
    info = DATASETS[recipe.data.name]
    channels, *size = model.image_shape
    blank = torch.zeros(1, info.channels, info.height, info.width, dtype=torch.uint8)
    seen = list(resize_and_crop(blank, recipe.data.preprocess).shape[2:])
    theirs, ours = (info.channels, seen, info.num_classes), (channels, size, model.config.num_classes)
    if theirs != ours:
        mine, of_data = (f"{c}x{h}x{w} px and {classes} classes" for c, (h, w), classes in (ours, theirs))
        raise UserError(
            f"the network takes {mine}, but {info.name} has {of_data}: choose the --recipe these weights "
            "belong to, such as smallnorb/efficient_capsnet"
        )


def import_resnet_trunk(path: Path, trunk: str = "resnet50") -> ResNetTrunk:
    """The `trunk` with weights that torchvision wrote, as .safetensors or as a .pth of tensors alone."""
    model = create_trunk(trunk)
    if not isinstance(model, ResNetTrunk):
        raise UserError(f"{trunk!r} is no ResNet")
    model.load_state_dict(torchvision_resnet(_read_state_dict(path), trunk))
    return model


def import_trunk_file(path: Path, out: Path, trunk: str = "resnet50") -> ResNetTrunk:
    """Write the weights of a torchvision ResNet, less its classifier, as safetensors for our `trunk`."""
    if out.suffix != ".safetensors":
        raise UserError(f"the trunk is written as a .safetensors file, got {out}")
    model = import_resnet_trunk(path, trunk)
    save_weights(out, model.state_dict(), {"trunk": trunk})
    return model


def _read_state_dict(path: Path) -> dict[str, Tensor]:
    _require_file(path)
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)  # code in the file is not run
    except Exception as error:  # what is no pickle fails in any way; PyTorch's words advise to run its code
        raise UserError(
            f"{path} cannot be read as a file of tensors alone: it is damaged or holds more"
        ) from error
    state = content.get("state_dict", content) if isinstance(content, dict) else None
    if not isinstance(state, dict) or not all(isinstance(values, Tensor) for values in state.values()):
        raise UserError(f"{path} holds no state dict: names with a tensor each")
    return state


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise MissingDataError(f"there is no file {path}")
