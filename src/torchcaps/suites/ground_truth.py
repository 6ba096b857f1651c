"""What a capsule network does on PartWhole, measured against what is true of each image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isnan, nan

import torch
from torch import Tensor

from torchcaps.core import Better, CapsuleOutput, LayerTrace, Metric, UserError, evaluating, register_metrics
from torchcaps.data import PartWhole, inverse_map, warp
from torchcaps.models import Network
from torchcaps.parse import (
    Regions,
    contribution_maps,
    contribution_obstacle,
    contributions,
    evened,
    find_regions,
    fully_connected,
    quantizable_routings,
    through_layers,
)
from torchcaps.parse.truth import (
    Trees,
    compare_trees,
    equivariance_error,
    evidence_shares,
    owners_in_regions,
    part_purity,
)
from torchcaps.train import Pipeline

_BATCH = 100  # couplings of a convolutional layer may take 21 MB an image
_MOST_TREES = 200  # images whose trees are compared
_TURN = 15.0  # degrees of the known transformation


def _share(name: str, title: str, better: Better = "neither") -> Metric:
    return Metric(name, title, better, "%", 100.0)


register_metrics(
    _share("saliency_on_object", "saliency on the object", "higher"),
    _share("saliency_on_clutter", "saliency on clutter", "lower"),
    _share("contribution_on_object", "contributions on the object", "higher"),
    _share("contribution_on_clutter", "contributions on clutter", "lower"),
    _share("even_on_object", "even map on the object"),
    _share("even_on_clutter", "even map on clutter"),
    _share("part_purity", "part purity", "higher"),
    _share("part_purity_base", "part purity of one cluster"),
    _share("tree_precision", "precision of carved edges", "higher"),
    _share("tree_recall", "recall of true edges", "higher"),
    _share("even_tree_precision", "precision, even-split tree"),
    _share("even_tree_recall", "recall, even-split tree"),
    _share("random_tree_precision", "precision, random tree"),
    _share("random_tree_recall", "recall, random tree"),
    Metric("equivariance_error", "equivariance error", "lower", digits=3),
)


@dataclass
class _Found:
    """What is collected over batches."""

    maps: dict[str, list[Tensor]] = field(default_factory=dict)
    activations: list[Tensor] = field(default_factory=list)
    owners: list[Tensor] = field(default_factory=list)
    trees: list[Trees] = field(default_factory=list)
    types: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))


def measure_truth(network: Network, drawn: PartWhole, pipeline: Pipeline) -> dict[str, float]:
    """Every metric that the network has: those of trees and maps need capsules with places on the image.

    Args:
        network: On the device of the images.
        drawn: Images of the size of the network, with their truth.
        pipeline: Prepares images as in training; it must not move pixels.
    """
    metrics = {**_even_accuracy(network, drawn, pipeline), **_equivariance(network, drawn, pipeline)}
    found = _collect(network, drawn, pipeline)
    return metrics if found is None else metrics | _summary(found, drawn)


def _outputs(network: Network, inputs: Tensor, *, routing: bool = False) -> CapsuleOutput:
    with torch.no_grad(), evaluating(network):
        return network(inputs, return_routing=routing)


def _even_accuracy(network: Network, drawn: PartWhole, pipeline: Pipeline) -> dict[str, float]:
    try:
        quantizable_routings(network)
    except UserError:
        return {}
    right = 0
    with evened(network):
        for part, labels in _batches(drawn):
            inputs = pipeline.for_evaluation(part).inputs
            right += int((_outputs(network, inputs).activations.argmax(1) == labels).sum())
    return {"accuracy_with_even": right / len(drawn)}


def _batches(drawn: PartWhole) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(torch.split(drawn.images, _BATCH), torch.split(drawn.labels, _BATCH), strict=True)


def _equivariance(network: Network, drawn: PartWhole, pipeline: Pipeline) -> dict[str, float]:
    """How well the pose of the true class after a turn of the image follows from the one before."""
    before: list[Tensor] = []
    after: list[Tensor] = []
    for part, labels in _batches(drawn):
        angle = torch.full((len(part),), _TURN, device=part.device)
        zero, one = torch.zeros_like(angle), torch.ones_like(angle)
        inverse = inverse_map(angle, zero, one[:, None].expand(-1, 2), one)
        turned = warp(part.float() / 255, inverse, torch.stack([zero, zero], dim=1))
        for images, poses in ((part, before), ((turned * 255).round().byte(), after)):
            found = _outputs(network, pipeline.for_evaluation(images).inputs).poses
            poses.append(found[torch.arange(len(labels), device=labels.device), labels])
    if before[0].shape[1] < 2:  # a logit is no pose
        return {}
    try:
        return {"equivariance_error": equivariance_error(torch.cat(before), torch.cat(after), drawn.labels)}
    except UserError:  # too few images of each class
        return {}


def _collect(network: Network, drawn: PartWhole, pipeline: Pipeline) -> _Found | None:
    """What maps and trees say; None where the capsules have no place on the image."""
    found = _Found()
    for start in range(0, len(drawn), _BATCH):
        inputs = pipeline.for_evaluation(drawn.images[start : start + _BATCH]).inputs
        regions = find_regions(network, inputs)
        if regions is None:
            return None
        output = _outputs(network, inputs, routing=True)
        layers = fully_connected(output.layers)
        owners = owners_in_regions(drawn.owners[start : start + _BATCH], regions)
        for name, placed in _maps(network, output, regions, drawn.owners).items():
            found.maps.setdefault(name, []).append(placed)
        found.activations.append(layers[0].children.activations.flatten(1))
        found.owners.append(owners)
        found.types = regions.types
        found.trees += _compare(layers, owners[: max(0, _MOST_TREES - start)], drawn, start)
    return found


def _maps(network: Network, output: CapsuleOutput, regions: Regions, like: Tensor) -> dict[str, Tensor]:
    """The maps of one batch on images of the size of `like`."""
    layers, chosen = fully_connected(output.layers), output.activations.argmax(1)
    size = (like.shape[1], like.shape[2])
    children, routed = through_layers(layers)
    assert routed.coupling is not None
    to_chosen = routed.coupling[torch.arange(len(chosen), device=chosen.device), :, chosen]
    maps = {"saliency": regions.on_image(children.activations.flatten(1) * to_chosen, size)}
    if contribution_obstacle(network) is None and len(layers) == 1 and regions.shares is None:
        parts = contribution_maps(contributions(network, layers[0], chosen).parts, regions.maps)
        maps["contribution"] = regions.place(parts, size)
    maps["even"] = regions.flat(maps["saliency"])
    return maps


def _compare(layers: tuple[LayerTrace, ...], owners: Tensor, drawn: PartWhole, start: int) -> list[Trees]:
    """The trees of the images of one batch, the first of which has the number `start`."""
    return [
        compare_trees(layers, sample, looked_at, drawn.tree, seed=start)
        for sample, looked_at in enumerate(owners)
    ]


def _summary(found: _Found, drawn: PartWhole) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for name, parts in found.maps.items():
        shares = evidence_shares(torch.cat(parts), drawn.is_object, drawn.is_clutter)
        metrics |= {f"{name}_on_object": shares.on_object, f"{name}_on_clutter": shares.on_clutter}
    purity = part_purity(
        torch.cat(found.activations), torch.cat(found.owners), found.types, drawn.tree.num_parts
    )
    metrics |= {"part_purity": purity.purity, "part_purity_base": purity.base}
    for kind, prefix in (("carved", ""), ("even", "even_"), ("random", "random_")):
        those = [getattr(trees, kind) for trees in found.trees]
        # a tree may have no edge
        precisions = [each.precision for each in those if not isnan(each.precision)]
        metrics[f"{prefix}tree_precision"] = sum(precisions) / len(precisions) if precisions else nan
        metrics[f"{prefix}tree_recall"] = sum(each.recall for each in those) / len(those)
    return metrics
