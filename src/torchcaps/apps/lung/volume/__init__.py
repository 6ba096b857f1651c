"""CT volumes in Hounsfield units, from DICOM folders, NIfTI files and pictures."""

from .dicom import Slice, list_series, load_series
from .nifti import NIFTI_SUFFIXES, read_nifti, read_nifti_mask, scan_name
from .read import read_volume
from .volume import Volume, equivalent_diameter, grey_bytes, window

__all__ = [
    "NIFTI_SUFFIXES",
    "Slice",
    "Volume",
    "equivalent_diameter",
    "grey_bytes",
    "list_series",
    "load_series",
    "read_nifti",
    "read_nifti_mask",
    "read_volume",
    "scan_name",
    "window",
]
