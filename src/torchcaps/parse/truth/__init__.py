"""What couplings say, measured against what is true of an image: its parts, their masks and their tree."""

from .agreement import (
    Agreement,
    Trees,
    TrueTree,
    compare_trees,
    judge_edges,
    parts_looked_at,
    with_even_couplings,
)
from .equivariance import equivariance_error
from .owners import owners_in_regions
from .purity import part_purity
from .shares import Shares, evidence_shares

__all__ = [
    "Agreement",
    "Shares",
    "Trees",
    "TrueTree",
    "compare_trees",
    "equivariance_error",
    "evidence_shares",
    "judge_edges",
    "owners_in_regions",
    "part_purity",
    "parts_looked_at",
    "with_even_couplings",
]
