"""The pictures of docs/robustness.md: run this module with a run on PartWhole, a data folder and a target."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor

from torchcaps.core.types import LayerTrace
from torchcaps.data import Design, PartWhole, draw_partwhole, load_dataset
from torchcaps.parse import CapsuleMap, capsule_maps, fully_connected, parse_tree
from torchcaps.parse.truth import compare_trees, owners_of_capsules
from torchcaps.parse.truth.agreement import with_even_couplings
from torchcaps.suites.api import Material
from torchcaps.suites.partwhole import draw_test_images
from torchcaps.train import Run, load_labelled, load_run
from torchcaps.viz import Branch, SaliencyPanel, TreeOnImage, draw_saliency, draw_true_trees, to_png

_COUNT = 10
_TOP = 32


def draw_partwhole_sheet() -> bytes:
    """Images of several designs, a row each."""
    designs = {
        "four parts, nothing else": Design(size=48, rotation=0.0, jitter=0.0, clutter=0.0, texture=0.0),
        "as by default: turned, with clutter 0.3 and texture 0.3": Design(size=48),
        "clutter 1, texture 1": Design(size=48, clutter=1.0, texture=1.0),
        "scenes of three objects of three parts, 96 px": Design(size=96, branches=(3, 3), classes=6),
    }
    panels = {
        title: SaliencyPanel(draw_partwhole(_COUNT, design).images, {}) for title, design in designs.items()
    }
    return to_png(draw_saliency(panels), scale=1)


def draw_dataset_sheet(data_dir: Path) -> bytes:
    """The first test images of each dataset."""
    names = {
        "expanded MNIST": "expanded_mnist",
        "affNIST-style": "affnist_style",
        "MultiMNIST, shift 4": "multimnist:shift=4,train=10,test=20",
        "MultiMNIST, shift 6": "multimnist:shift=6,train=10,test=20",
        **{
            f"corrupted MNIST, {kind} 3": f"corrupted_mnist:kind={kind}"
            for kind in ("noise", "blur", "occlusion")
        },
        "ETH-80, familiar azimuths": "eth80:axis=azimuth,views=familiar",
        "ETH-80, novel azimuths": "eth80:axis=azimuth,views=novel",
    }
    panels = {}
    for title, name in names.items():
        images = load_dataset(name, "test", data_dir).images
        step = max(1, len(images) // _COUNT)
        panels[title] = SaliencyPanel(images[::step][:_COUNT], {})
    return to_png(draw_saliency(panels), scale=1)


@torch.no_grad()
def draw_tree_sheet(run: Run, chosen: tuple[int, ...] = (0, 1, 2)) -> bytes:
    """True, carved and even-split trees of some test images of a run on PartWhole."""
    data, pipeline = load_labelled(run, "test")
    drawn = draw_test_images(Material(run, data, pipeline, None, limit=max(chosen) + 1))
    output = run.model(pipeline.for_evaluation(drawn.images).inputs, return_routing=True)
    layers, maps = fully_connected(output.layers), capsule_maps(run.model)
    owners = owners_of_capsules(drawn.owners, maps)
    rows = []
    for sample in chosen:
        found = compare_trees(layers, sample, owners[sample], drawn.tree, top=_TOP)
        even = [with_even_couplings(trace) for trace in layers]
        rows.append(
            {
                "true tree": _true_tree(drawn, sample),
                "carved": _carved(layers, sample, owners[sample], drawn, maps, _words(found.carved)),
                "even couplings": _carved(even, sample, owners[sample], drawn, maps, _words(found.even)),
            }
        )
    names = drawn.tree.names[: drawn.tree.num_parts]
    return to_png(draw_true_trees(drawn.images[list(chosen)], rows, part_names=names))


def _words(found: tuple[float, float]) -> str:
    return f"precision {found[0]:.0%}, recall {found[1]:.0%}"


def _true_tree(drawn: PartWhole, sample: int) -> TreeOnImage:
    half = drawn.owners.shape[-1] / 2
    at = (drawn.poses[sample, :, :, 2] + half).tolist()
    parts = [Branch(x, y, number) for number, (x, y) in enumerate(at[: drawn.tree.num_parts])]
    return TreeOnImage(parts, (at[-1][0], at[-1][1]), f"class {int(drawn.labels[sample])}")


def _carved(
    layers: tuple[LayerTrace, ...] | list[LayerTrace],
    sample: int,
    owners: Tensor,
    drawn: PartWhole,
    maps: tuple[CapsuleMap, ...],
    words: str,
) -> TreeOnImage:
    (only,) = maps
    tree = parse_tree(layers, sample=sample, grid=only.grid, threshold=0.0, top=_TOP)
    branches = []
    for edge in tree.edges:
        place, _ = divmod(edge.child, only.grid[2])
        y, x = only.field.centre(*divmod(place, only.grid[1]))
        number = int(owners[edge.child])
        part = number - 1 if 1 <= number <= drawn.tree.num_parts else None
        branches.append(Branch(x + 0.5, y + 0.5, part, edge.contribution))
    return TreeOnImage(branches, _true_tree(drawn, sample).root, words)


if __name__ == "__main__":
    folder, data_folder, out = (Path(argument) for argument in sys.argv[1:4])
    out.mkdir(parents=True, exist_ok=True)
    (out / "partwhole.png").write_bytes(draw_partwhole_sheet())
    (out / "datasets.png").write_bytes(draw_dataset_sheet(data_folder))
    (out / "true-trees.png").write_bytes(draw_tree_sheet(load_run(folder)))
