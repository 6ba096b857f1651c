"""Networks read back from exported files."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torchcaps.core import MissingDataError, UserError, first_line, need

from ..predict import Predictor, predictor_of
from ..run import load_run
from .card import CARD, Card, read_card
from .onnx_check import check_model
from .pt2_check import check_program

_FATAL = 4  # the level above errors, which onnxruntime prints as well as raises
Network = Callable[[Tensor], tuple[Tensor, ...]]


@dataclass(frozen=True)
class Exported:
    """A network in a file: what it is, and a function from normalised images on the CPU to its outputs."""

    card: Card
    run: Network


def open_exported(path: Path | str, *, trust: bool = False) -> Exported:
    """The network in a file that `export_run` wrote.

    Args:
        path: A file that ends in .onnx or .pt2.
        trust: Also open a .pt2 file. PyTorch can run code that such a file holds. What `export_run` does not
            write is refused before PyTorch sees it, but that check knows only what PyTorch does today.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingDataError(f"there is no file {path}")
    if path.suffix not in _OPEN:
        raise UserError(f"an exported file ends in {' or '.join(_OPEN)}, got {path}")
    if path.suffix == ".pt2" and not trust:
        raise UserError(
            f"{path} was not opened: PyTorch can run code that a .pt2 file holds; use an .onnx file or the "
            "run folder, or give --trust (in Python trust=True) if you know who wrote it"
        )
    return _OPEN[path.suffix](path.read_bytes(), path)


def exported_from(content: bytes, path: Path) -> Exported:
    """The network in bytes that this process exported; the name in `path` says their format."""
    return _open_onnx(content, path) if path.suffix == ".onnx" else _load_program(content, path)


def is_exported(path: Path) -> bool:
    """Whether `path` names an exported file rather than the folder of a run."""
    return path.suffix in _OPEN and not path.is_dir()


def load_predictor(
    path: Path | str, device: str = "cpu", data_dir: Path | None = None, *, trust: bool = False
) -> Predictor:
    """What answers for images: a run folder on `device`, or an exported file, which runs on the CPU.

    A .pt2 file is opened with `trust` alone, as `open_exported` says.
    """
    path = Path(path)
    if not is_exported(path):
        return predictor_of(load_run(path, device), data_dir)
    if device not in ("auto", "cpu"):
        raise UserError(f"an exported file runs on the CPU here, not on {device!r}; leave --device at auto")
    exported = open_exported(path, trust=trust)

    def network(inputs: Tensor) -> dict[str, Tensor]:
        found, wanted = tuple(inputs.shape[1:]), exported.card.input
        if found != wanted:
            raise UserError(
                f"{path} takes images of {_by(wanted)}, but its recipe makes {_by(found)} of an image of "
                f"{exported.card.recipe.data.name}: it was exported with the wrong recipe"
            )
        return dict(zip(exported.card.outputs, exported.run(inputs), strict=True))

    return Predictor(
        info=exported.card.info, recipe=exported.card.recipe, device=torch.device("cpu"), network=network
    )


def _by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _open_onnx(content: bytes, path: Path) -> Exported:
    onnxruntime = need("onnxruntime", "running an .onnx file")
    check_model(content, path)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL
    try:
        session = onnxruntime.InferenceSession(
            content, options, providers=["CPUExecutionProvider"], enable_fallback=False
        )
        text = session.get_modelmeta().custom_metadata_map.get(CARD)
    except Exception as error:  # its errors have no common class
        raise UserError(f"{path} cannot be read as an ONNX file: {first_line(error)}") from error
    card = read_card(text, path)
    _check_ends(session, card, path)

    def run(images: Tensor) -> tuple[Tensor, ...]:
        try:
            found = session.run(None, {"images": images.numpy()})
        except Exception as error:  # as above
            raise UserError(f"{path} cannot be run: {first_line(error)}") from error
        return tuple(torch.from_numpy(values) for values in found)

    return Exported(card, run)


def _check_ends(session: Any, card: Card, path: Path) -> None:
    """Refuse a network whose inputs or outputs are not those that its card promises."""
    taken = [(each.name, each.type, list(each.shape[1:])) for each in session.get_inputs()]
    given = [(each.name, each.type) for each in session.get_outputs()]
    if taken != [("images", "tensor(float)", list(card.input))]:
        raise UserError(f"{path} is damaged: it does not take images of shape {list(card.input)}")
    if given != [(name, "tensor(float)") for name in card.outputs]:
        raise UserError(f"{path} is damaged: it does not give {', '.join(card.outputs)}")


def _open_program(content: bytes, path: Path) -> Exported:
    checked = check_program(content, path)
    read_card(checked.card, path)
    return _load_program(checked.archive, path)


def _load_program(content: bytes, path: Path) -> Exported:
    more = {CARD: ""}
    try:
        with quietly("torch.export"):  # it logs a traceback
            module = torch.export.load(io.BytesIO(content), extra_files=more).module()
    except Exception as error:  # a damaged file raises errors of many classes
        raise UserError(
            f"{path} is damaged, or cannot be read by this PyTorch, {torch.__version__}: {first_line(error)}"
        ) from error
    card = read_card(more[CARD], path)

    def run(images: Tensor) -> tuple[Tensor, ...]:
        try:
            found = module(images)
        except Exception as error:  # as above
            raise UserError(f"{path} cannot be run: {first_line(error)}") from error
        if len(found) != len(card.outputs):
            raise UserError(f"{path} is damaged: it does not give {', '.join(card.outputs)}")
        return tuple(found)

    return Exported(card, run)


@contextmanager
def quietly(name: str) -> Iterator[None]:
    """While open, PyTorch's logger `name` logs errors alone, and no warning is given of its tree specs."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r".*isinstance\(treespec, LeafSpec\)", FutureWarning)
            yield
    finally:
        logger.setLevel(level)


_OPEN: dict[str, Callable[[bytes, Path], Exported]] = {".onnx": _open_onnx, ".pt2": _open_program}
