import pytest
from viz.drawing import assert_draws

from torchcaps.core import UserError
from torchcaps.viz import draw_curves


def epochs(count):
    return [
        {"epoch": e, "train_loss": 1 / e, "val_loss": 1.2 / e, "val_accuracy": 1 - 0.5 / e}
        for e in range(1, count + 1)
    ]


@pytest.mark.parametrize(
    "rows",
    [
        epochs(12),
        epochs(1),
        [{"epoch": 0, "train_loss": 0.0}],
        [{"epoch": 1, "train_loss": float("nan"), "val_loss": None, "val_accuracy": 1.0}],
        [{"epoch": e, "train_loss": 0.0, "val_loss": 0.0, "val_accuracy": 0.5} for e in range(300)],
    ],
    ids=["usual", "one epoch", "nothing but a zero", "gaps", "flat"],
)
def test_curves(rows):
    assert_draws(draw_curves(rows))


def test_curves_without_epochs_are_refused():
    with pytest.raises(UserError, match="empty"):
        draw_curves([])


def titles(figure):
    return [axes.get_title("right") for axes in figure.axes]


def test_the_epoch_whose_weights_were_kept_is_marked_not_the_best():
    rows = [{"epoch": e, "val_accuracy": value} for e, value in enumerate((0.9, 0.95, 0.94))]
    assert titles(draw_curves(rows)) == ["", "best 95.00%, epoch 2"]
    figure = draw_curves(rows, kept=2)
    assert titles(figure) == ["", "kept 94.00%, epoch 3"]
    assert figure.axes[1].lines[-1].get_xydata().tolist() == [[3, 0.94]]
    assert_draws(figure)
    assert titles(draw_curves(rows, kept=7)) == ["", ""]  # of an epoch that has no row


def test_any_metric_is_drawn_with_its_name_and_direction():
    rows = [{"epoch": e, "val_loss": value} for e, value in enumerate((0.9, 0.5, 0.7))]
    figure = draw_curves(rows, metric="loss")
    assert figure.axes[1].get_title("left") == "Validation loss"
    assert titles(figure)[1] == "best 0.5000, epoch 2"
