"""Hooks of mkdocs: pages keep their places in the repository, so that links hold on the site and on GitHub.

mkdocs looks into one folder, but the pages in `docs/` link to `results/`, `benchmarks/` and `examples/`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
SHOWN = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "CITATION.cff",
    "LICENSE",
    "docs/**/*.md",
    "docs/**/*.png",
    "docs/gallery/*.json*",
    "docs/references.bib",
    "docs/mkdocs/site.css",
    "results/*.md",
    "results/*.json",
    "results/*.png",
    "benchmarks/*.md",
    "benchmarks/results/*.json",
    "examples/*.py",
    "examples/notebooks/*.ipynb",
    "src/torchcaps/zoo/files/*/card.md",
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Complete the navigation by the pages that are listed by their folder."""
    _fill(config.nav, "A page for each experiment", "results")
    _fill(config.nav, "API", "docs/api")
    _fill(config.nav, "Cards of pretrained networks", "src/torchcaps/zoo/files/*")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of the site, named from the root of the repository; those of the theme stay."""
    kept = [file for file in files if Path(file.src_dir or "") != Path(config.docs_dir)]
    return Files([*kept, *(_site_file(path, config) for path in shown_files())])


def shown_files() -> list[str]:
    """Every file that is on the site, relative to the root."""
    found = {path.relative_to(ROOT).as_posix() for pattern in SHOWN for path in ROOT.glob(pattern)}
    return sorted(found)


def _site_file(path: str, config: MkDocsConfig) -> File:
    return File(path, str(ROOT), config.site_dir, config.use_directory_urls)


def _fill(entries: Any, title: str, folder: str) -> None:
    for entry in entries:
        if isinstance(entry, dict):
            for name, content in entry.items():
                if name == title:
                    found = (path for path in shown_files() if Path(path).match(f"{folder}/*.md"))
                    content.extend(path for path in found if path not in content)
                elif isinstance(content, list):
                    _fill(content, title, folder)
