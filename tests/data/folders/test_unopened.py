"""Files that the system does not open: one plain line each, with what to do."""

import errno
import os
from pathlib import Path

import pytest
from PIL import Image

from torchcaps.core import MissingDataError, UserError
from torchcaps.data import find_images, open_any


@pytest.fixture
def photo(tmp_path):
    Image.new("L", (4, 4)).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def said_of(path):
    with pytest.raises(UserError) as refused:
        open_any(path)
    assert "Errno" not in str(refused.value)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("ending", [".png", ".npy"])
def test_links_that_lead_nowhere_are_called_so(ending, tmp_path):
    broken, circle = tmp_path / f"broken{ending}", tmp_path / f"circle{ending}"
    broken.symlink_to(tmp_path / "nowhere")
    circle.symlink_to(circle)
    assert said_of(broken) == f"{broken} is a link to a file that is not there; remove it, or link to a file"
    assert said_of(circle) == f"{circle} is a link that leads back to itself; remove it, or link to a file"


@pytest.mark.parametrize("ending", [".png", ".npy"])
def test_a_folder_is_not_an_image(ending, tmp_path):
    folder = tmp_path / f"folder{ending}"
    folder.mkdir()
    assert said_of(folder) == f"{folder} is a folder, where an image file is expected; name a file in it"


def test_a_file_is_not_a_folder(photo):
    assert (
        said_of(photo / "other.png") == f"no image at {photo / 'other.png'}: {photo} is a file, not a folder"
    )


def test_a_name_that_is_too_long_is_called_so(tmp_path):
    path = tmp_path / f"{'a' * 300}.png"
    assert said_of(path) == f"{path}: this is too long for the name of a file; is it the name of one?"


@pytest.mark.parametrize("ending", [".png", ".npy"])
def test_a_file_without_permission_is_answered_with_what_to_do(ending, tmp_path, monkeypatch):
    path = tmp_path / f"photo{ending}"
    path.touch()

    def refuse(*arguments, **keywords):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr("numpy.load", refuse)
    assert said_of(path).startswith(f"no permission to read {path}; give it with chmod u+r")


def test_a_broken_disk_is_said_to_be_one(photo, monkeypatch):
    def refuse(*arguments, **keywords):
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(photo))

    monkeypatch.setattr(Path, "open", refuse)
    assert (
        said_of(photo)
        == f"{photo} cannot be read (Input/output error); copy it to another disk and try again"
    )


def test_a_file_that_is_not_there_is_missing(tmp_path):
    with pytest.raises(MissingDataError, match="no image at"):
        open_any(tmp_path / "none.png")


def test_names_that_cannot_be_files_do_not_hide_the_others(photo):
    names = [f"{'a' * 300}.png", str(photo), str(photo / "below.png")]
    assert find_images(names) == names


def test_an_empty_name_is_not_the_folder_that_one_works_in():
    with pytest.raises(UserError, match="the name of an image is empty"):
        find_images([""])
