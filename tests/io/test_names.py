"""Names: a user's column may be called anything, and the figures stay those of the same data under a harmless name.

Every engine column and reserved word × every reader × every verb. What cannot be served is refused with a code.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.columns import FIXED, INNER, MADE, OWN, SCORES, column_name
from hitmiss.core.errors import HitmissError
from hitmiss.core.header import Header
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.results import Results
from hitmiss.core.trials import Trials
from hitmiss.io.reader import read
from hitmiss.outofcore.stream import evaluate_streamed
from hitmiss.protocols import toxicity

HARMLESS = "condition"
INNER_NAMES = (
    "n",
    "count",
    "low",
    "high",
    "_at",
    "_row",
    "yes",
    "no",
    "silent",
    "asked",
    "file",
    "row",
    "group",
    "index",
    "code",
    "place",
    "part",
)
WORDS = (
    "threshold",
    "language",
    "seconds",
    "text",
    "label_word",
    "literal",
    "key",
    "y_true",
    "llr",
    "served",
    "probability",
)
OWN_NAMES = (f"{OWN}score", f"{OWN}target", f"{SCORES}a", f"{INNER}n", "", " ", "#n", "a=b", "a,b", "Score", "TARGET")
NAMES = (*FIXED, *MADE, *INNER_NAMES, *WORDS, *OWN_NAMES)
RUN_NAMES = ("model", "tools", "trial", "cache", "retries", "component", "decided by", "cost")
N = 24
RNG = np.random.default_rng(11)
LABEL = RNG.integers(0, 2, N)
SCORE = np.round(np.clip(RNG.normal(0.4 + 0.2 * LABEL, 0.2), 0, 1), 3)
KIND = [("x", "y", "z")[i % 3] for i in range(N)]
ITEMS = [f"i{i:02}" for i in range(N)]

Figures = list[tuple[Any, ...]]


def figures(results: Results, name: str) -> Figures:
    """What was found, with the name under test taken out; refusing results that do not show it under its own name."""
    rows: Figures = []
    for e in results:
        assert not any(key.startswith((OWN, INNER)) and key != name for key in (*e.slice, *e.run)), (e.slice, e.run)
        where = {HARMLESS if key == name else key: value for key, value in e.slice.items()}
        rows.append((e.metric, e.average, tuple(sorted(where.items())), e.value, e.n, e.n_positive))
    return sorted(rows, key=repr)


def same_or_refused(found: Callable[[str], Figures], name: str, expected: Figures) -> bool:
    """The figures under a name equal those under a harmless one (True), or the name is refused with a code (False)."""
    try:
        assert found(name) == expected
        return True
    except HitmissError as error:
        assert error.code not in ("error", "data"), f"{name!r}: {error} has no code"
        return False


def write_csv(path: Path, columns: dict[str, Sequence[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def of_trials(name: str) -> Figures:
    trials = Trials.of(LABEL, SCORE, item=ITEMS, **{name: KIND})
    return figures(hm.measure(trials, ["eer", "roc_auc"], by=[(name,)]), name)


def of_frame(name: str) -> Figures:
    rows = {"id": ITEMS, "y_true": LABEL, "y_prob": SCORE, name: KIND}
    trials = read(pl.DataFrame(rows), positive="toxic", positive_value="1")
    return figures(hm.measure(trials, ["eer", "roc_auc"], by=[(name,)]), name)


def of_trials_header(name: str) -> Figures:
    frame = pl.DataFrame({"item": ITEMS, "label": LABEL, "score": SCORE, column_name(name): KIND})
    trials = Trials.from_frame(frame, Header(slices=(column_name(name),)))
    return figures(hm.measure(trials, ["eer", "roc_auc"], by=[(name,)]), name)


def of_two(name: str) -> Figures:
    pair = [Trials.of(LABEL, s, item=ITEMS, **{name: KIND}) for s in (SCORE, SCORE[::-1])]
    found = hm.compare(*pair, ["eer"], by=[(name,)], bootstrap=0)
    assert {key for row in found.differences for key in row.slice} == {name}
    rows = [(r.metric, tuple(r.slice.values()), r.a, r.b, r.n_pairs) for r in found.differences]
    return sorted(rows, key=repr)


@cache
def under_a_harmless_name(way: Callable[[str], Figures]) -> Figures:
    """What the others are compared with, made once for all names."""
    return way(HARMLESS)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", [of_trials, of_trials_header, of_two])
def test_python(way: Callable[[str], Figures], name: str) -> None:
    if name in ("item", "score", "label", "decision", "confidence") and way is not of_trials_header:
        pytest.skip("these are parameters of Trials.of itself")
    assert (
        same_or_refused(way, name, under_a_harmless_name(way)) or not name
    )  # a column without a name cannot be asked for


WORD = ["bonafide" if label else "spoof" for label in LABEL]


def table(name: str) -> dict[str, Sequence[Any]]:
    columns: dict[str, Sequence[Any]] = {"id": ITEMS, "label": WORD, "score": SCORE.tolist()}
    if name in columns:
        pytest.skip("a file cannot have two columns of one name")
    return {**columns, name: KIND}


def of_file(path: Path, name: str, **more: Any) -> Figures:
    return figures(hm.evaluate(str(path), metrics=["eer", "roc_auc"], by=[(name,)], **more), name)


def of_csv(folder: Path, name: str) -> Figures:
    return of_file(write_csv(folder / "t.csv", table(name)), name)


def of_json_lines(folder: Path, name: str) -> Figures:
    rows = [dict(zip(table(name), row, strict=True)) for row in zip(*table(name).values(), strict=True)]
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return of_file(path, name)


def of_parquet(folder: Path, name: str) -> Figures:
    pl.DataFrame(table(name)).write_parquet(folder / "t.parquet")
    return of_file(folder / "t.parquet", name)


def of_key(folder: Path, name: str) -> Figures:
    columns = table(name)
    scores = write_csv(folder / "s.csv", {"id": ITEMS, "score": columns.pop("score")})
    return of_file(scores, name, key=str(write_csv(folder / "k.csv", columns)))


def of_stream(folder: Path, name: str) -> Figures:
    path = write_csv(folder / "t.csv", table(name))
    return figures(evaluate_streamed(str(path), metrics=["eer", "roc_auc"], by=[(name,)]).results, name)


def of_toxicity(folder: Path, name: str) -> Figures:
    columns = {"id": ITEMS, "y_true": LABEL.tolist(), "y_prob": SCORE.tolist(), name: KIND}
    if len(columns) < 4:
        pytest.skip("a file cannot have two columns of one name")
    run_ = toxicity.load_table([str(write_csv(folder / "t.csv", columns))], name)
    return figures(toxicity.evaluate_run(run_, bootstrap=0).results, name)


def of_identity(folder: Path, name: str) -> Figures:
    share = [str(i % 2) for i in range(N)]
    columns = {"id": ITEMS, "y_true": LABEL.tolist(), "y_prob": SCORE.tolist(), "language": ["en"] * N, name: share}
    if len(columns) < 5:
        pytest.skip("a file cannot have two columns of one name")
    path = str(write_csv(folder / "t.csv", columns))
    spec = ReadSpec(identities=(name,))
    found = toxicity.evaluate_run(toxicity.load_table([path], spec=spec), bootstrap=0).results
    return sorted(((e.metric, e.average, e.value, e.n) for e in found), key=repr)


READERS = [of_csv, of_json_lines, of_parquet, of_key, of_stream, of_toxicity, of_identity]
TAKEN = {"target", "language", "threshold", "seconds", "n", "count", "yes", "row", "group", "text", f"{OWN}target"}
"""Names that must be served: a refusal of these is a fault."""


@pytest.mark.parametrize("way", READERS)
def test_files(way: Callable[[Path, str], Figures], tmp_path: Path) -> None:
    expected = way(tmp_path, HARMLESS)
    for name in dict.fromkeys((*NAMES, *RUN_NAMES)):
        try:
            served = same_or_refused(lambda called: way(tmp_path, called), name, expected)
        except pytest.skip.Exception:
            continue
        except BaseException as error:
            raise AssertionError(f"{way.__name__}: {name!r}: {error!r}") from error
        may_refuse = (way is of_toxicity and name == "threshold") or (
            way is of_identity and name in ("threshold", "text")
        )
        assert served or may_refuse or name not in TAKEN, f"{way.__name__}: {name!r} is refused"


@pytest.mark.parametrize("first", range(3))
def test_reports_exports_and_claims_serve_every_name(tmp_path: Path, first: int) -> None:
    """Each name through the verbs that take results: the report and the export show it, and the claim holds."""
    for at, name in enumerate(dict.fromkeys((HARMLESS, *NAMES, *RUN_NAMES))):
        if name in ("id", "item", "label", "score", "") or at % 3 != first:
            continue
        path, out, page = write_csv(tmp_path / "t.csv", table(name)), tmp_path / "r.json", tmp_path / "r.html"
        # a name with a comma cannot be written after --by; a file may give it another
        code = run(["score", str(path), "-m", "eer", "--by", name, "--bootstrap", "0", "-o", str(out)])
        if code:
            assert code in (2, 3) and name not in TAKEN, f"{name!r} is refused"
            continue
        found = Results.load(out)
        assert {key for e in found for key in e.slice} <= {name}, name
        assert run(["verify", str(out), str(path)]) == 0, f"verify: {name!r}"
        assert run(["report", str(out), "-o", str(page)]) == 0, f"report: {name!r}"
        assert run(["export", str(out), "--to", "csv", "-o", str(tmp_path / "r.csv")]) == 0, f"export: {name!r}"
        rows = (tmp_path / "r.csv").read_text()
        assert all(value in rows for value in "xyz"), name


@pytest.mark.parametrize("name", ["target", "system", "seconds", "label_word"])
def test_results_and_gates_know_the_users_name(tmp_path: Path, name: str) -> None:
    path, out = write_csv(tmp_path / "t.csv", table(name)), tmp_path / "r.json"
    assert run(["score", str(path), "-m", "eer", "--by", name, "-o", str(out)]) == 0
    assert {key for e in json.loads(out.read_text())["estimates"] for key in e["slice"]} == {name}
    assert run(["gate", str(out), "--fail-if", f"eer[{name}=x] > 0.99"]) == 0
    assert run(["compare", str(path), str(path), "-m", "eer", "--by", name, "--bootstrap", "20"]) == 0


@pytest.mark.parametrize("name", ["y_true", "y_pred", "best_threshold", "id"])
def test_a_column_may_be_the_group_too(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """The figures of each group are those of a copy of the column under a name of its own."""
    header = ["id", "y_true", "y_prob", "y_pred", "best_threshold"]
    rows = [[f"i{k}", k % 2, (k * 37 % 100) / 100, k // 2 % 2, 0.5] for k in range(24)]
    found = []
    for file, group in (("a.csv", name), ("b.csv", "copied")):
        at = header.index(name)
        lines = [[*header, "copied"], *([*row, row[at]] for row in rows)]
        (tmp_path / file).write_text("\n".join(",".join(map(str, line)) for line in lines) + "\n")
        ours = {"item": "id", "label": "y_true", "score": "y_prob", "decision": "y_pred", "threshold": "best_threshold"}
        declared = [word for pair in ours.items() for word in ("--column", "=".join(pair))]
        capsys.readouterr()
        assert run(["toxicity", str(tmp_path / file), "--group", group, "--bootstrap", "0", "--json", *declared]) == 0
        rows_of = json.loads(capsys.readouterr().out)["estimates"]
        found.append([(e["metric"], tuple(e["slice"].values()), e["value"], e["n"]) for e in rows_of])
    assert found[0] == found[1] and len(found[0]) >= 8


def test_a_column_called_confidence_that_is_none_can_keep_a_name_of_its_own(tmp_path: Path) -> None:
    """Ratings from 1 to 3 are no confidences; the message says what to do, and doing it gives the figure without them."""
    rows = [(f"u{i}", "bonafide" if i % 3 else "spoof", str(i % 7 + i % 3), str(1 + i % 3)) for i in range(30)]
    path, bare = tmp_path / "s.csv", tmp_path / "bare.csv"
    path.write_text("".join(",".join(row) + "\n" for row in [("id", "label", "score", "confidence"), *rows]))
    bare.write_text("".join(",".join(row[:3]) + "\n" for row in [("id", "label", "score"), *rows]))
    with pytest.raises(hm.DataError) as fault:
        hm.read(path)
    assert fault.value.code == "not-a-probability" and "columns={'rating': 'confidence'}" in str(fault.value)
    kept = hm.read(path, columns={"rating": "confidence"})
    by = hm.measure(kept, ["eer"], by=["rating"])
    assert by.one("eer").value == hm.measure(hm.read(bare), ["eer"]).one("eer").value
    assert {e.slice["rating"] for e in by.estimates if e.slice and not e.average} == {"1", "2", "3"}
