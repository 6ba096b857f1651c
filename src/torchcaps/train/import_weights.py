"""Reads weight files of other libraries into our models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from torchcaps.core.errors import MissingDataError, UserError
from torchcaps.layers.backbone import ResNetTrunk, create_trunk
from torchcaps.models.api import create_model
from torchcaps.models.convert import keras_efficient_capsnet, torchvision_resnet
from torchcaps.models.efficient_capsnet import EfficientCapsNet


def read_keras_h5(path: Path) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """Every array of an HDF5 file by its path inside, such as "Efficient_CapsNet/conv2d/kernel:0"."""
    try:
        import h5py
    except ImportError as error:
        raise UserError("reading .h5 weights needs h5py: pip install h5py") from error
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


def import_efficient_capsnet(
    path: Path, variant: str = "efficient_capsnet_mnist", *, decoder: bool = False
) -> EfficientCapsNet:
    """The `variant` with the authors' Keras weights, and with their decoder if asked for."""
    model = create_model(variant, decoder="fc" if decoder else "none")
    if not isinstance(model, EfficientCapsNet):
        raise UserError(f"{variant!r} is no Efficient-CapsNet")
    model.load_state_dict(keras_efficient_capsnet(read_keras_h5(path), model.config))
    return model


def import_resnet_trunk(path: Path, trunk: str = "resnet50") -> ResNetTrunk:
    """The `trunk` with weights that torchvision wrote, as .safetensors or as a .pth of tensors alone."""
    model = create_trunk(trunk)
    if not isinstance(model, ResNetTrunk):
        raise UserError(f"{trunk!r} is no ResNet")
    model.load_state_dict(torchvision_resnet(_read_state_dict(path), trunk))
    return model


def _read_state_dict(path: Path) -> dict[str, Tensor]:
    _require_file(path)
    if path.suffix == ".safetensors":
        return load_file(path)
    content = torch.load(path, map_location="cpu", weights_only=True)  # code in the file is not run
    return content.get("state_dict", content)


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise MissingDataError(f"there is no file {path}")
