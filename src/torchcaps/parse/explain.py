"""What a network says of one image: its class, by which parse tree, from where, and how usual that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchcaps.core.errors import MissingDataError, UserError
from torchcaps.core.types import CapsuleOutput, LayerTrace
from torchcaps.data import LabelledImages
from torchcaps.train import Pipeline, Run, load_split, read_image

from .analyse import collect_keys, some_images
from .contribution import Contributions, contribution_obstacle, contributions
from .dictionary import KeyCollector
from .perturb import perturb_capsule
from .places import (
    CapsuleMap,
    capsule_maps,
    contribution_maps,
    evidence_maps,
    fully_connected,
    place_maps,
)
from .quantize import Levels, quantized
from .saliency import map_peaks
from .tree import ParseTree, parse_tree
from .typicality import TreeModel, learn_trees, share_at_most

SPLITS = ("test", "validation", "train")


@dataclass(frozen=True)
class Source:
    """An image to explain: bytes (1, channels, height, width), what to call it, and its class if known."""

    name: str
    image: Tensor
    label: int | None = None


@dataclass(frozen=True)
class Usual:
    """How a tree compares with those of validation images that were read as the same class."""

    surprise: float  # bits, children one by one
    key_surprise: float  # bits, the whole tree
    share: float | None  # of the others that are no more surprising; None where there are none
    others: NDArray[np.float64]

    def as_json(self) -> dict[str, Any]:
        """Plain numbers; None for infinite surprise, of a class that no training image was read as."""
        bits = {"surprise_bits": self.surprise, "key_surprise_bits": self.key_surprise}
        return {
            **{name: value if np.isfinite(value) else None for name, value in bits.items()},
            "share_no_more_surprising": self.share,
            "compared_with": len(self.others),
        }


class Heat(NamedTuple):
    """A map on the image, and how much its strongest capsules exceed the mean ones."""

    image: Tensor  # (height, width)
    peak: float  # as `map_peaks` has it; 0 where there is nothing on the map


@dataclass(frozen=True)
class Explanation:
    """All that is said of one image."""

    source: Source
    shown: Tensor  # (channels, height, width) in [0, 1]
    activations: Tensor  # (classes,), of the network as it is
    tree: ParseTree  # of the quantized network, with the class activations of the network as it is
    maps: tuple[CapsuleMap, ...]
    evidence: Heat | None  # None where capsules have no place on the image
    contributions: Contributions | None  # of this one image; None where class capsules are no sums of votes
    contribution: Heat | None  # None without either
    contribution_obstacle: str | None  # why there are no contributions
    perturbed: Tensor | None  # None where the network has no decoder
    usual: Usual | None  # None where the data of the run is not at hand

    def as_json(self, classes: Sequence[str]) -> dict[str, Any]:
        """Plain data: what the drawings are made of."""
        winner = int(self.activations.argmax())
        values = self.activations.tolist()
        return {
            "image": self.source.name,
            "class": classes[winner],
            "quantized_class": classes[self.tree.chosen],
            "label": None if self.source.label is None else classes[self.source.label],
            "activation": values[winner],
            "activations": dict(zip(classes, values, strict=True)),
            "typicality": None if self.usual is None else self.usual.as_json(),
            "has_decoder": self.perturbed is not None,
            **_heat_as_json("saliency", self.evidence),
            **_heat_as_json("contribution", self.contribution),
            "contribution_against": None if self.contributions is None else float(self.contributions.against),
            "contribution_obstacle": self.contribution_obstacle,
            "tree": asdict(self.tree),
        }


def _heat_as_json(name: str, heat: Heat | None) -> dict[str, Any]:
    if heat is None:
        return {name: None, f"{name}_peak": None}
    return {name: heat.image.tolist(), f"{name}_peak": heat.peak}


class Explainer:
    """A run with quantized couplings, and the trees of its own data to compare with.

    Args:
        run: The trained network; it stays on its device.
        levels: As in `torchcaps.parse.quantized`.
        reference: Training images whose trees count as known; as many validation images are compared with.
        data_dir: Where the datasets of the run lie.
    """

    def __init__(
        self, run: Run, *, levels: Levels = 11, reference: int = 2000, data_dir: Path | None = None
    ) -> None:
        self.run, self.levels, self.reference, self.data_dir = run, levels, reference, data_dir
        self.device = next(run.model.parameters()).device
        self.info = run.info(data_dir)
        self.pipeline = Pipeline(run.recipe.data, self.info)
        self._splits: dict[str, LabelledImages] = {}

    def read(self, name: str) -> Source:
        """An image file, or `test:17` for an image of the run's own data."""
        split, colon, number = name.partition(":")
        if not colon or split not in SPLITS or Path(name).exists():
            return Source(name, read_image(Path(name), self.info).to(self.device))
        data = self._split(split)
        if not number.isdecimal() or int(number) >= len(data):
            raise UserError(f"{name}: the {split} split has images 0 to {len(data) - 1}")
        index = int(number)
        return Source(name, data.images[index : index + 1], int(data.labels[index]))

    def _split(self, name: str) -> LabelledImages:
        if name not in self._splits:
            self._splits[name], _ = load_split(self.run.recipe.data, name, self.data_dir, self.device)
        return self._splits[name]

    @cached_property
    def _known(self) -> tuple[TreeModel, NDArray[np.int64], NDArray[np.float64]]:
        """The trees of training images; predicted classes and surprise of validation images."""
        keys, others = (
            collect_keys(
                self.run.model,
                some_images(self._split(split), self.reference),
                self.pipeline,
                levels=self.levels,
            )
            for split in ("train", "validation")
        )
        model = learn_trees(keys)
        return model, others.predicted, model.child_surprise(others)

    @torch.no_grad()
    def explain(self, source: Source) -> Explanation:
        """Prediction, tree, saliency, perturbations and typicality of one image."""
        shown, inputs = self.pipeline.for_evaluation(source.image)
        network: Any = self.run.model
        plain: CapsuleOutput = network(inputs, return_routing=True)
        _check_finite(source, plain.activations, plain.poses)
        with quantized(network, self.levels):
            output: CapsuleOutput = network(inputs, return_routing=True)
        layers = fully_connected(output.layers)
        children = [trace.children.activations for trace in layers]
        _check_finite(source, output.activations, output.poses, *children)
        maps = capsule_maps(network, children[0].flatten(1).shape[1])
        tree = parse_tree(
            layers,
            grid=maps[0].grid if len(maps) == 1 else None,
            unquantized=fully_connected(plain.layers),
        )
        chosen = output.activations.argmax(1)
        places = maps if len(layers) == 1 else ()
        size = (shown.shape[-2], shown.shape[-1])
        obstacle = contribution_obstacle(network)
        parts = None if obstacle else self._contributions(layers[-1], chosen)
        return Explanation(
            source=source,
            shown=shown[0].cpu(),
            activations=plain.activations[0].float().cpu(),
            tree=tree,
            maps=maps,
            evidence=_heat(evidence_maps(layers[-1], chosen, places), places, size) if places else None,
            contributions=parts,
            contribution=None
            if parts is None or not places
            else _heat(contribution_maps(parts.parts, places), places, size),
            contribution_obstacle=obstacle,
            perturbed=self._perturb(source, output.poses, chosen),
            usual=self._compare(output),
        )

    def _contributions(self, trace: LayerTrace, chosen: Tensor) -> Contributions:
        return Contributions(*(field.float().cpu() for field in contributions(self.run.model, trace, chosen)))

    def _perturb(self, source: Source, poses: Tensor, chosen: Tensor) -> Tensor | None:
        decoder: Any = getattr(self.run.model, "decoder", None)
        if decoder is None:
            return None
        perturbed = perturb_capsule(decoder, poses, chosen).cpu()
        _check_finite(source, perturbed)
        return perturbed

    def _compare(self, output: CapsuleOutput) -> Usual | None:
        try:
            model, predicted, surprise = self._known
        except MissingDataError:  # a run may be used where its data is not
            return None
        last = self.levels if isinstance(self.levels, int) else self.levels[-1]
        collector = KeyCollector(last, output.activations.shape[1])
        coupling = output.layers[-1].routed.coupling
        assert coupling is not None
        collector.add(coupling, output.activations.argmax(1))
        keys = collector.keys()
        others = surprise[predicted == keys.predicted[0]]
        others = others[np.isfinite(others)]
        score = float(model.child_surprise(keys)[0])
        return Usual(
            surprise=score,
            key_surprise=float(model.key_surprise(keys)[0]),
            share=share_at_most(score, others) if len(others) else None,
            others=others,
        )


def _check_finite(source: Source, *values: Tensor) -> None:
    """Refuse what a broken network says: nothing that is drawn of it would mean anything."""
    if not all(bool(value.isfinite().all()) for value in values):
        raise UserError(
            f"{source.name}: the network answers with numbers that are not finite, so there is nothing to "
            "explain; its weights have probably diverged in training"
        )


def _heat(found: list[Tensor], places: Sequence[CapsuleMap], size: tuple[int, int]) -> Heat:
    of_capsules = torch.cat([each.flatten(1) for each in found], dim=1)
    return Heat(place_maps(found, places, size)[0].cpu(), float(map_peaks(of_capsules)))
