"""SegCaps at several sizes, on sizes that take no time."""

import pytest
import torch

from torchcaps.bench import Bench, Ceilings, Effort, segmentation_suite

RATES = Ceilings(copy_gb_s=100.0, matmul_tflops_fp32=1.0, matmul_tflops_tf32=None, matmul_tflops_bf16=2.0)


@pytest.mark.slow
def test_every_way_to_compute_a_segcaps_is_measured():
    bench = Bench(
        "segmentation",
        torch.device("cpu"),
        ceilings=RATES,
        effort=Effort(warm_ups=0, seconds=0.0, least=1, most=1),
    )
    rows = bench.run(segmentation_suite(bench, model="segcaps_tiny_test", sides=(16, 16), quick=True))["rows"]
    assert not [row["error"] for row in rows if "error" in row]
    ways = {row["backend"] for row in rows if "at 16 px, forward+backward" in row["case"]}
    assert {"torch", "torch+checkpoint"} <= ways
    assert "scan of 8 slices" in rows[0]["case"]
