"""The suite that renders, on sizes that take no time."""

import math

import pytest
import torch

from torchcaps.bench import Bench
from torchcaps.bench.render import render_suite, sphere
from torchcaps.bench.roofline import Ceilings
from torchcaps.bench.timing import Effort
from torchcaps.data.rendering import RADIUS

RATES = Ceilings(copy_gb_s=100.0, matmul_tflops_fp32=1.0, matmul_tflops_tf32=None, matmul_tflops_bf16=2.0)
ONCE = Effort(warm_ups=0, seconds=0.0, least=2, most=2)


def test_the_render_suite_measures_every_engine_of_the_machine():
    measured = Bench("render", torch.device("cpu"), ceilings=RATES, effort=ONCE)
    rows = measured.run(render_suite(measured, quick=True, side=8, divisions=0))["rows"]
    assert {row["case"] for row in rows} == {
        "render cube, 8 px",
        "render cube with borders, 8 px",
        "render 20 faces, 8 px",
    }
    assert all(row["ms"] > 0 for row in rows if row["backend"] == "torch")
    assert all(row["ms"] or row["skipped"] for row in rows if row["backend"] == "opengl")


def test_the_measured_ball_is_closed_and_round():
    ball = sphere(2)
    assert len(ball.faces) == 320
    assert len(ball.vertices) == 162  # Euler: V = 2 + F / 2
    assert ((ball.normals * ball.centres).sum(1) > 0).all()
    volume = torch.linalg.det(ball.corners.double()).sum() / 6
    assert volume.item() == pytest.approx(4 / 3 * math.pi * RADIUS**3, rel=0.05)
