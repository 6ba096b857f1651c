"""Segment the objects of ETH-80 from their photographs; give it the folder that holds `eth80/`.

ETH-80 (Leibe and Schiele 2003) has eight categories of ten objects, each seen from 41 sides, with a mask for
every photograph. The tenth object of each category is kept for testing: the network has never seen it.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from torchcaps.train import Machine, load_recipe, train
from torchcaps.zoo import photo_predictor


def arrange(eth80: Path, root: Path) -> None:
    """Lay photographs and masks out as `images` and `masks`, with the tenth objects in `test`."""
    for photograph in sorted(eth80.glob("*/*/*.png")):
        split = "test" if photograph.parent.name.endswith("10") else "train"
        mask = photograph.parent / "maps" / f"{photograph.stem}-map.png"
        for kind, source in (("images", photograph), ("masks", mask)):
            target = root / split / kind / photograph.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


if len(sys.argv) < 2:
    print("usage: python 04_segment_eth80.py DATA_FOLDER [EPOCHS]; drawn shapes are used instead")
work = Path(tempfile.mkdtemp())
if len(sys.argv) > 1:
    arrange(Path(sys.argv[1]) / "eth80", work / "data")
    data, shape = f"folder:{work / 'data'}", {"in_channels": 3, "image_size": 64}
else:
    data, shape = "synthetic_masks", {"image_size": 16}
epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 1
changes = {
    "model": {"name": "unet_3", "base_width": 8, **shape},
    "data.name": data,
    "epochs": epochs,
    "batch_size": 16,
}
result = train(load_recipe("segmentation/unet_3", changes=changes), work / "run", Machine(device="cpu"))
print(f"Dice {result['metrics']['test_dice']:.3f} on objects that were not in training")
photographs = sorted((work / "data").glob("test/images/*.png"))[:3]
predictor = photo_predictor(str(work / "run"))
for path in photographs:
    answer = predictor.answer_file(path)
    answer.pictures["overlay"].save(f"{path.stem}-overlay.png")
    print(f"{path.stem}-overlay.png: {answer.words}")
