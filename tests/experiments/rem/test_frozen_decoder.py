import numpy as np
import pytest
import torch

from torchcaps.experiments.rem.frozen_decoder import class_capsules, class_means, train_decoder
from torchcaps.losses import reconstruction_loss
from torchcaps.models import create_model
from torchcaps.train.recipe import Data

from splits import split_of


@pytest.fixture(scope="module")
def known():
    return split_of(Data(name="synthetic_mnist", limit=64, validation=0.2), "train")


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return create_model("dr_capsnet_tiny_test", image_size=28, num_classes=10).eval()


def test_a_decoder_learns_on_a_network_that_stays_as_it_is(known, network):
    data, pipeline = known
    before = {name: value.clone() for name, value in network.state_dict().items()}
    first, again, longer = (
        train_decoder(network, data, pipeline, epochs=epochs, seed=3) for epochs in (1, 1, 40)
    )
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    poses, _ = class_capsules(network, data.images, pipeline)
    images = pipeline.for_evaluation(data.images).images
    with torch.no_grad():
        drawn = [decoder(poses, data.labels) for decoder in (first, again, longer)]
    assert torch.equal(drawn[0], drawn[1])
    losses = [float(reconstruction_loss(part, images)) for part in drawn]
    assert losses[2] < 0.7 * losses[0]


def test_the_mean_of_a_class_is_that_of_its_images(known):
    data, pipeline = known
    means = class_means(data, pipeline)
    for number in data.labels.unique().tolist():
        of_class = data.images[data.labels == number].numpy().astype(np.float64) / 255
        assert np.abs(means[number].numpy() - of_class.mean(0)).max() < 1e-5
