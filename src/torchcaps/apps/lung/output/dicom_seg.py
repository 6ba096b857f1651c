"""Nodules as a DICOM segmentation object, which refers to the slices that it was made of."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from torchcaps.core import UserError
from torchcaps.storage import write_atomically

from ..segment import FoundNodule, NodulesFound
from ..volume import Volume

_SERIES_NUMBER = 9000  # scanners give much lower numbers


def write_dicom_seg(path: Path, found: NodulesFound, volume: Volume, algorithm: str) -> None:
    """Write a binary segmentation with a segment for each nodule.

    Only slices with a nodule on them are in the file; it must have at least one.

    Args:
        path: The file.
        found: At least one nodule.
        volume: Read from DICOM files, which are read again for what the object repeats of them.
        algorithm: Name of what made it.
    """
    import pydicom

    if volume.slices is None:
        raise UserError(f"{volume.name} was not read from DICOM files, which a DICOM segmentation refers to")
    if not found.nodules:
        raise UserError(f"{volume.name} has no nodules, and a DICOM segmentation holds at least one")
    marked = np.flatnonzero(found.labels.any((1, 2))).tolist()
    sources = [pydicom.dcmread(volume.slices[number], stop_before_pixels=True) for number in marked]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of values in the source that are against the standard
            document = _document(sources, found, marked, algorithm)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"no DICOM segmentation can refer to {volume.slices[marked[0]]}: {reason}; "
            "the other files do not need it"
        ) from error
    write_atomically(path, lambda draft: document.save_as(draft))


def _document(sources: Sequence[Any], found: NodulesFound, marked: Sequence[int], algorithm: str) -> Any:
    from highdicom import UID
    from highdicom.seg import Segmentation, SegmentationTypeValues

    from torchcaps import __version__

    return Segmentation(
        source_images=sources,
        pixel_array=found.labels[marked],
        segmentation_type=SegmentationTypeValues.BINARY,
        segment_descriptions=[_describe(nodule, algorithm) for nodule in found.nodules],
        series_instance_uid=UID(),
        series_number=_SERIES_NUMBER,
        sop_instance_uid=UID(),
        instance_number=1,
        manufacturer="torchcaps",
        manufacturer_model_name=algorithm,
        software_versions=__version__,
        device_serial_number="none",
        content_description="lung nodules; research software, not a medical device",
        content_label="NODULES",
        series_description="torchcaps lung nodules (research)",
    )


def _describe(nodule: FoundNodule, algorithm: str) -> Any:
    from highdicom import UID, AlgorithmIdentificationSequence
    from highdicom.seg import SegmentAlgorithmTypeValues, SegmentDescription
    from pydicom.sr.codedict import codes

    from torchcaps import __version__

    return SegmentDescription(
        segment_number=nodule.number,
        segment_label=f"nodule {nodule.number}",
        segmented_property_category=codes.SCT.MorphologicallyAbnormalStructure,
        segmented_property_type=codes.SCT.Nodule,
        algorithm_type=SegmentAlgorithmTypeValues.AUTOMATIC,
        algorithm_identification=AlgorithmIdentificationSequence(
            name=algorithm, version=__version__, family=codes.DCM.ArtificialIntelligence
        ),
        anatomic_regions=[codes.SCT.Lung],
        tracking_id=f"nodule {nodule.number}",
        tracking_uid=UID(),
    )
