"""Draw the tree of a pretrained network of five capsule layers beside the true one.

`python docs/gallery/draw_levels.py docs/gallery`; few colours, so that the file stays small.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path

from PIL import Image

from torchcaps import load_pretrained
from torchcaps.pages import TrueTrees
from torchcaps.viz import to_png

NETWORK = "parse_capsnet.partwhole"
_NUMBER = 1  # the first test image that it answers rightly
_COLOURS = 256

if __name__ == "__main__":
    drawn = to_png(TrueTrees(load_pretrained(NETWORK), _NUMBER + 1).draw_levels(_NUMBER), scale=1)
    picture = Image.open(BytesIO(drawn)).convert("RGB")
    # the median cut would merge the colours of parts, which few pixels have
    picture = picture.quantize(_COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    picture.save(Path(sys.argv[1]) / "tree-levels.png", optimize=True)
