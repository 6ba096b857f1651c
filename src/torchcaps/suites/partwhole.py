"""PartWhole: accuracy over clutter, and what is true of the images against what the network makes of them."""

from __future__ import annotations

from dataclasses import replace

from torchcaps.core import UserError, sides
from torchcaps.data import PartWhole, draw_partwhole, partwhole_settings
from torchcaps.train import Run

from .api import SUITES, Material, Measurement, accuracy_on
from .ground_truth import measure_truth

_CLUTTER = (0.0, 0.25, 0.5, 0.75, 1.0)
MOST_IMAGES = 2000


def draw_test_images(run: Run, limit: int | None = None, clutter: float | None = None) -> PartWhole:
    """At most `limit` test images with their truth as the run saw them, or with other clutter."""
    settings = partwhole_settings(run.recipe.data.name)
    _, height, width = run.model.image_shape
    _refuse_moved_pixels(run, (height, width))
    design = replace(settings, size=height).design
    if clutter is not None:
        design = replace(design, clutter=clutter)
    count = min(limit or MOST_IMAGES, settings.test)
    return draw_partwhole(count, design, seed=settings.seed_of("test"), device=run.device)


def _refuse_moved_pixels(run: Run, size: tuple[int, int]) -> None:
    """The truth is known of images as they are drawn, at the size of the network."""
    settings = run.recipe.data.preprocess
    named = {"resize": settings.resize, "center_crop": settings.center_crop}
    moved = [name for name, value in named.items() if sides(value) not in ((0, 0), size)]
    if moved := [*moved, *(["pad"] if settings.pad else [])]:
        raise UserError(
            f"{run.folder} moves pixels before its network sees them (data.preprocess.{moved[0]}), so parts "
            "are not where the truth has them; train it without: partwhole is drawn at the network's size"
        )


@SUITES.register("partwhole")
def measure_partwhole(material: Material) -> list[Measurement]:
    """Accuracy at five strengths of clutter; trees, maps and poses at the strength of training."""
    data_name = material.run.recipe.data.name
    if data_name.partition(":")[0] != "partwhole":
        raise UserError(
            f"{material.run.folder} was trained on {data_name}; the partwhole suite needs a run on "
            "partwhole, whose parts are known"
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
