import re

import pytest

from torchcaps.core import UserError
from torchcaps.experiments.demonstration import describe_demo, record_demo
from torchcaps.experiments.records import load_rows
from torchcaps.pages import run_demo

RECIPE = """
model: {name: dr_capsnet_tiny_test, image_size: 28, num_classes: 10, stem_channels: 16}
data: {name: synthetic_mnist, validation: 0.1, preprocess: {normalize: none}}
loss: {reconstruction: 0.0005}
optim: {learning_rate: 5e-3}
batch_size: 16
epochs: 5
"""


@pytest.mark.slow
def test_the_demo_writes_a_page_that_needs_nothing_else(tmp_path):
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    rem = RECIPE.replace("stem_channels: 16}", "stem_channels: 16, decoder: none}").replace(
        "loss: {reconstruction: 0.0005}", "pruning: {strength: 1e-3, tolerance: 0.1}"
    )
    (tmp_path / "rem.yaml").write_text(rem)
    recipes = {"recipe": tmp_path / "recipe.yaml", "rem_recipe": tmp_path / "rem.yaml"}
    result = run_demo(tmp_path / "demo", **recipes)
    assert result.plain.accuracy > 0.5
    assert result.plain.sparsity == 0 < result.rem.sparsity < 1
    page = (tmp_path / "demo" / "report.html").read_text()
    assert page.count("data:image/png;base64") == 7
    assert not re.search(r'(src|href)="http', page)
    assert f"{result.plain.accuracy:.2%}" in page
    assert f"{result.rem.entropy:.2f} bits" in page
    assert f"<dt>without routing</dt><dd>{result.plain.even_accuracy:.2%}</dd>" in page
    assert f"torchcaps explain {tmp_path / 'demo' / 'run'} test:7" in page
    record_demo(result, tmp_path)
    words = describe_demo(load_rows(tmp_path, "demo-mnist5k"))
    accuracies = (
        f"{100 * result.plain.accuracy:.2f}%, without routing {100 * result.plain.even_accuracy:.2f}%"
    )
    assert accuracies in words
    assert f"{result.rem.keys:,} parse trees, {result.rem.entropy:.2f} bits" in words
    assert f"{result.seconds:.0f} s in all" in words


def test_the_demo_deletes_nothing_but_its_own(tmp_path):
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.json").write_text("{}")  # somebody's run, of another recipe
    with pytest.raises(UserError, match="already holds a run"):
        run_demo(tmp_path, recipe=tmp_path / "recipe.yaml")
    assert (tmp_path / "run" / "recipe.json").read_text() == "{}"
