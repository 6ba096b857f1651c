"""Where an answer comes from, tried out: parts of the image are covered, and the class loses activation."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from time import perf_counter

import torch
from jaxtyping import Float
from torch import Tensor

_WINDOW = 4  # the cover is a quarter of the image wide
_PLACES = 7  # of the cover, along each side
_SECONDS = 0.15  # how long a call covers more places
_KEPT = 8  # images whose covering goes on where it stopped
_AT_ONCE = 7  # more are hardly faster, and others wait for the network meanwhile


class Covering:
    """The map of one image, found a few places at a time, because all of them take a large network long.

    Args:
        activation_of: From a batch of images in [0, 1] to the activation of the class in each.
        image: The cover has its median tone in each channel.
    """

    def __init__(
        self, activation_of: Callable[[Tensor], Tensor], image: Float[Tensor, "1 channels height width"]
    ) -> None:
        self._activation_of, self._image = activation_of, image
        height, width = image.shape[-2:]
        self._size = max(1, height // _WINDOW), max(1, width // _WINDOW)
        self._left = [(top, left) for top in _starts(height) for left in _starts(width)]
        self._tone = image.flatten(2).median(-1).values[0, :, None, None]
        started = perf_counter()
        self.whole = float(activation_of(image)[0])
        self.most_lost = 0.0  # while one place was covered
        self._seconds = perf_counter() - started  # that one image takes
        self._lost, self._seen = torch.zeros(height, width), torch.zeros(height, width)

    @property
    def is_done(self) -> bool:
        """Whether all places were covered."""
        return not self._left

    def advance(self, seconds: float) -> None:
        """Cover as many places as the time allows, and at least one."""
        end = perf_counter() + seconds
        while True:
            started = perf_counter()
            count = max(1, min(_AT_ONCE, int((end - started) / self._seconds)))
            self._cover(self._left[:count])
            del self._left[:count]
            self._seconds = (perf_counter() - started) / count
            if self.is_done or perf_counter() + self._seconds > end:
                return

    @torch.no_grad()
    def _cover(self, places: list[tuple[int, int]]) -> None:
        down, across = self._size
        covered = self._image.repeat(len(places), 1, 1, 1)
        for number, (top, left) in enumerate(places):
            covered[number, :, top : top + down, left : left + across] = self._tone
        for (top, left), value in zip(places, self._activation_of(covered).tolist(), strict=True):
            lost = max(0.0, self.whole - value)
            self.most_lost = max(self.most_lost, lost)
            self._lost[top : top + down, left : left + across] += lost
            self._seen[top : top + down, left : left + across] += 1

    def heat(self) -> Float[Tensor, "height width"]:
        """How much activation the class loses on average while a pixel is covered; gains count as 0."""
        return self._lost / self._seen.clamp(min=1)


class Coverings:
    """The coverings of the last images; each goes on where it stopped when it is asked for again."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last: dict[tuple[int, bytes], Covering] = {}  # by class and image

    def advance(self, winner: int, image: Tensor, start: Callable[[], Covering]) -> Covering:
        """The covering of an image for a class, begun by `start`; each call adds places."""
        key = winner, image.cpu().numpy().tobytes()
        with self._lock:
            if key not in self._last:
                self._last[key] = start()
                for oldest in list(self._last)[:-_KEPT]:
                    del self._last[oldest]
            covering = self._last[key]
            if not covering.is_done:
                covering.advance(_SECONDS)
            return covering


def _starts(side: int) -> list[int]:
    last = side - max(1, side // _WINDOW)
    return sorted({round(last * step / (_PLACES - 1)) for step in range(_PLACES)})
