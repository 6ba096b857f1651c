"""What a trained network is worth on other images than those of its training."""

from __future__ import annotations

from pathlib import Path

from torchcaps.core import Number, UserError
from torchcaps.parse import analyse, count_hits, quantizable_routings
from torchcaps.train import Run, load_labelled

Metrics = dict[str, Number]


def look_at(network: Run, data_name: str, data_dir: Path | None) -> Metrics:
    """Accuracy on a dataset; with couplings also quantized accuracy and the entropy of parse trees."""
    if not can_quantize(network):
        return {"accuracy": plain_accuracy(network, data_name, data_dir)}
    data, pipeline = load_labelled(network, "test", data_name=data_name, data_dir=data_dir)
    found = analyse(network.model, data, pipeline, levels="even").as_json()
    return {name: found[name] for name in ("accuracy", "quantized_accuracy", "entropy")}


def plain_accuracy(network: Run, data_name: str, data_dir: Path | None) -> float:
    """The accuracy on another dataset of the same shape."""
    data, pipeline = load_labelled(network, "test", data_name=data_name, data_dir=data_dir)
    return count_hits(network.model, data, pipeline) / len(data)


def can_quantize(network: Run) -> bool:
    """Whether the network has couplings that differ between images."""
    try:
        return bool(quantizable_routings(network.model))
    except UserError:
        return False
