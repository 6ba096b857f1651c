import pytest
from experiments.made_rows import a_row, a_run
from matplotlib.figure import Figure

from torchcaps.experiments.records import Details
from torchcaps.experiments.rem import drawing


@pytest.fixture
def drawn(monkeypatch):
    figures: list[Figure] = []
    monkeypatch.setattr(drawing, "to_png", lambda figure: figures.append(figure) or b"picture")
    return figures


def rows(*curves, setting="net"):
    details = [Details.from_json({"curve": curve}) for curve in curves]
    runs = tuple(a_run(0.0, each, seed=42 + number) for number, each in enumerate(details))
    return [a_row(setting, "entropy", 0.0, runs=runs), a_row(setting, "keys", 0.0)]


def test_trees_of_each_class_run_from_the_lowest_seed_to_the_highest(drawn):
    curves = [{"class": ["0", "1"], "keys": keys} for keys in ([10, 200], [30, 16])]
    picture = drawing.chart_keys(rows(*curves, setting="Q") + rows(curves[0], setting="REM"))
    (axes,) = drawn[0].axes
    assert [patch.get_height() for patch in axes.patches] == [20, 108, 10, 200]
    intervals = [bars[2][0].get_segments()[0][:, 1].tolist() for bars in axes.containers if len(bars) == 3]
    assert intervals == [[10, 30], [16, 200]]
    assert picture == b"picture"


def test_levels_are_drawn_for_each_network(drawn):
    curve = {"levels": [2, 8, 64], "quantized_accuracy": [0.1, 0.9, 1.0], "entropy": [0, 5.0, 9.9]}
    settings = [f"Efficient-CapsNet+{way}" for way in ("Q", "REM")]
    drawing.chart_levels([row for name in settings for row in rows(curve, setting=name)])
    accuracy, entropy = drawn[0].axes
    assert accuracy.lines[0].get_xydata().tolist() == [[2, 10], [8, 90], [64, 100]]
    assert entropy.lines[0].get_ydata().tolist() == [0, 5, 9.9]
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == settings


def test_each_seed_of_a_training_is_a_named_curve_of_its_own_colour(drawn):
    curve = {
        "epoch": [1, 2, 3],
        "sparsity": [0.2, 0.21, 0.6],
        "quantized_accuracy": [0.9] * 3,
        "entropy": [1, 2, 3],
    }
    drawing.chart_training(rows(curve, {**curve, "entropy": [3, 2, 1]}))
    for axes in drawn[0].axes:
        curves = [line for line in axes.lines if line.get_label().startswith("seed")]
        assert [line.get_label() for line in curves] == ["seed 42", "seed 43"]
        assert len({line.get_color() for line in curves}) == 2


def test_epochs_are_named_where_no_other_name_of_any_seed_stands(drawn):
    curve = {"epoch": [1, 2, 3], "sparsity": [0.2, 0.21, 0.6], "quantized_accuracy": [0.9] * 3}
    drawing.chart_training(rows(curve | {"entropy": [1, 2, 3]}, curve | {"entropy": [3, 2, 1.05]}))
    accuracy, entropy = ([text.get_text() for text in axes.texts] for axes in drawn[0].axes)
    assert accuracy == ["1", "", "3", "", "", ""]  # the second seed has the same accuracies
    assert entropy == ["1", "2", "3", "1", "", "3"]


def test_distributions_are_the_mean_over_seeds(drawn):
    curves = [{"levels": [0.0, 1.0], "shares": [[share, 1 - share]]} for share in (0.2, 0.4)]
    drawing.chart_distributions(rows(*curves))
    assert drawn[0].axes[0].lines[-1].get_ydata().tolist() == pytest.approx([0.3, 0.7])
