"""Labels of a volume as NIfTI."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from torchcaps.core import UserError
from torchcaps.storage import write_bytes

from ..volume import Volume

_TO_RAS = np.diag([-1.0, -1.0, 1.0, 1.0])  # DICOM counts millimetres to the left and back, NIfTI otherwise
_LEVEL = 1  # masks are mostly zeros: more effort gains nothing


def write_nifti(path: Path, labels: Shaped[np.ndarray, "slices rows columns"], volume: Volume) -> None:
    """Write numbers of voxels, voxel by voxel those of a NIfTI source; 0 is background."""
    import nibabel

    if labels.shape != volume.hounsfield.shape:
        raise UserError(f"labels have the size {labels.shape}, {volume.name} {volume.hounsfield.shape}")
    _ = volume.millimetres  # without them a viewer cannot place it
    kind = np.uint8 if int(labels.max(initial=0)) < 256 else np.uint16
    image = nibabel.Nifti1Image(labels.transpose(2, 1, 0).astype(kind), _TO_RAS @ volume.affine)
    axes = (nibabel.orientations.axcodes2ornt(codes) for codes in ("LPS", volume.axes))
    image = image.as_reoriented(nibabel.orientations.ornt_transform(*axes))
    image.header.set_xyzt_units("mm")
    write_bytes(path, gzip.compress(image.to_bytes(), compresslevel=_LEVEL, mtime=0))
