"""Weights of other libraries: read, converted to ours, and written as our files."""

from .files import import_efficient_capsnet_run, import_trunk_file

__all__ = ["import_efficient_capsnet_run", "import_trunk_file"]
