import torch

from torchcaps.core.seeding import derive_seed, digest_of, generator


def test_purposes_get_unrelated_streams():
    seeds = {
        derive_seed(seed, purpose, epoch)
        for seed in (0, 1)
        for purpose in ("order", "augment")
        for epoch in (0, 1)
    }
    assert len(seeds) == 8
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_seed_stays_the_same_because_runs_are_repeated_from_it():
    assert derive_seed(42, "order", 0) == int.from_bytes(digest_of("42/order/0"), "big") // 2


def test_a_stream_is_repeatable():
    draws = [torch.rand(3, generator=generator(7, "order", 2)) for _ in range(2)]
    assert torch.equal(*draws)


def test_a_digest_stays_the_same_because_splits_of_patients_and_files_follow_from_it():
    assert digest_of("phantom-0001").hex() == "63dcd55d37da41b4"
    assert len(digest_of("\udcff.png")) == 8  # the name of a file that is in no encoding
