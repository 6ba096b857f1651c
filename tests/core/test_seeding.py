import torch

from torchcaps.core.seeding import derive_seed, generator


def test_purposes_get_unrelated_streams():
    seeds = {
        derive_seed(seed, purpose, epoch)
        for seed in (0, 1)
        for purpose in ("order", "augment")
        for epoch in (0, 1)
    }
    assert len(seeds) == 8
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_stream_is_repeatable():
    draws = [torch.rand(3, generator=generator(7, "order", 2)) for _ in range(2)]
    assert torch.equal(*draws)
