"""Examples and the Python of README and docs run as they stand."""

import ast
import importlib
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from torchcaps.core import Capsules
from torchcaps.data import DATASETS
from torchcaps.layers import FcCaps
from torchcaps.losses import LOSSES
from torchcaps.models import MODELS
from torchcaps.routing import ROUTINGS
from torchcaps.train import Machine, train
from torchcaps.train.recipe.keys import key_groups, keys_as_markdown
from torchcaps.train.tasks import TASKS

from small_runs import DIGITS, MODEL, small_recipe

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SCRIPTS = sorted(path for room in ("benchmarks", "docs", "examples") for path in (ROOT / room).rglob("*.py"))
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{path.name}-{number}")
    for path in DOCUMENTS
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL))
]


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_run_and_are_short(path, tmp_path):
    assert len(path.read_text().splitlines()) < 60
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_take_names_that_the_package_has(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torchcaps":
            module = importlib.import_module(node.module)
            for name in (alias.name for alias in node.names):
                is_module = (Path(module.__file__).parent / f"{name}.py").exists()
                assert hasattr(module, name) or is_module, f"{node.module} has no {name}"


@pytest.mark.slow
def test_the_example_of_a_tree_takes_a_run_on_any_images(tmp_path, monkeypatch, capsys):
    recipe = small_recipe(
        model={**MODEL, "in_channels": 3, "image_size": 32},
        data={**DIGITS, "name": "synthetic_cifar10"},
        epochs=1,
    )
    train(recipe, tmp_path / "run", Machine(device="cpu"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["03_draw_a_parse_tree.py", "run"])
    runpy.run_path(str(ROOT / "examples" / "03_draw_a_parse_tree.py"))
    assert "drawn in parse_tree.png" in capsys.readouterr().out
    assert (tmp_path / "parse_tree.png").is_file()


def test_the_first_example_shows_the_agreement_it_speaks_of(capsys):
    runpy.run_path(str(EXAMPLES[0]))
    shares = [
        float(share) for share in capsys.readouterr().out.splitlines()[-1].split("shares ")[1].split(",")
    ]
    assert min(shares[:3]) > 0.95 > max(shares[3:])


@pytest.fixture
def own_registries(monkeypatch):
    """What a document registers is gone after it: tests that run later see the package alone."""
    for registry in (DATASETS, LOSSES, MODELS, ROUTINGS, TASKS):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.usefixtures("own_registries")
def test_python_in_documents_runs(block):
    names: dict = {}
    exec(compile(block, "document", "exec"), names)
    assert set(names) - {"__builtins__"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)", path.read_text()):
        assert target.startswith("https:") or (path.parent / target).exists(), target


def test_the_page_of_recipe_keys_is_current_and_complete():
    assert (ROOT / "docs/recipes.md").read_text() == keys_as_markdown()
    missing = [key for group in key_groups() for key, _, words in group.rows if not words]
    assert not missing


def test_the_readme_stays_short_and_names_the_two_commands():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) < 150
    assert "make demo" in text
    assert "make test" in text


def test_the_table_of_kernels_says_which_run_on_a_cpu_and_which_give_couplings():
    page = (ROOT / "docs/routings.md").read_text()
    said = re.findall(r"^\| `(\w+)`[^|]*\| CPU and CUDA \| [^|]*\| ([^|]*) \|$", page, re.MULTILINE)
    children = Capsules(torch.rand(64, 32, 4), torch.rand(64, 32))  # enough for a kernel to be faster
    found = {}
    for name in ROUTINGS.names():
        layer = FcCaps(32, 3, 4, 4, routing=name)
        if layer.fallback_reason(children, return_coupling=False) is None:
            with torch.no_grad():
                has_couplings = layer.fallback_reason(children) is None
            found[name] = "without gradients" if has_couplings else "none"
    assert found == dict(said)
