"""The import rules of the package, checked on its syntax trees."""

import ast
from pathlib import Path

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


TREES = {place(path): ast.parse(path.read_text()) for path in FILES}


def package_of(file: str) -> str:
    return file.partition("/")[0]


def imported_modules(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module or "")
            if node.module == "torchcaps":
                found |= {f"torchcaps.{alias.name}" for alias in node.names}
    return found


IMPORTS = [(file, module) for file, tree in TREES.items() for module in sorted(imported_modules(tree))]


def points_upwards(module: str, own: str) -> bool:
    other = module.removeprefix("torchcaps.").partition(".")[0] if module.startswith("torchcaps.") else None
    return other in LEVEL and own in LEVEL and other != own and LEVEL[other] >= LEVEL[own]


def test_imports_point_downwards():
    assert [each for each in IMPORTS if points_upwards(each[1], package_of(each[0]))] == []


def names_a_module(name: str, own: str) -> bool:
    """Whether an import reaches past the `__init__.py` of another package, to a module in it."""
    root, *parts = name.split(".")
    return root == "torchcaps" and len(parts) > 1 and parts[0] != own and not SOURCE.joinpath(*parts).is_dir()


def test_what_another_package_offers_stands_in_its_init_file():
    past = [(file, name) for file, name in IMPORTS if "/" in file and names_a_module(name, package_of(file))]
    # Triton is imported when it is used
    assert [each for each in past if each[1] != "torchcaps.kernels.point_mass.passes"] == []


def test_heavy_libraries_stay_where_they_belong():
    homes = [(file, name, ONLY_IN.get(name.partition(".")[0], "")) for file, name in IMPORTS]
    assert [each for each in homes if not each[0].startswith(each[2])] == []


def imported_at_once(tree: ast.Module) -> set[str]:
    """Libraries and packages that a file imports when it is imported itself."""
    top_level = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in top_level if isinstance(node, ast.Import) for alias in node.names}
    return names | {
        node.module or "" for node in top_level if isinstance(node, ast.ImportFrom) and not node.level
    }


def test_only_a_run_that_starts_imports_lightning():
    assert [
        file for file, tree in TREES.items() if any("lightning" in each for each in imported_at_once(tree))
    ] == []


def is_slow(name: str) -> bool:
    if name.startswith("torchcaps."):
        return not name.startswith("torchcaps.cli")
    return name.partition(".")[0] in {"torch", "numpy"}


def test_commands_import_torch_only_when_they_run():
    commands = {file: tree for file, tree in TREES.items() if package_of(file) == "cli"}
    assert [
        (file, name) for file, tree in commands.items() for name in imported_at_once(tree) if is_slow(name)
    ] == []


def prints_or_reads(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in {"print", "open"}
    return isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}


def test_the_library_neither_prints_nor_reads_the_environment():
    silent = {file: tree for file, tree in TREES.items() if package_of(file) in SILENT}
    assert [
        (file, node.lineno)
        for file, tree in silent.items()
        for node in ast.walk(tree)
        if prints_or_reads(node)
    ] == []


def test_init_files_only_re_export():
    inits = {file: tree for file, tree in TREES.items() if file.endswith("/__init__.py")}
    allowed = ast.Expr | ast.Import | ast.ImportFrom | ast.Assign
    assert [
        (file, node.lineno)
        for file, tree in inits.items()
        for node in tree.body
        if not isinstance(node, allowed)
    ] == []


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


def test_text_is_utf8_on_every_machine():
    assert [
        (file, node.lineno)
        for file, tree in TREES.items()
        for node in ast.walk(tree)
        if opens_text_without_encoding(node)
    ] == []


def test_files_stay_small():
    assert [place(path) for path in FILES if len(path.read_text().splitlines()) > 400] == []


def test_the_map_for_contributors_is_the_one_that_is_checked():
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text()
    drawn = text.split("```")[3]  # the second block
    names = [line.split("  ")[0] for line in drawn.strip().splitlines()]
    downwards = [name for row in names for level in row.split(" > ") for name in level.split(" | ")]
    assert downwards == [name for level in reversed(LEVELS) for name in level]
