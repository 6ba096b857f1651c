"""The one place where files are written: whole or not at all."""

from .arrays import Form, read_array, read_arrays, write_arrays
from .files import (
    DiskError,
    checksum_of,
    is_disk_error,
    read_json,
    read_json_lines,
    read_mapping,
    read_text,
    write_atomically,
    write_bytes,
    write_json,
    write_json_lines,
    write_png,
    write_text,
)
from .folder_lock import one_at_a_time
from .names import distinct_stems, expanded
from .weights import load_weights, save_weights, wrong_kind

__all__ = [
    "DiskError",
    "Form",
    "checksum_of",
    "distinct_stems",
    "expanded",
    "is_disk_error",
    "load_weights",
    "one_at_a_time",
    "read_array",
    "read_arrays",
    "read_json",
    "read_json_lines",
    "read_mapping",
    "read_text",
    "save_weights",
    "write_arrays",
    "write_atomically",
    "write_bytes",
    "write_json",
    "write_json_lines",
    "write_png",
    "write_text",
    "wrong_kind",
]
