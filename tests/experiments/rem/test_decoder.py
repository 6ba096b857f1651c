import torch
from experiments.made_rows import a_row, a_run

from torchcaps.experiments.records import Details, Picture
from torchcaps.experiments.rem.decoder import draw_reconstructed


def test_digits_are_drawn_of_the_seed_that_kept_them():
    kept = Details(pictures={"perturbed": Picture.pack(torch.rand(3, 4, 5, 28, 28))})
    runs = tuple(a_run(30.0, details, seed=seed) for seed, details in ((41, Details()), (42, kept)))
    rows = [a_row("DR-CapsNet+REM", "reconstruction_error", 30.0, runs=runs)]
    drawn = draw_reconstructed(rows)
    assert drawn is not None
    assert drawn.startswith(b"\x89PNG")
    rows = [a_row("DR-CapsNet+REM", "reconstruction_error", 30.0, runs=runs[:1])]
    assert draw_reconstructed(rows) is None
