"""What is written of a segmented scan: volumes for viewers, tables, pictures and a page."""

from .dicom_seg import write_dicom_seg
from .nifti import write_nifti
from .page import NOTICE, scan_page
from .table import nodule_rows, nodule_table

__all__ = ["NOTICE", "nodule_rows", "nodule_table", "scan_page", "write_dicom_seg", "write_nifti"]
