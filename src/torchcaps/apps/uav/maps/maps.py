"""Orthophotos as GeoTIFF, read on one grid of pixels as a season stack."""

from __future__ import annotations

import math
import shlex
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import MissingDataError, UserError, counted, machine_memory, need
from torchcaps.data import SeasonStack, load_stack
from torchcaps.storage import write_bytes

_BYTES = 4  # of a pixel: three colours, and whether they are known
_ROWS = 1024  # of a window that is read at once
_SUFFIXES = (".tif", ".tiff")
_COARSEST = 4  # times: a map with larger pixels than that shows a network none of what it learnt to see
_SIDES = (1e-3, 1e5)  # metres of a pixel; what lies beyond is damage
_LONGEST = 10  # times the width of a pixel: its height; maps have squares
_SCALE = 0.05  # of a metre: by so much odometry is wrong anyway, and UTM is twenty times better


class _Frame(NamedTuple):
    """The grid of pixels on which all dates are read."""

    west: float
    north: float
    width: int
    height: int
    pixel: float
    crs: Any


def open_maps(paths: Sequence[Path], pixel: float | None = None) -> SeasonStack:
    """Dates of one place, from GeoTIFFs, one `.npz` stack, or a folder of GeoTIFFs.

    Args:
        paths: The files.
        pixel: Metres per pixel to read at; None takes those of the first file.
    """
    files = [file for path in paths for file in _files(path)]
    if not files:
        raise MissingDataError("no map was given; name a GeoTIFF, a folder of them or a season stack (.npz)")
    if files[0].suffix != ".npz":
        return read_maps(files, pixel)
    if len(files) > 1:
        raise UserError("a season stack (.npz) holds all dates of a place; give one alone")
    stack = load_stack(files[0])
    if pixel is not None and not math.isclose(pixel, stack.pixel, rel_tol=1e-6):
        raise UserError(f"{files[0]} has {stack.pixel} m per pixel, not {pixel}: write it anew from its maps")
    return stack


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.iterdir() if file.suffix.lower() in _SUFFIXES)
    return found or sorted(path.glob("*.npz"))


def read_maps(paths: Sequence[Path], pixel: float | None = None) -> SeasonStack:
    """GeoTIFFs of one place on the ground that all of them show, in the projection of the first."""
    vrt = need("rasterio.vrt")
    resampling = need("rasterio.enums").Resampling
    with ExitStack() as open_files:
        sources = [open_files.enter_context(_opened(path)) for path in paths]
        frame = _common_frame(sources, paths, pixel)
        _require_memory(frame, len(paths))
        dates = []
        for source, path in zip(sources, paths, strict=True):
            finer = _pixel_of(source) < 0.9 * frame.pixel
            warped = vrt.WarpedVRT(
                source,
                crs=frame.crs,
                transform=_transform(frame.west, frame.north, frame.pixel),
                width=frame.width,
                height=frame.height,
                resampling=resampling.average if finer else resampling.bilinear,
                add_alpha=source.nodata is None and not _has_alpha(source),
            )
            try:
                dates.append(_read(open_files.enter_context(warped), frame, _bands(source)))
            except need("rasterio.errors").RasterioIOError as error:  # its beginning was read before
                raise UserError(f"{path} is damaged or ends too early; get it again") from error
    images, known = (np.stack(part) for part in zip(*dates, strict=True))
    names = _names(paths)
    return SeasonStack(images, known, names, frame.west, frame.north, frame.pixel, frame.crs.to_string())


def write_geotiff(
    path: Path, bands: NDArray[np.generic], corner: tuple[float, float, float], crs: str
) -> None:
    """Write bands of (count, height, width); `corner` is west, north and the side of a pixel in metres."""
    rasterio = need("rasterio")
    profile = {
        "driver": "GTiff",
        "count": len(bands),
        "height": bands.shape[1],
        "width": bands.shape[2],
        "dtype": bands.dtype.name,
        "compress": "deflate",
        "tiled": True,
    }
    with rasterio.MemoryFile() as memory:
        with memory.open(crs=crs, transform=_transform(*corner), **profile) as file:
            file.write(bands)
        content = memory.read()
    write_bytes(path, content)


def _opened(path: Path) -> Any:
    rasterio = need("rasterio")
    if not path.is_file():
        raise MissingDataError(f"no map at {path}")
    try:
        with warnings.catch_warnings():
            # `_check` says the same in one line, with what to do
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            source = rasterio.open(path)
    except rasterio.errors.RasterioIOError as error:
        raise UserError(f"{path} is no GeoTIFF that can be read: {error}") from error
    _check(source, path)
    return source


def _check(source: Any, path: Path) -> None:
    crs = source.crs
    if crs is None:
        named = shlex.quote(str(path))
        raise UserError(
            f"{path} has no coordinate system: name it with gdal_edit.py -a_srs EPSG:CODE {named}"
        )
    if source.transform.is_identity:
        raise UserError(
            f"{path} names a coordinate system but not where it lies in it (no geotransform): give the "
            "coordinates of its corners with gdal_edit.py -a_ullr WEST NORTH EAST SOUTH "
            f"{shlex.quote(str(path))}"
        )
    metres = crs.linear_units_factor[1] if crs.is_projected else 0.0
    if not math.isclose(metres, 1.0, rel_tol=1e-6):
        raise UserError(
            f"{path} is not in a projection in metres ({crs.to_string()[:80]}): bring it into that of its "
            "zone with gdalwarp -t_srs EPSG:CODE"
        )
    _check_sides(source, path)
    scale = _scale_of(source)
    if not abs(scale - 1) <= _SCALE:
        raise UserError(
            f"in the projection of {path} ({crs.to_string()[:80]}) a metre of this ground is {scale:.3g} m "
            "long: bring it into that of its zone with gdalwarp -t_srs EPSG:CODE"
        )
    _check_bands(source, path)


def _check_sides(source: Any, path: Path) -> None:
    wide, high = _pixel_of(source), math.hypot(source.transform.b, source.transform.e)
    is_sound = all(_SIDES[0] <= side <= _SIDES[1] for side in (wide, high))
    if not is_sound or max(wide, high) > _LONGEST * min(wide, high):
        raise UserError(
            f"{path} has pixels of {wide:g} x {high:g} m: give the right coordinates of its corners with "
            f"gdal_edit.py -a_ullr WEST NORTH EAST SOUTH {shlex.quote(str(path))}, or get it again"
        )


def _check_bands(source: Any, path: Path) -> None:
    if source.count < 3:
        raise UserError(f"{path} should have three bands of bytes (RGB), it has {source.count}")
    kinds = dict.fromkeys(kind for band in _bands(source) if (kind := source.dtypes[band - 1]) != "uint8")
    if kinds:
        files = shlex.join([str(path), f"{path.stem}-bytes.tif"])
        raise UserError(
            f"{path} has bands of {', '.join(kinds)}, not of bytes: bring it to them with gdal_translate -ot "
            f"Byte -scale LOW HIGH 1 255 {files}, with one LOW and one HIGH for all dates"
        )


def _scale_of(source: Any) -> float:
    """How long a metre is drawn in the middle of a map; Web Mercator draws two at 60 degrees north."""
    pyproj = need("pyproj")
    projection = pyproj.Proj(source.crs.to_wkt())
    middle = projection(*source.xy(source.height // 2, source.width // 2), inverse=True)
    factors = projection.get_factors(*middle)
    return float(max(factors.tissot_semimajor, factors.tissot_semiminor, key=lambda scale: abs(scale - 1)))


def _bands(source: Any) -> tuple[int, int, int]:
    """The numbers of the red, green and blue band; the first three where the file does not name them."""
    names = [band.name for band in source.colorinterp]
    if not {"red", "green", "blue"} <= set(names):
        return 1, 2, 3
    red, green, blue = (names.index(colour) + 1 for colour in ("red", "green", "blue"))
    return red, green, blue


def _has_alpha(source: Any) -> bool:
    return any(band.name == "alpha" for band in source.colorinterp)


def _common_frame(sources: Sequence[Any], paths: Sequence[Path], pixel: float | None) -> _Frame:
    """The ground that all dates show; its corner lies on the pixels of the first."""
    crs, pixel = sources[0].crs, _pixel_of(sources[0]) if pixel is None else pixel
    if not (math.isfinite(pixel) and pixel > 0):
        raise UserError(f"maps are read at a positive number of metres per pixel, not at {pixel}")
    for source, path in zip(sources, paths, strict=True):
        if (own := _pixel_of(source)) > _COARSEST * pixel:
            raise UserError(
                f"{path} has pixels of {own:g} m and cannot be read at {pixel:g} m: take a finer map, or "
                "train with a larger --metres-per-pixel"
            )
    bounds = [_bounds(source, crs) for source in sources]
    west, south = (max(edge[k] for edge in bounds) for k in (0, 1))
    east, north = (min(edge[k] for edge in bounds) for k in (2, 3))
    first_west, first_north = bounds[0][0], bounds[0][3]
    west = first_west + math.ceil((west - first_west) / pixel - 1e-6) * pixel
    north = first_north - math.ceil((first_north - north) / pixel - 1e-6) * pixel
    width, height = (math.floor(side / pixel + 1e-6) for side in (east - west, north - south))
    if width < 1 or height < 1:
        names = ", ".join(path.name for path in paths)
        if len(paths) == 1:
            raise UserError(f"{names} is smaller than one pixel of {pixel:g} m; is its pixel size right?")
        raise UserError(f"these maps show no common ground: {names}")
    return _Frame(west, north, width, height, pixel, crs)


def _require_memory(frame: _Frame, dates: int) -> None:
    """Raise before the memory is taken: a system that runs out of it ends the program without a word."""
    needed, there = frame.width * frame.height * _BYTES * dates, machine_memory()
    if there and needed > there:
        raise UserError(
            f"{frame.width:,} x {frame.height:,} pixels on {counted(dates, 'date')} need "
            f"{needed / 2**30:,.0f} GiB, and this machine has {there / 2**30:,.0f} GiB of memory: "
            f"read them with a larger --metres-per-pixel than {frame.pixel:g}, or cut out a part with "
            "gdal_translate -projwin"
        )


def _pixel_of(source: Any) -> float:
    """Metres from one column to the next; the columns of a turned map do not run to the east."""
    return math.hypot(source.transform.a, source.transform.d)


def _bounds(source: Any, crs: Any) -> tuple[float, float, float, float]:
    """West, south, east and north of a map; its first row may also lie in the south, or the map be turned."""
    ends = [(row, column) for row in (0, source.height) for column in (0, source.width)]
    x, y = zip(*(source.xy(*end, offset="ul") for end in ends), strict=True)
    west, south, east, north = (float(edge) for edge in (min(x), min(y), max(x), max(y)))
    if source.crs == crs:
        return west, south, east, north
    return need("rasterio.warp").transform_bounds(source.crs, crs, west, south, east, north)


def _transform(west: float, north: float, pixel: float) -> Any:
    return need("rasterio").Affine(pixel, 0, west, 0, -pixel, north)


def _read(
    warped: Any, frame: _Frame, bands: tuple[int, int, int]
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """All pixels in windows of whole rows; what is not known is black."""
    window = need("rasterio.windows").Window
    images = np.zeros((3, frame.height, frame.width), np.uint8)
    known = np.zeros((frame.height, frame.width), bool)
    for top in range(0, frame.height, _ROWS):
        rows = min(_ROWS, frame.height - top)
        part = window(0, top, frame.width, rows)
        known[top : top + rows] = warped.dataset_mask(window=part) > 0
        images[:, top : top + rows] = warped.read(bands, window=part) * known[top : top + rows]
    return images, known


def _names(paths: Sequence[Path]) -> tuple[str, ...]:
    names = [path.stem for path in paths]
    return tuple(names if len(set(names)) == len(names) else map(str, paths))
