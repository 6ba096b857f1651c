"""How typical a parse tree is of its class, and how well that tells strange images from known ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchcaps.core import UserError

from .dictionary import Dictionary, Keys, count_trees

Scores = NDArray[np.float64]

_PRIOR = 0.5  # images added to each possibility (Krichevsky & Trofimov 1981)


@dataclass(frozen=True)
class TreeModel:
    """What trees each class has, learnt from the keys of reference images.

    Surprise is minus the base-2 logarithm of a probability: bits, more for a stranger tree. An image whose
    class no reference image was predicted as is infinitely surprising.
    """

    dictionary: Dictionary
    level_bits: NDArray[np.float64]  # (classes, in_caps, levels): surprise of a child at a level

    def key_surprise(self, keys: Keys) -> Scores:
        """Surprise of whole trees: p = (count + 1/2) / (n + (trees + 1) / 2).

        Of `n` reference images of the class, `count` had this tree; all trees that were never seen count as
        one more. With about as many trees as reference images nearly all are unseen, and `child_surprise`
        says more.
        """
        self._check(keys)
        classes = self.dictionary.classes
        totals = [trees.samples + _PRIOR * (len(trees.counts) + 1) for trees in classes]
        shares = [
            (classes[j].counts.get(key, 0) + _PRIOR) / totals[j] if classes[j].counts else 0.0
            for key, j in zip(keys.as_bytes(), keys.predicted.tolist(), strict=True)
        ]
        return _bits(np.array(shares))

    def child_surprise(self, keys: Keys) -> Scores:
        """Surprise of the children one by one, summed, as if they were independent within a class.

        A level that `count` of `n` images had has p = (count + 1/2) / (n + levels / 2).
        """
        self._check(keys)
        children = np.arange(keys.indices.shape[1])
        total = np.zeros(len(keys))
        for j in np.unique(keys.predicted):
            images = keys.predicted == j
            total[images] = self.level_bits[j][children, keys.indices[images]].sum(1)
        return total

    def _check(self, keys: Keys) -> None:
        given = (keys.num_classes, keys.indices.shape[1], keys.levels)
        if given != self.level_bits.shape:
            raise UserError(
                "keys of {} classes, {} children and {} levels do not fit a model of {}, {} and {}".format(
                    *given, *self.level_bits.shape
                )
            )


def learn_trees(reference: Keys) -> TreeModel:
    """The trees of reference images, usually those the network was trained on."""
    children, levels = reference.indices.shape[1], reference.levels
    counts = np.zeros((reference.num_classes, children * levels))
    starts = np.arange(children) * levels
    for j in range(reference.num_classes):
        rows = reference.indices[reference.predicted == j]
        for part in np.array_split(rows, len(rows) // 1000 + 1):  # bounds the memory of the wide indices
            counts[j] += np.bincount((starts + part).ravel(), minlength=children * levels)
    counts = counts.reshape(reference.num_classes, children, levels)
    samples = counts.sum(-1, keepdims=True)
    shares = np.where(samples > 0, (counts + _PRIOR) / (samples + _PRIOR * levels), 0.0)
    return TreeModel(count_trees(reference), _bits(shares))


def _bits(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):  # a share of zero is infinitely surprising
        return -np.log2(shares)


def share_below(score: float, reference: Scores) -> float:
    """The share of reference scores that are lower: 0.99 means stranger than nearly all."""
    if not len(reference):
        raise UserError("there are no reference images to compare with")
    return float((reference < score).mean())


def roc_auc(normal: Scores, strange: Scores) -> float:
    """Area under the ROC: how often a strange image scores higher than a normal one, ties counting half.

    Exact: pairs are counted, not integrated.
    """
    if not len(normal) or not len(strange):
        raise UserError(f"an ROC needs images of both kinds, got {len(normal)} and {len(strange)}")
    if np.isnan(normal).any() or np.isnan(strange).any():
        raise UserError("scores must be numbers, got NaN")
    ordered = np.sort(normal)
    below = np.searchsorted(ordered, strange, side="left").sum()
    not_above = np.searchsorted(ordered, strange, side="right").sum()
    return float(int(below) + int(not_above)) / (2 * len(normal) * len(strange))
