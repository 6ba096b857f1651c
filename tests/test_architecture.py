"""The import rules of the package, checked on its syntax trees."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "torchcaps"
LEVELS = [  # lowest first; packages of one level do not see each other
    ["core"],
    ["storage"],
    ["kernels"],
    ["routing"],
    ["layers"],
    ["models", "losses", "data"],
    ["inspection"],
    ["prune"],
    ["train"],
    ["zoo"],
    ["parse"],
    ["viz"],
    ["apps"],
    ["bench"],
    ["suites"],
    ["pages"],
    ["explorer"],
    ["experiments"],
    ["cli"],
]
LEVEL = {package: height for height, packages in enumerate(LEVELS) for package in packages}
ONLY_IN = {
    "triton": "kernels",
    "matplotlib": "viz",
    "yaml": "train/recipe/yaml_file.py",
    "lightning": "train",
}
SILENT = {"core", "kernels", "routing", "layers", "models", "losses", "inspection", "prune"}
FILES = sorted(SOURCE.rglob("*.py"))


def place(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def imported_modules(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module or "")
            if node.module == "torchcaps":
                found |= {f"torchcaps.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", FILES, ids=place)
def test_imports_point_downwards(path):
    own = place(path).partition("/")[0]
    for module in imported_modules(path):
        other = (
            module.removeprefix("torchcaps.").partition(".")[0] if module.startswith("torchcaps.") else None
        )
        if other in LEVEL and own in LEVEL and other != own:
            assert LEVEL[other] < LEVEL[own], f"{own} imports {module}"


def names_a_module(name: str, own: str) -> bool:
    """Whether an import reaches past the `__init__.py` of another package, to a module in it."""
    root, *parts = name.split(".")
    return root == "torchcaps" and len(parts) > 1 and parts[0] != own and not SOURCE.joinpath(*parts).is_dir()


@pytest.mark.parametrize("path", [p for p in FILES if p.parent != SOURCE], ids=place)
def test_what_another_package_offers_stands_in_its_init_file(path):
    own = place(path).partition("/")[0]
    past = {name for name in imported_modules(path) if names_a_module(name, own)}
    is_excused = own == "kernels"
    assert is_excused or past <= {"torchcaps.kernels.point_mass.passes"}  # Triton is imported when it is used


@pytest.mark.parametrize("path", FILES, ids=place)
def test_heavy_libraries_stay_where_they_belong(path):
    for module in imported_modules(path):
        home = ONLY_IN.get(module.partition(".")[0])
        assert home is None or place(path).startswith(home), f"{module} belongs in {home}"


def imported_at_once(path):
    """Libraries and packages that a file imports when it is imported itself."""
    top_level = [
        node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    names = {alias.name for node in top_level if isinstance(node, ast.Import) for alias in node.names}
    return names | {
        node.module or "" for node in top_level if isinstance(node, ast.ImportFrom) and not node.level
    }


def test_only_a_run_that_starts_imports_lightning():
    at_once = {place(path) for path in FILES if any("lightning" in name for name in imported_at_once(path))}
    assert not at_once


@pytest.mark.parametrize("path", [p for p in FILES if place(p).startswith("cli/")], ids=place)
def test_commands_import_torch_only_when_they_run(path):
    names = imported_at_once(path)
    slow = {name for name in names if name.partition(".")[0] in {"torch", "numpy"}}
    slow |= {name for name in names if name.startswith("torchcaps.") and not name.startswith("torchcaps.cli")}
    assert not slow


@pytest.mark.parametrize("path", [p for p in FILES if place(p).partition("/")[0] in SILENT], ids=place)
def test_the_library_neither_prints_nor_reads_the_environment(path):
    tree = ast.parse(path.read_text())
    calls = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not calls & {"print", "open"}
    assert not any(
        isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"} for node in ast.walk(tree)
    )


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.name == "__init__.py" and p.parent != SOURCE], ids=place
)
def test_init_files_only_re_export(path):
    body = ast.parse(path.read_text()).body
    assert all(isinstance(node, ast.Expr | ast.Import | ast.ImportFrom | ast.Assign) for node in body)


def opens_text_without_encoding(node):
    """Whether a call reads or writes text in the encoding of the machine it runs on."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
        return False
    if any(keyword.arg == "encoding" for keyword in node.keywords):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id == "open"
    if node.func.attr in ("read_text", "write_text"):
        return True
    modes = [value.value for value in node.args if isinstance(value, ast.Constant)]
    return node.func.attr == "open" and modes in (["r"], ["w"], ["a"], ["x"])


@pytest.mark.parametrize("path", FILES, ids=place)
def test_text_is_utf8_on_every_machine(path):
    lines = [
        node.lineno for node in ast.walk(ast.parse(path.read_text())) if opens_text_without_encoding(node)
    ]
    assert not lines


@pytest.mark.parametrize("path", FILES, ids=place)
def test_files_stay_small(path):
    assert len(path.read_text().splitlines()) <= 400


def test_the_map_for_contributors_is_the_one_that_is_checked():
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text()
    drawn = text.split("```")[3]  # the second block
    names = [line.split("  ")[0] for line in drawn.strip().splitlines()]
    downwards = [name for row in names for level in row.split(" > ") for name in level.split(" | ")]
    assert downwards == [name for level in reversed(LEVELS) for name in level]
