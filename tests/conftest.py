import functools
import gc
import importlib.metadata
import os

import jaxtyping
import pytest
import torch
import typer.testing

import checking

jaxtyping.jaxtyped = checking.jaxtyped  # what its import hook writes above each function of torchcaps
# tests call the command line hundreds of times in one process: its commands are read once
typer.main.get_command = typer.testing._get_command = functools.cache(typer.main.get_command)

_PROCESSES = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
if torch.cuda.is_available():  # float64 references on the CPU take all cores, and processes share them
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // _PROCESSES))
else:
    torch.set_num_threads(1)  # tests run side by side: more threads than cores would wait for each other

# each training asks all installed packages for what they add to lightning
importlib.metadata.entry_points = functools.cache(importlib.metadata.entry_points)
os.fsync = lambda file: None  # no test pulls the plug, and a disk takes milliseconds for each file


@pytest.fixture(autouse=True)
def _fixed_seed():
    """Tests draw from the CPU generator; each starts from the same point, in any order."""
    if torch.cuda.is_available():
        torch.manual_seed(0)
    else:  # without the traceback that each device keeps of the call
        torch.default_generator.manual_seed(0)


def pytest_collection_finish():
    """What collection made stays to the end: no later collection of garbage has to look through it."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # thousands of small models are no reason to search for cycles


def pytest_sessionfinish():
    """One search for what was never closed; pytest and Python would search the same heap six times."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item):
    """Where there is no GPU, its tests say so instead of failing."""
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
