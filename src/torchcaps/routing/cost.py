"""What a routing costs, by formula: additions, products, divisions, roots, exponentials and logarithms."""

from __future__ import annotations

from typing import NamedTuple


class RoutingCost(NamedTuple):
    """Work of routing one set of votes: one sample at one position.

    `multiply_adds` are the contractions of votes with couplings or poses; `elementwise` is all the rest, one
    for each operation on one number.
    """

    multiply_adds: int
    elementwise: int

    @property
    def flops(self) -> int:
        """Operations in all, a multiply-add being two."""
        return 2 * self.multiply_adds + self.elementwise


def softmax_cost(size: int) -> int:
    """Maximum, subtraction, exponential, sum and division, for each of `size` numbers."""
    return 5 * size


def squash_cost(pose: int) -> int:
    """Square, sum and scale each component; add the guard, root, add one, divide, multiply."""
    return 3 * pose + 5


def squash_exponential_cost(pose: int) -> int:
    """Square, sum and scale each component; add the guard, root, two signs, exponential, divide."""
    return 3 * pose + 6


def sigmoid_cost(size: int) -> int:
    """Sign, exponential, add one, divide, for each of `size` numbers; as many for its logarithm."""
    return 4 * size


def layer_norm_cost(pose: int) -> int:
    """Mean, difference, square, variance, division, gain and offset; two divisions, a guard and a root."""
    return 7 * pose + 4


def length_cost(pose: int) -> int:
    """Square and sum each component; one root."""
    return 2 * pose + 1
