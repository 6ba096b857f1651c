"""The recipes for folders of photographs."""

from dataclasses import replace

import pytest
from PIL import Image

from torchcaps.parse import analyse_run
from torchcaps.train import Machine, load_recipe, load_run, recipe_for_data, train

PHOTOS, SELF_ROUTING = "photos/efficient_capsnet", "photos/efficient_capsnet_self_routing"


def test_the_recipe_with_self_routing_differs_by_what_self_routing_needs():
    """Logits that start at zero learn slowly: shares of capsules need a higher rate than lengths."""
    plain, found = load_recipe(PHOTOS), load_recipe(SELF_ROUTING)
    assert found.model == plain.model | {"routing": "self_routing"}
    assert found.optim == replace(plain.optim, learning_rate=4 * plain.optim.learning_rate)
    assert found == replace(plain, model=found.model, loss=found.loss, optim=found.optim)


@pytest.mark.slow
def test_couplings_decide_after_few_photographs(tmp_path):
    """With even couplings all classes are equally active, and one of them is read everywhere."""
    for shade, name in enumerate(("aster", "lily", "rose")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for image in range(12):
            colour = (80 * shade + 4 * image, 250 - 80 * shade, 5 * image)
            Image.new("RGB", (64, 64), colour).save(tmp_path / "photos" / name / f"{image}.png")
    data = f"folder:{tmp_path / 'photos'}"
    recipe = recipe_for_data(SELF_ROUTING, ["epochs=4"], data=data).recipe
    train(recipe, tmp_path / "run", Machine(device="cpu"))
    found = analyse_run(load_run(tmp_path / "run"), "train")
    assert found.even_accuracy < found.accuracy - 0.1
