"""`python -m torchcaps`, for launchers such as torchrun."""

from torchcaps.cli.main import run

run()
