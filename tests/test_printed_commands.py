"""Every command that README and docs print exists, with the options and keys that it is given.

Those of the quick start also run.
"""

import importlib.util
import re
import shlex
import tomllib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import typer
import yaml
from PIL import Image
from zoo.handwriting import on_paper, written

from torchcaps.apps.pose import load_scene
from torchcaps.cli.main import app
from torchcaps.train.recipe import load_recipe, packaged_recipes
from torchcaps.train.recipe.keys import key_groups

from command import completed

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "benchmarks/README.md",
    ROOT / "docs/gallery/README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "src/torchcaps/zoo/files").glob("*/card.md")),
]
FENCED = re.compile(r"```(?:\w*)\n(.*?)```", re.DOTALL)
INLINE = re.compile(r"`(torchcaps [^`]+)`")
PLACEHOLDER = re.compile(r"^[A-Z.{]|\.\.\.|\||^\[")
ROOT_COMMAND = typer.main.get_command(app)


def printed(path):
    """Commands of a document, each as its words; what follows in a comment is left out."""
    text = path.read_text().replace("\\\n", "")
    blocks = [line.strip() for block in FENCED.findall(text) for line in block.splitlines()]
    lines = [line for line in blocks if line.startswith("torchcaps ")]
    lines += [" ".join(line.split()) for line in INLINE.findall(FENCED.sub("", text))]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def find_command(words):
    """The command that words name, and those that are left for it."""
    command = ROOT_COMMAND
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        if words[0] in ("...", "NAME"):
            return command, []
        assert words[0] in command.commands, f"no command {words[0]!r}"
        command, words = command.commands[words[0]], words[1:]
    return command, words


def check(words):
    command, rest = find_command(words)
    known = {option for each in command.params for option in each.opts} | {"--help", "-h"}
    unknown = [word for word in rest if re.match(r"--?[a-z]", word) and word.split("=")[0] not in known]
    assert not unknown, f"{' '.join(words)}: no option {unknown}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_commands_in_documents_exist_with_their_options(path):
    for words in printed(path):
        check(words)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_recipes_that_documents_train_exist_and_take_the_keys_that_are_set(path):
    for words in printed(path):
        recipes = [word for word in words if re.match(r"^[a-z0-9_]+/[a-z0-9_]+$", word)]
        if words[0] not in ("train", "rem") or not recipes or recipes[0].startswith("runs/"):
            continue
        changes = [after for before, after in pairwise(words) if before == "--set"]
        assert recipes[0] in packaged_recipes(), recipes[0]
        given = [change for change in changes if not PLACEHOLDER.search(change.partition("=")[2])]
        load_recipe(recipes[0], given)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_scripts_modules_targets_and_extras_in_documents_exist(path):
    text = path.read_text()
    for script in re.findall(r"python ([\w/]+\.py)", text):
        assert (ROOT / script).is_file(), script
    for module in re.findall(r"python -m ([\w.]+)", text):
        assert importlib.util.find_spec(module), module
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"(?:`|^)make ([\w-]+)(?=`|\s{2,})", text, re.MULTILINE)) <= set(targets)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"pip install (?:-e )?\"(?:torchcaps|\.)\[([\w,]+)\]", text)
    assert {extra for names in named for extra in names.split(",")} <= set(extras)


@pytest.fixture
def workplace(tmp_path):
    """A folder with the files that the quick start names: two photographs, and two classes of them."""
    for name in ("digit.jpg", "photo.jpg"):
        Image.fromarray(on_paper(written("7")).astype(np.uint8)).save(tmp_path / name)
    pixels = np.random.default_rng(0).integers(0, 255, (20, 48, 64, 3), dtype=np.uint8)
    for number, picture in enumerate(pixels):
        folder = tmp_path / "my_photos" / ("cats", "dogs")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / f"{number}.jpg")
    return tmp_path


@pytest.mark.slow
def test_the_commands_of_the_quick_start_run_one_after_the_other(workplace):
    pytest.importorskip("mlxtend")
    shorter = {"train": ["--set", "epochs=1", "--set", "data.limit=100"]}
    for words in printed(ROOT / "docs/quickstart.md"):
        if words[0] == "app":  # it serves its page until it is stopped
            continue
        done = completed(*words, *shorter.get(words[0], []), cwd=workplace)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"


@pytest.mark.parametrize(("page", "read"), [("annealing", load_recipe), ("pose", load_scene)])
def test_a_printed_file_is_one_that_commands_read(page, read, tmp_path):
    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / f"docs/{page}.md").read_text(), re.DOTALL)
    path = tmp_path / "printed.yaml"
    path.write_text(block)
    assert read(path)


@pytest.mark.parametrize("block", ["pruning", "annealing"])
def test_keys_of_printed_recipes_are_those_of_today(block):
    known = {key for group in key_groups() if group.title == block for key, *_ in group.rows}
    seen = set()
    for path in DOCUMENTS:
        for text in re.findall(r"```yaml\n(.*?)```", path.read_text(), re.DOTALL):
            seen |= set((yaml.safe_load(text) or {}).get(block) or {})
    assert seen
    assert seen <= known
