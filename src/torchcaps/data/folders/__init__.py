"""Images in a user's own folders: by classes, with masks, with poses, or of places."""

from .class_folders import folders_of_classes, list_files, read_test_folders
from .folder import folder_path, parse_folder_name
from .picture import (
    PICTURE_MODES,
    SUFFIXES,
    as_bytes,
    find_images,
    is_animation,
    open_any,
    opened_picture,
    raise_all,
    skipped_images,
    visible_files,
    visible_folders,
    without_transparency,
)

__all__ = [
    "PICTURE_MODES",
    "SUFFIXES",
    "as_bytes",
    "find_images",
    "folder_path",
    "folders_of_classes",
    "is_animation",
    "list_files",
    "open_any",
    "opened_picture",
    "parse_folder_name",
    "raise_all",
    "read_test_folders",
    "skipped_images",
    "visible_files",
    "visible_folders",
    "without_transparency",
]
