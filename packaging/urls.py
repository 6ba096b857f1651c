"""The project URLs of a build: those of the repository that publishes it.

PROJECT_URL names the repository, as in `PROJECT_URL=https://... make dist`; on GitHub the workflow's own
variables do. A build without either, such as one of a clone, has no URLs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PAGES = {
    "Homepage": "",
    "Source": "",
    "Documentation": "/tree/main/docs",
    "Changelog": "/blob/main/CHANGELOG.md",
    "Issues": "/issues",
}


def project_urls(variables: Mapping[str, str]) -> dict[str, str]:
    """Titles and addresses for the environment of a build."""
    server, repository = variables.get("GITHUB_SERVER_URL"), variables.get("GITHUB_REPOSITORY")
    of_actions = f"{server}/{repository}" if server and repository else ""
    home = (variables.get("PROJECT_URL") or of_actions).rstrip("/")
    if not home:
        return {}
    if not home.startswith("https://"):
        raise ValueError(f"PROJECT_URL must begin with https://, got {home!r}")
    return {title: home + path for title, path in _PAGES.items()}


class ProjectUrls(MetadataHookInterface):
    """What hatchling calls when it builds."""

    def update(self, metadata: dict[str, object]) -> None:
        """Add the URLs to the metadata of the package."""
        metadata["urls"] = project_urls(os.environ)
