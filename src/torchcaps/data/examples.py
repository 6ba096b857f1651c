"""Examples: 8-bit images with targets of some kind, in memory or read from files when they are needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, cast

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from torchcaps.core import PoseTarget, UserError

from .lazy_images import FileImages, Indices, LazyImages
from .split import Parts, split_groups, split_indices

Kind = TypeVar("Kind", bound="Examples")  # run-time checks of annotations do not know `Self`


Images: TypeAlias = UInt8[Tensor, "count channels height width"] | LazyImages
Masks: TypeAlias = UInt8[Tensor, "count 1 height width"] | LazyImages
Mode: TypeAlias = Literal["bilinear", "nearest"]
Remake: TypeAlias = Callable[[int, torch.Generator, torch.device], tuple[Tensor, ...]]
Divide: TypeAlias = Callable[[int, float, int], tuple["Examples", "Examples"]]


class _Target:
    """An attribute of examples that is one of their `targets`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, examples: Examples, owner: type) -> Tensor | LazyImages:
        return examples.targets[self.name]

    def __set__(self, examples: Examples, target: Tensor | LazyImages) -> None:
        examples.targets[self.name] = target


def _target() -> Any:
    """A target of examples, typed as a tensor where it is declared: files are indexed like one."""
    return _Target()


class Examples(ABC):
    """Images, what the network should say of each, and the names of the classes; `renew` alone changes them.

    A kind of examples is built from images, one argument for each of its targets, and classes.

    Attributes:
        remake: Draws the images and targets of so many other examples, on a device, where examples are drawn
            and not stored.
        divide: Draws a part that trains and one that validates, so many examples together, from a share and
            a seed, where a split of examples that were drawn would show the same objects in both parts.
    """

    task: ClassVar[str]  # the one that learns from this kind
    pictures: ClassVar[Mapping[str, Mode]] = {}  # targets of the size of the images, and how they are resized
    remake: Remake | None = None
    divide: Divide | None = None

    def __init__(
        self, images: Images, targets: dict[str, Tensor | LazyImages], classes: tuple[str, ...]
    ) -> None:
        if images.ndim != 4 or images.dtype != torch.uint8:
            shape = tuple(images.shape)
            raise UserError(
                f"images must be uint8 (count, channels, height, width), got {images.dtype} {shape}"
            )
        self.images = cast(Tensor, images)  # files are indexed like a tensor
        self.targets, self.classes = targets, classes
        self._check_targets()

    @abstractmethod
    def _check_targets(self) -> None:
        """Raise where the targets do not fit the images."""

    @abstractmethod
    def targets_at(self, indices: Tensor) -> Any:
        """The targets of the examples at `indices`: a tensor, or a named tuple of tensors."""

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.images.shape[1:]))
        return f"{type(self).__name__}({len(self):,} images of {shape}, {len(self.classes)} classes)"

    def __getitem__(self, number: int) -> tuple[Tensor, ...]:
        """One example, image first, so that a `torch.utils.data.DataLoader` can batch them."""
        if not -len(self) <= number < len(self):
            raise IndexError(f"there are {len(self)} examples, got index {number}")
        chosen = torch.tensor([number % len(self)])
        targets = self.targets_at(chosen)
        parts = targets if isinstance(targets, tuple) else (targets,)
        return (self.images[chosen][0], *(part[0] for part in parts))

    @property
    def is_in_memory(self) -> bool:
        """Whether images and targets are tensors, which a captured training step can read."""
        return all(isinstance(part, Tensor) for part in self._parts)

    @property
    def can_be_renewed(self) -> bool:
        """Whether there are always others like these."""
        return self.remake is not None and self.is_in_memory

    def renew(self, random: torch.Generator) -> None:
        """Replace all examples by others, in the tensors that a captured training step reads."""
        if self.remake is None or not self.is_in_memory:
            raise UserError("these examples are stored, and cannot be drawn anew")
        for part, other in zip(self._parts, self.remake(len(self), random, self.device), strict=True):
            cast(Tensor, part).copy_(other)

    @property
    def device(self) -> torch.device:
        """Where batches are."""
        return self.images.device

    def at(self, indices: Tensor) -> tuple[Tensor, Any]:
        """Images and targets of the examples at `indices`."""
        return self.images[indices], self.targets_at(indices)

    def batches(self, size: int) -> Iterator[tuple[Tensor, Any]]:
        """Images and targets in their order, `size` at a time."""
        return map(self.at, torch.split(torch.arange(len(self), device=self.device), size))

    def split_indices(self, fraction: float, seed: int) -> Parts:
        """Which examples train and which validate; a kind whose examples belong together keeps them so."""
        return split_indices(len(self), fraction, seed)

    def expect(self, indices: Tensor) -> None:
        """Say which examples are asked for next; files are read meanwhile."""
        for part in self._parts:
            if isinstance(part, FileImages):
                part.expect(indices)

    def subset(self: Kind, indices: Indices) -> Kind:
        """The examples at `indices`, in that order."""
        chosen = torch.as_tensor(indices, dtype=torch.int64, device=self.device)
        return self.map(lambda part: part[chosen] if isinstance(part, Tensor) else part.subset(chosen))

    def to(self: Kind, device: torch.device | str) -> Kind:
        """The same examples on another device."""
        return self.map(lambda part: part.to(device))

    def map(self: Kind, change: Callable[[Any], Any]) -> Kind:
        """Examples of the same kind, with `change` applied to the images and to each target."""
        made = self._of_parts(*map(change, self._parts))
        made.remake, made.divide = self.remake, self.divide
        return made

    def drawn_by(self: Kind, remake: Remake, divide: Divide | None = None) -> Kind:
        """The same examples, of which `remake` draws others, and `divide` others in two parts."""
        made = self.map(lambda part: part)
        made.remake, made.divide = remake, divide
        return made

    def with_images(self: Kind, images: Images) -> Kind:
        """The same targets for other images."""
        return self._of_parts(images, *self.targets.values())

    def resized(self: Kind, resize: Callable[[Tensor, Mode], Tensor]) -> Kind:
        """The same examples at another size: `resize` changes images and the targets that are pictures."""
        targets = [
            resize(cast(Tensor, part), self.pictures[name]) if name in self.pictures else part
            for name, part in self.targets.items()
        ]
        return self._of_parts(resize(self.images, "bilinear"), *targets)

    @property
    def _parts(self) -> tuple[Tensor | LazyImages, ...]:
        return (self.images, *self.targets.values())

    def _of_parts(self: Kind, *parts: Tensor | LazyImages) -> Kind:
        """Other examples of the same kind, whose constructor has an argument for each part."""
        return cast(Any, type(self))(*parts, self.classes)


class LabelledImages(Examples):
    """Images with one class each."""

    task: ClassVar[str] = "classification"
    labels: Tensor = _target()

    def __init__(self, images: Images, labels: Int64[Tensor, " count"], classes: tuple[str, ...]) -> None:
        super().__init__(images, {"labels": labels}, classes)

    def _check_targets(self) -> None:
        _check_numbers("labels", self.labels, len(self.images), len(self.classes))

    def targets_at(self, indices: Tensor) -> Int64[Tensor, " chosen"]:
        """Class numbers."""
        return self.labels[indices]


class VersionedImages(LabelledImages):
    """Images with one class each, several of which are versions of one image."""

    origins: Tensor = _target()

    def __init__(
        self,
        images: Images,
        labels: Int64[Tensor, " count"],
        origins: Int64[Tensor, " count"],
        classes: tuple[str, ...],
    ) -> None:
        super().__init__(images, labels, classes)
        self.origins = origins

    def split_indices(self, fraction: float, seed: int) -> Parts:
        """All versions of an image train, or all of them validate; `fraction` is that of the images."""
        return split_groups(self.origins, fraction, seed)


class MaskedImages(Examples):
    """Images with a mask each: the number of the class at every pixel, counted from 1; 0 is background."""

    task: ClassVar[str] = "segmentation"
    pictures: ClassVar[Mapping[str, Mode]] = {"masks": "nearest"}
    masks: Tensor = _target()

    def __init__(self, images: Images, masks: Masks, classes: tuple[str, ...]) -> None:
        super().__init__(images, {"masks": masks}, classes)

    def _check_targets(self) -> None:
        shape = (len(self.images), 1, *self.images.shape[2:])
        if self.masks.dtype != torch.uint8 or tuple(self.masks.shape) != shape:
            raise UserError(
                f"masks must be uint8 of shape {shape}, got {self.masks.dtype} {tuple(self.masks.shape)}"
            )
        largest = int(self.masks.max()) if isinstance(self.masks, Tensor) and self.masks.numel() else 0
        if largest > len(self.classes):
            raise UserError(
                f"masks hold 0 for the background and class numbers up to {len(self.classes)}, got {largest}"
            )

    def targets_at(self, indices: Tensor) -> UInt8[Tensor, "chosen height width"]:
        """Class numbers of all pixels."""
        return self.masks[indices][:, 0]


class PosedImages(Examples):
    """Images of one object each: its class, and its rotation as a unit quaternion (w, x, y, z)."""

    task: ClassVar[str] = "pose"
    labels: Tensor = _target()
    rotations: Tensor = _target()

    def __init__(
        self,
        images: Images,
        labels: Int64[Tensor, " count"],
        rotations: Float[Tensor, "count 4"],
        classes: tuple[str, ...],
    ) -> None:
        super().__init__(images, {"labels": labels, "rotations": rotations}, classes)

    def _check_targets(self) -> None:
        _check_numbers("labels", self.labels, len(self.images), len(self.classes))
        if self.rotations.shape != (len(self.images), 4) or not self.rotations.is_floating_point():
            raise UserError(
                f"rotations must be ({len(self.images)}, 4) floating-point numbers, "
                f"got {self.rotations.dtype} {tuple(self.rotations.shape)}"
            )
        norms = torch.linalg.vector_norm(self.rotations, dim=1)
        if not torch.allclose(norms, torch.ones_like(norms), atol=1e-3):
            raise UserError("rotations must be unit quaternions in the order (w, x, y, z); normalise them")

    def targets_at(self, indices: Tensor) -> PoseTarget:
        """Classes and rotations."""
        return PoseTarget(self.labels[indices], self.rotations[indices])


class PlacedImages(Examples):
    """Images of places; several show the same place, and `classes` are the names of the places."""

    task: ClassVar[str] = "retrieval"
    places: Tensor = _target()

    def __init__(self, images: Images, places: Int64[Tensor, " count"], classes: tuple[str, ...]) -> None:
        super().__init__(images, {"places": places}, classes)

    def _check_targets(self) -> None:
        _check_numbers("places", self.places, len(self.images), len(self.classes))

    def targets_at(self, indices: Tensor) -> Int64[Tensor, " chosen"]:
        """Numbers of places."""
        return self.places[indices]

    def split_indices(self, fraction: float, seed: int) -> Parts:
        """Whole places: images of a place that trains would make validation too easy."""
        return split_groups(self.places, fraction, seed)


class OverlaidImages(Examples):
    """Images of two objects of different classes on top of each other, and each object alone."""

    task: ClassVar[str] = "overlap"
    pictures: ClassVar[Mapping[str, Mode]] = {"alone": "bilinear"}
    labels: Tensor = _target()
    alone: Tensor = _target()

    def __init__(
        self,
        images: Images,
        labels: Int64[Tensor, "count 2"],
        alone: UInt8[Tensor, "count 2 height width"],
        classes: tuple[str, ...],
    ) -> None:
        super().__init__(images, {"labels": labels, "alone": alone}, classes)

    def _check_targets(self) -> None:
        count = len(self.images)
        if self.labels.shape != (count, 2):
            raise UserError(f"labels must have shape ({count}, 2), got {tuple(self.labels.shape)}")
        _check_numbers("labels", self.labels.flatten(), 2 * count, len(self.classes))
        if self.alone.shape != (count, 2, *self.images.shape[2:]) or self.alone.dtype != torch.uint8:
            shape = tuple(self.alone.shape)
            raise UserError(
                f"objects alone must be uint8 of the size of images, got {self.alone.dtype} {shape}"
            )

    def targets_at(self, indices: Tensor) -> Int64[Tensor, "chosen 2"]:
        """Both class numbers."""
        return self.labels[indices]


def split_validation(data: Kind, fraction: float = 0.05, seed: int = 0) -> tuple[Kind, Kind]:
    """The training and the validation part of `data`: disjoint, complete, and the same for the same seed.

    Examples that belong together stay together, as their kind says. Examples that are made of several images
    are drawn anew, each part from images of its own.
    """
    if data.divide is not None:
        return cast(tuple[Kind, Kind], data.divide(len(data), fraction, seed))
    train, validation = data.split_indices(fraction, seed)
    return data.subset(train), data.subset(validation)


def _check_numbers(name: str, numbers: Tensor, count: int, classes: int) -> None:
    if numbers.shape != (count,) or numbers.dtype != torch.int64:
        raise UserError(
            f"{name} must be int64 of shape ({count},), got {numbers.dtype} {tuple(numbers.shape)}"
        )
    if count and (int(numbers.min()) < 0 or int(numbers.max()) >= classes):
        raise UserError(
            f"{name} must lie in 0..{classes - 1}, got {int(numbers.min())}..{int(numbers.max())}"
        )
