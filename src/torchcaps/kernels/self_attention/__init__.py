"""Self-attention routing over stored votes."""

from .function import fused_self_attention_routing, self_attention_unsupported_reason

__all__ = ["fused_self_attention_routing", "self_attention_unsupported_reason"]
