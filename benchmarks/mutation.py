"""Mutation testing: `python benchmarks/mutation.py --mutants 500`: change one thing in the source, and see whether a test fails.

A seeded sample of all mutants of `stats`, `claims`, `io` and the artifacts of `core`, stratified by file. Each mutant is a
copy of the source in which one comparison, operator, constant, condition or statement is another; the tests of its package
run on it, the doctests of the file first. Printed: the share that is killed with its Wilson interval, and every survivor.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "hitmiss"
TESTS = {
    "stats": ("tests/stats", "tests/properties"),
    "claims": ("tests/verifying",),
    "io": ("tests/io", "tests/faults"),
    "core": ("tests/test_artifacts.py", "tests/verifying/test_attestation.py"),
}
CORE = ("artifacts.py", "signing.py", "envelope.py", "criteria.py")
SWAPS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def files() -> list[Path]:
    """Every file whose tests are tested."""
    own = [p for name in ("stats", "claims", "io") for p in sorted((SOURCE / name).rglob("*.py"))]
    return [
        p for p in [*own, *(SOURCE / "core" / name for name in CORE)] if p.name not in ("__init__.py", "findings.py")
    ]


def places(tree: ast.AST) -> Iterator[int]:
    """The numbers of the nodes that can be changed, in the order of a walk."""
    for number, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.Compare | ast.BoolOp | ast.BinOp | ast.UnaryOp | ast.If | ast.Raise) or (
            isinstance(node, ast.Constant) and type(node.value) in (int, float, bool)
        ):
            yield number


def mutate(tree: ast.AST, number: int) -> tuple[ast.AST, int, str] | None:
    """The tree with one node changed, its line and what was done; None where that changes nothing."""
    made = copy.deepcopy(tree)
    node = next(n for i, n in enumerate(ast.walk(made)) if i == number)
    before = ast.unparse(node).splitlines()[0]
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in SWAPS:
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
        if isinstance(node.op, ast.Not):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, ast.If):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.Raise):
        node.__class__, node._fields = ast.Pass, ()  # type: ignore[assignment]
    ast.fix_missing_locations(made)
    if ast.unparse(made) == ast.unparse(tree):
        return None
    return made, getattr(node, "lineno", 0), f"{before[:60]} -> {ast.unparse(node).splitlines()[0][:60]}"


def is_killed(place: Path, file: Path, seconds: float) -> bool:
    """Whether a test fails, or takes far too long, on the copy of the source."""
    part = file.relative_to(SOURCE).parts[0]
    own = str(place / "src" / "hitmiss" / file.relative_to(SOURCE))
    base = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not extras"]
    environment = {**os.environ, "PYTHONPATH": str(place / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    for words in ([*base, "--doctest-modules", own], [*base, *TESTS[part]]):
        try:
            done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return True
        if done.returncode not in (0, 5):  # 5: there is no doctest
            return True
    return False


def wilson(k: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """The ends of Wilson's interval of a share."""
    middle, half = (k + z * z / 2) / (n + z * z), z * (k * (n - k) / n + z * z / 4) ** 0.5 / (n + z * z)
    return middle - half, middle + half


def main() -> int:
    """Draw mutants, run tests, print the score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=900.0, help="longest run of the tests of one mutant")
    parser.add_argument("--only", default="", help="files whose path contains this")
    asked = parser.parse_args()
    rng, drawn = random.Random(asked.seed), []
    trees = {p: ast.parse(p.read_text(encoding="utf-8")) for p in files() if asked.only in str(p)}
    pools = {p: rng.sample(found, len(found)) for p, tree in trees.items() if (found := [*places(tree)])}
    while len(drawn) < asked.mutants and any(pools.values()):  # one of each file in turn
        drawn += [(p, pool.pop()) for p, pool in pools.items() if pool]
    killed, survivors, n = 0, [], 0
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", Path(folder, "src"), ignore=shutil.ignore_patterns("__pycache__"))
        for file, number in drawn[: asked.mutants]:
            made = mutate(trees[file], number)
            if made is None:
                continue
            n += 1
            target = Path(folder, "src", "hitmiss", file.relative_to(SOURCE))
            target.write_text(ast.unparse(made[0]), encoding="utf-8")
            if is_killed(Path(folder), file, asked.seconds):
                killed += 1
            else:
                survivors.append(f"{file.relative_to(ROOT)}:{made[1]}: {made[2]}")
                print(survivors[-1], flush=True)
            target.write_bytes(file.read_bytes())
    low, high = wilson(killed, n) if n else (0.0, 1.0)
    print(f"{killed} of {n} mutants killed: {killed / max(n, 1):.1%} [{low:.1%}, {high:.1%}], seed {asked.seed}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
