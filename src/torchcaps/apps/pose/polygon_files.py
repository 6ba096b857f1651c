"""OFF and PLY files: corners, polygons of any number of corners, and colours."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

# of a property, one number or as many as it says for each row: a table where all rows are alike
Values: TypeAlias = NDArray[Any] | list[list[Any]]
_FORMATS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
_TYPES = {
    "char": "b", "uchar": "B", "short": "h", "ushort": "H", "int": "i", "uint": "I",
    "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
    "float": "f", "double": "d", "float32": "f", "float64": "d",
}  # fmt: skip
_WHOLE = frozenset("bBhHiI")
# texture, colour and normal may follow the coordinates of a corner; others, as in 4OFF, come before
_OFF = re.compile(r"\s*(?:ST)?C?N?OFF")
# lines end as the first one does, before a binary body that may begin with any byte
_HEADER = re.compile(
    rb"ply[ \t]*(?P<end>\r\n|\n|\r)(?P<lines>.*?)(?<=[\r\n])end_header[ \t\r]*?(?P=end)", re.DOTALL
)
_MORE = "it has more than it says: its counts are damaged"
_CORNERS_OF_FACE = ("vertex_indices", "vertex_index")
_COLOURS = ("red", "green", "blue")


class PolygonFile(NamedTuple):
    """What a file says: colours of corners or faces are from 0 to 255, or None."""

    corners: NDArray[np.float64]
    polygons: Values
    corner_colours: NDArray[np.uint8] | None = None
    face_colours: NDArray[np.uint8] | None = None


class _Property(NamedTuple):
    name: str
    kind: str
    length_kind: str  # the type of the number of values; "" where there is one


class _Element(NamedTuple):
    name: str
    length: int
    properties: list[_Property]


def read_off(path: Path) -> PolygonFile:
    """The corners and polygons of an OFF file; what else a line says is left out."""
    text = re.sub("#.*", "", path.read_text(encoding="utf-8-sig", errors="replace"))
    start = _OFF.match(text)  # the counts may follow at once, as in some files of ModelNet
    if start is None:
        raise ValueError("it does not begin with OFF, or says that corners have other coordinates than three")
    rows = [words for line in text[start.end() :].splitlines() if (words := line.split())]
    corners, faces = (int(word) for word in rows[0][:2])
    if min(corners, faces) < 0:
        raise ValueError("it says that it has fewer than no corners or faces")
    _require_end(1 + corners + faces, len(rows))
    if len(rows) > 1 + corners + faces:
        raise ValueError(_MORE)
    places = np.array([row[:3] for row in rows[1 : 1 + corners]], np.float64).reshape(corners, 3)
    polygons = [[int(word) for word in row] for row in map(_named, rows[1 + corners :])]
    return PolygonFile(places, polygons)


def _named(row: list[str]) -> list[str]:
    """The corners of a face; a colour may follow."""
    if not 0 < int(row[0]) < len(row):
        raise ValueError("a face has fewer corners than it says")
    return row[1 : 1 + int(row[0])]


def read_ply(path: Path) -> PolygonFile:
    """The corners, polygons and colours of a PLY file, as text or binary."""
    content = path.read_bytes()
    head = _HEADER.match(content)
    if head is None:
        raise ValueError("it has no header of a PLY file")
    order, elements = _parse_header(head["lines"].decode("ascii", errors="replace"))
    body = content[head.end() :]
    numbers = _Binary(body, order) if order else _Text(body)
    read = {element.name: _read_element(element, numbers) for element in elements}
    if numbers.has_more():
        raise ValueError(_MORE)
    vertex, face = read.get("vertex", {}), read.get("face", {})
    corners = np.column_stack([_column(vertex, axis) for axis in "xyz"]).astype(np.float64)
    named = next((face[name] for name in _CORNERS_OF_FACE if name in face), [])
    return PolygonFile(corners, named, _colours(vertex), _colours(face))


def _parse_header(head: str) -> tuple[str, list[_Element]]:
    """The order of bytes ("" for text) and the elements."""
    formats, elements = [], list[_Element]()
    for line in head.splitlines():
        match line.split():
            case [] | ["comment" | "obj_info", *_]:
                pass
            case ["format", form, _] if form in _FORMATS:
                formats.append(_FORMATS[form])
            case ["element", name, length] if length.isdecimal():
                elements.append(_Element(name, int(length), []))
            case ["property", *words] if elements:
                elements[-1].properties.append(_parse_property(words))
            case _:
                raise ValueError(f"its header has the line {line[:80]!r}")
    names = [(each.name, *own) for each in elements for own in ((), *((p.name,) for p in each.properties))]
    if len(formats) != 1 or len(set(names)) < len(names):
        raise ValueError("its header has no format, or has something twice")
    return formats[0], elements


def _parse_property(words: list[str]) -> _Property:
    match words:
        case ["list", count, kind, name] if _TYPES.get(count) in _WHOLE and kind in _TYPES:
            if name not in _CORNERS_OF_FACE or _TYPES[kind] in _WHOLE:
                return _Property(name, _TYPES[kind], _TYPES[count])
        case [kind, name] if kind in _TYPES:
            return _Property(name, _TYPES[kind], "")
    raise ValueError(f"its header has a property {' '.join(words)[:80]!r}")


class _Text:
    """The numbers of a file, of which those before `start` were taken."""

    def __init__(self, body: bytes) -> None:
        self.values, self.start = np.array(body.split(), np.float64), 0

    def take(self, kind: str, count: int) -> list[Any]:
        """The next so many, of a type."""
        begin, self.start = self.start, self.start + count
        _require_end(self.start, len(self.values))
        return _cast(self.values[begin : self.start], kind).tolist()

    def take_rows(self, fields: list[tuple[str, int]], count: int) -> list[NDArray[Any]]:
        """The next so many rows of the same fields, each as an array (rows, values)."""
        width = sum(values for _, values in fields)
        begin, self.start = self.start, self.start + count * width
        _require_end(self.start, len(self.values))
        table = self.values[begin : self.start].reshape(count, width)
        ends = np.cumsum([values for _, values in fields])[:-1]
        parts = np.split(table, ends, axis=1)
        return [_cast(part, kind) for part, (kind, _) in zip(parts, fields, strict=True)]

    def has_more(self) -> bool:
        """Whether some were not taken."""
        return self.start < len(self.values)


def _cast(values: NDArray[np.float64], kind: str) -> NDArray[Any]:
    """Numbers as a type that they must fit, where it is one of whole numbers."""
    if kind not in _WHOLE:
        return values.astype(kind)
    with np.errstate(invalid="ignore"):
        found = values.astype(kind)
    if (found != values).any():
        raise ValueError("a number is not of the type that its header names")
    return found


class _Binary:
    """The same of a file that is no text."""

    def __init__(self, body: bytes, order: str) -> None:
        self.body, self.order, self.start = body, order, 0

    def take(self, kind: str, count: int) -> list[Any]:
        form = f"{self.order}{count}{kind}"
        begin, self.start = self.start, self.start + struct.calcsize(form)
        _require_end(self.start, len(self.body))
        return list(struct.unpack_from(form, self.body, begin))

    def take_rows(self, fields: list[tuple[str, int]], count: int) -> list[NDArray[Any]]:
        row = np.dtype([(str(place), self.order + kind, (n,)) for place, (kind, n) in enumerate(fields)])
        begin, self.start = self.start, self.start + count * row.itemsize
        _require_end(self.start, len(self.body))
        table = np.frombuffer(self.body, row, count, begin)
        return [table[name] for name in table.dtype.names or ()]

    def has_more(self) -> bool:
        return not self.body[self.start :].isspace() and self.start < len(self.body)


def _require_end(end: int, length: int) -> None:
    if end > length:
        raise ValueError("it ends too early")


def _read_element(element: _Element, numbers: _Text | _Binary) -> dict[str, Values]:
    if not element.length or not element.properties:
        return {}
    begin = numbers.start
    found = _read_alike(element, numbers)
    if found is None:
        numbers.start = begin
        found = _read_rows(element, numbers, element.length)
    return found


def _read_alike(element: _Element, numbers: _Text | _Binary) -> dict[str, Values] | None:
    """All rows at once, where each list is as long as in the first of them; None where one is not."""
    begin = numbers.start
    first = _read_rows(element, numbers, 1)
    numbers.start, fields = begin, []
    for each in element.properties:
        fields += [(each.length_kind, 1)] if each.length_kind else []
        fields.append((each.kind, len(first[each.name][0])))
    try:
        columns = iter(numbers.take_rows(fields, element.length))
    except ValueError:  # shorter lists may follow
        return None
    found: dict[str, Values] = {}
    for each in element.properties:
        lengths = next(columns) if each.length_kind else None
        values = next(columns)
        if lengths is not None and (lengths != values.shape[1]).any():
            return None
        found[each.name] = values
    return found


def _read_rows(element: _Element, numbers: _Text | _Binary, count: int) -> dict[str, Values]:
    """Row by row, each with lists of its own lengths."""
    found: dict[str, list[list[Any]]] = {each.name: [] for each in element.properties}
    for _ in range(count):
        for each in element.properties:
            length = numbers.take(each.length_kind, 1)[0] if each.length_kind else 1
            if length < 0:
                raise ValueError("a list has fewer than no values")
            found[each.name].append(numbers.take(each.kind, length))
    return {**found}


def _column(values: dict[str, Values], name: str) -> NDArray[Any]:
    if name not in values:
        raise ValueError(f"its corners have no {name}")
    return np.asarray(values[name])[:, 0]


def _colours(values: dict[str, Values]) -> NDArray[np.uint8] | None:
    if not values or any(name not in values for name in _COLOURS):
        return None
    colours = np.column_stack([_column(values, name) for name in _COLOURS])
    if colours.dtype.kind == "f":  # from 0 to 1
        if np.isnan(colours).any():
            raise ValueError("it has colours that are not finite numbers (NaN)")
        colours = (colours * 255).round()
    return np.asarray(colours.clip(0, 255).astype(np.uint8))
