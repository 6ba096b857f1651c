import json
import math
import os

from torchcaps.cli.terminal import print_json, print_table


def test_brackets_in_a_table_are_no_markup(capsys):
    print_table([{"[bold]class": "[bold]x", "path": "runs/[/x]", "images": 3}])
    printed = capsys.readouterr().out
    assert "[bold]class" in printed
    assert "[bold]x" in printed
    assert "runs/[/x]" in printed


def test_json_knows_no_numbers_that_are_not_finite(capsys):
    print_json({"loss": math.nan, "rows": [math.inf, (1.5, -math.inf)], "name": "NaN"})
    found = json.loads(capsys.readouterr().out, parse_constant=lambda text: 1 / 0)
    assert found == {"loss": None, "rows": [None, [1.5, None]], "name": "NaN"}


def test_json_of_a_name_in_no_encoding_is_text_and_gives_the_name_back(capsys):
    name = os.fsdecode(b"\xff.png")
    print_json({"image": name, "class": "été"})
    printed = capsys.readouterr().out.encode()  # fails where it is no text
    assert json.loads(printed) == {"image": name, "class": "été"}
    assert "été" in printed.decode()


WIDE = [
    {
        "name": "dr_capsnet_cifar10_original",
        "family": "dr_capsnet",
        "params": 22_476_448,
        "flops": 3_169_357_152,
    },
    {"name": "vit", "family": "vit", "params": 1, "flops": 2},
]


def on_a_terminal(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")


def test_a_narrow_terminal_gets_whole_words_and_the_names_of_columns_left_out(monkeypatch, capsys):
    on_a_terminal(monkeypatch, 60)
    print_table(WIDE)
    printed = capsys.readouterr()
    assert "22,476,448" in printed.out
    assert "flops" not in printed.out
    assert "left out, for a terminal of 60 columns: flops" in printed.err
    assert len(printed.out.splitlines()) == 3


def test_sentences_wrap_at_spaces_where_a_terminal_is_narrow(monkeypatch, capsys):
    on_a_terminal(monkeypatch, 30)
    print_table([{"name": "dynamic", "about": "Routing by agreement, procedure 1"}])
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = [line.rstrip() for line in printed.out.splitlines()[1:]]
    assert lines == ["dynamic  Routing by agreement,", "         procedure 1"]


def test_a_row_is_one_line_where_there_is_no_terminal(monkeypatch, capsys):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    print_table([{"name": "x", "about": "many words " * 40}])
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_letters_that_are_two_columns_wide_stay_on_one_line(capsys):
    print_table([{"class": "日本", "日本": "3"}, {"class": "fish", "日本": "4"}])
    assert capsys.readouterr().out.splitlines()[0].split() == ["class", "日本"]
