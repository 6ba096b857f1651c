import struct

import numpy as np
import pytest
from PIL import ExifTags, Image

from torchcaps.core import UserError
from torchcaps.data import find_images, open_any, opened_picture, without_transparency
from torchcaps.data.folders import skipped_images
from torchcaps.data.folders.listing import files_below

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


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_clear_parts_become_white_and_the_others_stay(mode, tmp_path):
    picture = Image.new("RGBA", (2, 1), (0, 0, 0, 0))
    picture.putpixel((1, 0), (90, 90, 90, 255))
    picture.convert(mode).save(tmp_path / "clear.png")
    found = without_transparency(open_any(tmp_path / "clear.png")).convert("L")
    assert list(found.tobytes()) == [255, 90]


def test_a_picture_without_clear_parts_stays_as_it_is():
    for picture in (Image.new("RGB", (2, 2)), Image.new("RGBA", (2, 2), (1, 2, 3, 255))):
        assert without_transparency(picture) is picture


def test_of_a_file_with_several_pages_none_is_chosen(tmp_path):
    page, preview = Image.fromarray(PIXELS), Image.new("L", (1, 1))
    page.save(tmp_path / "stack.tif", save_all=True, append_images=[page, preview])
    page.save(tmp_path / "page.tif", save_all=True, append_images=[preview])
    with pytest.raises(UserError, match=r"stack\.tif has 2 pages; save each"):
        open_any(tmp_path / "stack.tif")
    assert np.array_equal(np.asarray(open_any(tmp_path / "page.tif")), PIXELS)


@pytest.mark.parametrize("ending", ["gif", "webp", "png"])
def test_of_an_animation_no_image_is_chosen(ending, tmp_path):
    first, second = Image.new("RGB", (4, 4), "red"), Image.new("RGB", (4, 4), "blue")
    first.save(tmp_path / f"moving.{ending}", save_all=True, append_images=[second])
    first.save(tmp_path / f"still.{ending}")
    with pytest.raises(UserError, match=rf"moving\.{ending} is an animation; save one image of it"):
        open_any(tmp_path / f"moving.{ending}")
    assert open_any(tmp_path / f"still.{ending}").size == (4, 4)
    with opened_picture(tmp_path / f"moving.{ending}", may_move=True) as picture:
        assert picture.convert("RGB").getpixel((0, 0))[0] > 200


def test_an_image_that_is_too_large_is_answered_with_what_to_do(tmp_path, monkeypatch):
    save(tmp_path / "slide.png", noted(1))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2)
    with pytest.raises(UserError, match=r"slide\.png has more than 0 megapixels; make it smaller"):
        open_any(tmp_path / "slide.png")


def test_a_format_of_phones_is_answered_with_what_to_do(tmp_path):
    (tmp_path / "IMG_1.HEIC").write_bytes(b"\0\0\0\x18ftypheic" + bytes(50))
    with pytest.raises(UserError, match="save it as JPEG first"):
        open_any(tmp_path / "IMG_1.HEIC")
    with pytest.raises(UserError, match=r"\(HEIC\) as JPEG first"):
        find_images([str(tmp_path)])


@pytest.mark.parametrize("compression", ["raw", "tiff_lzw"])
def test_a_tiff_is_turned_too(compression, tmp_path):
    turned = {ExifTags.Base.Orientation: 6}
    Image.fromarray(PIXELS).save(tmp_path / "scan.tif", tiffinfo=turned, compression=compression)
    assert np.array_equal(np.asarray(open_any(tmp_path / "scan.tif")), PIXELS[::-1].T)


def test_a_jpeg_is_turned_too(tmp_path):
    with opened_picture(save(tmp_path / "photo.jpg", noted(6))) as image:
        assert image.size == (2, 3)


def test_notes_that_cannot_be_read_do_not_hide_the_picture(tmp_path):
    with opened_picture(save(tmp_path / "photo.png", b"Exif\x00\x00nonsense")) as image:
        assert np.array_equal(np.asarray(image), PIXELS)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 1), (2, 3, 3)])
def test_an_array_of_bytes_is_a_picture(shape, tmp_path):
    pixels = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    np.save(tmp_path / "photo.npy", pixels)
    found = np.asarray(open_any(tmp_path / "photo.npy"))
    assert np.array_equal(found, pixels.squeeze())


@pytest.mark.parametrize(
    "array", [np.zeros((2, 3)), np.full((2, 3), 300), np.zeros(6, np.uint8), np.zeros((0, 3))]
)
def test_other_arrays_are_refused(array, tmp_path):
    np.save(tmp_path / "photo.npy", array)
    with pytest.raises(UserError, match="an image is an array of whole numbers 0 to 255"):
        open_any(tmp_path / "photo.npy")


def test_an_array_of_objects_is_not_unpickled(tmp_path):
    np.save(tmp_path / "photo.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match="cannot be read as a NumPy array"):
        open_any(tmp_path / "photo.npy")


def test_images_that_are_skipped_for_their_names_are_listed(tmp_path):
    (tmp_path / "cat" / ".cache").mkdir(parents=True)
    for name in ("a.png", "b.gif", "c", ".cache/d.gif"):
        Image.new("L", (4, 4)).save(tmp_path / "cat" / name, format="PNG")
    (tmp_path / "cat" / "notes.txt").write_text("no image")
    (tmp_path / "cat" / "z.HEIC").write_bytes(b"ftypheic")
    assert skipped_images(tmp_path) == [tmp_path / "cat" / name for name in ("b.gif", "c", "z.HEIC")]


def test_links_to_folders_are_followed_and_links_back_are_not(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "given/a").mkdir(parents=True)
    for path in (tmp_path / "elsewhere/1.png", tmp_path / "given/a/2.png"):
        save(path, noted(1))
    (tmp_path / "given/linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "given/a/back").symlink_to(tmp_path / "given")
    names = [str(tmp_path / "given" / name) for name in ("a/2.png", "linked/1.png")]
    assert find_images([str(tmp_path / "given")]) == names
    save(tmp_path / "elsewhere/3.gif", noted(1))
    assert skipped_images(tmp_path / "given") == [tmp_path / "given/linked/3.gif"]


def test_hidden_folders_are_not_entered(tmp_path):
    for name in ("shown", ".Trash-1000", "__MACOSX"):
        (tmp_path / name).mkdir()
        save(tmp_path / name / "1.png", noted(1))
    assert list(files_below(tmp_path)) == [tmp_path / "shown/1.png"]


def test_an_empty_file_is_called_empty(tmp_path):
    (tmp_path / "photo.png").touch()
    with pytest.raises(UserError, match=r"cannot be read as an image \(the file is empty\)"):
        open_any(tmp_path / "photo.png")


def test_colours_that_pillow_cannot_convert_are_refused(tmp_path):
    Image.new("LAB", (4, 4)).save(tmp_path / "photo.tif")
    with pytest.raises(UserError, match="CIELAB; save it as an RGB image"):
        open_any(tmp_path / "photo.tif", deep="keep")


def test_a_file_that_a_program_would_have_to_draw_is_refused(tmp_path, monkeypatch):
    Image.fromarray(PIXELS).save(tmp_path / "drawn.eps")
    path = (tmp_path / "drawn.eps").rename(tmp_path / "photo.png")
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", lambda *_, **__: Image.new("L", (3, 2)).im)
    with pytest.raises(UserError, match="of no known image format"):
        open_any(path)


def test_a_photograph_of_a_phone_is_known_by_its_content(tmp_path):
    (tmp_path / "photo.jpg").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(100))
    with pytest.raises(UserError, match="a format of phones that is not read here: save it as JPEG"):
        open_any(tmp_path / "photo.jpg")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "MPO", "WEBP", "TIFF", "BMP", "GIF"])
def test_images_are_read_whatever_their_names(tmp_path, kind):
    Image.fromarray(PIXELS).save(tmp_path / "photo.png", format=kind)
    assert open_any(tmp_path / "photo.png").size == (3, 2)


LEVELS = np.array([[0, 1, 200, 255]], dtype=np.uint8)  # as scanners of 16 bits store them: 257 for each


def save_inverted(path):
    Image.fromarray(65535 - LEVELS.astype(np.uint16) * 257).save(path, tiffinfo={262: 0})  # white is 0


def save_of_12_bits(path):
    """A TIFF with two values in three bytes, which pillow reads but does not write."""
    tags = {256: 4, 257: 1, 258: 12, 259: 1, 262: 1, 273: 122, 277: 1, 278: 1, 279: 6}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    values = "".join(f"{level * 4095 // 255:03x}" for level in LEVELS[0].tolist())
    header = b"II*\0" + struct.pack("<IH", 8, len(tags))
    path.write_bytes(header + entries + bytes(4) + bytes.fromhex(values))


@pytest.mark.parametrize(
    ("name", "save_deep"),
    [
        ("scan.png", lambda path: Image.fromarray(LEVELS.astype(np.uint16) * 257).save(path)),
        ("scan.tif", lambda path: Image.fromarray((LEVELS * np.uint16(257)).astype(">u2")).save(path)),
        (
            "scan.pgm",
            lambda path: path.write_bytes(
                b"P5 4 1 4080\n" + (LEVELS * np.uint16(16)).astype(">u2").tobytes()
            ),
        ),
        ("inverted.tif", save_inverted),
        ("twelve.tif", save_of_12_bits),
    ],
)
def test_a_grey_scan_of_more_than_8_bits_is_scaled_by_the_depth_that_its_file_states(
    name, save_deep, tmp_path
):
    save_deep(tmp_path / name)
    assert np.array_equal(np.asarray(open_any(tmp_path / name, deep="scale")), LEVELS)
    with Image.open(tmp_path / name) as opened:
        assert np.array_equal(np.asarray(open_any(opened, deep="scale")), LEVELS)
    with pytest.raises(UserError, match="has more than 8 bits per pixel"):
        open_any(tmp_path / name)


def test_a_scan_of_16_bits_is_turned_as_its_note_says(tmp_path):
    Image.fromarray(LEVELS.astype(np.uint16) * 257).save(tmp_path / "scan.tif", exif=noted(6))
    assert np.array_equal(np.asarray(open_any(tmp_path / "scan.tif", deep="scale")), LEVELS[::-1].T)


def test_what_would_be_lost_in_8_bits_is_not_scaled(tmp_path):
    Image.fromarray(np.full((2, 2), 4000, np.uint16)).save(tmp_path / "faint.png")  # 12 bits, stored as 16
    with pytest.raises(UserError, match=r"faint\.png has values up to 4,000 where 65,535 is white"):
        open_any(tmp_path / "faint.png", deep="scale")
    Image.fromarray(np.zeros((2, 2), np.uint16)).save(tmp_path / "black.png")
    assert np.asarray(open_any(tmp_path / "black.png", deep="scale")).max() == 0
    for kind in (np.float32, np.int32):  # what is white in these, no file says
        Image.fromarray(np.ones((2, 2), kind)).save(tmp_path / "measured.tif")
        with pytest.raises(UserError, match=r"measured\.tif has more than 8 bits per pixel"):
            open_any(tmp_path / "measured.tif", deep="scale")
