"""Analysis of variance of type II over flights (thesis, "Statistical significance testing")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torchcaps.core import UserError

FACTORS = ("dimension", "head", "likelihood")


class Sample(NamedTuple):
    """One flight: what was measured, and the design of its setting."""

    value: float
    dimension: int
    head: str
    likelihood: str


def analyse(samples: Sequence[Sample]) -> dict[str, float]:
    """The p-value of each factor and of each pair of them; all are categories.

    A dimension that lacks a combination of head and likelihood is left out: effects could not be told apart.
    """
    try:
        from statsmodels.formula.api import ols
        from statsmodels.stats.anova import anova_lm
    except ImportError as error:
        raise UserError("an analysis of variance needs statsmodels: pip install statsmodels") from error
    import pandas

    samples = _whole(samples)
    levels = {name: {getattr(sample, name) for sample in samples} for name in FACTORS}
    varied = [f"C({name})" for name in FACTORS if len(levels[name]) > 1]
    if not varied or len({sample.value for sample in samples}) < 2:
        return {}
    table = pandas.DataFrame(samples, columns=Sample._fields)
    formula = f"value ~ ({' + '.join(varied)}) ** 2"
    found = anova_lm(ols(formula, table).fit(), typ=2)["PR(>F)"]
    return {_words(name): float(p) for name, p in found.items() if p == p}  # the residual has none


def _whole(samples: Sequence[Sample]) -> list[Sample]:
    """The samples of dimensions that have all combinations of the other factors."""
    combinations: dict[int, set[tuple[str, str]]] = {}
    for sample in samples:
        combinations.setdefault(sample.dimension, set()).add((sample.head, sample.likelihood))
    most = max(map(len, combinations.values()), default=0)
    return [sample for sample in samples if len(combinations[sample.dimension]) == most]


def _words(effect: str) -> str:
    return effect.replace("C(", "").replace(")", "").replace(":", " and ")
