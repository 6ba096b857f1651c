"""Tiles worked on by several threads."""

import pytest
import torch

from torchcaps.kernels.em import cpu_layer
from torchcaps.kernels.tiles import compute_side_by_side, work_side_by_side

from kernels.em_reference import EMCase
from kernels.layer_reference import assert_as_accurate_as_the_plain_layer


@pytest.fixture
def _three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_three_threads")
@pytest.mark.parametrize("count", [0, 1, 3, 8])
def test_shares_come_back_in_order_and_hold_every_tile_once(count):
    shares = work_side_by_side(lambda tiles: [*tiles], list(range(count)))
    assert [tile for share in shares for tile in share] == list(range(count))
    assert len(shares) == (3 if count >= 3 else 1)


@pytest.mark.usefixtures("_three_threads")
def test_each_thread_computes_alone_and_none_keeps_a_graph():
    seen = work_side_by_side(lambda _: (torch.get_num_threads(), torch.is_grad_enabled()), range(3))
    assert seen == [(1, False)] * 3
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("_three_threads")
def test_an_error_of_a_tile_is_raised_and_the_threads_are_as_before():
    with pytest.raises(ZeroDivisionError):
        work_side_by_side(lambda tiles: 1 // sum(tiles), [0, 0, 0])
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("_three_threads")
def test_a_layer_answers_the_same_on_several_threads(monkeypatch):
    monkeypatch.setattr(cpu_layer, "_TILE_ELEMENTS", 1)
    assert_as_accurate_as_the_plain_layer(EMCase(batch=5, stride=1), seeds=2)


@pytest.mark.usefixtures("_three_threads")
@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_threads_write_to_what_was_made_in_the_callers_mode(mode):
    with mode():
        made = torch.zeros(3)

        def fill(places):
            for place in places:
                made[place] = place + 1

        work_side_by_side(fill, range(3))
        assert made.tolist() == [1, 2, 3]
        assert torch.is_inference_mode_enabled() == (mode is torch.inference_mode)


@pytest.mark.usefixtures("_three_threads")
@pytest.mark.parametrize("count", [0, 1, 3, 8])
def test_shares_computed_side_by_side_come_back_in_order_and_hold_every_tile_once(count):
    shares = compute_side_by_side(list, range(count))
    assert [tile for share in shares for tile in share] == list(range(count))
    assert len(shares) == (3 if count >= 3 else 1)


@pytest.mark.usefixtures("_three_threads")
@pytest.mark.parametrize("bad", [0, 2])
def test_an_error_in_any_share_computed_side_by_side_is_raised(bad):
    with pytest.raises(ZeroDivisionError):
        compute_side_by_side(lambda tiles: [1 // (tile - bad) for tile in tiles], range(3))
