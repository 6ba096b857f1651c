"""Where a run takes place."""

import sys

import pytest
import torch

from torchcaps.train.machine import keep_freed_memory


@pytest.mark.skipif(sys.platform != "linux", reason="counts page faults as Linux does")
def test_freed_memory_is_used_again_without_page_faults():
    import resource

    def faults():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        torch.ones(1 << 24)  # 64 MiB, freed at once
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    keep_freed_memory()
    fewest = min(faults() for _ in range(8))  # at first a block may not fit where the one before it was
    assert fewest < (1 << 26) // resource.getpagesize() // 10
