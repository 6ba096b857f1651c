"""Explanations of single images by a trained run, with its own data to compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchcaps.core import CapsuleOutput, LayerTrace, MissingDataError, UserError
from torchcaps.data import LabelledImages
from torchcaps.data.folders import raise_all
from torchcaps.train import NumberedImages, Pipeline, Run, is_numbered, load_labelled
from torchcaps.zoo import hint_for, read_photo

from ..contribution import Contributions, contribution_obstacle, contributions
from ..dictionary import KeyCollector
from ..explanation import Explanation, Heat, Source, Usual
from ..perturb import perturb_capsule
from ..places import (
    CapsuleMap,
    capsule_maps,
    contribution_maps,
    evidence_maps,
    fully_connected,
    place_maps,
    through_layers,
)
from ..quantize import Levels, levels_of_classes, quantized
from ..saliency import map_peaks
from ..tree import parse_tree
from ..typicality import TreeModel, learn_trees, share_below
from .analyse import collect_keys, some_images


class Explainer:
    """A run with quantized couplings, and the trees of its own data to compare with.

    Args:
        run: The trained network; it stays on its device.
        levels: As in `torchcaps.parse.quantized`.
        reference: Training images whose trees count as known; as many validation images are compared with.
        data_dir: Where the datasets of the run lie.
    """

    def __init__(
        self, run: Run, *, levels: Levels = "even", reference: int = 2000, data_dir: Path | None = None
    ) -> None:
        run.expect_task("classification")
        self.run, self.levels, self.reference, self.data_dir = run, levels, reference, data_dir
        self.device = run.device
        self.info = run.info(data_dir)
        self.pipeline = Pipeline(run.recipe.data, self.info)
        self._splits: dict[str, LabelledImages] = {}
        self._own = NumberedImages(self._split)

    def read(self, name: str) -> Source:
        """An image file, or `test:17` for an image of the run's own data."""
        if not is_numbered(name):
            photo = read_photo(self.run, Path(name), self.info)
            return Source(name, photo.image.to(self.device), preparation=photo.preparation)
        data, index = self._own.find(name)
        assert isinstance(data, LabelledImages)
        return Source(name, data.images[index : index + 1], int(data.labels[index]))

    def read_all(
        self, names: Sequence[str], on_unreadable: Callable[[str, UserError], None] | None = None
    ) -> list[Source]:
        """All images, as `read` reads one.

        Those that cannot be read are told to `on_unreadable` and left out; without it one error names all.
        """
        sources, errors = [], []
        for name in names:
            try:
                sources.append(self.read(name))
            except UserError as error:
                if on_unreadable is None:
                    errors.append(error)
                else:
                    on_unreadable(name, error)
        if len(errors) == 1:
            raise errors[0]
        raise_all([str(error) for error in errors])
        return sources

    def _split(self, name: str) -> LabelledImages:
        if name not in self._splits:
            self._splits[name], _ = load_labelled(self.run, name, data_dir=self.data_dir)
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
        shown, inputs, _ = self.pipeline.for_evaluation(source.image)
        plain, output = self._answers(source, inputs)
        layers, maps = fully_connected(output.layers), capsule_maps(self.run.model)
        tree = parse_tree(
            layers,
            grid=maps[0].grid if len(maps) == 1 else None,
            unquantized=fully_connected(plain.layers),
        )
        chosen = output.activations.argmax(1)
        size = (shown.shape[-2], shown.shape[-1])
        obstacle = contribution_obstacle(self.run.model)
        parts = None if obstacle else self._contributions(layers[-1], chosen)
        votes_have_places = bool(maps) and len(layers) == 1
        return Explanation(
            source=source,
            shown=shown[0].cpu(),
            activations=plain.activations[0].float().cpu(),
            tree=tree,
            maps=maps,
            evidence=_heat(evidence_maps(through_layers(layers), chosen, maps), maps, size) if maps else None,
            contributions=parts,
            contribution=_heat(contribution_maps(parts.parts, maps), maps, size)
            if parts is not None and votes_have_places
            else None,
            contribution_obstacle=obstacle,
            perturbed=self._perturb(source, output.poses, chosen),
            usual=self._compare(output),
            hint=hint_for(self.run, source.image, self.info) if source.preparation is not None else "",
        )

    def _answers(self, source: Source, inputs: Tensor) -> tuple[CapsuleOutput, CapsuleOutput]:
        """What the network says as it is, and with quantized couplings; only finite numbers are answers."""
        network = self.run.model
        plain: CapsuleOutput = network(inputs, return_routing=True)
        _check_finite(source, plain.activations, plain.poses)
        with quantized(network, self.levels):
            output: CapsuleOutput = network(inputs, return_routing=True)
        children = [trace.children.activations for trace in fully_connected(output.layers)]
        _check_finite(source, output.activations, output.poses, *children)
        return plain, output

    def _contributions(self, trace: LayerTrace, chosen: Tensor) -> Contributions:
        return Contributions(*(field.float().cpu() for field in contributions(self.run.model, trace, chosen)))

    def _perturb(self, source: Source, poses: Tensor, chosen: Tensor) -> Tensor | None:
        decoder = self.run.model.decoder
        if decoder is None:
            return None
        perturbed = perturb_capsule(decoder, poses, chosen).cpu()
        _check_finite(source, perturbed)
        return perturbed.clamp(0, 1)  # a decoder that ends in a rectifier may draw beyond white

    def _compare(self, output: CapsuleOutput) -> Usual | None:
        try:
            model, predicted, surprise = self._known
        except MissingDataError:  # the run may be on a machine without its data
            return None
        classes = output.activations.shape[1]
        collector = KeyCollector(levels_of_classes(self.levels, classes), classes)
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
            share=share_below(score, others) if len(others) else None,
            others=others,
        )


def _check_finite(source: Source, *values: Tensor) -> None:
    """Raise where values are not finite: a drawing of them would mean nothing."""
    if not all(bool(value.isfinite().all()) for value in values):
        raise UserError(
            f"{source.name}: the network answers with numbers that are not finite, so there is nothing to "
            "explain; its weights have probably diverged in training"
        )


def _heat(found: list[Tensor], places: Sequence[CapsuleMap], size: tuple[int, int]) -> Heat:
    of_capsules = torch.cat([each.flatten(1) for each in found], dim=1)
    return Heat(place_maps(found, places, size)[0].cpu(), float(map_peaks(of_capsules)))
