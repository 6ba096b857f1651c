"""A trained network as one file that runs without this library and says what its input must be."""

from __future__ import annotations

import copy
import io
import json
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

import torchcaps
from torchcaps.core import UserError, as_plain, first_line, require_choice
from torchcaps.layers import layers_with_backend
from torchcaps.storage import write_bytes

from ..run import Run, card_of
from ..tasks import AnyTask
from .card import CARD, Card
from .read import exported_from, quietly

SUFFIXES = {"onnx": ".onnx", "torch-export": ".pt2"}
_LIMIT = 1e-2  # far above rounding, which is below 1e-5
_NOISY = "torch.onnx._internal.exporter._registration"  # names each operator of torchvision that is not there


class Written(TypedDict):
    """An exported file: where it is, what it gives, and how far that is from the network at most."""

    path: str
    format: str
    bytes: int
    outputs: list[str]
    largest_difference: float


class Inference(nn.Module):
    """A network as a function of normalised images, with plain tensors as its result."""

    def __init__(self, model: nn.Module, task: AnyTask) -> None:
        super().__init__()
        self.model, self.task = model, task

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """The outputs of the task, in its order."""
        return tuple(self.task.outputs(self.task.call(self.model, images, None)).values())


def inference_network(model: nn.Module, task: AnyTask) -> Inference:
    """A copy of `model` on the CPU without fused kernels, whose routing unrolls into plain operations."""
    twin = copy.deepcopy(model).cpu().eval().requires_grad_(False)
    for layer in layers_with_backend(twin):
        layer.backend = "torch"
    return Inference(twin, task).eval()


def export_run(run: Run, path: Path, format: str = "onnx", data_dir: Path | None = None) -> Written:
    """Write the network of `run` for inference on batches of any size; return what it is and how exact.

    Args:
        run: A trained run.
        path: File to write, ending in .onnx or .pt2.
        format: "onnx" for ONNX Runtime and its relatives, "torch-export" for PyTorch without this library.
        data_dir: Folder of the datasets, for a run on a folder of images.

    Returns:
        Path, format, size in bytes, outputs, and the largest difference of any output from the network's own.
    """
    _check_target(path, format)
    network = inference_network(run.model, run.task)
    images = torch.randn(2, *run.model.image_shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        names = tuple(run.task.outputs(run.task.call(network.model, images, None)))
    card = _card(run, names, data_dir)
    with quietly(_NOISY), torch.no_grad():
        content = {"onnx": _as_onnx, "torch-export": _as_program}[format](network, images, card)
    difference = _checked_difference(network, content, path, images, card.outputs)
    write_bytes(path, content)
    return {
        "path": str(path),
        "format": format,
        "bytes": len(content),
        "outputs": list(card.outputs),
        "largest_difference": difference,
    }


def _checked_difference(
    network: nn.Module, content: bytes, path: Path, images: Tensor, names: tuple[str, ...]
) -> float:
    """The largest difference on a batch of another size; an error, before there is a file, if it is wrong."""
    batch = images[:1].expand(3, -1, -1, -1)
    exported = exported_from(content, path)
    advice = f"{path} was not written; try another --format, and tell the authors of torchcaps"
    with torch.no_grad():
        expected = network(batch)
        try:
            pairs = list(zip(expected, exported.run(batch), strict=True))
            differences = [float((ours - theirs).abs().max()) for ours, theirs in pairs]
        except Exception as error:  # ONNX Runtime has no common class for its errors
            raise UserError(
                f"what was exported fails on a batch of three: {_root_of(error)}; {advice}"
            ) from error
    for name, ours, found in zip(names, expected, differences, strict=True):
        if name == "reconstruction":  # of two capsules of one length, rounding chooses the decoded one
            continue
        if not found <= _LIMIT * max(1.0, float(ours.abs().max())):  # also true of nan
            raise UserError(f"what was exported gives other {name}, off by {found:.1e}; {advice}")
    return max(differences)


def _root_of(error: BaseException) -> str:
    """The first line of the error that caused all others."""
    while error.__cause__ is not None:
        error = error.__cause__
    return first_line(error)


def _check_target(path: Path, format: str) -> None:
    require_choice("format", format, SUFFIXES)
    if path.suffix != SUFFIXES[format]:
        raise UserError(f"a file of format {format} ends in {SUFFIXES[format]}, got {path}")
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]
    if format == "onnx" and missing:
        raise UserError(f'writing ONNX needs {", ".join(missing)}: pip install "torchcaps[export]"')


def _card(run: Run, outputs: tuple[str, ...], data_dir: Path | None) -> Card:
    return Card(
        **vars(card_of(run.info(data_dir))),
        recipe=run.recipe,
        input=run.model.image_shape,
        outputs=outputs,
        epoch=run.epoch,
        version=torchcaps.__version__,
    )


def _text_of(card: Card) -> str:
    return json.dumps(as_plain(card), allow_nan=False)


def _as_onnx(network: nn.Module, images: Tensor, card: Card) -> bytes:
    try:
        program = torch.onnx.export(
            network,
            (images,),
            dynamo=True,
            verbose=False,
            input_names=["images"],
            output_names=list(card.outputs),
            dynamic_shapes=({0: Dim("batch")},),
        )
    except torch.onnx.OnnxExporterError as error:  # ONNX has no digamma, of variational Bayes routing
        raise UserError(
            f"this network cannot be written as ONNX: {_root_of(error)}; export it with --format torch-export"
        ) from error
    assert program is not None
    model = program.model
    model.metadata_props[CARD] = _text_of(card)
    for node in model.graph.all_nodes():
        node.metadata_props.clear()  # traces of the source, with the paths of this machine
    return program.model_proto.SerializeToString()


def _as_program(network: nn.Module, images: Tensor, card: Card) -> bytes:
    program = torch.export.export(network, (images,), dynamic_shapes=({0: Dim("batch")},))
    _forget_origin(program)
    buffer = io.BytesIO()
    torch.export.save(program, buffer, extra_files={CARD: _text_of(card)})
    return buffer.getvalue()


def _forget_origin(program: ExportedProgram) -> None:
    program.example_inputs = None  # they would be pickled
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                node.meta.pop("stack_trace", None)  # it holds the paths of this machine
