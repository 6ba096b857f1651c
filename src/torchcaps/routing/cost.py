"""What a routing costs, by formula: the operations on numbers that its plain path runs.

Additions, products, comparisons, roots, exponentials and the like count as one each, and so do guards against
overflow and division by zero. Moving numbers and adding a zero in the place of a bias count as nothing.
"""

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
    """Either squash: size, maximum, division, square, sum and scale of each component, and seven for a pose.

    Those seven are two of the divisor against overflow, then a guard, a root and three of the shrinking
    factor: add one, divide and multiply, or change the sign, exponential and divide.
    """
    return 6 * pose + 7


def sigmoid_cost(size: int) -> int:
    """Sign, exponential, add one, divide, for each of `size` numbers; as many for its logarithm or a tanh."""
    return 4 * size


def layer_norm_cost(pose: int) -> int:
    """Mean, difference, square, variance, division, gain and offset; two divisions, a guard and a root."""
    return 7 * pose + 4


def length_cost(pose: int) -> int:
    """Square and sum each component; one root."""
    return 2 * pose + 1
