import threading
from functools import partial

import pytest

from torchcaps.core import UserError
from torchcaps.train import Machine, side_by_side, train

from small_runs import SHIFTED_DIGITS, assert_same_weights, small_recipe

CPU = Machine(device="cpu")


@pytest.mark.slow
def test_runs_side_by_side_learn_what_they_learn_alone(tmp_path):
    recipes = {seed: small_recipe(data=SHIFTED_DIGITS, seed=seed) for seed in (1, 2)}
    jobs = [partial(train, recipe, tmp_path / f"beside-{seed}", CPU) for seed, recipe in recipes.items()]
    results = side_by_side(jobs, CPU, at_once=2)
    assert [result["seed"] for result in results] == [1, 2]
    for seed, recipe in recipes.items():
        train(recipe, tmp_path / f"alone-{seed}", CPU)
        assert_same_weights(tmp_path / f"alone-{seed}", tmp_path / f"beside-{seed}")


@pytest.mark.parametrize("at_once", [1, 2, 9])
def test_results_come_in_the_order_of_the_jobs(at_once):
    assert side_by_side([partial(pow, 2, power) for power in range(5)], CPU, at_once=at_once) == [
        1,
        2,
        4,
        8,
        16,
    ]


def test_the_first_error_drops_what_has_not_begun_and_stops_the_rest(tmp_path):
    stopped, begun = threading.Event(), []

    def waits():
        assert stopped.wait(60)

    with pytest.raises(UserError, match="batch_size 1000 is more than"):
        side_by_side(
            [
                partial(train, small_recipe(batch_size=1000), tmp_path, CPU),
                waits,
                waits,
                *[partial(begun.append, number) for number in range(50)],
            ],
            CPU,
            at_once=2,
            stop=stopped.set,
        )
    assert stopped.is_set()
    assert not begun


def test_an_error_is_heard_before_the_jobs_that_began_earlier_are_done():
    stopped = threading.Event()

    def waits():
        assert stopped.wait(5), "nobody said that another job had failed"

    def fails():
        raise UserError("of its own")

    with pytest.raises(UserError, match="of its own"):
        side_by_side([waits, fails], CPU, at_once=2, stop=stopped.set)


def test_one_device_is_shared_by_one_run_or_more():
    with pytest.raises(UserError, match="at_once"):
        side_by_side([], CPU, at_once=0)
    with pytest.raises(UserError, match="one device"):
        side_by_side([], Machine(device="cpu", devices=2), at_once=2)
