import pytest
import torch

from torchcaps.models import create_model
from torchcaps.train import Run, build, load_split, predict


def test_an_image_of_its_own_data_is_answered_as_it_is_evaluated(tmp_path):
    """It is stored at the size of the recipe: bringing it back to that of the dataset would blur it."""
    model = {"name": "dr_capsnet_tiny_test", "image_size": 24, "num_classes": 10, "decoder": "none"}
    data = {"name": "synthetic_mnist", "preprocess": {"resize": 24}}
    recipe = build({"model": model, "data": data, "epochs": 1})
    run = Run(tmp_path, recipe, create_model(**model).eval(), 0)
    examples, pipeline = load_split(run, "test")
    with torch.no_grad():
        expected = run.model(pipeline.for_evaluation(examples.images[3:4]).inputs).activations[0]
    (found,) = predict(run, "test:3")
    assert list(found["activations"].values()) == pytest.approx(expected.tolist(), abs=1e-5)
