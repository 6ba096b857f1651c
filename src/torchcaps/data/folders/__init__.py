"""Images in a user's own folders: by classes, with masks, with poses, or of places."""

from .class_folders import folders_of_classes, list_files, read_test_folders
from .folder import folder_path, parse_folder_name
from .listing import SUFFIXES, composed, find_images, skipped_images, visible_files, visible_folders
from .picture import (
    PICTURE_MODES,
    Deep,
    as_bytes,
    is_animation,
    open_any,
    opened_picture,
    without_transparency,
)
from .unopened import raise_all

__all__ = [
    "PICTURE_MODES",
    "SUFFIXES",
    "Deep",
    "as_bytes",
    "composed",
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
