"""The documentation site, its notebooks and what it draws."""

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import torchcaps

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
API_PAGES = sorted((ROOT / "docs/api").glob("*.md"))
MODULE_NAMES = {path.stem for path in (ROOT / "src/torchcaps").rglob("*.py")}
LOADED = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=["']?(https?:)?//""")
QUIET = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    done = subprocess.run(command, cwd=ROOT, env=QUIET, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_the_site_builds_without_a_broken_link_and_has_every_page(site):
    built = {path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")}
    expected = {f"docs/{path.stem}" for path in (ROOT / "docs").glob("*.md")}
    expected |= {f"results/{path.stem}" for path in (ROOT / "results").glob("*.md")}
    assert expected <= built


@pytest.mark.slow
def test_pages_load_nothing_from_outside(site):
    for path in (*site.rglob("*.html"), *site.rglob("*.css")):
        text = path.read_text(encoding="utf-8")
        assert not LOADED.search(text), path
        assert not re.search(r"url\(\s*[\"']?(https?:)?//|@import", text), path


@pytest.mark.slow
def test_the_reference_shows_shapes(site):
    text = re.sub(r"<[^>]+>", "", (site / "docs/api/routing.html").read_text(encoding="utf-8"))
    assert 'votes: Float[Tensor, "*where in_caps out_caps pose"]' in text.replace("&quot;", '"')


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("mlxtend")
    notebook = nbformat.read(path, as_version=4)
    run = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    run.execute()
    assert any(cell.get("outputs") for cell in notebook.cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_committed_without_outputs(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "pictures"), [("draw_capsule", 2), ("draw_parts", 2), ("draw_levels", 1)])
def test_pictures_of_the_concepts_are_drawn_by_their_scripts(name, pictures, tmp_path):
    pytest.importorskip("mlxtend")
    script = ROOT / "docs" / "gallery" / f"{name}.py"
    subprocess.run([sys.executable, script, tmp_path], check=True)
    drawn = sorted(tmp_path.glob("*.png"))
    assert len(drawn) == pictures
    for path in drawn:
        assert (ROOT / "docs" / "gallery" / path.name).is_file()
        assert path.stat().st_size < 200_000


def test_the_version_is_the_same_everywhere_and_the_changelog_has_its_date():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    dated = re.search(
        r"^## \[(.+)\] - (\d{4}-\d{2}-\d{2})$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert torchcaps.__version__ == version == dated[1]
    assert f"version: {version}\ndate-released: {dated[2]}\n" in cited


@pytest.mark.parametrize("name", ["tests", "docs", "release"])
def test_workflows_call_the_scripts_of_the_project(name):
    text = (ROOT / ".github/workflows" / f"{name}.yml").read_text(encoding="utf-8")
    assert {"tests": ".ci/run", "docs": "make docs", "release": "make dist"}[name] in text
    assert "secrets." not in text


@pytest.mark.parametrize("page", API_PAGES, ids=lambda path: path.stem)
def test_the_reference_has_names_that_hide_behind_a_module_of_the_same_name(page):
    """The reference takes `core.squash` for the module; the function needs a line of its own."""
    text = page.read_text()
    package = importlib.import_module(re.search(r"^::: (\S+)", text, re.MULTILINE)[1])
    for name in set(package.__all__) & MODULE_NAMES:
        value = getattr(package, name)
        home = value.__name__ if inspect.ismodule(value) else f"{value.__module__}.{name}"
        if inspect.ismodule(value) or value.__module__.endswith(f".{name}"):
            assert f"::: {home}\n" in text, home


def test_links_of_the_site_stand_out_from_white():
    """WCAG wants 4.5 of text: of a teal, green counts most."""
    colour = re.search(
        r"--md-primary-fg-color: #(\w{6})", (ROOT / "docs/mkdocs/site.css").read_text(encoding="utf-8")
    )[1]
    parts = [(int(colour[at : at + 2], 16) / 255) ** 2.2 for at in (0, 2, 4)]
    luminance = 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    assert 1.05 / (luminance + 0.05) >= 5  # also of links in code, which stand on grey
