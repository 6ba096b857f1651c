"""What a build of the package says of itself."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed")
_PATH = Path(__file__).parents[1] / "packaging" / "urls.py"


@pytest.fixture(scope="module")
def project_urls():
    spec = importlib.util.spec_from_file_location("urls", _PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.project_urls


def test_a_build_of_a_clone_has_no_urls(project_urls):
    assert project_urls({}) == {}


def test_urls_are_those_of_the_repository_that_publishes(project_urls):
    found = project_urls({"PROJECT_URL": "https://example.org/caps/"})
    assert found["Homepage"] == "https://example.org/caps"
    assert found["Issues"] == "https://example.org/caps/issues"


def test_a_workflow_names_its_own_repository(project_urls):
    variables = {"GITHUB_SERVER_URL": "https://example.org", "GITHUB_REPOSITORY": "team/caps"}
    assert project_urls(variables)["Source"] == "https://example.org/team/caps"


def test_an_address_that_is_not_https_is_refused(project_urls):
    with pytest.raises(ValueError, match="must begin with https"):
        project_urls({"PROJECT_URL": "git@example.org:team/caps"})
