"""Marked `compile` because the run-time shape checks of the other pass would answer first."""

import pytest
import torch

from torchcaps.core import UserError, mark_labels
from torchcaps.layers import ConvDecoder, FcDecoder
from torchcaps.losses import (
    coupling_entropy_loss,
    cross_entropy_loss,
    margin_loss,
    reconstruction_loss,
    spread_loss,
)
from torchcaps.models import create_model

pytestmark = pytest.mark.compile
USERS = {
    "margin": lambda labels: margin_loss(torch.rand(4, 3), labels),
    "spread": lambda labels: spread_loss(torch.rand(4, 3), labels),
    "cross entropy": lambda labels: cross_entropy_loss(torch.rand(4, 3), labels),
    "couplings": lambda labels: coupling_entropy_loss(torch.rand(4, 5, 3), labels),
    "decoder": lambda labels: FcDecoder(3, 2, (1, 4, 4), (5, 6))(torch.rand(4, 3, 2), labels),
    "unmasked": lambda labels: FcDecoder(3, 2, (1, 4, 4), (5, 6), masked=False)(torch.rand(4, 3, 2), labels),
    "convolutions": lambda labels: ConvDecoder(2, (1, 8, 8))(torch.rand(4, 3, 2), labels),
}


@pytest.mark.parametrize("use", USERS.values(), ids=USERS)
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (torch.tensor([1]), "one class for each of 4 samples"),
        (torch.tensor([0, 1]), "one class for each of 4 samples"),
        (torch.tensor([0, 1, 2, 3]), "between 0 and 2, got labels from 0 to 3"),
        (torch.tensor([0, -1, 2, 0]), "between 0 and 2, got labels from -1 to 2"),
        (torch.tensor([0.0, 1.0, 2.0, 0.0]), r"whole numbers of type torch\.int64, got torch\.float32"),
        (torch.tensor([0, 1, 2, 0], dtype=torch.uint8), r"torch\.int64, got torch\.uint8"),
    ],
    ids=["one", "few", "above", "below", "real", "bytes"],
)
def test_labels_that_do_not_fit_are_refused(use, labels, message):
    with pytest.raises(UserError, match=message):
        use(labels)


@pytest.mark.parametrize("use", USERS.values(), ids=USERS)
def test_fitting_labels_pass(use):
    assert use(torch.tensor([0, 1, 2, 0])).isfinite().all()


LOSSES = {"margin": margin_loss, "spread": spread_loss, "cross entropy": cross_entropy_loss}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("shape", [(4, 3, 2), (4,)], ids=["poses", "lengths of one class"])
def test_a_loss_names_the_scores_it_takes(loss, shape):
    with pytest.raises(UserError, match=r"\(batch, classes\), got .* `activations`"):
        loss(torch.rand(shape), torch.tensor([0, 1, 2, 0]))


@pytest.mark.parametrize("use", USERS.values(), ids=USERS)
def test_labels_in_a_list_are_refused(use):
    with pytest.raises(UserError, match="a tensor of class numbers, got a list"):
        use([0, 1, 2, 0])


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_a_loss_has_gradients_of_each_sample(loss):
    scores, labels = torch.rand(4, 3), torch.tensor([0, 1, 2, 0])
    each = torch.func.vmap(torch.func.grad(lambda one, label: loss(one[None], label[None])))(scores, labels)
    together = torch.func.grad(lambda all_of_them: loss(all_of_them, labels))(scores)
    torch.testing.assert_close(each / len(scores), together)


def test_a_network_with_a_decoder_has_gradients_of_each_image():
    network = create_model("dr_capsnet_tiny_test", decoder="fc")
    weights = {name: weight.detach() for name, weight in network.named_parameters()}

    def error(weights, image, label):
        output = torch.func.functional_call(network, weights, (image[None], label[None]))
        return reconstruction_loss(output.reconstruction, image[None])

    images, labels = torch.rand(3, *network.image_shape), torch.tensor([0, 1, 3])
    each = torch.func.vmap(torch.func.grad(error), in_dims=(None, 0, 0))(weights, images, labels)
    reconstruction_loss(network(images, labels).reconstruction, images).backward()
    for name, weight in network.named_parameters():
        torch.testing.assert_close(each[name].mean(0), weight.grad)


def test_an_empty_batch_is_marked():
    assert mark_labels(torch.zeros(0, dtype=torch.int64), torch.rand(0, 3)).shape == (0, 3)
