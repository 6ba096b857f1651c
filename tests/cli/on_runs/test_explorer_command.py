import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from explorer.conftest import save_run

from command import completed, torchcaps


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return save_run(tmp_path_factory.mktemp("runs") / "mine")


def heed_interrupts():
    """A shell lets what it starts in the background ignore them, and children take that over."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
def test_the_page_is_there_until_it_is_interrupted(run):
    command = [sys.executable, "-m", "torchcaps", "app", str(run), "--port", "0", "--no-browser"]
    process = subprocess.Popen(
        [*command, "--device", "cpu"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        preexec_fn=heed_interrupts,
    )
    try:
        address = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", process.stdout.readline())[0]
        with urllib.request.urlopen(address, timeout=20) as page:
            assert b"Why this answer?" in page.read()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address.partition("?")[0], timeout=20)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()  # it has ended, or did not hear
    assert process.returncode == 0, errors
    assert errors == ""


def test_a_folder_that_is_not_there_is_one_sentence():
    done = completed("app", "nowhere")
    assert done.returncode == 2
    assert "neither a folder nor" in done.stderr


def test_explain_writes_the_explorer_as_one_file(run, tmp_path):
    names = ["test:3", "test:5"]
    options = "--explorer", "--out", tmp_path, "--device", "cpu", "--json"
    found = json.loads(torchcaps("explain", run, *names, *options))
    assert found["images"] == names
    assert [path.name for path in tmp_path.iterdir()] == ["explorer.html"]
    assert found["bytes"] == (tmp_path / "explorer.html").stat().st_size
