"""The pictures of docs/robustness.md: run this module with a run on PartWhole, a data folder and a target."""

from __future__ import annotations

import sys
from pathlib import Path

from torchcaps.data import Design, draw_partwhole, load_dataset, read_eth80_masks, read_eth80_views
from torchcaps.pages import TrueTrees
from torchcaps.train import load_run
from torchcaps.viz import SaliencyPanel, draw_saliency, to_png

_COUNT = 10


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
        "ETH-80, novel elevations": "eth80:axis=elevation,views=novel",
    }
    panels = {}
    for title, name in names.items():
        images = load_dataset(name, "test", data_dir).images
        step = max(1, len(images) // _COUNT)
        panels[title] = SaliencyPanel(images[::step][:_COUNT], {})
    panels["ETH-80, all objects, with their masks"] = _masked_photographs(data_dir)
    return to_png(draw_saliency(panels), scale=1)


def _masked_photographs(data_dir: Path) -> SaliencyPanel:
    images, masks = read_eth80_views(data_dir).images, read_eth80_masks(data_dir)
    step = len(images) // _COUNT
    return SaliencyPanel(images[::step][:_COUNT], {"mask": masks[::step][:_COUNT].float()})


if __name__ == "__main__":
    folder, data_folder, out = (Path(argument) for argument in sys.argv[1:4])
    out.mkdir(parents=True, exist_ok=True)
    (out / "partwhole.png").write_bytes(draw_partwhole_sheet())
    (out / "datasets.png").write_bytes(draw_dataset_sheet(data_folder))
    (out / "true-trees.png").write_bytes(to_png(TrueTrees(load_run(folder), 3).draw((0, 1, 2))))
