"""LIDC-IDRI annotations: what up to four readers outlined, from the official XML."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from torchcaps.core import UserError, need

_SPACE = "{http://www.nih.gov}"
_CT_READING = f"{_SPACE}LidcReadMessage"
_LARGEST = 64 << 20  # bytes; the largest published file has less than 2 million


@dataclass(frozen=True, eq=False)
class Outline:
    """A closed line in a slice.

    Attributes:
        height: Of the slice, in mm.
        is_inclusion: Whether it marks what lies inside, or leaves it out.
        points: (column, row) pixels just outside of what it marks.
        image_uid: Of the DICOM image of the slice; empty where the file does not name it.
    """

    height: float
    is_inclusion: bool
    points: Int[np.ndarray, "points 2"]
    image_uid: str = ""


@dataclass(frozen=True, eq=False)
class Marking:
    """A nodule as one reader marked it."""

    reader: int
    nodule_id: str
    outlines: tuple[Outline, ...]
    malignancy: int | None

    @property
    def is_small(self) -> bool:
        """Whether it is a nodule of less than 3 mm, which has a point instead of outlines."""
        return all(len(outline.points) < 3 for outline in self.outlines)


@dataclass(frozen=True)
class Annotations:
    """The nodules that the readers marked in one series."""

    series_uid: str
    num_readers: int
    markings: tuple[Marking, ...]


def read_annotations(path: Path) -> Annotations:
    """The annotations in an XML file; entities are refused, whatever they would expand to."""
    root = _parse(path)
    if root.tag != _CT_READING:
        raise UserError(f"{path} holds no CT annotations of LIDC-IDRI: its root is {root.tag[:80]}")
    uid = _series_uid(root)
    if uid is None:
        raise UserError(f"{path} does not say to which series it belongs (no SeriesInstanceUid)")
    sessions = root.findall(f"{_SPACE}readingSession")
    markings = [
        _marking(element, reader, path)
        for reader, session in enumerate(sessions)
        for element in session.findall(f"{_SPACE}unblindedReadNodule")
    ]
    return Annotations(uid, len(sessions), tuple(each for each in markings if each.outlines))


def series_uid_of(path: Path) -> str | None:
    """To which CT series an XML file belongs; None for a file that is about something else."""
    root = _parse(path)
    return _series_uid(root) if root.tag == _CT_READING else None


def _series_uid(root: Any) -> str | None:
    return root.findtext(f"{_SPACE}ResponseHeader/{_SPACE}SeriesInstanceUid", "").strip() or None


def _parse(path: Path) -> Any:
    defused = need("defusedxml", "reading annotations")
    from defusedxml.ElementTree import ParseError, parse

    if path.stat().st_size > _LARGEST:
        raise UserError(f"{path} has more than {_LARGEST >> 20} MiB; annotations are smaller")
    try:
        return parse(path, forbid_dtd=True).getroot()
    except defused.DefusedXmlException as error:
        raise UserError(f"{path} declares entities or a DTD, which annotations never do; refused") from error
    except (ParseError, ValueError, LookupError) as error:
        raise UserError(f"{path} is no readable XML ({error}); get it again") from error


def _marking(element: Any, reader: int, path: Path) -> Marking:
    malignancy = element.findtext(f"{_SPACE}characteristics/{_SPACE}malignancy", "").strip()
    return Marking(
        reader,
        element.findtext(f"{_SPACE}noduleID", "").strip(),
        tuple(_outline(roi, path) for roi in element.findall(f"{_SPACE}roi")),
        int(malignancy) if malignancy.isdecimal() else None,
    )


def _outline(roi: Any, path: Path) -> Outline:
    try:
        edges = [
            (int(edge.findtext(f"{_SPACE}xCoord")), int(edge.findtext(f"{_SPACE}yCoord")))
            for edge in roi.findall(f"{_SPACE}edgeMap")
        ]
        points = np.array(edges, dtype=np.int64)
        height = float(roi.findtext(f"{_SPACE}imageZposition"))
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(f"{path}: an outline has no whole coordinates or no imageZposition") from error
    if not len(points) or not np.isfinite(height):
        raise UserError(f"{path}: an outline at {height} mm has no points")
    is_inclusion = roi.findtext(f"{_SPACE}inclusion", "TRUE").strip().upper() == "TRUE"
    image_uid = roi.findtext(f"{_SPACE}imageSOP_UID", "").strip()
    return Outline(height, is_inclusion, points, image_uid)
