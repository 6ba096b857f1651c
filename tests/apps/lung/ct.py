"""Small CT volumes that the tests of this folder share."""

import numpy as np

from torchcaps.apps.lung import Volume


def chest(slices=10, side=64, nodules=()):
    """A body of tissue in air with two lungs in the inner slices, and balls (slice, row, column, radius)."""
    rows, columns = np.mgrid[:side, :side] / side - 0.5
    hounsfield = np.full((slices, side, side), -1000, np.int16)
    hounsfield[:, (rows / 0.4) ** 2 + (columns / 0.46) ** 2 < 1] = 40
    for centre in (-0.2, 0.2):
        lung = (rows / 0.27) ** 2 + ((columns - centre) / 0.15) ** 2 < 1
        hounsfield[2:-2, lung] = -850
    grid = np.stack(np.mgrid[:slices, :side, :side], axis=-1)
    for *centre, radius in nodules:
        hounsfield[((grid - centre) ** 2).sum(-1) <= radius**2] = 30
    return hounsfield


def volume(hounsfield, spacing=(2.0, 0.8, 0.7), name="test"):
    """With a patient's axes that are neither those of the array nor at the origin."""
    depth, rows, columns = spacing
    affine = np.diag([columns, rows, depth, 1.0])
    affine[:3, 3] = (-100.0, -120.0, 40.0)
    return Volume(hounsfield, spacing, affine, name)


def write_series(folder, hounsfield, spacing=(2.0, 0.8, 0.7)):
    """Valid DICOM files of an axial series, one for each slice."""
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

    folder.mkdir(parents=True, exist_ok=True)
    study, series, frame = (generate_uid(entropy_srcs=[name]) for name in ("study", "series", "frame"))
    for number, pixels in enumerate(hounsfield):
        file = Dataset()
        file.file_meta = FileMetaDataset()
        file.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
        file.file_meta.MediaStorageSOPClassUID = file.SOPClassUID = CTImageStorage
        uid = generate_uid(entropy_srcs=[str(number)])
        file.file_meta.MediaStorageSOPInstanceUID = file.SOPInstanceUID = uid
        file.StudyInstanceUID, file.SeriesInstanceUID, file.FrameOfReferenceUID = study, series, frame
        file.Modality, file.PatientID, file.PatientName = "CT", "test", "Test^Case"
        file.PatientBirthDate = file.PatientSex = file.StudyDate = file.StudyTime = file.StudyID = ""
        file.AccessionNumber = file.ReferringPhysicianName = ""
        file.InstanceNumber, file.SeriesNumber, file.SliceThickness = number + 1, 1, spacing[0]
        file.ImagePositionPatient = [-100.0, -120.0, 40.0 + spacing[0] * number]
        file.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
        file.PixelSpacing = list(spacing[1:])
        file.Rows, file.Columns = pixels.shape
        file.SamplesPerPixel, file.PhotometricInterpretation = 1, "MONOCHROME2"
        file.BitsAllocated = file.BitsStored = 16
        file.HighBit, file.PixelRepresentation = 15, 1
        file.RescaleSlope, file.RescaleIntercept = 1, -1024
        file.PixelData = (pixels.astype(np.int16) + 1024).tobytes()
        file.save_as(folder / f"{number:03}.dcm", enforce_file_format=True)
    return folder
