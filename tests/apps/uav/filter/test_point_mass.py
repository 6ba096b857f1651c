import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from torchcaps.apps.uav.filter import (
    Codebook,
    Descriptors,
    FilterSettings,
    Grid,
    Likelihood,
    MotionNoise,
    Odometry,
    PlainBackend,
    PointMassFilter,
    bayesian_likelihood,
    linear_likelihood,
    ratio_likelihood,
    spread,
)
from torchcaps.apps.uav.filter.likelihood import heading_weights
from torchcaps.core import UserError

from apps.uav.filter.brute_force import brute_force_predict, brute_force_weights
from apps.uav.filter.flights import fly, made_map

SMALL = Grid(west=1000.0, south=-200.0, cell=10.0, columns=7, rows=6, headings=8)
NOISE = MotionNoise(place=0.3, heading=math.radians(1.5))
MOTION = Odometry(forward=14.0, left=-5.0, turn=0.5)


def exact():
    return PlainBackend(torch.float64)


def compiled():
    pytest.importorskip("numba", reason="the compiled filter needs numba")
    from torchcaps.apps.uav.filter.compiled import CompiledBackend

    return CompiledBackend(threads=1)


BACKENDS = {"float64": exact, "float32": PlainBackend, "compiled": compiled}
ALL = ["float64", "float32", pytest.param("compiled", marks=pytest.mark.slow)]  # compiling takes seconds


def small_map():
    return made_map(columns=7, rows=6, headings=8)[1:]


def settings(**changes):
    return FilterSettings(**({"noise": NOISE, "gate": 0.0} | changes))


@pytest.mark.parametrize("backend", ALL)
def test_a_motion_sends_mass_where_single_voxels_send_it(backend):
    start = np.random.default_rng(1).random(SMALL.shape)
    filter = PointMassFilter(SMALL, BACKENDS[backend](), settings())
    filter.start(start)
    filter.update(MOTION)
    expected = brute_force_predict(SMALL, start, MOTION, NOISE)
    assert filter.belief() == pytest.approx(expected / expected.sum(), rel=2e-3, abs=2e-6)


@pytest.mark.parametrize("backend", ALL)
def test_an_update_is_the_product_of_motion_heading_and_map(backend):
    vectors, descriptors = small_map()
    start, query = np.random.default_rng(1).random(SMALL.shape), vectors[3, 2, 4]
    filter = PointMassFilter(SMALL, BACKENDS[backend](), settings(), descriptors, linear_likelihood())
    filter.start(start)
    found = filter.update(MOTION, heading=2.0, descriptor=query)
    expected = brute_force_predict(SMALL, start, MOTION, NOISE)
    expected *= heading_weights(SMALL, 2.0, settings().heading_sigma)[:, None, None]
    expected *= brute_force_weights(vectors, query, lambda distance: (2 - distance) / 2)
    expected /= expected.sum()
    assert filter.belief() == pytest.approx(expected, rel=5e-3, abs=2e-6)
    x, y = (expected.sum((0, 1)) @ SMALL.x_centres, expected.sum((0, 2)) @ SMALL.y_centres)
    assert (found.x, found.y) == pytest.approx((x, y), abs=0.05)
    square = (SMALL.x_centres[None] - x) ** 2 + (SMALL.y_centres[:, None] - y) ** 2
    assert found.sigma == pytest.approx(math.sqrt((expected.sum(0) * square).sum()), rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["float32", "float16", "int8", "product"])
def test_backends_agree_over_a_flight(storage):
    world = made_map(storage, columns=33, rows=21, headings=24)
    reference, truth = fly(*world, exact(), FilterSettings(gate=0.0), updates=12)
    mask = reference > 1e-30
    for backend, gate in ((PlainBackend, 0.0), (compiled, 0.0), (compiled, 1e-9)):
        belief, found = fly(*world, backend(), FilterSettings(gate=gate), updates=12)
        divergence = reference[mask] @ np.log(reference[mask] / np.maximum(belief[mask], 1e-300))
        assert abs(divergence) < 1e-6
        assert found.discarded <= 2e-9
        assert (found.x, found.y) == pytest.approx((truth.x, truth.y), abs=1e-3)


@pytest.mark.parametrize("backend", ALL)
def test_a_normal_belief_moves_as_a_kalman_filter_moves_it(backend):
    """Headings do not spread and noise is wide: mean and variance have a closed form."""
    grid = Grid(0.0, 0.0, 10.0, columns=120, rows=110, headings=4)
    x, y = grid.x_centres, grid.y_centres
    start = np.zeros(grid.shape)
    start[0] = np.exp(-((x[None] - 300) ** 2 + (y[:, None] - 400) ** 2) / (2 * 40**2))
    filter = PointMassFilter(grid, BACKENDS[backend](), settings(noise=MotionNoise(0.5, 0.0)))
    filter.start(start)
    mean, variance = np.array([300.0, 400.0]), 40.0**2
    for _ in range(6):
        found = filter.update(Odometry(forward=40.0, left=10.0, turn=0.0, distance=50.0))
        angle = math.pi / 4  # the middle of the first of four headings
        turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        mean, variance = mean + turn @ [40, 10], variance + 25**2
    assert (found.x, found.y) == pytest.approx(tuple(mean), abs=0.5)
    assert found.sigma == pytest.approx(math.sqrt(2 * variance), rel=0.01)
    assert found.heading == pytest.approx(math.pi / 4)


@pytest.mark.parametrize("measured", [0.0, 0.01, 3.1, 6.2, -2.0, 12.0])
def test_weights_of_headings_are_probabilities_around_the_circle(measured):
    grid = Grid(0.0, 0.0, 1.0, 1, 1, headings=60)
    weights = heading_weights(grid, measured, math.radians(20))
    assert weights.sum() == pytest.approx(1)
    mean = math.atan2(weights @ np.sin(grid.heading_centres), weights @ np.cos(grid.heading_centres))
    assert math.remainder(mean - measured, 2 * math.pi) == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(("shift", "sigma"), [(0.0, 0.0), (3.4, 0.25), (-7.9, 1.3), (0.5, 0.01)])
def test_a_kernel_has_the_mean_and_spread_of_the_motion(shift, sigma):
    taps = spread(np.array([shift]), sigma)
    weights, cells = taps.weights[0], taps.first[0] + np.arange(taps.weights.shape[1])
    assert weights.sum() == pytest.approx(1)
    assert weights @ cells == pytest.approx(shift, abs=1e-9)
    part = shift % 1
    least = part * (1 - part)  # no law on whole cells with this mean is narrower
    assert weights @ (cells - shift) ** 2 == pytest.approx(max(sigma**2, least), rel=0.02)
    assert cells[0] <= shift - 4 * sigma
    assert cells[-1] >= shift + 4 * sigma
    assert weights.min() >= 0


def test_a_wide_kernel_is_the_normal_law():
    taps = spread(np.array([0.3]), 4.0)
    cells = taps.first[0] + np.arange(taps.weights.shape[1])
    normal = np.exp(-((cells - 0.3) ** 2) / 32) / math.sqrt(32 * math.pi)
    assert taps.weights[0] == pytest.approx(normal, abs=1e-3)


def test_slow_motion_along_a_straight_course_is_not_rounded_away():
    """Steps of 0.4 cells with little noise, on a grid whose first heading points to the north-east."""
    grid = Grid(0.0, 0.0, 10.0, columns=60, rows=60, headings=4)
    start = np.zeros(grid.shape)
    start[0, 10, 10] = 1
    filter = PointMassFilter(grid, exact(), settings(noise=MotionNoise(0.05, 0.0)))
    filter.start(start)
    for _ in range(50):
        found = filter.update(Odometry(forward=4.0 * math.sqrt(2), left=0.0, turn=0.0))
    assert (found.x, found.y) == pytest.approx((305.0, 305.0), abs=1e-6)


@pytest.mark.slow
def test_a_thousand_updates_stay_finite():
    _, descriptors = small_map()
    filter = PointMassFilter(SMALL, compiled(), FilterSettings(), descriptors, linear_likelihood())
    draw = np.random.default_rng(0)
    for query in draw.normal(size=(1000, 16)):
        found = filter.update(Odometry(0.0, 0.0, 0.0, distance=30.0), heading=1.0, descriptor=query)
        assert math.isfinite(found.sigma)
    assert filter.belief().sum() == pytest.approx(1)


def test_a_flight_that_leaves_the_map_begins_anew():
    filter = PointMassFilter(SMALL, exact(), settings())
    found = filter.update(Odometry(forward=5000.0, left=0.0, turn=0.0, distance=10.0))
    assert found.restarted
    assert filter.belief() == pytest.approx(np.full(SMALL.shape, 1 / SMALL.voxels))


def test_a_belief_that_stays_spread_out_begins_anew():
    filter = PointMassFilter(SMALL, exact(), settings(converged=15.0, restart_after=3))
    belief = np.zeros(SMALL.shape)
    belief[0, 3, 3] = 1
    filter.start(belief)
    assert filter.update(Odometry(0.0, 0.0, 0.0)).converged
    restarts = [filter.update(Odometry(0.0, 0.0, 0.0, distance=100.0)).restarted for _ in range(5)]
    assert restarts == [False, False, False, True, False]


def test_a_belief_has_converged_below_the_limit():
    sigma = PointMassFilter(SMALL, exact(), settings()).update(Odometry(0.0, 0.0, 0.0)).sigma
    for limit, converged in ((1.001 * sigma, True), (0.999 * sigma, False)):
        filter = PointMassFilter(SMALL, exact(), settings(converged=limit))
        assert filter.update(Odometry(0.0, 0.0, 0.0)).converged is converged


@pytest.mark.parametrize("weight", [1.0, 5.0])
def test_the_share_that_a_gate_leaves_out_is_told(weight):
    """A vehicle that stands still, on a map that looks alike everywhere."""
    vectors, descriptors = small_map()
    start = np.zeros(SMALL.shape)
    start[:4, 2, 2] = [0.1, 0.2, 0.3, 0.4]  # of these headings, two have 30 % together
    alike = Likelihood(np.full(2, weight, np.float32))
    filter = PointMassFilter(SMALL, exact(), settings(gate=0.35), descriptors, alike)
    filter.start(start)
    found = filter.update(Odometry(0.0, 0.0, 0.0), descriptor=vectors[0, 0, 0])
    assert filter.belief()[:, 2, 2] == pytest.approx([0, 0, 3 / 7, 4 / 7, 0, 0, 0, 0])
    assert found.discarded == pytest.approx(0.3)


def test_a_bayesian_weight_falls_from_matches_to_others():
    draw = np.random.default_rng(0)
    near, far = draw.normal(0.5, 0.1, 500).clip(0, 2), draw.normal(1.2, 0.1, 500).clip(0, 2)
    weights = bayesian_likelihood(near, far).weights
    assert weights[0] > 0.99
    assert weights[256] > 0.99
    assert weights[614] < 0.01
    assert weights[-1] < 0.01


def test_a_ratio_is_that_of_the_densities_to_its_power():
    draw = np.random.default_rng(0)
    near, far = draw.normal(0.9, 0.2, 4000).clip(0, 2), draw.normal(1.2, 0.2, 4000).clip(0, 2)
    distances = np.linspace(0, 2, 1024)[410:615]  # 0.8 to 1.2
    for exponent in (0.5, 1.0):
        found = np.log(ratio_likelihood(near, far, exponent).weights[410:615])
        expected = -exponent * (0.3 / 0.2**2) * (distances - distances[0])
        assert found - found[0] == pytest.approx(expected, abs=0.25)


def test_a_bayesian_weight_does_not_rise_where_pairs_are_rare():
    """A single match far beyond all other pairs."""
    draw = np.random.default_rng(0)
    near = np.append(draw.normal(0.5, 0.1, 500).clip(0, 2), 1.9)
    far = draw.normal(1.2, 0.05, 500).clip(0, 2)
    weights = bayesian_likelihood(near, far).weights
    assert weights[972] < 0.01  # at 1.9


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Odometry(math.nan, 0.0, 0.0), "odometry must be finite"),
        (lambda: Odometry(0.0, 0.0, 0.0, distance=-1.0), "cannot be negative"),
        (lambda: Grid(0.0, 0.0, 0.0, 1, 1, 1), "positive size"),
        (lambda: bayesian_likelihood(np.ones(5), np.ones(5)), "all distances are equal"),
        (lambda: ratio_likelihood(np.ones(5), np.zeros(5), 0.0), "exponent"),
        (lambda: PointMassFilter(SMALL, exact()).start(np.full(SMALL.shape, np.nan)), "must be finite"),
        (lambda: PointMassFilter(SMALL, exact()).update(MOTION, descriptor=np.ones(16)), "has no map"),
        (lambda: PointMassFilter(SMALL, exact()).update(MOTION, heading=math.nan), "cannot weigh"),
    ],
)
def test_what_cannot_be_used_is_refused(wrong, message):
    with pytest.raises(UserError, match=message):
        wrong()


def test_a_descriptor_of_another_size_is_refused():
    _, descriptors = small_map()
    filter = PointMassFilter(SMALL, exact(), settings(), descriptors, linear_likelihood())
    with pytest.raises(UserError, match="16 components, the image's has 8"):
        filter.update(MOTION, descriptor=np.ones(8))
    with pytest.raises(UserError, match="not finite"):
        filter.update(MOTION, descriptor=np.full(16, np.nan))


@pytest.mark.slow
def test_a_filter_leaves_the_threads_of_pytorch_alone():
    """In a process of its own: numba starts its threads once, whichever test is first."""
    code = """
import torch
torch.set_num_threads(1)
from torchcaps.apps.uav.filter.compiled import _use_threads
_use_threads(2)
assert torch.get_num_threads() == 1, torch.get_num_threads()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("sigma", [0.0, 0.3, 2.0])
def test_a_kernel_moves_the_mean_as_far_as_the_motion(sigma):
    shifts = np.array([-3.0, -0.7, 0.0, 0.25, 4.5])
    taps = spread(shifts, sigma)
    cells = taps.first[:, None] + np.arange(taps.weights.shape[1])
    assert (taps.weights * cells).sum(1) == pytest.approx(shifts, abs=1e-9)
    assert taps.weights.sum(1) == pytest.approx(1)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("forward", [1e12, -1e300])
def test_a_motion_beyond_any_map_leaves_it(name, forward):
    motion = Odometry(forward, 0.0, 0.0, distance=20.0)
    assert PointMassFilter(SMALL, BACKENDS[name]()).update(motion).restarted


@pytest.mark.parametrize("name", ALL)
def test_a_map_that_holds_no_numbers_is_survived(name):
    grid, vectors, _ = made_map(columns=9, rows=8, headings=6)
    nothing = Descriptors(np.full((6, 8, 16, 9), np.nan, np.float32), Codebook("float32"))
    belief = PointMassFilter(grid, BACKENDS[name](), None, nothing, linear_likelihood())
    assert belief.update(Odometry(5.0, 0.0, 0.0), None, vectors[0, 1, 1]).restarted


@pytest.mark.parametrize("name", ALL)
def test_a_cell_without_known_ground_is_no_candidate(name):
    vectors, descriptors = small_map()
    known = np.ones((SMALL.rows, SMALL.columns), bool)
    known[1:4, 2:5] = False
    filters = [
        PointMassFilter(SMALL, BACKENDS[name](), settings(), each, linear_likelihood())
        for each in (descriptors, replace(descriptors, known=known))
    ]
    assert np.array_equal(filters[1].belief(), known / (known.sum() * SMALL.headings) * np.ones(SMALL.shape))
    for each in filters:
        each.start(np.ones(SMALL.shape))
        found = each.update(MOTION, heading=2.0, descriptor=vectors[3, 2, 4])  # the best place is unknown
    expected = filters[0].belief() * known
    assert filters[1].belief() == pytest.approx(expected / expected.sum(), rel=1e-4, abs=1e-12)
    assert found.x == pytest.approx(filters[1].places().sum(0) @ SMALL.x_centres, abs=0.01)


def test_a_filter_begins_anew_on_the_known_ground():
    vectors, descriptors = small_map()
    known = np.zeros((SMALL.rows, SMALL.columns), bool)
    known[0, 0] = True
    filter = PointMassFilter(
        SMALL, exact(), settings(), replace(descriptors, known=known), linear_likelihood()
    )
    found = filter.update(Odometry(1e5, 0.0, 0.0, distance=1.0), descriptor=vectors[0, 0, 0])
    assert found.restarted
    assert (found.x, found.y) == pytest.approx((SMALL.x_centres[0], SMALL.y_centres[0]))
