"""Small pictures as text, so that a result file brings all that its drawing needs."""

from __future__ import annotations

import lzma
from base64 import b64decode, b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

_LEVELS = 32  # of brightness: fewer than the eye tells apart at this size, and a third of the text


def pack_pictures(pictures: Tensor) -> dict[str, Any]:
    """Values in [0, 1] of any shape, rounded to 32 levels."""
    levels = (pictures.clamp(0, 1) * (_LEVELS - 1)).round().byte().cpu().numpy()
    return {"shape": list(levels.shape), "pixels": b64encode(lzma.compress(levels.tobytes())).decode("ascii")}


def unpack_pictures(packed: dict[str, Any]) -> NDArray[np.float64]:
    """What was packed, in [0, 1]."""
    levels = np.frombuffer(lzma.decompress(b64decode(packed["pixels"])), np.uint8)
    return levels.reshape(packed["shape"]).astype(np.float64) / (_LEVELS - 1)
