"""Fresh memory full of NaN, so that a value shows that was never written."""

import torch


def poison_fresh_memory(monkeypatch) -> None:
    for owner, name in [(torch, "empty"), (torch, "empty_like"), (torch.Tensor, "new_empty")]:
        monkeypatch.setattr(owner, name, _filled_with_nan(getattr(owner, name)))


def _filled_with_nan(allocate):
    return torch.no_grad()(lambda *args, **kwargs: allocate(*args, **kwargs).fill_(torch.nan))
