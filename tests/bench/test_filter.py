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


@pytest.mark.parametrize(("storage", "gigabytes"), [("int8", 1.92), ("float16", 2.88)])
def test_an_update_moves_belief_and_descriptors_by_hand(storage, gigabytes):
    """60 million voxels: four transfers of the belief as float32, and 16 numbers of a descriptor."""
    bench = Bench("filter", torch.device("cpu"), ceilings=RATES)
    points = filter_suite(bench, maps={"thesis": (1000, 1000)})
    whole = next(point for point in points if f"{storage}, all headings" in point.case)
    assert whole.cost().bytes == pytest.approx(1e9 * gigabytes)
    assert whole.cost().flops == 60_000_000 * 2 * 16
