"""Small pictures as text, so that a result file brings all that its drawing needs."""

from __future__ import annotations

import lzma
from base64 import b64decode, b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

_LEVELS = 16  # of brightness: enough at this size, and a fifth of the text that all 256 take


def pack_pictures(pictures: Tensor) -> dict[str, Any]:
    """Values in [0, 1] of any shape, rounded to a few levels of brightness."""
    levels = (pictures.clamp(0, 1) * (_LEVELS - 1)).round().byte().cpu().numpy()
    return {"shape": list(levels.shape), "pixels": b64encode(lzma.compress(levels.tobytes())).decode("ascii")}


def unpack_pictures(packed: dict[str, Any]) -> NDArray[np.float64]:
    """What was packed, in [0, 1]."""
    levels = np.frombuffer(lzma.decompress(b64decode(packed["pixels"])), np.uint8)
    return levels.reshape(packed["shape"]).astype(np.float64) / (_LEVELS - 1)
