import pytest
import torch

from torchcaps.core import UserError
from torchcaps.data import LabelledImages, dataset_info, load_dataset
from torchcaps.models import create_model
from torchcaps.train import (
    Data,
    LossSettings,
    Objective,
    Pipeline,
    evaluate,
    evaluation_batch,
    task_named,
)


def test_the_size_of_the_batches_does_not_matter():
    torch.manual_seed(0)
    settings = Data(name="synthetic_mnist")
    data = load_dataset(settings.name, "test").subset(range(50))
    network = create_model("dr_capsnet_tiny_test", image_size=28, num_classes=10, decoder="none").train()
    network.stem.eval()  # a part may be held in evaluation mode while the rest learns
    pipeline = Pipeline(settings, dataset_info(settings.name))
    objective = Objective(LossSettings(), has_decoder=False)
    task, told = task_named("classification"), []
    whole, parts = (
        evaluate(network, data, task, pipeline, objective, batch_size=size, on_images=told.append)
        for size in (50, 7)
    )
    assert parts.loss == pytest.approx(whole.loss, rel=1e-5)
    assert (parts.metrics, parts.tables) == (whole.metrics, whole.tables)
    confusion = torch.tensor(whole.tables["confusion"])
    assert whole.metrics["accuracy"] == confusion.diagonal().sum() / 50
    assert torch.equal(confusion.sum(1), torch.bincount(data.labels, minlength=10))
    assert told == [50, *[7] * 7, 1]
    assert network.training  # left as it was, and so are its parts
    assert not network.stem.training
    with pytest.raises(UserError, match="no images"):
        evaluate(network, data.subset([]), task, pipeline, objective)


@pytest.mark.parametrize(("side", "expected"), [(28, 128), (64, 128), (256, 8), (1024, 1)])
def test_a_batch_on_a_cpu_is_small_enough_for_its_memory_to_be_used_again(side, expected):
    images = torch.zeros(1, 1, side, side, dtype=torch.uint8)
    data = LabelledImages(images, torch.zeros(1, dtype=torch.int64), ("one",))
    assert evaluation_batch(data) == expected
