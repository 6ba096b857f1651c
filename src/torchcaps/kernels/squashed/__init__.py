"""The squash of many poses at once, with their lengths."""

from .function import fused_squash, squash_unsupported_reason

__all__ = ["fused_squash", "squash_unsupported_reason"]
