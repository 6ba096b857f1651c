"""The kernels of EM routing in Triton's interpreter; `test_triton.py` runs this file on its own."""

import pytest
import torch

from torchcaps.kernels.em import launch, operators

from kernels import em_reference
from kernels.em_reference import EMCase
from kernels.layer_reference import assert_as_accurate_as_the_plain_layer

# of a sum without a term, NumPy warns where a GPU does not
pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore:.*:RuntimeWarning"),
]


@pytest.mark.parametrize("case", em_reference.QUICK.values(), ids=em_reference.QUICK)
def test_em_is_as_accurate_as_the_plain_layer(case):
    assert_as_accurate_as_the_plain_layer(case, seeds=1)


@pytest.mark.slow
@pytest.mark.parametrize("case", em_reference.CASES.values(), ids=em_reference.CASES)
def test_em_is_as_accurate_as_the_plain_layer_in_many_shapes(case):
    assert_as_accurate_as_the_plain_layer(case, seeds=3)


def test_types_split_among_programs_and_windows_among_chunks_join_without_a_seam(monkeypatch):
    tiles = launch.Tiles(fit=launch.Tile(16, 2, 1), votes=launch.Tile(8, 2, 1))
    monkeypatch.setattr(launch, "choose_tiles", lambda *sizes: tiles)
    monkeypatch.setattr(launch, "_VOTE_BYTES", 4 * 18 * 4 * 3)  # one window at a time
    assert_as_accurate_as_the_plain_layer(EMCase(batch=1, height=3, width=5, iterations=2), seeds=1)


@pytest.mark.slow
def test_the_operator_announces_the_shapes_it_returns():
    children = torch.rand(4, 3, 4), torch.rand(4, 3)
    costs = torch.rand(2), torch.rand(2)
    settings = [1, 1, 1, 1], 2, [1.0, 0.1, 1.5]
    checks = {"test_utils": ("test_schema", "test_faketensor")}
    torch.library.opcheck(
        operators._em_op, (*children, torch.rand(3, 2, 2, 2), None, *costs, *settings), **checks
    )
