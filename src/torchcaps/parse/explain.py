"""What a network says of one image: its class, by which parse tree, from where, and how usual that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

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
from .places import CapsuleMap, capsule_maps, contribution_on_image, evidence_on_image, fully_connected
from .quantize import Levels, quantized
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


@dataclass(frozen=True)
class Explanation:
    """All that is said of one image."""

    source: Source
    shown: Tensor  # (channels, height, width) in [0, 1]
    activations: Tensor  # (classes,), of the network as it is
    tree: ParseTree  # of the quantized network
    maps: tuple[CapsuleMap, ...]
    evidence: Tensor | None  # (height, width); None where capsules have no place on the image
    contributions: Contributions | None  # of this one image; None where class capsules are no sums of votes
    contribution: Tensor | None  # (height, width); None without either
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
            "saliency": None if self.evidence is None else self.evidence.tolist(),
            "contribution": None if self.contribution is None else self.contribution.tolist(),
            "contribution_against": None if self.contributions is None else float(self.contributions.against),
            "tree": asdict(self.tree),
        }


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
        plain = network(inputs)
        with quantized(network, self.levels):
            output: CapsuleOutput = network(inputs, return_routing=True)
        layers = fully_connected(output.layers)
        maps = capsule_maps(network, layers[0].children.activations.flatten(1).shape[1])
        tree = parse_tree(layers, grid=maps[0].grid if len(maps) == 1 else None)
        chosen = output.activations.argmax(1)
        places = maps if len(layers) == 1 else ()
        size = (shown.shape[-2], shown.shape[-1])
        parts = self._contributions(layers[-1], chosen)
        decoder = getattr(network, "decoder", None)
        return Explanation(
            source=source,
            shown=shown[0].cpu(),
            activations=plain.activations[0].float().cpu(),
            tree=tree,
            maps=maps,
            evidence=evidence_on_image(layers[-1], chosen, places, size)[0].cpu() if places else None,
            contributions=parts,
            contribution=contribution_on_image(parts.parts, places, size)[0] if parts and places else None,
            perturbed=None if decoder is None else perturb_capsule(decoder, output.poses, chosen).cpu(),
            usual=self._compare(output),
        )

    def _contributions(self, trace: LayerTrace, chosen: Tensor) -> Contributions | None:
        if contribution_obstacle(self.run.model) is not None:
            return None
        return Contributions(*(field.float().cpu() for field in contributions(self.run.model, trace, chosen)))

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
