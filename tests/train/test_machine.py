"""Where a run takes place."""

import sys

import pytest
import torch

from torchcaps.train.machine import keep_freed_memory


@pytest.mark.skipif(sys.platform != "linux", reason="counts page faults as Linux does")
def test_freed_memory_is_used_again_without_page_faults():
    import resource

    keep_freed_memory()
    for _ in range(3):  # an aligned block may not fit where the one before it was
        torch.ones(1 << 24)  # 64 MiB, freed at once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(1 << 24)
    pages = (1 << 26) // resource.getpagesize()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < pages / 10
