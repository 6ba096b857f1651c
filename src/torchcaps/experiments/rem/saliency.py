"""Chapter 6, REM: saliency maps without and with it, where they lie and how much the class needs them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from torchcaps.data import LabelledImages
from torchcaps.parse import (
    CapsuleMap,
    Levels,
    ReceptiveField,
    capsule_maps,
    contribution_map,
    contributions,
    fully_connected,
    map_peaks,
    place_heat,
    place_map,
    quantized,
    saliency_map,
    some_images,
    upsample_map,
)
from torchcaps.train import Pipeline
from torchcaps.viz import SaliencyPanel, draw_saliency, to_png

from ..plan import Claim, our_claim, register
from ..records import Details, Picture, Rows, Series
from . import claims
from .deletion import measure_deletion, random_maps
from .reuse import SHARED_RUNS, Metrics, Trained, look_again, reused
from .setting import TreeSetting
from .tables import MNIST_TABLE, OTHERS_TABLE, on_rem

_TABLES = (MNIST_TABLE, OTHERS_TABLE)
_BLACK = 0.1  # what is brighter belongs to the object, where the background is black
_MOST_DELETIONS = 2000  # test images, each looked at four times
_BATCH = 100  # votes of a convolutional layer that returns its couplings take 21 MB an image


class Maps(NamedTuple):
    """The evidence for the predicted class at each position below the classes, (images, rows, columns)."""

    saliency: Tensor  # the thesis's: activations times couplings
    contribution: Tensor
    where: CapsuleMap


@torch.no_grad()
def find_maps(network: nn.Module, data: LabelledImages, pipeline: Pipeline, *, levels: Levels) -> Maps:
    """Both maps of every image, in the quantized network."""
    saliency, contribution = [], []
    with quantized(network, levels):
        for part in torch.split(data.images, _BATCH):
            output = network(pipeline.for_evaluation(part).inputs, return_routing=True)
            layer = fully_connected(output.layers)[-1]
            activations = layer.children.activations.flatten(1)
            (where,) = capsule_maps(network)
            chosen = output.activations.argmax(1)
            coupling = layer.routed.coupling
            assert coupling is not None  # because return_routing is set
            saliency.append(saliency_map(activations, coupling, chosen, where.grid))
            parts = contributions(network, layer, chosen).parts
            contribution.append(contribution_map(parts, where.grid))
    return Maps(torch.cat(saliency), torch.cat(contribution), where)


def share_on_object(maps: Tensor, is_object: Tensor, where: CapsuleMap) -> float:
    """The part of the saliency that lies on objects, mean over images.

    Each capsule stands at the centre of what it sees, as `place_map` puts it: stretching a map over the
    whole image, as the thesis does, would move evidence outwards.
    """
    placed = place_map(maps, (is_object.shape[1], is_object.shape[2]), where.field)
    inside, whole = (placed * is_object).sum((1, 2)), placed.sum((1, 2))
    return float((inside[whole > 0] / whole[whole > 0]).mean())


def _field_series(field: ReceptiveField) -> Series:
    """The first centre, step and size; images are square, so rows and columns begin alike."""
    return np.array([field.first[0], field.step, field.size])


def _compare(trained: Trained) -> tuple[Metrics, Details]:
    """Where the evidence lies over all test images, and the maps of the first image of each class."""
    network, data, pipeline = trained.run.model, trained.data, trained.pipeline
    levels = trained.setting.levels
    found = find_maps(network, data, pipeline, levels=levels)
    metrics: Metrics = {"peak": float(map_peaks(found.saliency).mean())}
    if trained.run.recipe.data.name in claims.ON_BLACK:
        is_object = (pipeline.for_evaluation(data.images).images.mean(1) > _BLACK).float()
        metrics["on_object_share"] = share_on_object(found.saliency, is_object, found.where)
        metrics["even_map_share"] = share_on_object(torch.ones_like(found.saliency), is_object, found.where)
        metrics["area_share"] = float(is_object.mean())
    metrics |= deletions(network, some_images(data, _MOST_DELETIONS), pipeline, levels=levels)
    shown = [int((data.labels == number).int().argmax()) for number in range(len(data.classes))]
    images = pipeline.for_evaluation(data.images[shown]).images
    series: dict[str, Series] = {
        "field": _field_series(found.where.field),
        "maps": _relative(found.saliency[shown]),
        "contributions": _relative(found.contribution[shown]),
    }
    return metrics, Details(series=series, pictures={"images": Picture.pack(images)})


def deletions(
    network: nn.Module, data: LabelledImages, pipeline: Pipeline, *, levels: Levels
) -> dict[str, float]:
    """Points of activation lost when the places that saliency, contributions or chance name are blanked."""
    saliency, contribution, where = find_maps(network, data, pipeline, levels=levels)
    maps = {"saliency": saliency, "contribution": contribution, "random": random_maps(saliency)}
    falls = measure_deletion(network, data, pipeline, maps=maps, where=where, levels=levels)
    return {f"deletion_{name}": fall for name, fall in falls.items()}


def _relative(maps: Tensor) -> Series:
    relative = maps / maps.amax((1, 2), keepdim=True).clamp(min=1e-12)
    return relative.double().round(decimals=3).cpu().numpy()


def draw_pairs(rows: Rows) -> bytes:
    """For each dataset the images, and the first seed's maps without and with REM on them.

    Runs that were made before contributions were looked at have the thesis's maps alone, and do not say where
    capsules look: their maps are stretched over the image.
    """
    panels: dict[str, SaliencyPanel] = {}
    carrying = [row for row in rows if row.runs[0].details]  # the first of each setting
    for kind, key in (("saliency (thesis)", "maps"), ("contribution", "contributions")):
        for row in carrying:
            details, dataset = row.runs[0].details, row.network.partition(",")[0]
            images = details.pictures["images"].unpack()
            panel = panels.setdefault(dataset, SaliencyPanel(images, {}))
            if key in details.series:
                maps = torch.from_numpy(details.series[key]).float()
                words = f"{kind}\n{row.variant}\npeak {float(map_peaks(maps).mean()):.2f}"
                heat = _heat(maps, (images.shape[-2], images.shape[-1]), details.series.get("field"))
                panels[dataset] = panel._replace(maps={**panel.maps, words: heat})
    return to_png(draw_saliency(panels), scale=1)  # many pictures: twice the pixels are 3 MB


def _heat(maps: Tensor, size: tuple[int, int], field: Series | None) -> Tensor:
    """Maps on images, each capsule at the centre of what it sees where that is known."""
    if field is None:
        return upsample_map(maps, size)
    first, step, extent = field.tolist()
    return place_heat(maps, size, ReceptiveField((first, first), step, extent))


def _settings(dataset: str, network: str = "DR-CapsNet") -> list[TreeSetting]:
    settings = []
    for way in ("+Q", "+REM"):
        name = f"{dataset}, {network}{way}"
        of = name.removeprefix("MNIST, ")  # the table of MNIST does not name it
        settings.append(replace(reused(_TABLES, of), name=name, network=f"{dataset}, {network}"))
    return settings


register(
    on_rem(
        label="fig:saliency_maps",
        title="Saliency maps without and with REM",
        data=("mnist", "fashion_mnist", "cifar10", "imagenette"),
        gpu_minutes=0,  # on top of the tables'
        at_once=1,  # they share the tables' runs
        metrics=(
            *("on_object_share", "even_map_share", "area_share", "peak"),
            *("deletion_saliency", "deletion_contribution", "deletion_random"),
        ),
        perform=look_again(_compare, _TABLES),
        settings=(
            *_settings("MNIST"),
            *_settings("Fashion-MNIST"),
            *_settings("CIFAR-10"),
            *_settings("Imagenette", "Eff-ConvCapsNet"),
        ),
        draw=draw_pairs,
        claims=(
            Claim("With REM the network concentrates on the object of interest.", claims.looks_at_the_object),
            our_claim(
                "Beyond the thesis: contributions find the places that matter better than couplings do.",
                claims.contributions_matter_more,
            ),
        ),
        deviations=(
            SHARED_RUNS.format(" and ".join(table.label for table in _TABLES)),
            "The thesis shows Eff-ConvCapsNet on Dogs vs. Cats, which is missing here, and on Imagenette, at "
            "128 px; ours are at 64 px with maps of the same size. Those of DR-CapsNet are added.",
            "Saliency on the object is the part of the saliency on pixels brighter than 0.1, over all test "
            "images, where the background is black. A capsule stands at the centre of what it sees, in the "
            "middle of the image: an even map gives the share of a map without any preference there, and the "
            "area of the object the share of a map over the whole image.",
            "Maps are drawn from their lowest to their highest value, each capsule at the centre of what it "
            "sees. Maps of runs that did not record these centres are stretched over the image, as in the "
            "thesis, which moves evidence outwards. The peak of a map is its strongest position over its "
            "mean: 1 is a flat map. Beside drawn maps it is the mean over those drawn.",
            "The contribution of a capsule is what its weighted vote adds to the length of the class capsule "
            "before the squash; the thesis has no such map. The positive part is drawn.",
            "Deletion replaces the fifth of the pixels between the capsules' centres on which a map is "
            "highest by the mean colour. It gives the points by which the activation of the class predicted "
            f"before falls in the quantized network, mean over at most {_MOST_DELETIONS:,} test images: for "
            "the map of the thesis, for contributions, and for random maps of the same grid.",
        ),
    )
)
