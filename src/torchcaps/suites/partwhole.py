"""PartWhole: accuracy over clutter, and what is true of the images against what the network makes of them."""

from __future__ import annotations

from dataclasses import replace

from torchcaps.core import UserError
from torchcaps.data import PartWhole, draw_partwhole, partwhole_settings
from torchcaps.train import Run

from .api import SUITES, Material, Measurement, accuracy_on
from .ground_truth import measure_truth

_CLUTTER = (0.0, 0.25, 0.5, 0.75, 1.0)
MOST_IMAGES = 2000


def draw_test_images(run: Run, limit: int | None = None, clutter: float | None = None) -> PartWhole:
    """At most `limit` test images with their truth as the run saw them, or with other clutter."""
    settings = partwhole_settings(run.recipe.data.name)
    _, height, _ = run.model.image_shape
    design = replace(settings, size=height).design
    if clutter is not None:
        design = replace(design, clutter=clutter)
    count = min(limit or MOST_IMAGES, settings.test)
    return draw_partwhole(count, design, seed=settings.seed_of("test"), device=run.device)


@SUITES.register("partwhole")
def measure_partwhole(material: Material) -> list[Measurement]:
    """Accuracy at five strengths of clutter; trees, maps and poses at the strength of training."""
    if material.family != "partwhole":
        raise UserError(
            f"{material.run.folder} was trained on {material.run.recipe.data.name}; the partwhole suite "
            "needs a run on partwhole, whose parts are known"
        )
    found = []
    for clutter in _CLUTTER:
        drawn = draw_test_images(material.run, material.limit, clutter)
        metrics = accuracy_on(material, drawn.images, drawn.labels)
        found.append(Measurement("clutter", f"{clutter:g}", metrics))
    own = draw_test_images(material.run, material.limit)
    metrics = accuracy_on(material, own.images, own.labels)
    metrics |= measure_truth(material.run.model, own, material.pipeline)
    return [*found, Measurement("ground truth", "as trained", metrics)]
