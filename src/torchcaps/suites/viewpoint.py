"""Familiar against novel viewpoints of objects that were not trained on."""

from __future__ import annotations

from torchcaps.core import UserError
from torchcaps.parse import some_images
from torchcaps.train import load_labelled

from .api import SUITES, Material, Measurement, accuracy_on

_AXES = ("axis=azimuth", "axis=elevation")


def views_of(name: str) -> dict[str, str]:
    """The dataset of that name with its familiar and with its novel test images."""
    family, _, text = name.partition(":")
    kept = [part for part in text.split(",") if part and not part.startswith("views=")]
    return {views: f"{family}:{','.join([*kept, f'views={views}'])}" for views in ("familiar", "novel")}


def has_novel_views(name: str) -> bool:
    """Whether a dataset trains on some views and can test on others; by default ETH-80 trains on all."""
    family, _, text = name.partition(":")
    return family == "smallnorb_views" or (family == "eth80" and any(axis in text for axis in _AXES))


@SUITES.register("viewpoint")
def measure_viewpoint(material: Material) -> list[Measurement]:
    """Accuracy on the views of training and on the others."""
    name = material.run.recipe.data.name
    if not has_novel_views(name):
        raise UserError(
            f"{material.run.folder} was trained on {name}, which has no novel views; the viewpoint suite "
            "needs a run on eth80:axis=azimuth, eth80:axis=elevation or smallnorb_views"
        )
    found = []
    for views, other in views_of(name).items():
        data, _ = load_labelled(material.run, "test", data_name=other, data_dir=material.data_dir)
        data = some_images(data, material.limit)
        found.append(Measurement("views", views, accuracy_on(material, data.images, data.labels)))
    return found
