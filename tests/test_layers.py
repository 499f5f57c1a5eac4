"""The layer rule of the design, kept by walking the syntax trees: a file imports only from layers below its own."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "hitmiss"

LAYERS = (
    ("_version",),
    ("core",),
    ("findings",),
    ("stats", "metrics"),
    ("runs", "io", "media"),
    ("derive",),
    ("engine", "testing", "verdicts", "robustness"),
    ("cluster", "detection", "attacks", "simulate", "probes", "llm"),
    ("evaluation", "protocols", "outofcore", "claims"),
    ("conclude", "boards"),
    ("reports", "review", "bridges"),
    ("cli",),
)
"""From the lowest up; parts of one layer may use those named before them."""

LAYER_OF = {name: height for height, names in enumerate(LAYERS) for name in names}

FRONT_DOORS = ("__init__", "__main__")
"""The package's own door and `python -m`: they name what they open and belong to no layer."""

LIGHT = {"numpy", "polars", "scipy.special"}
NEVER_AT_THE_TOP = {"sklearn", "matplotlib", "torch", "pandas", "scipy.stats", "scipy.optimize"}

FILES = sorted(SOURCE.rglob("*.py"))


def part(path: Path) -> str:
    """The name in the layer table that a source file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[str]:
    """Every name that an import asks for, dotted: `from a import b` gives `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the layer: write the whole name"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def top_level_imports(tree: ast.Module) -> Iterator[str]:
    """Imports that run when the module is imported: not those in functions nor under `if TYPE_CHECKING`."""
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            pending.extend(node.orelse)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from imports(node)
        else:
            pending.extend(ast.iter_child_nodes(node))


def own_parts(tree: ast.AST) -> set[str]:
    """The parts of hitmiss that a tree imports anywhere, functions and type hints included."""
    found = set()
    for name in imports(tree):
        head, _, rest = name.partition(".")
        if head == "hitmiss" and rest:
            found.add(rest.split(".")[0])
    return found - {"__version__"}


def is_named(name: str, names: set[str]) -> bool:
    """Whether a dotted module is one of these or inside one of them."""
    return any(name == known or name.startswith(f"{known}.") for known in names)


@dataclass(frozen=True)
class Seen:
    """What the rules are about in one file."""

    parts: frozenset[str]
    at_the_top: tuple[str, ...]
    n_any: int


@cache
def seen(path: Path) -> Seen:
    """Parse a file once for all rules; the trees themselves would fill the memory."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    n_any = sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))
    return Seen(frozenset(own_parts(tree)), tuple(top_level_imports(tree)), n_any)


def breaches(path: Path) -> list[str]:
    """What a file imports from its own height or above, its own part apart."""
    own = part(path)
    wrong = seen(path).parts - {own}
    return sorted(name for name in wrong if LAYER_OF.get(name, 99) >= LAYER_OF[own] and not is_sibling(own, name))


def is_sibling(one: str, other: str) -> bool:
    """Parts of one layer may use each other only downwards in the order of the table: the first is the lowest."""
    if LAYER_OF.get(one) != LAYER_OF.get(other):
        return False
    order = LAYERS[LAYER_OF[one]]
    return order.index(other) < order.index(one)


def each_of(paths: Iterable[Path]) -> pytest.MarkDecorator:
    """One test a source file."""
    return pytest.mark.parametrize("path", list(paths), ids=lambda path: str(path.relative_to(SOURCE)))


def test_every_part_is_in_the_table() -> None:
    assert {part(path) for path in FILES} - set(LAYER_OF) - set(FRONT_DOORS) == set()


@each_of(path for path in FILES if part(path) not in FRONT_DOORS)
def test_imports_only_from_below(path: Path) -> None:
    assert breaches(path) == [], f"layer {LAYER_OF[part(path)]} must not import these"


@each_of(FILES)
def test_heavy_packages_are_imported_where_they_are_used(path: Path) -> None:
    assert [name for name in seen(path).at_the_top if is_named(name, NEVER_AT_THE_TOP)] == []


@each_of(path for path in FILES if LAYER_OF.get(part(path), 9) <= 3)
def test_low_layers_import_little(path: Path) -> None:
    allowed = LIGHT | {"hitmiss"} | set(sys.stdlib_module_names)
    assert [name for name in seen(path).at_the_top if not is_named(name, allowed)] == []


def test_the_walker_sees_what_it_should() -> None:
    tree = ast.parse(
        "if TYPE_CHECKING:\n import pandas\n"
        "def f():\n import torch\n from hitmiss.cli.main import run\n"
        "class C:\n import sklearn.metrics\n"
        "try:\n from scipy import stats\nfinally:\n pass\n"
    )
    assert set(top_level_imports(tree)) == {"sklearn.metrics", "scipy.stats"}
    assert {"pandas", "torch"} <= set(imports(tree))
    assert own_parts(tree) == {"cli"}


def test_a_breach_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    for name, text in {
        "core/tally.py": "def f():\n from hitmiss.io import read\n from hitmiss import core\n",
        "stats/bins.py": "from hitmiss.core import tally\nfrom hitmiss.metrics import eer\n",
    }.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    assert breaches(tmp_path / "core" / "tally.py") == ["io"]
    assert breaches(tmp_path / "stats" / "bins.py") == ["metrics"]


@pytest.mark.parametrize("code", ["import hitmiss", "from hitmiss.cli.main import run; run(['--help'])"])
def test_starting_imports_nothing_heavy(code: str) -> None:
    heavy = "{'numpy', 'polars', 'scipy', 'rich', 'pydantic'}"
    check = f"import sys; print(sorted({heavy} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", f"{code}; {check}"], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


MOST_ANY = 100
"""How often `Any` may be written in the source. Lower it when there are fewer."""


def test_any_is_written_rarely() -> None:
    """`Any` switches the type checker off: say the type, `object` for what is only passed on, `Json` for JSON data."""
    most = sorted(FILES, key=lambda path: seen(path).n_any, reverse=True)[:5]
    found = sum(seen(path).n_any for path in FILES)
    assert found <= MOST_ANY, f"{found} uses of Any, most of them in {[path.name for path in most]}"
