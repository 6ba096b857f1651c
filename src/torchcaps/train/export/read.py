"""Networks read back from exported files."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from torchcaps.core.errors import MissingDataError, UserError

from ..predict import Predictor, predictor_of
from ..run import load_run
from .card import CARD, Card, read_card
from .pt2_check import check_program

Network = Callable[[Tensor], tuple[Tensor, ...]]


@dataclass(frozen=True)
class Exported:
    """A network in a file: what it is, and a function from normalised images on the CPU to its outputs."""

    card: Card
    run: Network


def open_exported(path: Path) -> Exported:
    """The network in a file that `export_run` wrote; nothing in the file is unpickled."""
    if not path.is_file():
        raise MissingDataError(f"there is no file {path}")
    return exported_from(path.read_bytes(), path)


def exported_from(content: bytes, path: Path) -> Exported:
    """The network in the bytes of a file whose name, in `path`, says their format."""
    return _OPEN[path.suffix](content, path)


def is_exported(path: Path) -> bool:
    """Whether `path` names an exported file rather than the folder of a run."""
    return path.suffix in _OPEN and not path.is_dir()


def load_predictor(path: Path, device: str = "cpu", data_dir: Path | None = None) -> Predictor:
    """What answers for images: a run folder on `device`, or an exported file, which runs on the CPU."""
    if not is_exported(path):
        return predictor_of(load_run(path, device), data_dir)
    if device not in ("auto", "cpu"):
        raise UserError(f"an exported file runs on the CPU here, not on {device!r}; leave --device at auto")
    exported = open_exported(path)

    def network(inputs: Tensor) -> dict[str, Tensor]:
        return dict(zip(exported.card.outputs, exported.run(inputs), strict=True))

    return Predictor(
        info=exported.card.info, recipe=exported.card.recipe, device=torch.device("cpu"), network=network
    )


def _open_onnx(content: bytes, path: Path) -> Exported:
    try:
        import onnxruntime
    except ImportError as error:
        raise UserError('running an .onnx file needs onnxruntime: pip install "torchcaps[export]"') from error
    try:
        # from bytes: a path would let the file name others to be read
        session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common class
        raise UserError(f"{path} cannot be read as an ONNX file: {_first_line(error)}") from error
    card = read_card(session.get_modelmeta().custom_metadata_map.get(CARD), path)

    def run(images: Tensor) -> tuple[Tensor, ...]:
        return tuple(torch.from_numpy(values) for values in session.run(None, {"images": images.numpy()}))

    return Exported(card, run)


def _open_program(content: bytes, path: Path) -> Exported:
    card = read_card(check_program(content, path), path)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r".*isinstance\(treespec, LeafSpec\)", FutureWarning)
            module = torch.export.load(io.BytesIO(content)).module()
    except (RuntimeError, ValueError, KeyError, AssertionError) as error:
        raise UserError(
            f"{path} cannot be read by this PyTorch, {torch.__version__}: {_first_line(error)}"
        ) from error
    return Exported(card, module)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


_OPEN: dict[str, Callable[[bytes, Path], Exported]] = {".onnx": _open_onnx, ".pt2": _open_program}
