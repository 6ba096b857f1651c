import json

import pytest
import torch
from torch.testing import assert_close

from torchcaps.models import list_models

from models.renew_golden import GOLDEN, golden_output

STORED = json.loads(GOLDEN.read_text())
RENEW = "if this change is meant, run: python tests/models/renew_golden.py"


@pytest.mark.parametrize("name", list_models("*_tiny_test"))
def test_the_output_is_the_stored_one(name):
    assert name in STORED, f"there is no stored output of {name}; {RENEW}"
    output = golden_output(name)
    assert output.keys() == STORED[name].keys(), RENEW
    for field, values in STORED[name].items():
        mine, theirs = torch.tensor(output[field]), torch.tensor(values)
        assert_close(mine, theirs, rtol=1e-5, atol=1e-5, msg=lambda text, f=field: f"{f}: {text}\n{RENEW}")


@pytest.mark.parametrize("name", STORED)
def test_stored_outputs_tell_images_and_classes_apart(name):
    """An output that hardly depends on its input would let any mistake pass."""
    leading = torch.tensor(next(iter(STORED[name].values())))  # activations, or descriptors
    assert leading.std() > 1e-3
    assert (leading - leading.roll(len(leading) // 2)).abs().max() > 1e-3


def test_stored_outputs_are_small():
    assert GOLDEN.stat().st_size < 50_000
