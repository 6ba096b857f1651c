"""Convolutions without padding in half precision, with channels last in memory."""

from .function import fused_strided_conv, strided_conv_unsupported_reason

__all__ = ["fused_strided_conv", "strided_conv_unsupported_reason"]
