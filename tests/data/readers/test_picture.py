import numpy as np
import pytest
from PIL import ExifTags, Image

from torchcaps.data import middle_square, opened_picture

PIXELS = np.arange(6, dtype=np.uint8).reshape(2, 3) * 40


def save(path, note):
    Image.fromarray(PIXELS).save(path, exif=note)
    return path


def noted(orientation):
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    return exif


@pytest.mark.parametrize(
    ("orientation", "upright"),
    [
        (1, PIXELS),
        (2, PIXELS[:, ::-1]),
        (3, PIXELS[::-1, ::-1]),
        (4, PIXELS[::-1]),
        (5, PIXELS.T),
        (6, PIXELS[::-1].T),
        (7, PIXELS[::-1, ::-1].T),
        (8, PIXELS.T[::-1]),
    ],
)
def test_a_photograph_stands_upright_however_the_camera_was_held(orientation, upright, tmp_path):
    with opened_picture(save(tmp_path / "photo.png", noted(orientation))) as image:
        assert np.array_equal(np.asarray(image.convert("L")), upright)


def test_a_jpeg_is_turned_too(tmp_path):
    with opened_picture(save(tmp_path / "photo.jpg", noted(6))) as image:
        assert image.size == (2, 3)


def test_notes_that_cannot_be_read_do_not_hide_the_picture(tmp_path):
    with opened_picture(save(tmp_path / "photo.png", b"Exif\x00\x00nonsense")) as image:
        assert np.array_equal(np.asarray(image), PIXELS)


def test_the_middle_of_a_picture_is_kept():
    assert np.array_equal(np.asarray(middle_square(Image.fromarray(PIXELS), 2)), [[20, 60], [140, 180]])
