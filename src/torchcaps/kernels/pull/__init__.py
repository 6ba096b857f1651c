"""What LOBSTER does to all weights in each step, in place."""

from .function import fused_keep_zeros, fused_shrink, pull_unsupported_reason

__all__ = ["fused_keep_zeros", "fused_shrink", "pull_unsupported_reason"]
