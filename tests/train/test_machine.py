"""Where a run takes place."""

import subprocess
import sys

import pytest
import torch

from torchcaps.train import Machine, settled, train
from torchcaps.train.machine import bf16_speedup, launch

from small_runs import small_recipe

COUNT_FAULTS = """
import resource
import torch
from torchcaps.train.machine import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(1 << 24)  # 64 MiB, freed at once
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed_memory()
fewest = min(faults() for _ in range(8))  # at first a block may not fit where the one before it was
print(fewest * resource.getpagesize() / (1 << 26))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts page faults as Linux does")
def test_freed_memory_is_used_again_without_page_faults():
    """In a new process: where other tests have filled the heap, the C library may find no room in it."""
    done = subprocess.run([sys.executable, "-c", COUNT_FAULTS], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.1


@pytest.mark.parametrize(
    ("is_native", "speedup", "expected"), [(True, 2.0, "bf16"), (True, 1.0, "32"), (False, 2.0, "32")]
)
def test_auto_takes_bf16_where_it_is_native_and_faster(is_native, speedup, expected, monkeypatch):
    monkeypatch.setattr("torchcaps.train.machine.has_native_bf16", lambda device: is_native)
    monkeypatch.setattr("torchcaps.train.machine.bf16_speedup", lambda device: speedup)
    assert settled(Machine(device="cpu", precision="auto")).precision == expected
    assert settled(Machine(device="cpu", precision="32")).precision == "32"


def test_the_speed_of_bf16_is_measured_once():
    assert bf16_speedup(torch.device("cpu")) > 0
    assert bf16_speedup(torch.device("cpu")) == bf16_speedup(torch.device("cpu"))


def test_a_run_states_the_precision_that_auto_took(tmp_path, monkeypatch):
    monkeypatch.setattr("torchcaps.train.machine.has_native_bf16", lambda device: False)
    result = train(small_recipe(epochs=1), tmp_path, Machine(device="cpu", precision="auto"))
    assert result["precision"] == "32"


def test_a_run_in_bf16_leaves_no_coarser_products_to_the_next():
    launch(Machine(device="cpu", precision="bf16"))
    launch(Machine(device="cpu"))
    assert torch.get_float32_matmul_precision() == "highest"
