"""Networks of a size that two cores train in minutes."""

from __future__ import annotations

from ..plan import Changes

_SEGCAPS = {
    "name": "segcaps_r3",
    "stem_pose": 8,
    "primary": [2, 8],
    "down": [[[2, 8], [2, 16]], [[4, 16], [4, 16]]],
    "bottom": [4, 16],
    "up": [[[4, 16], [2, 16]], [[2, 8], [2, 8]]],
    "last_up": [2, 8],
    "class_pose": 8,
}
SMALL: dict[str, Changes] = {
    "unet_3": {"model": {"name": "unet_3", "base_width": 8}, "batch_size": 8},
    "segcaps_r3": {"model": _SEGCAPS, "batch_size": 8},
}
