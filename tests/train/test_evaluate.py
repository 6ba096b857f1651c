import pytest
import torch

from torchcaps.core import UserError
from torchcaps.data import dataset_info, load_dataset
from torchcaps.models import create_model
from torchcaps.train import Objective, Pipeline, evaluate
from torchcaps.train.recipe import Data, Loss


def test_the_size_of_the_batches_does_not_matter():
    torch.manual_seed(0)
    settings = Data(name="synthetic_mnist")
    data = load_dataset(settings.name, "test").subset(range(50))
    network = create_model("dr_capsnet_tiny_test", image_size=28, num_classes=10, decoder="none").train()
    network.stem.eval()  # a part may be held in evaluation mode while the rest learns
    pipeline = Pipeline(settings, dataset_info(settings.name))
    objective = Objective(Loss(), has_decoder=False)
    whole, parts = (evaluate(network, data, pipeline, objective, size) for size in (50, 7))
    assert parts.loss == pytest.approx(whole.loss, rel=1e-5)
    assert torch.equal(parts.confusion, whole.confusion)
    assert whole.accuracy == whole.confusion.diagonal().sum() / 50
    assert network.training  # left as it was, and so are its parts
    assert not network.stem.training
    with pytest.raises(UserError, match="no images"):
        evaluate(network, data.subset([]), pipeline, objective)
