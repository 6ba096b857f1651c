"""The health of a network's capsules on a batch: dead and starved ones, and how far routing chooses."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core import LayerTrace, UserError, evaluating, finite_or_none

from .diagnosis import Limits, find_problems
from .layer_health import ActivationRange, LayerHealth

_COLUMNS = {
    "layer": "layer",
    "children": "children",
    "parents": "parents",
    "dead_children": "dead children",
    "dead_parents": "dead parents",
    "starved_parents": "starved",
    "mean": "activation",
    "min": "min",
    "max": "max",
    "from_uniform": "from uniform",
    "tree": "T",
    "diversity": "D",
}
_NOTED = ("dead_children", "dead_parents", "starved_parents", "from_uniform", "tree", "diversity")


@dataclass(frozen=True)
class HealthReport:
    """One entry for each routed layer, classes last, and in words what is wrong and what to try.

    The words of a finding before its colon name the problem; the numbers behind it vary from batch to batch.
    """

    layers: tuple[LayerHealth, ...]
    findings: tuple[str, ...]
    images: int
    limits: Limits

    def as_json(self) -> dict[str, Any]:
        """All fields as plain data; a number that is not finite becomes None."""
        return finite_or_none(asdict(self))

    def to_json(self) -> str:
        """All fields as JSON text."""
        return json.dumps(self.as_json(), allow_nan=False)

    def summary(self) -> dict[str, float]:
        """Numbers of the last routed layer, those that are finite; empty where no layer is routed."""
        if not self.layers:
            return {}
        last = self.layers[-1]
        numbers = {name: getattr(last, name) for name in _NOTED}
        numbers["coupling_from_uniform"] = numbers.pop("from_uniform")
        numbers |= {"activation_mean": last.activations.mean, "activation_max": last.activations.max}
        return {name: round(value, 6) for name, value in numbers.items() if math.isfinite(value)}

    def __str__(self) -> str:
        """A table, one row for each layer, and the findings below it."""
        lines = [f"routed layers: {len(self.layers)}, images: {self.images}"]
        rows = [list(_COLUMNS.values()), *(_cells(layer) for layer in self.layers)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
        if self.layers:
            lines += ["  ".join(map(str.rjust, row, widths)) for row in rows]
        lines += [f"- {finding}" for finding in self.findings] or ["nothing unusual"]
        return "\n".join(lines)


def inspect(
    model: nn.Module, batch: Float[Tensor, "batch channels height width"], limits: Limits | None = None
) -> HealthReport:
    """The health of every routed layer on a batch of normalised images.

    The model runs in evaluation mode without gradients and is left as it was. A batch of some dozen images,
    all classes among them, is enough.

    Args:
        model: Any network that takes `return_routing=True`, and then has `layers` in its output.
        batch: What the network gets in training or use.
        limits: From where on a number is called a problem.

    Examples:
        >>> report = inspect(create_model("dr_capsnet_minimal"), torch.rand(16, 1, 28, 28))
        >>> [(layer.children, layer.parents) for layer in report.layers]
        [(36, 10)]
    """
    limits = Limits() if limits is None else limits
    if not isinstance(model, nn.Module) or not isinstance(batch, Tensor):
        got = f"a {type(model).__name__} and a {type(batch).__name__}"
        raise UserError(f"a network is inspected on a tensor of images: inspect(model, images); got {got}")
    if not len(batch):
        raise UserError("there are no images to inspect")
    with torch.no_grad(), evaluating(model):
        traces = _routed_layers(model, batch)
        layers = tuple(measure_layer(trace, number, limits) for number, trace in enumerate(traces))
    return HealthReport(layers, tuple(find_problems(layers, len(batch), limits)), len(batch), limits)


def _routed_layers(model: nn.Module, batch: Tensor) -> tuple[LayerTrace, ...]:
    wanted = (
        "a network is inspected by the routed layers in its output, such as "
        "CapsuleOutput(activations, poses, layers=(LayerTrace(children, routed),))"
    )
    try:
        output = model(batch, return_routing=True)
    except TypeError as error:
        if "unexpected keyword argument 'return_routing'" not in str(error):
            raise
        raise UserError(
            f"{wanted}; the forward of {type(model).__name__} takes no return_routing=True that asks for them"
        ) from error
    if not hasattr(output, "layers"):
        raise UserError(f"{wanted}; this one returns a {type(output).__name__}")
    return output.layers


def watch_health(model: nn.Module, batch: Float[Tensor, "batch channels height width"]) -> dict[str, Any]:
    """What a training loop records after an epoch: numbers under "health", sentences under "findings".

    Either is left out where it would be empty; a network without routed layers has neither.
    """
    report = inspect(model, batch)
    if not report.layers:
        return {}
    noted = {"health": report.summary(), "findings": list(report.findings)}
    return {name: value for name, value in noted.items() if value}


def measure_layer(trace: LayerTrace, number: int, limits: Limits) -> LayerHealth:
    """The numbers of one routed layer, read from the device once."""
    if trace.routed.coupling is None:
        raise UserError(f"routed layer {number} kept no couplings: was return_routing=True passed on to it?")
    children, parents = (
        rearrange(activations, "b ... c -> b (...) c").float()
        for activations in (trace.children.activations, trace.routed.activations)
    )
    shares = parent_shares(trace.routed.coupling.float())
    mass = shares.flatten(0, -2).mean(0)
    numbers = {
        "dead_children": children.amax((0, 1)).lt(limits.dead).float().mean(),
        "dead_parents": parents.amax((0, 1)).lt(limits.dead).float().mean(),
        "starved_parents": mass.lt(limits.starved / mass.numel()).float().mean(),
        "largest_share": mass.max(),
        "from_uniform": distance_from_uniform(shares),
        "tree": _tree_likeness(shares),
        "diversity": parents.std(0, unbiased=False).max(),
    }
    ranges = [level for each in (children, parents) for level in (each.mean(), each.min(), each.max())]
    found: list[float] = torch.stack([*numbers.values(), *ranges]).tolist()
    return LayerHealth(
        layer=number,
        children=children.shape[-1],
        parents=parents.shape[-1],
        positions=parents.shape[1],
        **dict(zip(numbers, found, strict=False)),  # the ranges follow
        child_activations=ActivationRange(*found[-6:-3]),
        activations=ActivationRange(*found[-3:]),
    )


def parent_shares(
    coupling: Float[Tensor, "*where in_caps out_caps"],
) -> Float[Tensor, "*where in_caps out_caps"]:
    """Couplings as a split of each child over the parents at one position.

    Some routings split over positions too, leave a rest for no parent, or add a learned prior that may be
    negative; a child that gives nothing counts as undecided.
    """
    given = coupling.clamp(min=0)
    total = given.sum(-1, keepdim=True)
    return torch.where(total > 0, given / total, torch.full_like(given, 1 / coupling.shape[-1]))


def distance_from_uniform(shares: Float[Tensor, "*where in_caps out_caps"]) -> Float[Tensor, ""]:
    """Mean share that would have to move for an even split: 0 is even, 1 gives all to one parent.

    A layer with one parent leaves no choice and has 0.
    """
    parents = shares.shape[-1]
    if parents == 1:
        return shares.new_zeros(())
    return (shares - 1 / parents).abs().sum(-1).mean() / (2 * (1 - 1 / parents))


def _tree_likeness(shares: Tensor) -> Tensor:
    """1 - mean entropy / ln parents: 1 where each child has one parent (Peer 2019)."""
    parents = shares.shape[-1]
    if parents == 1:
        return shares.new_zeros(())
    return (1 - torch.special.entr(shares).sum(-1).mean() / math.log(parents)).clamp(min=0)  # rounding


def _cells(layer: LayerHealth) -> list[str]:
    values = asdict(layer) | asdict(layer.activations)
    texts = {
        name: f"{values[name]:,}" if isinstance(values[name], int) else f"{values[name]:.3g}"
        for name in _COLUMNS
    }
    texts |= {name: f"{values[name]:.0%}" for name in ("dead_children", "dead_parents", "starved_parents")}
    if layer.positions > 1:
        texts["parents"] += f" x {layer.positions}"
    return [texts[name] for name in _COLUMNS]
