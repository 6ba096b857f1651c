"""The suite that draws PartWhole, on sizes that take no time."""

import torch

from torchcaps.bench import Bench
from torchcaps.bench.partwhole import partwhole_suite
from torchcaps.bench.roofline import Ceilings
from torchcaps.bench.timing import Effort

RATES = Ceilings(copy_gb_s=100.0, matmul_tflops_fp32=1.0, matmul_tflops_tf32=None, matmul_tflops_bf16=2.0)
ONCE = Effort(warm_ups=0, seconds=0.0, least=2, most=2)


def test_the_partwhole_suite_has_a_rate_for_every_size_and_names_its_commit():
    measured = Bench("partwhole", torch.device("cpu"), ceilings=RATES, effort=ONCE)
    rows = measured.run(partwhole_suite(measured, quick=True, counts={16: 8, 32: 4}))["rows"]
    assert [(row["case"], row["batch"]) for row in rows] == [
        ("draw partwhole, 16 px", 2),
        ("draw partwhole, 32 px", 1),
    ]
    assert all(row["img_s"] > 0 and "commit" in row for row in rows)
