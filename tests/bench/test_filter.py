import pytest
import torch

from torchcaps.bench import Bench, Ceilings, Effort
from torchcaps.bench.filter import filter_suite

RATES = Ceilings(copy_gb_s=100.0, matmul_tflops_fp32=1.0, matmul_tflops_tf32=None, matmul_tflops_bf16=2.0)


@pytest.mark.slow  # compiles the filter
def test_every_form_of_a_map_is_measured():
    pytest.importorskip("numba", reason="the compiled filter needs numba")
    bench = Bench(
        "filter", torch.device("cpu"), ceilings=RATES, effort=Effort(warm_ups=0, seconds=0.0, least=2, most=2)
    )
    rows = bench.run(filter_suite(bench, maps={"tiny": (9, 8)}))["rows"]
    assert [row["backend"] for row in rows] == ["torch", "fused", "fused", "fused", "fused"]
    for row in rows:
        assert "error" not in row, row["error"]
        assert row["ms"] > 0
