"""Where descriptors learn and where flights are flown, and what flights give."""

import numpy as np
import pytest

from torchcaps.core import MissingDataError
from torchcaps.data import SeasonStack, save_stack
from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.runner import RunCounts
from torchcaps.experiments.uav.flights import FlownFlight, flight_details, measure_flights
from torchcaps.experiments.uav.world import coarsened, make_world, scale_of

DATES = (20090818, 20100629, 20170827, 20180716, 20190904, 20200831)


def made_stack(names, pixel, crs):
    images = np.random.default_rng(0).integers(0, 256, (len(names), 3, 40, 100)).astype(np.uint8)
    return SeasonStack(images, np.ones((len(names), 40, 100), bool), names, 500.0, 900.0, pixel, crs)


def made_naip():
    return made_stack(tuple(f"naip_{date}" for date in DATES), 5.0, "EPSG:26914")


def made_sentinel():
    names = tuple(f"sentinel2_20LMR_{date}" for date in (20220614, 20220902, 20221105))
    return made_stack(names, 20.0, "EPSG:32720")


def test_no_pixel_and_no_date_is_learnt_and_flown(tmp_path):
    save_stack(tmp_path / "naip.npz", made_naip())
    world = make_world("naip", "full", tmp_path)
    flown = (world.mapped, *world.seen)
    assert world.learnt.west + world.learnt.width * world.learnt.pixel <= min(part.west for part in flown)
    assert {part.names for part in flown} == {(f"naip_{date}",) for date in DATES[2:]}
    assert world.learnt.names == tuple(f"naip_{date}" for date in DATES[:2])


def test_no_pixel_of_the_satellite_is_learnt_and_flown_and_haze_is_not_learnt(tmp_path):
    save_stack(tmp_path / "sentinel.npz", made_sentinel())
    for ground, seen in (("sentinel", "1105"), ("sentinel haze", "0902")):
        world = make_world(ground, "quick", tmp_path)
        assert world.learnt.west + world.learnt.width * 20.0 <= world.mapped.west
        assert [name[-4:] for name in world.learnt.names] == ["0614", "1105"]
        assert [part.names[0][-4:] for part in (world.mapped, *world.seen)] == ["0614", seen]
        assert (world.mapped.height, world.mapped.north) == (10, 900.0)
    scale = scale_of("sentinel", "quick")
    assert (scale.pixel, scale.cell, scale.step, scale.converged) == (20.0, 80.0, 320.0, 200.0)


def test_held_out_flights_are_over_the_ground_of_learning(tmp_path):
    save_stack(tmp_path / "naip.npz", made_naip())
    world = make_world("naip held out", "full", tmp_path)
    assert world.mapped.west == world.learnt.west
    assert {part.names for part in (world.mapped, *world.seen)} == {(name,) for name in world.learnt.names}


def test_without_maps_the_error_says_what_to_put_where(tmp_path):
    with pytest.raises(MissingDataError, match=r"naip\.npz"):
        make_world("naip", "quick", tmp_path)


def test_larger_pixels_are_means_of_several():
    stack = made_naip()
    found = coarsened(stack, 10.0)
    assert (found.pixel, found.width, found.height) == (10.0, 50, 20)
    assert found.images[2, 1, 3, 4] == round(stack.images[2, 1, 6:8, 8:10].mean())
    assert coarsened(stack, 5.0) is stack


def flown(first, errors, inside=None):
    summary = {
        "converged": first is not None,
        "updates_to_convergence": first,
        "mean_error_after_convergence_m": None if first is None else float(np.mean(errors[first - 1 :])),
        "share_of_truth_in_95_percent_region": inside,
        "final_error_m": errors[-1],
    }
    return FlownFlight(tuple(errors), tuple(2 * error for error in errors), summary)


FLIGHTS = [
    flown(2, [300.0, 40.0, 20.0], 1.0),
    flown(3, [300.0, 250.0, 200.0], 0.0),
    flown(None, [9.0, 9.0, 9.0]),
]


def test_a_converged_flight_far_from_the_truth_is_not_found():
    metrics = measure_flights(FLIGHTS, 100.0)
    assert metrics["converged_share"] == pytest.approx(2 / 3)
    assert metrics["found_share"] == pytest.approx(1 / 3)
    assert metrics["updates_to_convergence"] == 2.5
    assert metrics["converged_error"] == pytest.approx((30 + 200) / 2)
    assert metrics["inside_95_share"] == 0.5
    assert metrics["final_error"] == 20.0
    assert "converged_error" not in measure_flights(FLIGHTS[2:], 100.0)


def test_details_keep_each_flight_and_the_curves():
    series = flight_details(FLIGHTS).series
    assert series["updates to convergence"].tolist() == [2, 3, -1]
    assert series["error median"].tolist() == [300, 40, 20]
    assert series["sigma high"][0] == pytest.approx(600)


def test_settings_that_differ_in_likelihood_share_their_recipe():
    planned = list(EXPERIMENTS["tab:lsl-time_to_convergence_and_error"].planned("quick", seeds=1))
    recipes = {run.setting.name: run.recipe for run in planned}
    assert recipes["FCN, D=8, linear"] == recipes["FCN, D=8, bayesian"]
    assert recipes["FCN, D=8, linear"] != recipes["FCN, D=16, linear"]


@pytest.mark.slow
def test_a_smoke_run_flies_all_settings(tmp_path):
    from torchcaps.experiments import run_missing
    from torchcaps.train import Machine

    pytest.importorskip("numba")
    counts = run_missing(
        EXPERIMENTS["beyond:uav-terrain"], tmp_path, Machine(device="cpu"), budget="smoke", seeds=1
    )
    assert counts == RunCounts(done=7, failed=0, left=0, planned=7)
