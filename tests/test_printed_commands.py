"""Every command that README and docs print exists, with the options and keys that it is given."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
import typer
import yaml

from torchcaps.cli.main import app
from torchcaps.train.recipe import load_recipe, packaged_recipes
from torchcaps.train.recipe.keys import key_groups

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "benchmarks/README.md"]
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


@pytest.mark.parametrize("block", ["pruning", "annealing"])
def test_keys_of_printed_recipes_are_those_of_today(block):
    known = {key for group in key_groups() if group.title == block for key, *_ in group.rows}
    seen = set()
    for path in DOCUMENTS:
        for text in re.findall(r"```yaml\n(.*?)```", path.read_text(), re.DOTALL):
            seen |= set((yaml.safe_load(text) or {}).get(block) or {})
    assert seen
    assert seen <= known
