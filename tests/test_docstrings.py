"""The examples in docstrings run and give what they print."""

import doctest
import importlib
import inspect
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from zoo.handwriting import on_paper, written

import torchcaps
from torchcaps.zoo import entry_folder, find_entry

PUBLIC = sorted(set(torchcaps.__all__) - {"__version__"})
PACKAGES = (
    "core",
    "data",
    "inspection",
    "layers",
    "losses",
    "models",
    "parse",
    "prune",
    "routing",
    "train",
    "viz",
)


def has_example(value):
    return (inspect.isfunction(value) or inspect.isclass(value)) and ">>>" in (inspect.getdoc(value) or "")


def names_with_example():
    packages = [importlib.import_module(f"torchcaps.{name}") for name in PACKAGES]
    return [
        f"{package.__name__}.{name}"
        for package in packages
        for name in package.__all__
        if name not in PUBLIC and has_example(getattr(package, name))
    ]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder with the files that examples name: a run, a photograph and a photographed digit."""
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(entry_folder(find_entry("dr_capsnet_minimal.mnist")), folder / "runs" / "mine")
    for name in ("digit.jpg", "photo.jpg"):
        Image.fromarray(on_paper(written("7")).astype(np.uint8)).save(folder / name)
    return folder


def examples_of(function):
    """The examples of one docstring, with the public names and torch at hand."""
    module = importlib.import_module(function.__module__)
    names = {name: getattr(torchcaps, name) for name in torchcaps.__all__} | {"torch": torch}
    names[function.__name__] = getattr(module, function.__name__)
    return doctest.DocTestFinder(recurse=False).find(function, globs=names)[0]


def check_examples(value):
    test, said = examples_of(inspect.unwrap(value)), []
    assert test.examples, f"{value.__name__} has no example"
    outcome = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert not outcome.failed, "".join(said)


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_of_a_public_name_runs(name, workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    check_examples(getattr(torchcaps, name))


@pytest.mark.parametrize("name", names_with_example())
def test_an_example_of_a_package_runs(name):
    package, _, own = name.rpartition(".")
    check_examples(getattr(importlib.import_module(package), own))
