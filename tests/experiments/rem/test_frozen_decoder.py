from threading import Thread

import numpy as np
import pytest
import torch

from torchcaps.experiments.rem import frozen_decoder
from torchcaps.experiments.rem.frozen_decoder import class_capsules, class_means, train_decoder
from torchcaps.layers import FcDecoder
from torchcaps.losses import reconstruction_loss
from torchcaps.models import create_model
from torchcaps.train.loop.session import seeded_model
from torchcaps.train.recipe import Data

from small_runs import small_recipe
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


def test_a_network_that_another_thread_builds_does_not_change_a_decoder(known, network, monkeypatch):
    """Experiments make several runs at once, whose networks and decoders draw from one generator."""
    data, pipeline = known
    alone = train_decoder(network, data, pipeline, epochs=0, seed=3)

    def beside(*sizes):
        other = Thread(target=seeded_model, args=(small_recipe(),))
        other.start()
        other.join(0.2)  # it waits for its turn
        others.append(other)
        return FcDecoder(*sizes)

    others = []
    monkeypatch.setattr(frozen_decoder, "FcDecoder", beside)
    again = train_decoder(network, data, pipeline, epochs=0, seed=3)
    others[0].join()
    for one, other in zip(alone.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)
