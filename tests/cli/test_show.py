import json
import math

from torchcaps.cli.show import print_json, print_table


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
