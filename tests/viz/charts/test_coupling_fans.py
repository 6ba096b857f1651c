import pytest
from PIL import Image

from torchcaps.core import UserError
from torchcaps.viz import draw_coupling_fans, to_png


def test_the_width_of_a_line_is_the_coupling(tmp_path):
    figure = draw_coupling_fans({1: [0.5, 0.5], 50: [0.9, 0.1]}, ["a", "b"], panels=(1, 50))
    widths = [line.get_linewidth() for line in figure.axes[0].lines if len(line.get_xdata()) == 2]
    assert [width / widths[0] for width in widths] == pytest.approx([1, 1, 1.8, 0.2])
    assert [text.get_text() for text in figure.axes[1].texts] == ["a"]  # far above an even share in the end
    (tmp_path / "fan.png").write_bytes(to_png(figure))
    with Image.open(tmp_path / "fan.png") as picture:
        assert picture.width > picture.height
    with pytest.raises(UserError, match="no couplings"):
        draw_coupling_fans({1: [0.5, 0.5]}, ["a", "b"], panels=(3,))
