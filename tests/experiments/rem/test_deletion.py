import pytest
import torch

from torchcaps.experiments.rem.deletion import measure_deletion, random_maps, strongest_pixels
from torchcaps.models import create_model
from torchcaps.parse import CapsuleMap, ReceptiveField, capsule_maps, quantized
from torchcaps.train.recipe import Data

from splits import split_of

PIXELS = CapsuleMap((5, 6, 1), ReceptiveField((0.0, 0.0), 1.0, 1.0))  # a capsule on each pixel
MIDDLE = CapsuleMap((6, 6, 8), ReceptiveField((8.0, 8.0), 2.0, 17.0))  # of DR-CapsNet on 28 px


def test_the_fifth_with_the_highest_values_is_named():
    maps = torch.rand(3, 5, 6)
    named = strongest_pixels(maps, (5, 6), PIXELS)
    assert named.sum((1, 2)).tolist() == [6, 6, 6]
    for values, is_named in zip(maps, named, strict=True):
        assert values[is_named].min() > values[~is_named].max()


def test_pixels_beyond_the_centres_of_capsules_are_never_named():
    named = strongest_pixels(torch.rand(20, 6, 6), (28, 28), MIDDLE)
    assert named.sum((1, 2)).tolist() == [24] * 20  # a fifth of 11x11
    seen = named.any(0).nonzero()
    assert seen.min() >= 8
    assert seen.max() <= 18


def test_equal_values_go_by_one_order_that_has_no_direction():
    flat = strongest_pixels(torch.stack([torch.zeros(6, 6), torch.ones(6, 6)]), (28, 28), MIDDLE)
    assert torch.equal(flat[0], flat[1])
    middle = flat[0].nonzero().double().mean(0)
    assert (middle - 13).abs().max() < 2


def test_random_maps_are_always_the_same():
    maps = torch.zeros(2, 6, 6)
    assert torch.equal(random_maps(maps), random_maps(maps))
    assert random_maps(maps).unique().numel() == maps.numel()


def test_the_fall_is_that_of_images_blanked_one_by_one():
    data, pipeline = split_of(Data(name="synthetic_mnist"), "test")
    data = data.subset(list(range(3)))
    torch.manual_seed(0)
    network = create_model("dr_capsnet_tiny_test", image_size=28, num_classes=10).eval()
    (where,) = capsule_maps(network)
    maps = torch.rand(3, *where.grid[:2])
    found = measure_deletion(network, data, pipeline, maps={"a": maps, "b": 1 - maps}, where=where, levels=11)
    falls = []
    for image, its_map in zip(data.images, maps, strict=True):
        changed = image.float() / 255
        changed[:, strongest_pixels(its_map[None], (28, 28), where)[0]] = pipeline.info.mean[0]
        with torch.no_grad(), quantized(network, 11):
            before, after = (
                network(pipeline.for_evaluation(x[None]).inputs).activations[0] for x in (image, changed)
            )
        falls.append(100 * (before.max() - after[before.argmax()]))
    assert found["a"] == pytest.approx(float(sum(falls)) / 3, abs=1e-4)
    assert found["a"] != pytest.approx(found["b"], abs=1e-4)
