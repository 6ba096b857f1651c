"""What the chapter on routing annealing claims of iterations on MNIST, decided by rows."""

from __future__ import annotations

from math import inf

from torchcaps.core import metric_of

from ..plan import (
    Case,
    Effect,
    Finding,
    Mean,
    RowsOf,
    Verdict,
    decide,
    decide_together,
    difference,
)
from ..records import Row, Rows, by_setting
from .grid_claims import used_up
from .names import ANNEALED, FIXED, fixed_name, full_name
from .trend import decide_trend, rank_correlation

_FEWEST = 3  # numbers of iterations that a claim about their order is decided on


def _fixed_rows(rows: Rows, metric: str) -> dict[int, Row]:
    """Rows of training with fixed iterations, by their number."""
    found = by_setting(rows, metric)
    return {r: found[fixed_name(r)] for r in FIXED if fixed_name(r) in found}


def _gain(metric: str, more: Mean, less: Mean) -> Effect:
    """By how much one mean is better than another, whichever way is better."""
    return difference(more, less) if metric_of(metric).better == "higher" else difference(less, more)


def _annealed_points(rows: Rows, metric: str) -> dict[int, Mean]:
    """The means of a metric along the annealed training, by iterations."""
    row = by_setting(rows, metric).get(ANNEALED)
    if row is None or row.curve is None:
        return {}
    curve = row.curve
    return {
        at: Mean(
            float(mean),
            None if spread is None else float(spread),
            seeds,
            is_short=row.budget != "full",
            budget=row.budget,
        )
        for at, mean, spread, seeds in zip(curve.at, curve.mean, curve.spread, curve.seeds, strict=True)
    }


def annealed_ends_better(metric: str, rows_of: RowsOf) -> Finding:
    """The annealed loss or accuracy ends better than that of one iteration that was let run to its own end.

    The start of the annealed curve would be no measure: more iterations come with more epochs.
    """
    rows = rows_of("fig:fix_vs_ann")
    annealed, one = _annealed_points(rows, metric), _fixed_rows(rows, metric).get(1)
    if len(annealed) < 2 or one is None:
        return Finding("open", "annealed training has not come beyond one iteration, or fixed 1 is missing")
    most = max(annealed)
    last = annealed[most]
    gain = _gain(metric, last, Mean.of_row(one))
    about = metric_of(metric)
    ended, alone = (f"{mean:.{about.digits}f} {about.unit}".rstrip() for mean in (last.value, one.ours))
    because = f"test {about.title} {ended} at {most} iterations, {alone} with one alone, difference {gain}"
    verdict = decide(gain)
    if verdict != "not confirmed" and used_up(one) < inf:  # one that is no better than this counts anyway
        return Finding("open", f"{because}, but training with one alone was cut short")
    return Finding(verdict, because)


def fixed_loss_grows(rows_of: RowsOf) -> Finding:
    """Trained with the most iterations, the loss is clearly higher than with one, and rises in between.

    Trainings that were cut short leave the order open, and the ends where one of them is an end.
    """
    fixed = _fixed_rows(rows_of("fig:fix_vs_ann"), "test_loss")
    if len(fixed) < _FEWEST or max(fixed) == 1:
        return Finding("open", f"only {len(fixed)} of {len(FIXED)} numbers of iterations have been trained")
    trend = rank_correlation(list(fixed), [row.ours for row in fixed.values()])
    first, last = fixed[min(fixed)], fixed[max(fixed)]
    gap = difference(Mean.of_row(last), Mean.of_row(first))
    because = (
        f"test loss {first.ours:.4f} with {min(fixed)}, {last.ours:.4f} with {max(fixed)} iterations, "
        f"difference {gap}, rank correlation {trend:+.2f}"
    )
    cut = {r for r, row in fixed.items() if used_up(row) < inf}
    if cut:
        because = f"{because}, but {len(cut)} of {len(fixed)} trainings were cut short"
    verdicts: dict[str, Case | Verdict] = {
        "the ends": "open" if cut & {min(fixed), max(fixed)} else Case(gap),
        "the order": "open" if cut or gap.is_short else decide_trend(trend, len(fixed), falls=False),
    }
    return decide_together(verdicts, len(verdicts), because)


def annealed_is_better(metric: str, rows_of: RowsOf) -> Finding:
    """Annealed training has a better loss or accuracy than fixed training wherever both have been made."""
    rows = rows_of("fig:fix_vs_ann")
    fixed, annealed = _fixed_rows(rows, metric), _annealed_points(rows, metric)
    both = [r for r in fixed if r > 1 and r in annealed]
    gains = {r: _gain(metric, annealed[r], Mean.of_row(fixed[r])) for r in both}
    ahead = sum(gain.size > 0 for gain in gains.values())
    because = f"by the mean at {ahead} of {len(both)} numbers of iterations above one"
    cases = {f"{r} iterations": Case(gain) for r, gain in gains.items()}
    finding = decide_together(cases, len(FIXED) - 1, because)
    cut = [r for r in both if used_up(fixed[r]) < inf]
    if finding.verdict == "confirmed" and cut:
        return Finding("open", f"{because}, but fixed training was cut short at {len(cut)} of them")
    return finding


def full_gradient_is_worse(rows_of: RowsOf) -> Finding:
    """With many iterations the loss is clearly higher where gradients flow through all rounds."""
    found, most = by_setting(rows_of("fig:fix_vs_ann"), "test_loss"), FIXED[-1]
    last, full = found.get(fixed_name(most)), found.get(full_name(most))
    if last is None or full is None:
        return Finding("open", "one of the two has not been trained")
    gap = difference(Mean.of_row(full), Mean.of_row(last))
    because = (
        f"test loss {last.ours:.4f} through the last, {full.ours:.4f} through all of {most}, difference {gap}"
    )
    return Finding(decide(gap), because)
