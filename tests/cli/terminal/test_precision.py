"""What `train` says about the precision it computes in."""

import pytest

from torchcaps import train
from torchcaps.cli.terminal import choose_machine, faster_precision
from torchcaps.train import Machine, machine


@pytest.fixture
def processor(monkeypatch):
    """Makes this processor one with bf16, that many times as fast in it; 0 has none."""

    def pretend(speedup):
        for module in (train, machine):
            monkeypatch.setattr(module, "has_native_bf16", lambda device: speedup > 0)
        monkeypatch.setattr(machine, "bf16_speedup", lambda device: speedup)

    return pretend


@pytest.mark.parametrize(
    ("asked", "speedup", "chosen", "said"),
    [
        ("auto", 2.0, "bf16", "precision bf16 on cpu: native and faster"),
        ("auto", 1.0, "32", "precision 32 on cpu: bf16 is not both native and faster"),
        ("auto", 0.0, "32", "precision 32 on cpu: bf16 is not both native and faster"),
        ("32", 2.0, "32", ""),
        ("bf16", 2.0, "bf16", ""),
    ],
)
def test_the_choice_is_said(asked, speedup, chosen, said, processor, capsys):
    processor(speedup)
    assert choose_machine("cpu", asked, None).precision == chosen
    printed = capsys.readouterr().err
    assert said in printed if said else not printed


def test_quiet_says_nothing(processor, capsys):
    processor(2.0)
    choose_machine("cpu", "auto", None, quiet=True)
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "speedup", "hints"), [("32", 2.0, True), ("32", 0.0, False), ("bf16", 2.0, False)]
)
def test_who_could_train_faster_is_told(asked, speedup, hints, processor):
    processor(speedup)
    hint = faster_precision(Machine(device="cpu", precision=asked))
    assert ("--precision auto" in hint) == hints
