"""What seeds can tell apart: means with their deviations, and how their difference decides a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import inf, pi, sqrt, tan
from statistics import mean, stdev
from typing import NamedTuple

import numpy as np

from torchcaps.core import Number, counted, metric_of

from ..records import Budget, Row
from .claim import Finding, Verdict

THESIS_SEEDS = 5  # behind its figures
_ERROR = 0.05  # how often an interval may miss the truth
_STEPS = 100_000  # of the sum over angles
_DIGITS = 9  # to which numbers of runs are rounded, so that equal ones differ by zero


class Mean(NamedTuple):
    """A mean over seeds.

    Attributes:
        is_short: The runs had a smaller budget than the thesis's protocol, and that matters.
        budget: Of the runs; means of two budgets decide nothing. None where it is not known.
    """

    value: float
    spread: float | None
    seeds: int
    is_short: bool = False
    budget: Budget | None = None

    @classmethod
    def of_row(cls, row: Row, *, any_budget: bool = False) -> Mean:
        """The mean of a row; with `any_budget` runs of any budget count as long enough.

        It is that of the runs: the row has rounded it, and a small deviation may be zero there.
        """
        scale = metric_of(row.metric).scale
        found = cls.of_values([round(scale * run.value, _DIGITS) for run in row.runs], row.budget)
        return found._replace(is_short=row.budget != "full" and not any_budget)

    @classmethod
    def of_values(cls, values: Sequence[float], budget: Budget | None = None) -> Mean:
        """The mean of one value for each seed."""
        spread = stdev(values) if len(values) > 1 else None
        return cls(mean(values), spread, len(values), budget=budget)

    def times(self, factor: Number) -> Mean:
        """The mean in another unit."""
        spread = None if self.spread is None else abs(factor) * self.spread
        return self._replace(value=factor * self.value, spread=spread)


def mean_of(row: Row) -> Mean:
    """The mean of a row of any budget, to compare networks that were trained alike."""
    return Mean.of_row(row, any_budget=True)


class Effect(NamedTuple):
    """A difference, and half of its 95 % interval; infinite where there are too few seeds to say.

    Attributes:
        freedom: Of Student's variable behind the interval.
    """

    size: float
    margin: float
    is_short: bool = False
    freedom: Number = 1

    def margin_of(self, cases: Number) -> float:
        """Half of the interval that holds for all of so many cases at once (Bonferroni's)."""
        if self.margin in (0, inf):
            return self.margin
        return self.margin * student_quantile(self.freedom, cases) / student_quantile(self.freedom)

    def __str__(self) -> str:
        return f"{self.size:+.3g}" + ("" if self.margin == inf else f" ± {self.margin:.2g}")


def difference(first: Mean, second: Mean, *, cases: int = 1) -> Effect:
    """How much larger the first mean is (Welch's interval, a deviation for each); `cases` as in `excess`."""
    is_alike = first.budget == second.budget or None in (first.budget, second.budget)
    is_short = first.is_short or second.is_short or not is_alike
    size = first.value - second.value
    if first.spread is None or second.spread is None:
        return Effect(size, inf, is_short)
    squares = [(each.spread**2 / each.seeds, each.seeds - 1) for each in (first, second) if each.spread]
    error = sum(square for square, _ in squares)
    if not error:
        return Effect(size, 0.0, is_short)
    freedom = error**2 / sum(square**2 / left for square, left in squares)
    return Effect(size, student_quantile(freedom, cases) * sqrt(error), is_short, freedom)


def gain(more: Row, less: Row) -> Effect:
    """How much larger one metric is than another of the same runs, run by run.

    Such metrics rise and fall together, or against each other: `difference` would take them for independent.
    """
    scales = (metric_of(row.metric).scale for row in (more, less))
    first, second = (
        {run.facts.seed: scale * run.value for run in row.runs}
        for row, scale in zip((more, less), scales, strict=True)
    )
    gains = [round(first[seed] - second[seed], _DIGITS) for seed in first if seed in second]
    return excess(Mean.of_values(gains), 0) if gains else Effect(float(more.ours - less.ours), inf)


def excess(found: Mean, over: Number, *, over_seeds: Number = inf, cases: int = 1) -> Effect:
    """How far a mean lies above a number.

    Args:
        found: The mean.
        over: The number.
        over_seeds: Seeds that the number is the mean of, which scatter as ours do; infinite where it is known
            exactly.
        cases: How many settings were tried where one is enough. Some of many are ahead by chance, so the
            interval holds for all of them at once (Bonferroni's).
    """
    if found.spread is None:
        return Effect(found.value - over, inf, found.is_short)
    freedom = found.seeds - 1
    margin = student_quantile(freedom, cases) * found.spread * sqrt(1 / found.seeds + 1 / over_seeds)
    return Effect(found.value - over, margin, found.is_short, freedom)


@cache
def student_quantile(freedom: Number, cases: Number = 1) -> float:
    """The distance from zero that Student's variable exceeds in 5 % of draws.

    With several `cases`, any of so many variables exceeds it in at most 5 % of draws (Bonferroni). Student's
    variable is the root of the freedom times the tangent of an angle, whose density goes as
    cos^(freedom - 1).
    """
    edges = np.linspace(0, pi / 2, _STEPS + 1)
    shares = np.cumsum(np.cos((edges[1:] + edges[:-1]) / 2) ** (freedom - 1))
    angle = np.interp((1 - _ERROR / cases) * shares[-1], shares, edges[1:])
    return sqrt(freedom) * tan(float(angle))


def decide(effect: Effect, *, at_least: float = 0.0, all_of: Number = 1) -> Verdict:
    """Confirmed where all of the interval lies above `at_least`, not confirmed where none of it does.

    It stays open where the seeds cannot tell, and where the protocol of one is shorter than the thesis's, or
    than that of the other.

    Args:
        effect: The difference.
        at_least: What it has to be.
        all_of: How many cases the claim is about, all of which have to show it. Of many, one comes out
            against it by chance, so that one has to be against it by the interval of all of them at once.
    """
    if effect.is_short:
        return "open"
    if effect.size - effect.margin > at_least:
        return "confirmed"
    return "not confirmed" if effect.size + effect.margin_of(all_of) <= at_least else "open"


class Case(NamedTuple):
    """One of several effects that all have to be as large as the claim says.

    Attributes:
        is_excused: It cannot come out against the claim, because a training was ended too soon.
    """

    effect: Effect
    at_least: float = 0.0
    is_excused: bool = False

    def decided(self, all_of: Number = 1) -> Verdict:
        """The verdict on this case, which is one of `all_of`."""
        verdict = decide(self.effect, at_least=self.at_least, all_of=all_of)
        return "open" if verdict == "not confirmed" and self.is_excused else verdict


def case_of_rows(effect: Effect, *rows: Row, at_least: float = 0.0) -> Case:
    """An effect of rows as a case; a search that ran out of epochs loses nothing by it."""
    return Case(effect, at_least, is_excused=any(row.is_cut_short for row in rows))


def decide_together(cases: Mapping[str, Case | Verdict], planned: int, because: str) -> Finding:
    """Decide a claim about several cases: one case refutes it, and all planned ones must confirm it."""
    if against := _against(cases):
        return Finding("not confirmed", f"{because}; not in {', '.join(against)}")
    all_of, shown = max(planned, len(cases)), sum(_verdict(case) == "confirmed" for case in cases.values())
    if shown < all_of or not cases:
        return Finding("open", f"{because}; shown in {shown} of {all_of}")
    return Finding("confirmed", because)


def _against(cases: Mapping[str, Case | Verdict]) -> list[str]:
    """The cases that come out against a claim about all of them.

    Of many, one does so by chance: `number` of them count together where each is against it by the interval
    of so many cases as there are for each of that number (simes1986improved).
    """
    for number in range(len(cases), 0, -1):
        share = len(cases) / number
        found = [name for name, case in cases.items() if _verdict(case, share) == "not confirmed"]
        if len(found) >= number:
            return found
    return []


def _verdict(case: Case | Verdict, all_of: Number = 1) -> Verdict:
    return case.decided(all_of) if isinstance(case, Case) else case


def decide_best(findings: Sequence[Finding], missing: int) -> Finding:
    """A claim that one of several cases is enough for; the best by its mean comes first.

    Another case may confirm it where the seeds of the best cannot tell. It comes out against the claim once
    no case is undecided, or still has to run.
    """
    best, *others = findings
    if found := [finding for finding in findings if finding.verdict == "confirmed"]:
        return found[0]
    if best.verdict != "not confirmed":
        return best
    if missing > 0:
        return Finding("open", f"{best.because}; {counted(missing, 'setting')} without runs")
    undecided = sum(finding.verdict != "not confirmed" for finding in others)
    return Finding("open", f"{best.because}; {undecided} others are undecided") if undecided else best


def decide_each(effects: Mapping[str, Effect], planned: int, title: str) -> Finding:
    """Decide the claim that several effects all lie above zero."""
    words = ", ".join(f"{name} {effect}" for name, effect in effects.items())
    cases = {name: Case(effect) for name, effect in effects.items()}
    return decide_together(cases, planned, f"{title}: {words or 'no runs'}")
