import pytest
from typer.main import get_command
from typer.testing import CliRunner

from torchcaps.cli.main import app
from torchcaps.cli.terminal import help_of


def every_line():
    groups = get_command(app).commands
    yield ()
    for name, command in groups.items():
        yield (name,)
        yield from ((name, part) for part in getattr(command, "commands", {}))


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_it_is_the_help_that_the_parser_gives(option):
    runner = CliRunner()
    for line in every_line():
        parsed = runner.invoke(app, [*line, option]).output
        with runner.isolation():  # lines are as long as the runner's
            assert help_of(app, [*line, option]) == parsed.removesuffix("\n"), line


@pytest.mark.parametrize(
    "line", [[], ["train"], ["train", "recipe", "--help"], ["nothing", "--help"], ["--help", "train"]]
)
def test_other_lines_are_left_to_the_parser(line):
    assert help_of(app, line) is None
