"""How close is close enough: measured against float64, not guessed."""

import torch
from torch import Tensor


def assert_as_accurate_as(candidate: Tensor, plain: Tensor, exact: Tensor, factor: float = 2.0) -> None:
    """The candidate may err at most `factor` times as much as plain torch in the same dtype."""
    floor = torch.finfo(candidate.dtype).eps * exact.abs().max()
    allowed = factor * (plain.double() - exact).abs().max() + floor
    error = (candidate.double() - exact).abs().max()
    assert error <= allowed, f"error {error:.2e} exceeds {allowed:.2e}"
