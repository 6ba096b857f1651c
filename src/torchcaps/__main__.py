"""`python -m torchcaps`, for launchers such as torchrun."""

from torchcaps.cli.start import run

run()
