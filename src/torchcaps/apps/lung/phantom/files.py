"""Drawn patients as files: a DICOM series and the XML of four readers for each, laid out as LIDC-IDRI is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import UserError
from torchcaps.storage import write_atomically, write_text

from ..nodules import Annotations, Marking, Outline
from ..volume import Volume
from .patient import draw_patient
from .scan import Protocol, read_patient, scan_patient

_INTERCEPT = -1024


def write_phantom(
    folder: Path,
    patients: int,
    *,
    seed: int = 0,
    protocol: Protocol | None = None,
    on_patient: Callable[[int, int], None] = lambda done, planned: None,
) -> list[Path]:
    """Draw patients and write each to a folder of its own; those that are there are kept."""
    protocol = protocol or Protocol()
    written = []
    for number in range(patients):
        patient = draw_patient(number, seed, reach=protocol.reach)
        place, uid = folder / patient.name, _uid("series", seed, number)
        xml = place / "readers.xml"
        if not xml.is_file():  # it is written last
            write_series(scan_patient(patient, protocol, uid), place)
            write_text(xml, annotations_xml(read_patient(patient, protocol, uid), place.name))
        written.append(place)
        on_patient(number + 1, patients)
    return written


def write_series(volume: Volume, folder: Path) -> None:
    """Write a volume as a CT series of one file for each slice, uncompressed."""
    if volume.series_uid is None:
        raise UserError(f"{volume.name} has no series UID to be written under")
    for number in range(len(volume.hounsfield)):
        save = _slice_dataset(volume, number).save_as
        write_atomically(folder / f"{number + 1:04d}.dcm", partial(save, enforce_file_format=True))


def _slice_dataset(volume: Volume, number: int) -> Any:
    from pydicom.dataset import FileDataset, FileMetaDataset
    from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian

    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = CTImageStorage
    meta.MediaStorageSOPInstanceUID = _uid(volume.series_uid, number)
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    found: Any = FileDataset("", {}, file_meta=meta, preamble=b"\0" * 128)
    found.SOPClassUID, found.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    found.PatientID = found.PatientName = volume.name
    found.PatientBirthDate, found.PatientSex = "", ""
    found.StudyInstanceUID = _uid("study", volume.series_uid)
    found.StudyDate, found.StudyTime, found.StudyID, found.AccessionNumber = "20000101", "000000", "1", ""
    found.ReferringPhysicianName, found.Manufacturer = "", "torchcaps phantom"
    found.SeriesInstanceUID, found.SeriesNumber, found.Modality = volume.series_uid, 1, "CT"
    found.FrameOfReferenceUID = _uid("frame", volume.series_uid)
    found.PositionReferenceIndicator, found.AcquisitionNumber = "", 1
    found.ImageType, found.InstanceNumber = ["ORIGINAL", "PRIMARY", "AXIAL"], number + 1
    _add_geometry(found, volume, number)
    _add_pixels(found, volume.hounsfield[number])
    return found


def _add_geometry(found: Any, volume: Volume, number: int) -> None:
    thickness, rows, columns = volume.millimetres
    affine = volume.affine
    directions = [affine[:3, 0] / columns, affine[:3, 1] / rows]
    found.ImagePositionPatient = _texts(affine[:3, 3] + number * affine[:3, 2])
    found.ImageOrientationPatient = _texts(np.concatenate(directions))
    found.PixelSpacing, found.SliceThickness = _texts(np.array([rows, columns])), f"{thickness:.6g}"


def _texts(numbers: NDArray[Any]) -> list[str]:
    """Decimal strings, which have at most 16 characters."""
    return [f"{number:.10g}"[:16] for number in numbers.tolist()]


def _add_pixels(found: Any, plane: NDArray[Any]) -> None:
    found.Rows, found.Columns = plane.shape
    found.SamplesPerPixel, found.PhotometricInterpretation = 1, "MONOCHROME2"
    found.BitsAllocated, found.BitsStored, found.HighBit, found.PixelRepresentation = 16, 16, 15, 0
    found.RescaleSlope, found.RescaleIntercept, found.RescaleType = "1", str(_INTERCEPT), "HU"
    stored = plane.astype(np.int32) - _INTERCEPT
    found.PixelData = stored.clip(0, 65535).astype("<u2").tobytes()


def _uid(*parts: object) -> str:
    from pydicom.uid import generate_uid

    return str(generate_uid(entropy_srcs=["torchcaps phantom", *map(str, parts)]))


def annotations_xml(annotations: Annotations, name: str) -> str:
    """Annotations in the XML of LIDC-IDRI."""
    sessions = [
        "<readingSession>\n<annotationVersion>3.12</annotationVersion>\n"
        f"<servicingRadiologistID>phantom-{reader}</servicingRadiologistID>\n"
        + "".join(_marking_xml(each) for each in annotations.markings if each.reader == reader)
        + "</readingSession>\n"
        for reader in range(annotations.num_readers)
    ]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<LidcReadMessage uid="1" xmlns="http://www.nih.gov">\n'
        f"<ResponseHeader>\n<Version>1.8.1</Version>\n<RequestingSite>{escape(name)}</RequestingSite>\n"
        f"<SeriesInstanceUid>{escape(annotations.series_uid)}</SeriesInstanceUid>\n</ResponseHeader>\n"
        f"{''.join(sessions)}</LidcReadMessage>\n"
    )


def _marking_xml(marking: Marking) -> str:
    scores = "" if marking.malignancy is None else f"<malignancy>{marking.malignancy}</malignancy>"
    outlines = "".join(map(_outline_xml, marking.outlines))
    return (
        f"<unblindedReadNodule>\n<noduleID>{escape(marking.nodule_id)}</noduleID>\n"
        f"<characteristics>{scores}</characteristics>\n{outlines}</unblindedReadNodule>\n"
    )


def _outline_xml(outline: Outline) -> str:
    edges = "".join(
        f"<edgeMap><xCoord>{x}</xCoord><yCoord>{y}</yCoord></edgeMap>\n" for x, y in outline.points.tolist()
    )
    return (
        f"<roi>\n<imageZposition>{outline.height:.6g}</imageZposition>\n"
        f"<inclusion>{str(outline.is_inclusion).upper()}</inclusion>\n{edges}</roi>\n"
    )
