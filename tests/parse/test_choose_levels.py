import pytest

from torchcaps.core import UserError
from torchcaps.parse import analyse_run, choose_levels, choose_levels_of_run
from torchcaps.train import Machine, load_run, train
from torchcaps.train.recipe import Data, Recipe


def test_the_smallest_sufficient_number_of_levels_is_chosen():
    accuracies = {None: 0.9, 2: 0.3, 5: 0.87, 11: 0.895, 21: 0.9}
    asked = []

    def evaluate(levels):
        asked.append(levels)
        return accuracies[levels]

    assert choose_levels(evaluate, [21, 11, 5, 2], 0.01)[:3] == (11, 0.895, 0.9)
    assert asked == [None, 2, 5, 11]
    assert choose_levels(evaluate, [2, 21]).levels == 21
    assert choose_levels(evaluate, [64, 21]).levels == 21  # a set of these two would begin with 64
    with pytest.raises(UserError, match=r"the best of 2, 5 is 5, with 0\.87"):
        choose_levels(evaluate, [2, 5], 0.001)
    with pytest.raises(UserError, match="no numbers of levels"):
        choose_levels(evaluate, [])
    with pytest.raises(UserError, match="negative"):
        choose_levels(evaluate, [2], -1.0)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    recipe = Recipe(
        model={"name": "dr_capsnet_tiny_test", "image_size": 28, "num_classes": 10, "decoder": "none"},
        data=Data(name="synthetic_mnist", limit=100, validation=0.5),
        batch_size=16,
        epochs=1,
    )
    folder = tmp_path_factory.mktemp("run")
    train(recipe, folder, Machine(device="cpu"))
    return load_run(folder)


def test_levels_that_round_an_even_share_up_are_left_out(run):
    """Of ten classes an even share is 0.1: 7 levels make 1/6 of it and 14 levels 1/13, which is less."""
    assert list(choose_levels_of_run(run, candidates=(6, 7, 14), tolerance=1.0).tried) == [14]


def test_so_much_accuracy_may_be_lost_as_is_asked_for(run, monkeypatch):
    hits = {None: 25, 11: 20, 14: 21}  # of 50 validation images
    asked = iter(hits.values())
    monkeypatch.setattr("torchcaps.parse.on_runs.choose_levels.count_hits", lambda *_: next(asked))
    chosen = choose_levels_of_run(run, candidates=(11, 14), tolerance=0.09)
    assert chosen == (14, 0.42, 0.5, {11: 0.4, 14: 0.42})


def test_a_run_is_asked_with_its_validation_images(run):
    chosen = choose_levels_of_run(run, candidates=(2, 4, 64), tolerance=1.0)
    analysis = analyse_run(run, "validation", levels=2)
    assert chosen == (2, analysis.quantized_accuracy, analysis.accuracy, {2: analysis.quantized_accuracy})
