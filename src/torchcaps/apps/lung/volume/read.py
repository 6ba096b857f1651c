"""A CT volume from a DICOM folder, a NIfTI file or a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from torchcaps.core import MissingDataError, UserError
from torchcaps.data import open_any
from torchcaps.data.folders import SUFFIXES

from .dicom import DICOM_SUFFIXES, read_series, series_of
from .nifti import NIFTI_SUFFIXES, read_nifti
from .volume import Volume, unwindow

_LONGEST = 2048  # pixels; a slice of a CT has 512 or 1024 along each side


def read_volume(path: Path | str, *, series: str | None = None) -> Volume:
    """The CT volume at `path`.

    Args:
        path: A folder of DICOM files (one of them stands for its series), a NIfTI file, or a picture.
        series: Which DICOM series, where the folder has several: its UID, or "largest".

    A picture becomes a volume of one slice without spacing. Its grey values 0 to 255 are taken as the window
    from -1000 to 400 Hounsfield units; `Volume.millimetres` is an error for it.
    """
    path = Path(path)
    if path.is_dir():
        return read_series(path, series=series)
    if not path.is_file():
        raise MissingDataError(f"no file or folder at {path}")
    if path.name.lower().endswith(NIFTI_SUFFIXES):
        return read_nifti(path)
    if path.suffix.lower() in SUFFIXES | {".npy"}:
        return _read_image(path)
    if path.suffix.lower() in DICOM_SUFFIXES | {""}:
        return read_series(path.parent, series=series or series_of(path))
    raise UserError(
        f"{path} is none of: a folder of DICOM files, a NIfTI file ({', '.join(NIFTI_SUFFIXES)}), "
        f"a picture ({', '.join(sorted(SUFFIXES))})"
    )


def _read_image(path: Path) -> Volume:
    picture = open_any(path)
    if max(picture.size) > _LONGEST:
        width, height = picture.size
        raise UserError(
            f"{path} has {width}x{height} pixels, more than a slice of a CT ({_LONGEST} along a side "
            "at most); cut the slice out, or scale it to the 512 of most scans"
        )
    grey = np.asarray(picture.convert("L"), dtype=np.float32) / 255
    return Volume(unwindow(grey)[None], None, np.eye(4), path.stem)
