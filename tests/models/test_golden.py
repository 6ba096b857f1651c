import json

import pytest
import torch
from torch.testing import assert_close

from torchcaps.models import list_models

from models import renew_golden
from models.renew_golden import GOLDEN, TOLERANCE, golden_output

STORED = json.loads(GOLDEN.read_text())
RENEW = "if this change is meant, run: python tests/models/renew_golden.py"


@pytest.mark.parametrize("name", list_models("*_tiny_test"))
def test_the_output_is_the_stored_one(name):
    assert name in STORED, f"there is no stored output of {name}; {RENEW}"
    output = golden_output(name)
    assert output.keys() == STORED[name].keys(), RENEW
    for field, values in STORED[name].items():
        mine, theirs = torch.tensor(output[field]), torch.tensor(values)
        assert_close(mine, theirs, **TOLERANCE, msg=lambda text, f=field: f"{f}: {text}\n{RENEW}")


@pytest.mark.parametrize("name", STORED)
def test_stored_outputs_tell_images_and_classes_apart(name):
    """An output that hardly depends on its input would let any mistake pass."""
    leading = torch.tensor(next(iter(STORED[name].values())))  # activations, or descriptors
    assert leading.std() > 1e-3
    assert (leading - leading.roll(len(leading) // 2)).abs().max() > 1e-3


def test_renewing_keeps_what_differs_in_rounding_alone(tmp_path, monkeypatch):
    kept, changed, new = "conv_twin_tiny_test", "dr_capsnet_tiny_test", "descriptor_tiny_test"
    rounded = {field: [value + 1e-7 for value in values] for field, values in STORED[kept].items()}
    moved = {field: [value + 1e-2 for value in values] for field, values in STORED[changed].items()}
    path = tmp_path / "golden.json"
    path.write_text(json.dumps({kept: rounded, changed: moved}))
    monkeypatch.setattr(renew_golden, "GOLDEN", path)
    monkeypatch.setattr(renew_golden, "list_models", lambda pattern: [kept, new, changed])
    renew_golden.main()
    found = json.loads(path.read_text())
    assert found == {kept: rounded, new: golden_output(new), changed: golden_output(changed)}


def test_stored_outputs_are_small():
    assert GOLDEN.stat().st_size < 50_000
