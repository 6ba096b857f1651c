"""Fresh memory full of NaN, so that a value shows that was never written."""

import torch


def poison_fresh_memory(monkeypatch) -> None:
    for owner, name in [(torch, "empty"), (torch, "empty_like"), (torch.Tensor, "new_empty")]:
        monkeypatch.setattr(owner, name, _filled_with_nan(getattr(owner, name)))


def _filled_with_nan(allocate):
    @torch.no_grad()
    def allocate_poisoned(*args, **kwargs):
        fresh = allocate(*args, **kwargs)
        return fresh.fill_(torch.nan) if fresh.is_floating_point() else fresh

    return allocate_poisoned
