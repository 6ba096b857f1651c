import importlib.util

import pytest

pytest.importorskip("numba")

from torchcaps.kernels import compiling


@pytest.fixture
def hits(tmp_path, monkeypatch):
    """How often machine code was found for a function, by what is said of all sources."""
    path = tmp_path / "passes.py"
    path.write_text("def double(x):\n    return 2 * x\n")

    def count(sources):
        monkeypatch.setattr(compiling, "_SOURCES", sources)
        found = importlib.util.spec_from_file_location("passes", path)
        module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
        double = compiling.compiled(module.double)
        assert double(3) == 6
        return sum(double.stats.cache_hits.values())

    return count


def test_machine_code_is_kept_until_any_source_changes(hits):
    assert [hits("one"), hits("one"), hits("two")] == [0, 1, 0]


def test_the_sources_are_all_files_of_compiled_functions(tmp_path):
    names = ("compiled_rows.py", "em/compiled_passes.py", "launch.py")
    digests = []
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("first")
        digests.append(compiling.digest_of_sources(tmp_path))
    (tmp_path / names[0]).write_text("second")
    digests.append(compiling.digest_of_sources(tmp_path))
    assert [digests.count(each) for each in digests] == [1, 2, 2, 1]
