"""Mutation testing: change one thing in the source, and see whether a test fails.

    python benchmarks/mutation.py --workers 16 --minutes 9 --out mutation.jsonl      goes on from what the file holds
    python benchmarks/mutation.py --table mutation.jsonl                             the table below

A seeded sample of all mutants of `stats`, `claims`, `io` and the artifacts of `core`, stratified by file: each file has mutants in
proportion to its places, and at least one. A mutant is one comparison, operator, number, condition or `raise` that is another.
First each test runs once, and the lines that it reaches are kept; then each mutant meets the tests that reach its line, those of
its package and the quick ones first, until one fails or they have taken `--seconds`, in a copy of a process that has collected them
(`mutant_nursery.py`). A mutant that no test can tell from the
original needs an argument in `mutants_equivalent.toml`; those are counted apart.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import copy
import hashlib
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = ROOT / "src" / "hitmiss"
EQUIVALENT: Final = Path(__file__).with_name("mutants_equivalent.toml")
TESTS: Final = {
    "stats": ("tests/stats", "tests/properties", "tests/metrics", "src/hitmiss/stats"),
    "claims": ("tests/verifying", "src/hitmiss/claims"),
    "io": ("tests/io", "tests/faults", "src/hitmiss/io"),
    "core": ("tests/core/test_artifacts.py", "tests/verifying"),
}
"""The tests of each package, which meet its mutants before all others."""
CORE: Final = ("artifacts.py", "signing.py", "envelope.py", "criteria.py")
PYTEST: Final = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not extras and not nightly")
UNCHANGED: Final = 3
"""What a nursery answers where a mutant is in no function."""
SWAPS: Final = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of one file: where it is, what it says, and the bytes that it replaces."""

    file: str
    line: int
    last: int
    what: str
    is_inside: bool
    begin: int
    end: int
    written: str

    @property
    def text(self) -> str:
        """The whole file as the change makes it."""
        raw = (ROOT / self.file).read_bytes()
        return (raw[: self.begin] + self.written.encode() + raw[self.end :]).decode()

    @property
    def key(self) -> str:
        """The name by which a later run knows that this change of this text was tried."""
        return hashlib.sha256(f"{self.file}\n{self.text}".encode()).hexdigest()[:16]


def files() -> list[Path]:
    """Every file whose tests are tested."""
    own = [p for name in ("stats", "claims", "io") for p in sorted((SOURCE / name).rglob("*.py"))]
    chosen = [*own, *(SOURCE / "core" / name for name in CORE)]
    return [p for p in chosen if p.name not in ("__init__.py", "findings.py")]


def changed(node: ast.AST) -> tuple[ast.expr | ast.stmt, ast.AST | None] | None:
    """The part of a node that is written anew, and what it becomes (None: `pass`); None where nothing can be changed."""
    made = copy.deepcopy(node)
    if isinstance(made, ast.Compare) and type(made.ops[0]) in SWAPS:
        made.ops[0] = SWAPS[type(made.ops[0])]()
    elif isinstance(made, ast.BoolOp | ast.BinOp) and type(made.op) in SWAPS:
        made.op = SWAPS[type(made.op)]()
    elif isinstance(made, ast.UnaryOp) and isinstance(made.op, ast.Not | ast.USub):
        made = made.operand  # type: ignore[assignment]
    elif isinstance(made, ast.If) and isinstance(node, ast.If):
        return node.test, ast.UnaryOp(ast.Not(), made.test)
    elif isinstance(made, ast.Constant) and type(made.value) in (int, float, bool):
        made.value = not made.value if isinstance(made.value, bool) else made.value + 1
    elif isinstance(node, ast.Raise):
        return node, None
    else:
        return None
    return node, made  # type: ignore[return-value]


def walk(node: ast.AST, is_inside: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Every node that runs, and whether a function holds it: no annotation, no pattern, and nothing inside an f-string."""
    yield node, is_inside
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "pattern") or isinstance(node, ast.JoinedStr):
            continue
        body = is_inside or (name == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from walk(child, body)


def mutants(path: Path) -> list[Mutant]:
    """Every mutant of a file."""
    text = path.read_text(encoding="utf-8")
    raw = text.encode()
    starts = [0]
    for line in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, is_inside in walk(ast.parse(text)):
        new = changed(node)
        if new is None:
            continue
        old, made = new
        begin = starts[old.lineno - 1] + old.col_offset
        end = starts[(old.end_lineno or old.lineno) - 1] + (old.end_col_offset or 0)
        written = "pass" if made is None else f"({ast.unparse(made)})"
        before = " ".join(raw[begin:end].decode().split())
        name, last = str(path.relative_to(ROOT)), old.end_lineno or old.lineno
        found.append(Mutant(name, old.lineno, last, f"{before[:70]} -> {written[:70]}", is_inside, begin, end, written))
    return found


def sample(pools: dict[str, list[Mutant]], wanted: int, seed: int) -> list[Mutant]:
    """So many mutants, from each file in proportion and at least one, in an order in which each beginning is a sample."""
    rng = random.Random(seed)
    total = sum(map(len, pools.values()))
    drawn = []
    for file in sorted(pools):
        pool = rng.sample(pools[file], len(pools[file]))
        drawn += pool[: max(1, round(wanted * len(pool) / total))]
    return rng.sample(drawn, len(drawn))


# --- which test reaches which line -----------------------------------------------------------------------------------

RECORDER: Final = '''
"""Keeps the lines of some files that each test reaches."""
import json, os, sys, threading, time
import pytest
PREFIX, OUT = os.environ["REACHED_PREFIX"], os.environ["REACHED_OUT"]
seen, found = set(), {}
def line_of(code, line):
    if code.co_filename.startswith(PREFIX):
        seen.add((code.co_filename, line))
    return sys.monitoring.DISABLE
def step(frame, event, arg):
    seen.add((frame.f_code.co_filename, frame.f_lineno))
    return step
def enter(frame, event, arg):
    return step(frame, event, arg) if frame.f_code.co_filename.startswith(PREFIX) else None
if sys.version_info >= (3, 12):
    sys.monitoring.use_tool_id(4, "reached")
    sys.monitoring.register_callback(4, sys.monitoring.events.LINE, line_of)
    sys.monitoring.set_events(4, sys.monitoring.events.LINE)
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    seen.clear()
    began = time.perf_counter()
    if sys.version_info >= (3, 12):
        sys.monitoring.restart_events()
    else:
        threading.settrace(enter)
        sys.settrace(enter)
    result = yield
    sys.settrace(None)
    found.setdefault(item.nodeid, {"passed": True}).update(
        seconds=time.perf_counter() - began, lines=sorted((f[len(PREFIX):], n) for f, n in seen))
    return result
def pytest_runtest_logreport(report):
    if not (report.passed or report.when != "call"):
        found.setdefault(report.nodeid, {})["passed"] = False
    if report.when == "setup" and not report.passed:
        found.setdefault(report.nodeid, {})["passed"] = False
    if report.when == "call":
        found.setdefault(report.nodeid, {}).setdefault("passed", True)
def pytest_sessionfinish(session):
    with open(OUT, "w", encoding="utf-8") as file:
        json.dump({name: test for name, test in found.items() if test.get("passed") and "lines" in test}, file)
'''


def copied(folder: Path) -> Path:
    """A copy of everything that tests need."""
    folder.mkdir()
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
        elif path.name in ("src", "tests", "docs", "benchmarks", "examples", ".github"):
            shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True)
    return folder


def environment(place: Path, **more: str) -> dict[str, str]:
    """Variables by which Python takes the source of a copy; the same draws of hypothesis each time."""
    known = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")}
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [str(place / "src"), *(str(Path(name).resolve()) for name in given if name)]
    threads = {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return {**known, **threads, "CI": "1", "PYTHONPATH": os.pathsep.join(paths), **more}


def reached(place: Path, test: str, out: Path, seconds: float) -> None:
    """Run one file of tests and keep which lines each test reaches; nothing of it where it takes too long."""
    plugin = place / "reached_lines.py"
    if not plugin.exists():
        plugin.write_text(RECORDER, encoding="utf-8")
    prefix = f"{place / 'src' / 'hitmiss'}{os.sep}"
    env = environment(place, REACHED_PREFIX=prefix, REACHED_OUT=str(out))
    env["PYTHONPATH"] += f"{os.pathsep}{place}"
    words = [sys.executable, *PYTEST, "-p", "reached_lines", test]
    try:
        subprocess.run(words, cwd=place, env=env, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        out.write_text("{}", encoding="utf-8")
    if not out.exists():
        out.write_text("{}", encoding="utf-8")


def test_files(chosen: list[str]) -> list[str]:
    """The files of tests below some folders; of the source those whose doctests count."""
    found = [p for name in chosen for p in ([ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*.py"))]
    own = {str(p.relative_to(ROOT)) for p in files()}
    names = [str(p.relative_to(ROOT)) for p in found]
    return sorted(n for n in names if n in own or Path(n).name.startswith("test_"))


class Reach:
    """Which tests reach which line, and how long they take."""

    def __init__(self, folder: Path) -> None:
        self.seconds: dict[str, float] = {}
        self.by_line: dict[tuple[str, int], set[str]] = defaultdict(set)
        self.by_file: dict[str, set[str]] = defaultdict(set)
        wanted = {str(p.relative_to(SOURCE)) for p in files()}
        for path in sorted(folder.glob("*.json")):
            for name, test in json.loads(path.read_text(encoding="utf-8")).items():
                self.seconds[name] = test["seconds"]
                for file, line in test["lines"]:
                    if file in wanted:
                        self.by_line[file, line].add(name)
                        self.by_file[file].add(name)

    def tests(self, mutant: Mutant, seconds: float) -> list[tuple[str, float]]:
        """The tests that meet a mutant, in their order, with what each takes: about so many seconds of them."""
        file = str(Path(mutant.file).relative_to("src/hitmiss"))
        near = {t for line in range(mutant.line, mutant.last + 1) for t in self.by_line[file, line]}
        names = near if near and mutant.is_inside else self.by_file[file]
        own = TESTS[Path(file).parts[0]]
        order = sorted(names, key=lambda t: (not t.startswith(own), self.seconds[t], t))
        taken: list[tuple[str, float]] = []
        total = 0.0
        for name in order:
            if taken and total + self.seconds[name] > seconds:
                continue
            taken.append((name, self.seconds[name]))
            total += self.seconds[name]
        return taken


# --- the mutants -----------------------------------------------------------------------------------------------------


class Nursery:
    """A process that has collected the tests; a copy of it meets each mutant (`mutant_nursery.py`)."""

    def __init__(self, place: Path, tests: set[str]) -> None:
        self.place = place
        jobs, self._to = os.pipe()
        self._from, answers = os.pipe()
        env = environment(place, JOBS=str(jobs), ANSWERS=str(answers))
        env["PYTHONPATH"] += f"{os.pathsep}{place / 'benchmarks'}"
        words = [sys.executable, *PYTEST, "-p", "mutant_nursery", *sorted({name.partition("::")[0] for name in tests})]
        self._process = subprocess.Popen(
            words, cwd=place, env=env, pass_fds=(jobs, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(jobs)
        os.close(answers)
        self._jobs, self._answers = os.fdopen(self._to, "w"), os.fdopen(self._from)
        self.began: list[str] = json.loads(self._answers.readline())["began"]

    def __call__(self, mutant: Mutant, tests: list[tuple[str, float]]) -> dict[str, Any]:
        """How a mutant ends whose file is written."""
        path = str(self.place / mutant.file)
        job = {"path": path, "text": mutant.text, "line": mutant.line, "tests": tests}
        print(json.dumps(job), file=self._jobs, flush=True)
        answer: dict[str, Any] = json.loads(self._answers.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        self._jobs.close()
        self._process.wait()


def nursery_of(place: Path, tests: set[str]) -> Nursery:
    """A process that may be copied: without the files of tests that begin workers as they are collected."""
    while True:
        nursery = Nursery(place, tests)
        if not nursery.began:
            return nursery
        nursery.close()
        tests = {name for name in tests if name.partition("::")[0] not in nursery.began}


def tried(nursery: Nursery, mutant: Mutant, tests: list[tuple[str, float]]) -> dict[str, Any]:
    """What the tests say to a mutant: the row that is kept."""
    target = nursery.place / mutant.file
    original = target.read_bytes()
    began = time.monotonic()
    try:
        target.write_text(mutant.text, encoding="utf-8")
        forget(target)
        answer = nursery(mutant, tests) if mutant.is_inside and tests else {"code": UNCHANGED, "by": ""}
        if answer["code"] == UNCHANGED and tests:
            answer = alone(nursery.place, tests)
    finally:
        target.write_bytes(original)
        forget(target)
    result = "survived" if answer["code"] == 0 or not tests else "killed"
    row = {"key": mutant.key, "file": mutant.file, "line": mutant.line, "what": mutant.what, "result": result}
    return {**row, "by": answer["by"], "tests": len(tests), "seconds": round(time.monotonic() - began, 1)}


def alone(place: Path, tests: list[tuple[str, float]]) -> dict[str, Any]:
    """How a mutant ends that changes what happens when its file is imported: a process that imports it anew."""
    listed = place / "tests_of_mutant.txt"
    listed.write_text("\n".join(name for name, _ in tests) + "\n", encoding="utf-8")
    words = [sys.executable, *PYTEST, "-x", "--no-header", "-rfE", "--tb=no", f"@{listed.name}"]
    limit = 4 * sum(seconds for _, seconds in tests) + 600
    try:
        done = subprocess.run(
            words, cwd=place, env=environment(place), capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return {"code": 1, "by": "it did not end"}
    said = next((x for x in done.stdout.splitlines() if x.startswith(("FAILED", "ERROR"))), "")
    return {"code": 0 if done.returncode in (0, 5) else 1, "by": said[:160]}


def forget(path: Path) -> None:
    """Remove what Python has compiled of a file: two texts of one second and one size look the same to it."""
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def measure(asked: argparse.Namespace, drawn: list[Mutant]) -> None:
    """Run what is left of a sample, for so many minutes; each answer is kept at once."""
    end = time.monotonic() + 60 * asked.minutes
    kept = {row["key"] for row in rows(asked.out)}
    store = Path(f"{asked.out}.reached")
    store.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(asked.workers) as pool:
        places: queue.Queue[Path] = queue.Queue()
        for place in pool.map(lambda n: copied(Path(folder, f"w{n}")), range(asked.workers)):
            places.put(place)

        def in_turn(free: queue.Queue[Any], work: Any, *words: Any) -> Any:
            if time.monotonic() > end:
                return None
            place = free.get()
            try:
                return work(place, *words)
            finally:
                free.put(place)

        names = {store / f"{name.replace('/', '+')}.json": name for name in test_files(asked.tests)}
        left = [(name, out) for out, name in names.items() if not out.exists()]
        ready = [pool.submit(in_turn, places, reached, name, out, 900.0) for name, out in left]
        concurrent.futures.wait(ready)
        missing = [name for out, name in names.items() if not out.exists()]
        if missing:
            print(f"{len(missing)} of {len(names)} files of tests are left; run again to go on")
            return
        reach = Reach(store)
        todo = [(m, reach.tests(m, asked.seconds)) for m in drawn if m.key not in kept]
        wanted = {name for _, tests in todo for name, _ in tests}
        if not wanted:
            return
        nurseries: queue.Queue[Nursery] = queue.Queue()
        for nursery in pool.map(lambda _: nursery_of(places.get(), wanted), range(asked.workers)):
            nurseries.put(nursery)
        running = [pool.submit(in_turn, nurseries, tried, m, tests) for m, tests in todo]
        with Path(asked.out).open("a", encoding="utf-8") as file:
            for one in concurrent.futures.as_completed(running):
                if (row := one.result()) is not None:
                    file.write(json.dumps(row) + "\n")
                    file.flush()
        while not nurseries.empty():
            nurseries.get().close()


def rows(path: str) -> list[dict[str, Any]]:
    """What a file of answers holds."""
    file = Path(path)
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def wilson(k: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """The ends of Wilson's interval of a share."""
    middle, half = (k + z * z / 2) / (n + z * z), z * (k * (n - k) / n + z * z / 4) ** 0.5 / (n + z * z)
    return middle - half, middle + half


def table(answers: list[dict[str, Any]], drawn: list[Mutant]) -> Iterator[str]:
    """The lines of the table: shares by package, the survivors by name, and the arguments for equivalent ones."""
    wanted = {m.key for m in drawn}
    here = [row for row in answers if row["key"] in wanted]
    known = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")) if EQUIVALENT.exists() else {}
    same = [r for r in here if r["result"] == "survived" and r["what"] in known.get(r["file"], {})]
    counted = [r for r in here if r not in same]
    yield "| package | mutants | killed | share | 95 % interval | equivalent |\n|---|---|---|---|---|---|"
    parts = sorted({Path(r["file"]).parts[2] for r in here})
    for part in [*parts, "all"]:
        own = [r for r in counted if part in (Path(r["file"]).parts[2], "all")]
        apart = sum(part in (Path(r["file"]).parts[2], "all") for r in same)
        if own:
            killed = sum(r["result"] == "killed" for r in own)
            low, high = wilson(killed, len(own))
            share = f"{killed / len(own):.1%} | {low:.1%} to {high:.1%}"
            yield f"| {part} | {len(own)} | {killed} | {share} | {apart} |"
    yield f"\n{len(here)} of {len(drawn)} drawn mutants were tried. Survivors:\n"
    for row in sorted(counted, key=lambda r: (r["file"], r["line"])):
        if row["result"] == "survived":
            yield f"- `{row['file']}:{row['line']}`: `{row['what']}`"
    if same:
        yield "\nEquivalent, with the argument:\n"
        for row in sorted(same, key=lambda r: (r["file"], r["line"])):
            yield f"- `{row['file']}:{row['line']}`: `{row['what']}`: {known[row['file']][row['what']]}"


def main() -> int:
    """Draw mutants, run tests, print the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=600.0, help="begin nothing new after so many minutes")
    parser.add_argument("--seconds", type=float, default=60.0, help="tests that meet one mutant, in seconds of theirs")
    parser.add_argument("--only", default="", help="files whose path contains this")
    parser.add_argument("--tests", nargs="*", default=["tests", "src"], help="files and folders of tests")
    parser.add_argument("--out", default="mutation.jsonl", help="where answers are kept, one line each")
    parser.add_argument("--table", metavar="FILE", help="print the table of such a file alone")
    asked = parser.parse_args()
    asked.out = str(Path(asked.out).resolve())  # tests run in other folders
    pools = {str(p): made for p in files() if asked.only in str(p) and (made := mutants(p))}
    drawn = sample(pools, asked.mutants, asked.seed)
    if not asked.table:
        measure(asked, drawn)
    print("\n".join(table(rows(asked.table or asked.out), drawn)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
