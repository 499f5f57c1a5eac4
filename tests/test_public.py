"""The public names: complete, documented with an example that runs, and the only ones that docs and examples import."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import hitmiss as hm
from hitmiss import metrics as metric_module

ROOT = Path(__file__).parents[1]
ERRORS = {"DataError", "EnvironmentFault", "HitmissError", "MissingFile", "ResultWarning", "UsageError"}
MADE_BY_HITMISS = {"Comparison", "Estimate", "Header", "Ranking"}
"""Classes that callers read and do not build: the functions that return them have the examples."""
OBJECTS = [n for n in hm.__all__ if callable(getattr(hm, n))]


def test_every_name_of_the_issue_is_public() -> None:
    asked = [
        "read",
        "measure",
        "compare",
        "evaluate",
        "detect",
        "attack",
        "drift",
        "gate",
        "report",
        "calibrate",
        "fuse",
        "board",
        "decide",
    ]
    assert {*asked, "Trials", "Results", "Design", "ReadSpec"} <= set(hm.__all__)
    assert list(hm.__all__) == sorted(hm.__all__) and set(dir(hm)) == set(hm.__all__)
    packages = {path.stem for path in (ROOT / "src" / "hitmiss").iterdir()}
    assert packages & set(hm.__all__) == {"metrics"}, "importing a package replaces a function of the same name"
    assert set(hm._HOMES) == set(hm.__all__) - {"__version__"}


@pytest.mark.parametrize("name", OBJECTS)
def test_every_public_name_is_documented(name: str) -> None:
    text = inspect.getdoc(getattr(hm, name)) or ""
    wanted = [] if name in ERRORS else ["Parameters\n----------"]
    if inspect.isfunction(getattr(hm, name)):
        returns = inspect.signature(getattr(hm, name)).return_annotation
        wanted += ["Returns\n-------"] if returns not in (None, "None") else []
    if name not in ERRORS | MADE_BY_HITMISS:
        wanted.append(">>> ")
    assert [part for part in wanted if part not in text] == []


@pytest.mark.parametrize("name", [n for n in OBJECTS if inspect.isfunction(getattr(hm, n))])
def test_every_public_function_is_typed(name: str) -> None:
    signature = inspect.signature(getattr(hm, name))
    assert signature.return_annotation is not inspect.Signature.empty
    assert [p.name for p in signature.parameters.values() if p.annotation is inspect.Parameter.empty] == []


def test_names_are_imported_when_they_are_used() -> None:
    code = "import sys, hitmiss; print(any(m in sys.modules for m in ('numpy', 'polars', 'click')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(("old", "new"), [("at_threshold", "decide"), ("compare_all", "rank")])
def test_a_deprecated_name_warns_and_works(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"hm\.{new}\b.*\d+\.\d+\.\d+"):
        assert getattr(hm, old) is getattr(hm, new)
    assert old not in hm.__all__


def test_a_deprecated_name_has_not_outlived_its_version() -> None:
    def parts(text: str) -> tuple[int, ...]:
        return tuple(map(int, text.split(".")))

    assert [n for n, (_, end) in hm._RENAMED.items() if parts(end) <= parts(hm.__version__)] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'eer'"):
        hm.eer  # noqa: B018


def sources() -> Iterator[tuple[str, str]]:
    """Every example, notebook cell and Python block of the documentation."""
    for path in sorted((ROOT / "examples").rglob("*.py")):
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "examples").rglob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        yield str(path.relative_to(ROOT)), "\n".join(code)
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            yield str(page.relative_to(ROOT)), block


def imported(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code.replace(">>> ", ""))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


def test_docs_and_examples_import_only_public_names() -> None:
    private = [
        f"{place}: {name}"
        for place, code in sources()
        for name in imported(code)
        if name.startswith("hitmiss.") and not name.startswith("hitmiss.protocols.")
    ]
    assert private == []


def test_docs_and_examples_use_names_that_exist() -> None:
    unknown = [
        f"{place}: hm.{name}"
        for place, code in sources()
        if "hitmiss as hm" in code
        for name in re.findall(r"\bhm\.(\w+)", code)
        if name not in hm.__all__
    ]
    assert unknown == []


# The functions that are verbs too, called from Python.


def trials(shift: float, seed: int = 0, n: int = 400) -> hm.Trials:
    rng = np.random.default_rng(seed)
    label = np.arange(n) % 2
    return hm.Trials.of(label, rng.normal(size=n) + shift * label)


def test_a_fusion_is_logistic_regression() -> None:
    from sklearn.linear_model import LogisticRegression

    runs = {"a": trials(1.0, 1), "b": trials(0.7, 2), "c": trials(0.3, 3)}
    fused = hm.fuse(runs, runs)
    x = np.column_stack([run.score for run in runs.values()])
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x, runs["a"].label)
    slopes = fused.header.provenance["fusion"]["slopes"]
    assert [*slopes.values()] == pytest.approx(theirs.coef_[0], rel=1e-5)
    assert fused.score == pytest.approx(theirs.decision_function(x), rel=1e-4, abs=1e-4)  # classes are balanced
    best = min(metric_module.cllr(run.label, hm.calibrate(run, run).score) for run in runs.values())
    assert metric_module.cllr(fused.label, fused.score) < best


def test_a_fusion_pairs_by_item_and_not_by_row() -> None:
    runs = {"a": trials(1.0, 1), "b": trials(0.7, 2)}
    turned = {"a": runs["a"], "b": hm.Trials(runs["b"].frame.reverse(), runs["b"].header)}
    assert hm.fuse(turned, turned).score == pytest.approx(hm.fuse(runs, runs).score)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda r: {"a": r["a"]}, "one-system"),
        (lambda r: {**r, "b": trials(0.7, 2, n=398)}, "unpaired"),
        (lambda r: {**r, "b": hm.Trials.of(1 - r["b"].label, r["b"].score)}, "unlike-labels"),
        (lambda r: {**r, "b": hm.Trials.of(r["b"].label, np.zeros(400))}, "equal-scores"),
        (lambda r: {**r, "b": r["a"]}, "no-fusion"),
        (lambda r: {**r, "b": hm.Trials.of(r["b"].label, r["b"].label * 2.0 + r["b"].score / 1e3)}, "no-fusion"),
        (lambda r: {**r, "b": hm.Trials.of(r["b"].label, np.where(r["b"].score > 2, np.inf, 0.0))}, "infinite-score"),
    ],
)
def test_what_cannot_be_fused_is_refused(change: object, code: str) -> None:
    runs = change({"a": trials(1.0, 1), "b": trials(0.7, 2)})  # type: ignore[operator]
    with pytest.raises((hm.UsageError, hm.DataError)) as error:
        hm.fuse(runs, runs)
    assert error.value.code == code


def submitted(folder: Path, **shifts: float) -> Path:
    """A folder of submissions and the key beside it."""
    own = folder / "submissions"
    own.mkdir()
    words = np.where(np.arange(400) % 2, "bonafide", "spoof")
    pl.DataFrame({"id": [f"t{i}" for i in range(400)], "label": words}).write_csv(folder / "key.csv")
    for at, (name, shift) in enumerate(shifts.items()):
        run = trials(shift, at)
        pl.DataFrame({"id": [f"t{i}" for i in range(400)], "score": run.score}).write_csv(own / f"{name}.csv")
    return own


def test_a_board_ranks_the_submissions_of_a_folder(tmp_path: Path) -> None:
    own = submitted(tmp_path, weak=0.2, strong=3.0, good=1.5)
    found = hm.board(own, tmp_path / "key.csv", metrics=["eer"], positive="bonafide", bootstrap=200)
    ranks = {row.system: (row.rank_low, row.rank_high) for row in found.rows}
    assert ranks == {"strong": (1, 1), "good": (2, 2), "weak": (3, 3)}
    runs = {p.stem: hm.read(p, tmp_path / "key.csv", positive="bonafide") for p in sorted(own.iterdir())}
    standings = hm.rank(runs, ["eer"], bootstrap=200).standings
    assert [row.number.value for row in found.rows] == [s.value for s in standings]


def test_a_board_lists_every_submission_that_cannot_be_scored(tmp_path: Path) -> None:
    own = submitted(tmp_path, good=1.5)
    (own / "short.csv").write_text("id,score\nt1,0.5\n")
    (own / "nan.csv").write_text((own / "good.csv").read_text().replace("t7,", "t7,nan#"))
    found = hm.board(own, tmp_path / "key.csv", metrics=["eer"], positive="bonafide")
    assert {r.system for r in found.rejected} == {"short", "nan"}
    assert found["good"].rank == 1 and found["short"].rank is None


def test_a_board_takes_files_by_name_and_refuses_namesakes(tmp_path: Path) -> None:
    own = submitted(tmp_path, good=1.5, weak=0.2)
    by_name = {"a": own / "good.csv", "b": {"all": own / "weak.csv"}}
    found = hm.board(by_name, tmp_path / "key.csv", metrics="eer", positive="bonafide", bootstrap=100)
    assert [row.system for row in found.rows] == ["a", "b"]
    for given, code in (([own / "good.csv"] * 2, "same-name"), (tmp_path / "none", "no-folder")):
        with pytest.raises(hm.UsageError) as error:
            hm.board(given, tmp_path / "key.csv", metrics=["eer"], positive="bonafide")
        assert error.value.code == code


def test_detect_gives_the_scores_of_the_verb(tmp_path: Path) -> None:
    table = tmp_path / "comments.tsv"
    table.write_text(
        "id\ttext\tlabel\n" + "".join(f"c{i}\t{'x' * i}\t{('toxic', 'non-toxic')[i % 2]}\n" for i in range(8))
    )
    (tmp_path / "mine.py").write_text("def length(texts):\n    return [[0.0, len(t) - 3.5] for t in texts]\n")
    words = ["detect", "--detector", f"{tmp_path}/mine.py:length", "--data", str(table), "--input", "text"]
    assert hm.run([*words, "--positive", "toxic", "-o", str(tmp_path / "run")]) == 0
    own = hm.detect(f"{tmp_path}/mine.py:length", table, tmp_path / "own", input="text", positive="toxic")
    assert own.frame.equals(hm.read(tmp_path / "run").frame)
    assert hm.evaluate(own, metrics=["roc_auc"]).one("roc_auc").value == hm.metrics.roc_auc(own.label, own.score)


def test_attack_gives_the_trials_of_the_verb(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "x.npz", x=rng.normal(size=(6, 300, 2)), y=np.eye(2)[np.arange(6) % 2], classes=["A", "B"], fs=100
    )
    code = "def model(x):\n    m = abs(x).mean(axis=(1, 2)) % 1\n    import numpy as np\n    return np.stack([m, 1 - m], 1)\n"
    (tmp_path / "mine.py").write_text(code)
    words = ["attack", "--detector", f"{tmp_path}/mine.py:model", "--data", str(tmp_path / "x.npz")]
    words += ["--outputs", "probability", "--family", "band_noise", "--strengths", "0.5", "1"]
    assert hm.run([*words, "-o", str(tmp_path / "run")]) == 0
    own = hm.attack(
        f"{tmp_path}/mine.py:model",
        tmp_path / "x.npz",
        outputs="probability",
        families=["band_noise"],
        strengths=[0.5, 1],
    )
    verb = hm.read(tmp_path / "run", positive="present", negative="absent")
    keys = ["attack", "strength", "item", "target"]
    assert own.frame.sort(keys)["score"].to_list() == pytest.approx(verb.frame.sort(keys)["score"].to_list())


def test_report_writes_the_page_of_the_verb(tmp_path: Path) -> None:
    hm.measure(trials(1.0), ["eer"]).save(tmp_path / "ours.json")
    made = hm.report([tmp_path / "ours.json"], tmp_path / "a.html", title="Ours")
    assert hm.run(["report", str(tmp_path / "ours.json"), "-o", str(tmp_path / "b.html"), "--title", "Ours"]) == 0
    assert made.read_text() == (tmp_path / "b.html").read_text()


def test_trials_that_are_read_take_no_read_options() -> None:
    with pytest.raises(hm.UsageError) as error:
        hm.evaluate(trials(1.0), metrics=["eer"], positive="real")
    assert error.value.code == "read-twice"
