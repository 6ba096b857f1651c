import re

from torchcaps.experiments.demo import run_demo

RECIPE = """
model: {name: dr_capsnet_tiny_test, image_size: 28, num_classes: 10, stem_channels: 16}
data: {name: synthetic_mnist, validation: 0.1, preprocess: {normalize: none}}
loss: {reconstruction: 0.0005}
optim: {learning_rate: 5e-3}
batch_size: 16
epochs: 5
"""


def test_the_demo_writes_a_page_that_needs_nothing_else(tmp_path):
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    result = run_demo(tmp_path / "demo", recipe=tmp_path / "recipe.yaml")
    assert result["accuracy"] > 0.5
    page = (tmp_path / "demo" / "report.html").read_text()
    assert page.count("data:image/png;base64") == 6
    assert not re.search(r'(src|href)="http', page)
    assert f"{result['accuracy']:.2%}" in page
