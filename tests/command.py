"""A command of the package, run in the process of a test: a new one takes seconds to import PyTorch."""

import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from subprocess import CompletedProcess
from unittest.mock import patch

from typer.testing import CliRunner

from torchcaps.cli.main import app, run


def torchcaps(*arguments):
    """What a command prints; one that fails fails the test."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def completed(*arguments, cwd="."):
    """How a command ends, as a shell sees it: its exit code, and what it wrote to stdout and stderr."""
    out, errors, code = StringIO(), StringIO(), 0
    command = ["torchcaps", *map(str, arguments)]
    with chdir(cwd), redirect_stdout(out), redirect_stderr(errors), patch.object(sys, "argv", command):
        try:
            run()
        except SystemExit as end:
            code = int(end.code or 0)
    return CompletedProcess(command, code, out.getvalue(), errors.getvalue())
