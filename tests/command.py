"""A command of the package, run in the process of a test."""

from typer.testing import CliRunner

from torchcaps.cli.main import app


def torchcaps(*arguments):
    """What a command prints; one that fails fails the test."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout
