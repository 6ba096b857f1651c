"""The progress bar of a training run."""

import os
import signal
from contextlib import contextmanager

import pytest
import typer

from torchcaps.cli.terminal import CountBar, ProgressBar, progress, working
from torchcaps.core import METRICS
from torchcaps.train import StoppedError, Watcher

FINDINGS = ["couplings are uniform: by 0.1%", "parents are dead: 3 of 4"]
FACTS = {"parameters": 1, "images": 1, "epochs": 3, "metric": METRICS["accuracy"]}


def epoch(number, findings=()):
    row = {"epoch": number, "train_loss": 1.0, "val_loss": 1.0, "val_accuracy": 0.5, "images_per_second": 9.0}
    return row | ({"findings": list(findings)} if findings else {})


def test_each_problem_is_told_once(capsys):
    bar = ProgressBar()
    bar.run_started(FACTS)
    bar.epoch_done(epoch(0, FINDINGS))
    bar.epoch_done(epoch(1, ["couplings are uniform: by 0.3%"]))
    bar.epoch_done(epoch(2))
    text = capsys.readouterr().out
    assert text.count("couplings are uniform") == 1
    assert text.count("parents are dead") == 1


def test_an_epoch_is_told_by_the_leading_metric_of_the_task(capsys):
    bar = ProgressBar()
    bar.run_started({**FACTS, "metric": METRICS["dice"]})
    bar.epoch_done({**epoch(0), "val_dice": 0.8125})
    text = capsys.readouterr().out
    assert "Dice 0.8125" in text
    assert "accuracy" not in text


@pytest.mark.parametrize(("iterations", "told"), [(3, "3"), ({"a.routing": 2, "b.routing": 1}, "2, 1")])
def test_an_epoch_of_an_annealed_run_says_how_often_it_routes(capsys, iterations, told):
    bar = ProgressBar()
    bar.run_started(FACTS)
    bar.epoch_done(epoch(0) | {"iterations": iterations})
    assert f"accuracy 50.00%, iterations {told}  " in capsys.readouterr().out


def watch_a_run(bar, epochs):
    bar.run_started({**FACTS, "epochs": epochs})
    seen = []
    for number in range(epochs):
        bar.epoch_started(number, steps=5)
        for _ in range(5):
            bar.step_done(16)
        bar.epoch_done(epoch(number))
        seen.append((bar._bar.tasks[0].completed, bar._bar.tasks[0].total))
    for images in (60, 40):
        bar.testing(images, 100)
        seen.append((bar._bar.tasks[0].completed, bar._bar.tasks[0].total))
    return seen


def test_the_bar_runs_over_all_epochs_then_over_the_test_images_and_anew_for_another_run():
    with ProgressBar() as bar:
        assert isinstance(bar, Watcher)
        assert watch_a_run(bar, 2) == [(5, 10), (10, 10), (60, 100), (100, 100)]
        assert watch_a_run(bar, 3) == [(5, 15), (10, 15), (15, 15), (60, 100), (100, 100)]


@pytest.mark.parametrize("begin", [lambda bar: bar.run_started(FACTS), lambda bar: bar.testing(1, 2)])
def test_a_sign_turns_until_the_data_are_read(monkeypatch, begin):
    turning = []

    @contextmanager
    def sign(words):
        turning.append(words)
        yield
        turning.remove(words)

    monkeypatch.setattr(progress, "working", sign)
    with ProgressBar() as bar:
        assert turning == ["reading the data"]
        begin(bar)
        assert not turning
    with ProgressBar():
        assert turning
    assert not turning
    with ProgressBar(is_shown=False):
        assert not turning


def test_a_bar_that_is_not_shown_prints_nothing(capsys):
    with ProgressBar(is_shown=False) as bar:
        watch_a_run(bar, 2)
        bar.epoch_done(epoch(2, FINDINGS))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("is_shown", [True, False])
def test_a_signal_to_end_asks_the_run_to_stop(number, is_shown):
    before = signal.getsignal(number)

    def run():
        with ProgressBar(is_shown=is_shown) as bar:
            assert not bar.wants_to_stop
            os.kill(os.getpid(), number)
            assert bar.wants_to_stop
            raise StoppedError

    with pytest.raises(typer.Exit) as ended:
        run()
    assert ended.value.exit_code == 143
    assert signal.getsignal(number) == before


def test_a_line_says_how_far_a_long_epoch_has_come_without_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr("torchcaps.cli.terminal.progress._SECONDS_BETWEEN_LINES", 0.0)
    with ProgressBar() as bar:
        watch_a_run(bar, 1)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("epoch 1/1  3 of 5")]
    assert [line for line in lines if line.startswith("testing  60 of 100")]
    assert "" not in lines


def test_other_errors_pass():
    with pytest.raises(KeyError), ProgressBar():
        raise KeyError


def test_a_slow_network_does_not_seem_to_stand_still(capsys):
    with ProgressBar() as bar:
        bar.run_started({**FACTS, "epochs": 1})
        bar.epoch_started(0, 1)
        bar.step_done(1)
        bar.epoch_done(
            {"epoch": 0, "train_loss": 1.0, "val_loss": 1.0, "val_accuracy": 0.5, "images_per_second": 0.42}
        )
    printed = capsys.readouterr().out
    assert "0.4 img/s" in printed
    assert "1 epoch\n" in printed


def test_nothing_but_results_is_printed_where_there_is_no_terminal(capsys):
    with CountBar("slices") as bar, CountBar("candidates") as search, working("measuring"):
        bar.reached(1, 2)
        search.reached(1, 2, "best 90%")
    printed = capsys.readouterr()
    assert printed.out == printed.err == ""


def test_a_long_count_says_how_far_it_came_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    with CountBar("slices") as bar, CountBar("candidates", is_shown=False) as hidden:
        bar.reached(1, 2)
        hidden.reached(1, 2, "best 90%")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "slices: 1 of 2\n"
