"""A drawn world of chests with nodules, as DICOM with four readers or as regions in memory."""

from .draw import draw_cuts, draw_empty_cuts
from .files import write_phantom
from .patient import draw_patient, patient_name
from .scan import Protocol, read_patient, scan_patient

__all__ = [
    "Protocol",
    "draw_cuts",
    "draw_empty_cuts",
    "draw_patient",
    "patient_name",
    "read_patient",
    "scan_patient",
    "write_phantom",
]
