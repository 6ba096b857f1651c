import pytest

from torchcaps.core import UserError
from torchcaps.viz import to_png
from torchcaps.viz.flops import FlopsPoint, draw_flops


def test_each_trunk_has_a_panel_with_a_curve_for_each_way():
    tuned = [FlopsPoint(3.0, 80.0, 0.5, "0 %"), FlopsPoint(1.0, 78.0, 0.2, "50 %")]
    figure = draw_flops(
        {
            "one": {"fine-tuned": tuned, "frozen": tuned[:1]},
            "two": {"fine-tuned": tuned},
            "empty": {"frozen": []},
        }
    )
    assert len(figure.axes) == 2
    lines = [container[0].get_xydata().tolist() for container in figure.axes[0].containers]
    assert lines == [[[1.0, 78.0], [3.0, 80.0]], [[3.0, 80.0]]]
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["fine-tuned", "frozen"]
    assert {"0 %", "50 %", "one"} <= {text.get_text() for text in figure.axes[0].texts}
    assert to_png(figure).startswith(b"\x89PNG")


def test_nothing_to_draw_is_said():
    with pytest.raises(UserError, match="no network to draw"):
        draw_flops({"one": {"frozen": []}})
