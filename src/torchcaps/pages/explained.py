"""One image explained from Python: shown in a notebook, saved as a page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from PIL import Image
from torch import Tensor, nn

from torchcaps.core import UserError, evaluating
from torchcaps.data import Preprocess
from torchcaps.models import MODELS, Network
from torchcaps.parse import Explainer, Explanation, Levels, Source
from torchcaps.train import Data, DataCard, Recipe, Run, load_run
from torchcaps.viz import Report
from torchcaps.zoo import find_run, read_photo

from .image_page import build_page, draw_all


@dataclass(frozen=True, repr=False)
class Explained:
    """What `explain` found; a notebook shows its page."""

    explanation: Explanation
    classes: Sequence[str]
    page: Report

    @property
    def predicted(self) -> str:
        """The class with the largest activation."""
        return self.classes[int(self.explanation.activations.argmax())]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, one HTML file that needs no other."""
        return self.page.save(path)

    def __repr__(self) -> str:
        activation = float(self.explanation.activations.max())
        tree = self.explanation.tree
        return (
            f"Explained({self.explanation.source.name}: {self.predicted}, activation {activation:.3f}, "
            f"{tree.capsules_in_tree[0]:,} of {tree.layer_sizes[0]:,} capsules in the tree)"
        )

    def _repr_html_(self) -> str:
        page = escape(self.page.to_html())
        return f'<iframe srcdoc="{page}" style="width:100%;height:800px;border:0"></iframe>'


def explain(
    source: Run | Network | str | os.PathLike[str],
    image: Tensor | Image.Image | str | os.PathLike[str],
    *,
    classes: Sequence[str] | None = None,
    levels: Levels | None = None,
) -> Explained:
    """Explain what a network reads in an image: the parse tree, where it looked, how typical that is.

    Args:
        source: A run or its folder, a pretrained network by its name, or a network. For a network, images go
            in as they are, scaled to [0, 1], and nothing is known of typical trees.
        image: A file, `test:17` for an image of a run's data, a picture, or a tensor (channels, height,
            width) of bytes or of numbers in [0, 1].
        classes: Names for the classes of a network; a run has its own.
        levels: Levels of quantized couplings, as in `torchcaps.parse.quantized`.

    Examples:
        >>> found = explain("runs/mine", "photo.jpg")
        >>> path = found.save("photo.html")
    """
    run = _run_of(source, classes)
    explainer = Explainer(run) if levels is None else Explainer(run, levels=levels)
    with evaluating(run.model):  # a network may be given in the middle of its training
        found = explainer.explain(_read(explainer, image))
    names = explainer.info.classes
    return Explained(found, names, build_page(found, names, draw_all(found, names)))


def _read(explainer: Explainer, image: Tensor | Image.Image | str | os.PathLike[str]) -> Source:
    if isinstance(image, str | os.PathLike):
        return explainer.read(str(image))
    preparation = None
    if isinstance(image, Image.Image):
        image, preparation = read_photo(explainer.run, image, explainer.info)
    if not isinstance(image, Tensor):
        raise UserError(
            "an image file, a picture or a tensor (channels, height, width) is explained, got a "
            f"{type(image).__name__}"
        )
    if image.ndim not in (3, 4) or (image.ndim == 4 and len(image) != 1):
        advice = "; choose one, as images[0]" if image.ndim == 4 else ""
        raise UserError(f"one image (channels, height, width) is explained, got {tuple(image.shape)}{advice}")
    shaped = image.reshape(1, *image.shape[-3:]).to(explainer.device)
    return Source("image", shaped, preparation=preparation)


def _run_of(source: Run | Network | str | os.PathLike[str], classes: Sequence[str] | None) -> Run:
    if isinstance(source, Run):
        return source
    if isinstance(source, nn.Module):
        return _run_around(source, classes)
    return load_run(find_run(source))


def _run_around(network: Network, classes: Sequence[str] | None) -> Run:
    """A run of a network that was not trained from a recipe: its data is not known."""
    registered = [name for name in MODELS.names() if MODELS[name].build is type(network)]
    if not registered or MODELS[registered[0]].task != "classification":
        raise UserError(f"{type(network).__name__} is not a registered network that classifies images")
    count = network.config.num_classes
    names = tuple(classes) if classes is not None else tuple(map(str, range(count)))
    if len(names) != count:
        raise UserError(f"the network has {count} classes, but {len(names)} names were given")
    channels, height, width = network.image_shape
    return Run(
        folder=Path(),
        recipe=Recipe(
            model={"name": registered[0]},
            data=Data(name="folder:", preprocess=Preprocess(normalize="none")),
            epochs=1,
        ),
        model=network,
        epoch=-1,
        card=DataCard(
            classes=names,
            mean=(0.0,) * channels,
            std=(1.0,) * channels,
            channels=channels,
            height=height,
            width=width,
            fit="crop",
        ),
    )
