from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from torchcaps.data import dataset_info
from torchcaps.models import create_model
from torchcaps.train import Predictor, Run, build, load_split
from torchcaps.zoo import predict


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


@pytest.mark.parametrize("fit", ["crop", "pad", "stretch"])
@pytest.mark.parametrize(
    ("changes", "size"),
    [
        ({}, (32, 48)),
        ({"pad": 8}, (48, 64)),
        ({"center_crop": [24, 36]}, (24, 36)),
        ({"pad": 4, "center_crop": [28, 50]}, (28, 50)),
        ({"resize": 32}, (32, 32)),
    ],
)
def test_a_mask_lies_where_the_network_saw_the_object(changes, size, fit):
    preprocess = {"normalize": "none", **changes}
    recipe = build(
        {
            "model": {"name": "unet_tiny_test", "image_size": list(size)},
            "data": {"name": "synthetic_masks", "fit": fit, "preprocess": preprocess},
            "epochs": 1,
        }
    )
    info = replace(dataset_info("synthetic_masks"), height=32, width=48, fit=fit)
    predictor = Predictor(info, recipe, torch.device("cpu"), lambda inputs: {"activations": inputs})
    pixels = np.zeros((96, 120), dtype=np.uint8)
    pixels[36:60, 42:66] = 255
    mask = np.asarray(predictor.answer(Image.fromarray(pixels)).pictures["mask"])
    rows, columns = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
    found = (rows[0], rows[-1] + 1, columns[0], columns[-1] + 1)
    assert found == pytest.approx((36, 60, 42, 66), abs=4)  # a pixel of the network is 3 of the picture
