"""Parts of the filter by themselves: weights of headings and distances, storage, and sums of a belief."""

import math

import numpy as np
import pytest
import torch

from torchcaps.apps.uav.filter import (
    Codebook,
    Descriptors,
    FilterSettings,
    Grid,
    MotionNoise,
    Odometry,
    bayesian_likelihood,
    learn_codebook,
    ratio_likelihood,
    spread,
)
from torchcaps.apps.uav.filter.estimate import estimate
from torchcaps.apps.uav.filter.likelihood import _density, heading_weights
from torchcaps.apps.uav.filter.motion import predict_motion, sources_of, turn_masses
from torchcaps.apps.uav.filter.plain import look_up, sum_up
from torchcaps.core import UserError


@pytest.mark.parametrize("sigma", [0.1, 0.35, 1.5])
def test_weights_of_headings_are_integrals_of_the_von_mises_density(sigma):
    grid = Grid(0.0, 0.0, 1.0, 1, 1, headings=12)
    angles = (np.arange(120_000) + 0.5) * 2 * math.pi / 120_000
    density = np.exp((np.cos(angles - 1.1) - 1) / sigma**2)
    expected = (density / density.sum()).reshape(12, -1).sum(1)
    assert heading_weights(grid, 1.1, sigma) == pytest.approx(expected, abs=1e-6)


def test_a_density_that_is_reflected_at_0_and_2_holds_all_of_its_mass():
    at = np.linspace(0, 2, 4001)
    for middle in (0.02, 1.0, 1.98):
        samples = np.random.default_rng(0).normal(middle, 0.1, 200).clip(0, 2)
        assert np.trapezoid(_density(samples, at), at) == pytest.approx(1, abs=2e-3)


def test_a_ratio_stays_bounded_where_other_pairs_are_rare():
    draw = np.random.default_rng(0)
    near, far = draw.normal(0.6, 0.2, 500).clip(0, 2), draw.normal(1.4, 0.02, 500).clip(0, 2)
    weights = ratio_likelihood(near, far).weights
    distances = np.linspace(0, 2, len(weights))
    others = _density(far, distances)
    inside = (distances > 0.1) & (distances < distances[others.argmax()])
    # other pairs count for at least a thousandth of what they do where they are most
    ratio = _density(near, distances) / np.maximum(others, others.max() / 1000)
    assert weights[inside] == pytest.approx((ratio / ratio.max())[inside], abs=2e-6)


def test_below_all_pairs_a_distance_weighs_as_the_smallest_one():
    draw = np.random.default_rng(0)
    near, far = draw.normal(0.9, 0.02, 500), draw.normal(1.2, 0.02, 500)
    for likelihood in (bayesian_likelihood, ratio_likelihood):
        weights = likelihood(near, far).weights
        smallest = np.interp(near.min(), np.linspace(0, 2, len(weights)), weights)
        assert weights[0] == pytest.approx(smallest, rel=0.02)  # at 0 both densities vanish


@pytest.mark.parametrize("wrong", [[0.5], [0.5, math.nan], [-0.1, 0.5], [0.5, 2.1], [0.5, math.inf]])
def test_distances_that_are_none_are_refused_on_either_side(wrong):
    good = np.array([0.1, 0.5])
    for pair in ((np.array(wrong), good), (good, np.array(wrong))):
        with pytest.raises(UserError, match="at least two finite distances"):
            bayesian_likelihood(*pair)
    bayesian_likelihood(good, np.array([0.0, 2.0]))


def test_a_weight_is_found_at_every_distance_from_0_to_2():
    weights = torch.tensor([5.0, 3.0, 2.0])  # at the distances 0, 1 and 2
    dots = torch.tensor([1.0, 0.5, -1.0, 1 - 0.5**2 / 2, 1.0 + 1e-6, -1.0 - 1e-6])
    assert look_up(weights, dots).tolist() == pytest.approx([5, 3, 2, 4, 5, 2], abs=1e-5)


def test_the_estimate_of_an_even_belief_is_the_middle_of_the_grid():
    grid = Grid(west=10.0, south=20.0, cell=2.0, columns=5, rows=4, headings=3)
    told = estimate(grid, sum_up(torch.ones(grid.shape)))
    assert (told.x, told.y) == pytest.approx((15.0, 24.0))
    assert told.sigma == pytest.approx(2 * math.sqrt((5**2 - 1 + 4**2 - 1) / 12))
    assert (told.converged, told.discarded, told.restarted) == (False, 0.0, False)


def test_the_sources_of_a_turn_are_the_headings_that_send_mass_to_the_wanted_ones():
    turn = spread(np.array([1.3]), 0.6)
    for wanted in range(9):
        is_wanted = np.arange(9) == wanted
        sends = [turn_masses(np.eye(9)[heading], turn)[wanted] > 0 for heading in range(9)]
        assert sources_of(is_wanted, turn).tolist() == sends


def test_a_motion_across_a_large_map_is_not_cut_short():
    taps = spread(np.array([5000.0, -5000.0]), 0.0)
    cells = taps.first[:, None] + np.arange(taps.weights.shape[1])
    assert (taps.weights * cells).sum(1) == pytest.approx([5000, -5000])


def spread_of(taps):
    """Standard deviation in cells of the first kernel."""
    cells = np.arange(taps.weights.shape[1])
    return math.sqrt(taps.weights[0] @ cells**2 - (taps.weights[0] @ cells) ** 2)


def test_a_hundred_metres_spread_a_belief_by_five_metres_and_fifteen_degrees():
    grid = Grid(0.0, 0.0, cell=1.0, columns=1, rows=1, headings=360)
    found = predict_motion(grid, Odometry(60.0, -80.0, 0.0), MotionNoise())
    assert spread_of(found.x) == pytest.approx(5, rel=0.01)  # metres
    assert spread_of(found.y) == pytest.approx(5, rel=0.01)
    assert spread_of(found.heading) == pytest.approx(15, rel=0.01)  # degrees


def test_whole_turns_turn_nothing():
    grid = Grid(0.0, 0.0, 1.0, 1, 1, headings=12)
    found = predict_motion(grid, Odometry(10.0, 0.0, 2 * math.pi * 2**40), MotionNoise()).heading
    still = predict_motion(grid, Odometry(10.0, 0.0, 0.0), MotionNoise()).heading
    assert turn_masses(np.eye(12)[3], found) == pytest.approx(turn_masses(np.eye(12)[3], still))


def test_limits_of_the_filter_are_those_of_the_thesis():
    settings = FilterSettings()
    assert math.degrees(settings.heading_sigma) == pytest.approx(3)
    assert (settings.converged, settings.restart_after) == (100, 20)  # metres, updates
    assert settings.gate <= 1e-9


def unit_vectors(count, size, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(count, size)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("storage", "error"), [("float32", 0), ("float16", 5e-4), ("int8", 5e-3), ("product", 0)]
)
def test_stored_descriptors_are_read_back(storage, error):
    vectors = unit_vectors(300, 8)
    book = learn_codebook(vectors, storage, 4)
    chosen = vectors[:6]
    if storage == "product":  # vectors that are made of centres
        numbers = np.random.default_rng(1).integers(0, 256, (6, 4))
        chosen = book.centres[np.arange(4), numbers].reshape(6, 8)
    stored = book.encode(chosen.reshape(2, 3, 8))
    decoded = book.decode(stored)
    assert decoded.shape == (2, 3, 8)
    assert np.abs(decoded - chosen.reshape(2, 3, 8)).max() <= error


def test_each_component_of_int8_has_a_scale_of_its_own():
    vectors = unit_vectors(200, 4) * np.array([1.0, 1e-3, 1e-5, 0.0], np.float32)
    book = learn_codebook(vectors, "int8")
    decoded = book.decode(book.encode(vectors[None]))[0]
    half_a_step = np.abs(vectors).max(0) / 127 / 2
    assert (np.abs(decoded - vectors).max(0) <= 1.001 * half_a_step).all()


def test_centres_of_product_codes_are_the_means_of_what_they_stand_for():
    vectors = unit_vectors(1500, 2)
    book = learn_codebook(vectors, "product", 1)
    codes = book.encode(vectors[None]).ravel()
    used = np.unique(codes)
    means = np.stack([vectors[codes == code].mean(0) for code in used])
    error = np.linalg.norm(vectors - book.centres[0][codes], axis=1).mean()
    assert np.linalg.norm(means - book.centres[0][used], axis=1).mean() < 0.1 * error


def test_the_length_of_an_image_descriptor_does_not_matter():
    vectors = unit_vectors(300, 8)
    for storage in ("float32", "int8", "product"):
        book = learn_codebook(vectors, storage, 4)
        stored = Descriptors(book.encode(vectors[:6].reshape(2, 3, 8))[None], book)
        assert stored.tables(3 * vectors[7]) == pytest.approx(stored.tables(vectors[7]), abs=1e-6)


def test_int8_is_symmetric_beyond_the_sample():
    book = learn_codebook(np.array([[0.5, -0.5]], np.float32), "int8")
    stored = book.encode(np.array([[[9.0, -9.0]]], np.float32))
    assert stored.ravel().tolist() == [127, -127]


def test_a_codebook_fits_what_it_has_finite_numbers_for():
    scales, centres = np.ones(4, np.float32), np.ones((4, 256, 2), np.float32)
    assert Codebook("int8", scales=scales).fits(4)
    assert Codebook("product", centres=centres).fits(4)
    assert Codebook("float16").fits(4)
    broken = [
        Codebook("int8", scales=np.full(4, np.nan, np.float32)),
        Codebook("product", centres=np.full((4, 256, 2), np.inf, np.float32)),
        Codebook("int8", scales=np.ones(3, np.float32)),
        Codebook("int8", scales=scales, centres=centres),
        Codebook("int8"),
        Codebook("float32", scales=scales),
    ]
    assert not any(book.fits(4) for book in broken)
    assert not Codebook("float16").fits(0)


@pytest.mark.parametrize("headings", [1, 2, 3])
def test_the_weights_of_few_headings_sum_to_one(headings):
    grid = Grid(0.0, 0.0, 10.0, 4, 4, headings)
    for measured in np.linspace(-7, 7, 29):
        assert heading_weights(grid, float(measured), 0.5).sum() == pytest.approx(1, abs=1e-6)
