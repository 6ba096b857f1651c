"""What a run found beyond single numbers, as plain data that a figure is drawn from."""

from __future__ import annotations

import lzma
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from torchcaps.core import UserError

Series = NDArray[np.float64] | NDArray[np.int64]
_LEVELS = 16  # of brightness: enough for small pictures, in a fifth of the text that 256 levels take
_MIXED_NAMES = ("class", "classes")


@dataclass(frozen=True)
class Picture:
    """Pixels of any shape in [0, 1], rounded to a few levels of brightness and stored as text."""

    shape: tuple[int, ...]
    pixels: str

    @classmethod
    def pack(cls, values: Tensor) -> Picture:
        """Values outside of [0, 1] are clipped."""
        levels = (values.clamp(0, 1) * (_LEVELS - 1)).round().byte().cpu().numpy()
        return cls(levels.shape, b64encode(lzma.compress(levels.tobytes())).decode("ascii"))

    def unpack(self) -> NDArray[np.float64]:
        """The pixels, in [0, 1]."""
        levels = np.frombuffer(lzma.decompress(b64decode(self.pixels)), np.uint8)
        return levels.reshape(self.shape).astype(np.float64) / (_LEVELS - 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Details:
    """Series, pictures and trees of a run; each is empty where an experiment has none.

    Attributes:
        series: Numbers by name, with one entry for each epoch, level, layer, class or image.
        names: Of the classes.
        pictures: By name.
        trees: Parse trees as JSON text.
    """

    series: Mapping[str, Series] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    trees: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.series or self.pictures or self.trees)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Details:
        """Read the details from a result or a row."""
        try:
            found = _sort_mixed(content["curve"]) if "curve" in content else content
            return cls(
                series={name: np.array(values) for name, values in found.get("series", {}).items()},
                names=tuple(found.get("names", ())),
                pictures={
                    name: Picture(tuple(packed["shape"]), packed["pixels"])
                    for name, packed in found.get("pictures", {}).items()
                },
                trees=tuple(found.get("trees", ())),
            )
        except (TypeError, AttributeError, LookupError, ValueError) as error:  # results of other machines
            raise UserError(f"its series, names, pictures or trees are damaged ({error})") from error

    def as_json(self) -> dict[str, Any]:
        """Plain data, without what is empty."""
        content = {
            "series": {name: values.tolist() for name, values in self.series.items()},
            "names": list(self.names),
            "pictures": {name: asdict(picture) for name, picture in self.pictures.items()},
            "trees": list(self.trees),
        }
        return {key: value for key, value in content.items() if value}


def _sort_mixed(mixed: Mapping[str, Any]) -> dict[str, Any]:
    """The four kinds, each under its key; the results of older runs hold all of them under `curve`."""
    apart: dict[str, Any] = {"series": {}, "pictures": {}}
    for name, value in mixed.items():
        if name == "trees":
            apart["trees"] = value
        elif name in _MIXED_NAMES:
            apart["names"] = value
        else:
            apart["pictures" if isinstance(value, Mapping) else "series"][name] = value
    return apart
