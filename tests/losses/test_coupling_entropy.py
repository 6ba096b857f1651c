"""The soft entropy of couplings against counting, closed forms and finite differences."""

from __future__ import annotations

from collections import Counter
from math import log2

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from torchcaps.losses import coupling_entropy_loss


def counted(coupling: Tensor, labels: Tensor, levels: int) -> float:
    """Entropy of the quantized couplings of each child, counted one by one."""
    classes = sorted(set(labels.tolist()))
    total = 0.0
    for number in classes:
        rows = [row for row, label in zip(coupling.tolist(), labels.tolist(), strict=True) if label == number]
        for child in range(coupling.shape[1]):
            counts = Counter(round(row[child][number] * (levels - 1)) for row in rows)
            total -= sum(n / len(rows) * log2(n / len(rows)) for n in counts.values()) / coupling.shape[1]
    return total / len(classes)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(1, 9))
def test_a_sharp_entropy_is_that_of_counting(seed: int, levels: int, batch: int) -> None:
    random = torch.Generator().manual_seed(seed)
    steps = torch.randint(levels, (batch, 3, 4), generator=random)
    labels = torch.randint(4, (batch,), generator=random)
    coupling = steps.double() / (levels - 1)
    got = coupling_entropy_loss(coupling, labels, levels=levels, sharpness=1e4)
    assert got.item() == pytest.approx(counted(coupling, labels, levels), abs=1e-6)


def test_equal_trees_have_no_entropy_and_two_halves_have_one_bit() -> None:
    labels = torch.zeros(4, dtype=torch.int64)
    same = torch.full((4, 5, 2), 0.3, dtype=torch.float64)
    assert coupling_entropy_loss(same, labels, sharpness=1e4).item() == pytest.approx(0, abs=1e-9)
    halves = same.clone()
    halves[:2] = 0.8
    assert coupling_entropy_loss(halves, labels, sharpness=1e4).item() == pytest.approx(1)


def test_gradients_are_those_of_finite_differences() -> None:
    coupling = torch.rand(5, 3, 4, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 1, 1, 3, 3])
    assert torch.autograd.gradcheck(lambda c: coupling_entropy_loss(c, labels, sharpness=0.5), (coupling,))


def test_descent_on_it_merges_trees() -> None:
    random = torch.Generator().manual_seed(0)
    logits = torch.randn(32, 6, 4, generator=random, requires_grad=True)
    labels = torch.arange(32) % 4
    optimizer = torch.optim.Adam([logits], 0.05)
    before = counted(logits.softmax(2).detach(), labels, 11)
    for _ in range(150):
        optimizer.zero_grad()
        coupling_entropy_loss(logits.softmax(2), labels, sharpness=1.0).backward()
        optimizer.step()
    assert counted(logits.softmax(2).detach(), labels, 11) < 0.5 * before


def test_an_even_share_is_a_level_by_default() -> None:
    """Sixteen classes have 17 levels: one and two sixteenths are then two of them, one bit apart."""
    coupling = torch.full((4, 3, 16), 1 / 16, dtype=torch.float64)
    coupling[:2] = 2 / 16
    labels = torch.zeros(4, dtype=torch.int64)
    assert coupling_entropy_loss(coupling, labels, sharpness=1e4).item() == pytest.approx(1)


def test_couplings_that_leave_the_unit_interval_count_as_its_ends() -> None:
    labels = torch.zeros(3, dtype=torch.int64)
    coupling = torch.tensor([-0.2, 0.4, 1.3], dtype=torch.float64).view(3, 1, 1).expand(-1, 2, 4)
    losses = [
        coupling_entropy_loss(c, labels, sharpness=0.5).item() for c in (coupling, coupling.clamp(0, 1))
    ]
    assert losses[0] == pytest.approx(losses[1])
