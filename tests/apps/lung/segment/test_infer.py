"""Whole volumes, window by window."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from torchcaps.apps.lung import window
from torchcaps.apps.lung.segment.infer import Windows, _blending_weight, _padded, _places, segment_volume
from torchcaps.apps.lung.segment.slice_network import SliceNetwork
from torchcaps.core.types import SegmentationOutput
from torchcaps.models import create_model

from apps.lung.ct import chest

CPU = torch.device("cpu")


class Pointwise(nn.Module):
    """Answers for each pixel from that pixel alone."""

    def forward(self, images):
        return SegmentationOutput((images * 3).sin().abs())


def as_is(grey):
    return grey


@pytest.fixture(scope="module")
def segcaps():
    model = create_model("segcaps_tiny_test", reconstruction=False).eval()
    return SliceNetwork(model, as_is, 4, CPU)


@pytest.fixture(scope="module")
def hounsfield():
    random = np.random.default_rng(0)
    return (chest() + random.integers(-40, 40, (10, 64, 64))).astype(np.int16)


@pytest.fixture(scope="module")
def tissue():
    """Slices without any air: there are no lungs, and so everything is looked at."""
    return np.random.default_rng(0).integers(-300, 300, (10, 64, 64)).astype(np.int16)


def test_windows_leave_no_seams(tissue):
    network = SliceNetwork(Pointwise(), as_is, 8, CPU)
    one_pass = Pointwise()(torch.from_numpy(window(tissue))).activations.numpy()
    for size, overlap in ((64, 0.0), (24, 0.5), (16, 0.0), (40, 0.25)):
        found = segment_volume(network, tissue, Windows(size=size, overlap=overlap))
        np.testing.assert_allclose(found, one_pass, atol=1e-3)  # stored in half precision


def test_one_window_is_one_pass(segcaps, tissue, monkeypatch):
    monkeypatch.setattr("torchcaps.apps.lung.segment.infer.has_native_bf16", lambda device: False)
    slices = tissue[3:6]
    with torch.no_grad():
        one_pass = segcaps(torch.from_numpy(window(slices)).unsqueeze(1))[:, 0].numpy()
    found = segment_volume(segcaps, slices)
    np.testing.assert_allclose(found, one_pass, atol=1e-3)


def test_the_batch_changes_nothing(segcaps, tissue):
    few, many = (
        segment_volume(segcaps, tissue[4:6], Windows(size=48, pixels_at_once=pixels))
        for pixels in (1, 1 << 16)
    )
    np.testing.assert_allclose(few, many, atol=2e-3)  # bfloat16 products may round otherwise


def test_far_from_the_edges_of_windows_their_size_changes_nothing(tissue):
    """A window that ends where a network no longer looks gives what the whole slice gives."""
    torch.manual_seed(0)
    convolution = nn.Conv2d(1, 1, 3, padding=1)

    def network(images):
        return SegmentationOutput(convolution(images).sigmoid())

    slices = SliceNetwork(network, as_is, 8, CPU)
    whole, cut = (segment_volume(slices, tissue, Windows(size=size, overlap=0.5)) for size in (64, 32))
    np.testing.assert_allclose(cut[:, 1:15, 1:15], whole[:, 1:15, 1:15], atol=2e-3)  # in one window alone


def test_sides_of_any_length_are_segmented(segcaps):
    hounsfield = chest(1, 50)[:, :45]
    assert segment_volume(segcaps, hounsfield, Windows(size=32)).shape == (1, 45, 50)


def test_air_outside_the_lungs_is_not_looked_at(hounsfield):
    seen = []

    def network(images):
        seen.append(images.shape)
        return SegmentationOutput(torch.ones_like(images))

    thick = np.concatenate([chest(4)[:1].repeat(16, 0), hounsfield, chest(4)[:1].repeat(8, 0)])
    found = segment_volume(
        SliceNetwork(network, as_is, 8, CPU), np.pad(thick, ((0, 0), (32, 32), (32, 32)), mode="edge")
    )
    assert not found[:16].any()
    assert found[20].any()
    assert not found[:, :8].any()
    assert sum(shape[0] * shape[2] * shape[3] for shape in seen) < 0.45 * found.size


def test_progress_counts_every_slice(hounsfield):
    told = []
    segment_volume(
        SliceNetwork(Pointwise(), as_is, 8, CPU), hounsfield, on_slices=lambda *counts: told.append(counts)
    )
    assert told == [(8, 10), (10, 10)]


def test_more_slices_take_no_more_memory():
    """What is held beside input and output is one slab: the largest tensor does not grow with the volume."""
    largest = []

    def network(images):
        largest.append(images.numel())
        return SegmentationOutput(images)

    slices = SliceNetwork(network, as_is, 8, CPU)
    peaks = []
    for count in (8, 64):
        segment_volume(slices, chest(count), Windows(pixels_at_once=1 << 30))
        peaks.append(max(largest))
        largest.clear()
    assert peaks[0] >= peaks[1]


def test_windows_weigh_most_in_their_middle_and_alike_to_all_sides():
    weight = _blending_weight(6, 9)
    torch.testing.assert_close(weight, weight.flip(0))
    torch.testing.assert_close(weight, weight.flip(1))
    assert weight[2:4, 4].tolist() == pytest.approx([float(weight.max())] * 2)
    assert weight.argmin() in (0, 8, 45, 53)


def test_the_weight_of_a_window_is_a_bell_of_an_eighth_of_its_side():
    weight = _blending_weight(17, 33).double()
    rows, columns = torch.arange(-8, 9.0).double(), torch.arange(-16, 17.0).double()
    exponent = (rows / (17 / 8)).square()[:, None] + (columns / (33 / 8)).square()
    torch.testing.assert_close(weight, (-exponent / 2).exp(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("side", [40, 44, 100, 512, 700])
@pytest.mark.parametrize(
    ("windows", "share"), [(Windows(size=40), 0.25), (Windows(size=43, overlap=0.5), 0.5)]
)
def test_windows_cover_a_side_and_each_sees_a_share_of_the_one_before(side, windows, share):
    starts, size = _places(side, windows, 4)
    assert size == 40
    assert (starts[0], starts[-1]) == (0, side - size)
    assert all(after - before <= size * (1 - share) for before, after in pairwise(starts))


def test_the_last_row_and_column_are_repeated_where_sides_do_not_fit():
    images = torch.arange(12.0).view(1, 1, 3, 4)
    found = _padded(images, 6)[0, 0]
    assert found.shape == (6, 6)
    assert torch.equal(found[:3, :4], images[0, 0])
    assert torch.equal(found[3:], found[2].expand(3, 6))
    assert torch.equal(found[:, 4:], found[:, 3:4].expand(6, 2))


def test_walls_of_the_lungs_are_looked_at_24_pixels_deep():
    hounsfield = np.full((8, 160, 160), 40, np.int16)
    hounsfield[:, 60:100, 64:108] = -850
    network = SliceNetwork(lambda images: SegmentationOutput(torch.ones_like(images)), as_is, 4, CPU)
    rows, columns = np.nonzero(segment_volume(network, hounsfield)[3])
    assert (rows.min(), rows.max() + 1, columns.min(), columns.max() + 1) == (36, 124, 40, 132)
