"""The files of moderation in their published shapes: every verb gives the numbers of scikit-learn."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import polars as pl
import pytest
from sklearn.metrics import f1_score, roc_auc_score

import hitmiss as hm
from hitmiss.cli.main import run

JIGSAW = ("toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate")
DETOXIFY = ("toxicity", "severe_toxicity", "obscene", "threat", "insult", "identity_attack")
OPENAI = ("hate", "hate/threatening", "self-harm", "sexual", "violence")
PERSPECTIVE = ("TOXICITY", "SEVERE_TOXICITY", "INSULT", "THREAT")
N = 70
IDS = [f"c{n:03}" for n in range(N)]
TEXTS = [f'a "comment", number {n}' for n in range(N)]
Truth = dict[str, list[int]]
Score = dict[str, list[float]]
Capture = pytest.CaptureFixture[str]


def drawn(types: tuple[str, ...], seed: int) -> tuple[Truth, Score]:
    """The labels, the same for every seed, and the scores of one model."""
    draw = Random(5)
    truth = {name: [int(draw.random() < 0.35) for _ in IDS] for name in types}
    draw = Random(seed)
    return truth, {name: [round(0.35 * y + 0.6 * draw.random(), 4) for y in truth[name]] for name in types}


def csv(path: Path, **columns: object) -> str:
    pl.DataFrame(columns).write_csv(path)
    return str(path)


def lines(path: Path, rows: list[dict[str, object]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


Files = tuple[list[str], Truth, Score]
"""The words of a command that name the files, and what the files say."""


def jigsaw_wide(folder: Path, seed: int) -> Files:
    truth, score = drawn(JIGSAW, seed)
    own = {f"{name}_prob": cells for name, cells in score.items()}
    return [csv(folder / f"wide{seed}.csv", id=IDS, comment_text=TEXTS, **truth, **own)], truth, score


def kaggle_pair(folder: Path, seed: int) -> Files:
    """A submission and `test_labels.csv`: the same names in both, -1 in rows that are not scored."""
    truth, score = drawn(JIGSAW, seed)
    scores = csv(folder / f"submission{seed}.csv", id=IDS[::-1], **{n: s[::-1] for n, s in score.items()})
    marked = {name: [-1 if i % 10 == 0 else y for i, y in enumerate(ys)] for name, ys in truth.items()}
    key = csv(folder / "test_labels.csv", id=IDS, **marked)
    kept = [i for i in range(N) if i % 10]
    truth, score = ({n: [own[n][i] for i in kept] for n in own} for own in (truth, score))  # type: ignore[assignment]
    return [scores, "--key", key, "--missing", "drop"], truth, score


def detoxify_outputs(folder: Path, seed: int) -> Files:
    """What `Detoxify.predict` gives as a frame, beside the labels of the challenge, which have other names."""
    truth, score = drawn(JIGSAW, seed)
    named = dict(zip(DETOXIFY, score.values(), strict=True))
    scores = csv(folder / f"detoxify{seed}.csv", id=IDS, text=TEXTS, **named)
    return [scores, "--key", csv(folder / "labels.csv", id=IDS, **truth)], truth, score


def civil_comments(folder: Path, seed: int) -> Files:
    """Shares of annotators instead of labels, with the number of annotators, and a model's scores beside them."""
    truth, score = drawn(("toxicity", "obscene", "insult"), seed)
    draw = Random(7)
    shares = {n: [draw.choice((0.5, 0.8, 1.0)) if y else draw.choice((0.0, 0.1, 0.4)) for y in truth[n]] for n in truth}
    own = {f"{name}_pred": cells for name, cells in score.items()}
    counts = {"toxicity_annotator_count": [draw.randint(4, 70) for _ in IDS]}
    path = csv(folder / f"civil{seed}.csv", id=IDS, comment_text=TEXTS, **shares, **counts, **own)
    return [path, "--label-cut", "0.5"], truth, score


def openai_moderation(folder: Path, seed: int) -> Files:
    """One response of the moderation endpoint a line, and labels in a table of their own."""
    truth, score = drawn(OPENAI, seed)
    rows: list[dict[str, object]] = [
        {
            "id": IDS[i],
            "model": "omni-moderation-latest",
            "results": [
                {
                    "flagged": any(score[n][i] > 0.5 for n in OPENAI),
                    "categories": {n: score[n][i] > 0.5 for n in OPENAI},
                    "category_scores": {n: score[n][i] for n in OPENAI},
                }
            ],
        }
        for i in range(N)
    ]
    return [lines(folder / f"openai{seed}.jsonl", rows), "--key", csv(folder / "l.csv", id=IDS, **truth)], truth, score


def perspective(folder: Path, seed: int) -> Files:
    """One response of the comment analyser a line: an attribute has a summary score."""
    truth, score = drawn(PERSPECTIVE, seed)
    rows: list[dict[str, object]] = [
        {
            "id": IDS[i],
            "attributeScores": {
                n: {"summaryScore": {"value": score[n][i], "type": "PROBABILITY"}, "spanScores": []}
                for n in PERSPECTIVE
            },
            "languages": ["en"],
        }
        for i in range(N)
    ]
    key = csv(folder / "l.csv", id=IDS, **{n.lower(): ys for n, ys in truth.items()})
    lower: tuple[Truth, Score] = ({n.lower(): y for n, y in truth.items()}, {n.lower(): s for n, s in score.items()})
    return [lines(folder / f"perspective{seed}.jsonl", rows), "--key", key], *lower


def hugging_face(folder: Path, seed: int) -> Files:
    """The labels of a text as a list of names, and the output of a pipeline with `top_k=None`."""
    truth, score = drawn(JIGSAW, seed)
    rows: list[dict[str, object]] = [
        {
            "id": IDS[i],
            "text": TEXTS[i],
            "labels": [n for n in JIGSAW if truth[n][i]],
            "predictions": [{"label": n, "score": score[n][i]} for n in sorted(JIGSAW, key=lambda n: -score[n][i])],
        }
        for i in range(N)
    ]
    return [lines(folder / f"hf{seed}.jsonl", rows)], truth, score


def hugging_face_vectors(folder: Path, seed: int) -> Files:
    """The labels as a vector of 0 and 1, and the probabilities as another."""
    truth, score = drawn(("0", "1", "2"), seed)
    rows: list[dict[str, object]] = [
        {"id": IDS[i], "labels": [truth[n][i] for n in truth], "scores": [score[n][i] for n in score]} for i in range(N)
    ]
    return [lines(folder / f"v{seed}.jsonl", rows)], truth, score


def workbook(folder: Path, seed: int) -> Files:
    truth, score = drawn(JIGSAW[:3], seed)
    own = {f"prob_{name}": cells for name, cells in score.items()}
    table = pl.DataFrame({"id": IDS, "text": TEXTS, **truth, **own})
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (table.columns, *table.rows()):
        book.active.append(row)
    book.create_sheet("empty")
    book.save(folder / f"book{seed}.xlsx")
    return [str(folder / f"book{seed}.xlsx")], truth, score


def by_path(folder: Path, seed: int) -> Files:
    """Nested fields of any name, declared by their paths."""
    truth, score = drawn(("hate", "spam"), seed)
    rows: list[dict[str, object]] = [
        {
            "id": IDS[i],
            "gold": {n: truth[n][i] for n in truth},
            "categories": {n: {"score": score[n][i], "flagged": score[n][i] > 0.5} for n in score},
        }
        for i in range(N)
    ]
    pairs = [f"--pair=gold.{n}=categories.{n}.score" for n in truth]
    named: tuple[Truth, Score] = (
        {f"gold.{n}": y for n, y in truth.items()},
        {f"gold.{n}": s for n, s in score.items()},
    )
    return [lines(folder / f"path{seed}.jsonl", rows), *pairs], *named


FORMATS: dict[str, Callable[[Path, int], Files]] = {
    function.__name__: function
    for function in (
        jigsaw_wide,
        kaggle_pair,
        detoxify_outputs,
        civil_comments,
        openai_moderation,
        perspective,
        hugging_face,
        hugging_face_vectors,
        workbook,
        by_path,
    )
}


def expected(truth: Truth, score: Score) -> dict[str, float]:
    """The area of each label, their mean (the challenge's column-wise mean) and that of all labels pooled."""
    own = {name: float(roc_auc_score(truth[name], score[name])) for name in truth}
    pooled = roc_auc_score([y for n in truth for y in truth[n]], [s for n in truth for s in score[n]])
    return {**own, "macro": sum(own.values()) / len(own), "pooled": float(pooled)}


def found(estimates: list[dict[str, object]], metric: str = "roc_auc") -> dict[str, float]:
    own = [e for e in estimates if e["metric"] == metric]
    named = {e["slice"]["type"]: e["value"] for e in own if e["slice"] and not e["average"]}  # type: ignore[index, call-overload]
    macro = [e["value"] for e in own if e["average"] == "macro"]
    whole = [e["value"] for e in own if not e["slice"] and not e["average"]]
    return {**named, "macro": macro[0], "pooled": whole[0]}  # type: ignore[dict-item]


@pytest.mark.parametrize("name", FORMATS)
def test_score_gives_the_area_of_each_label_their_mean_and_the_pooled_one(
    name: str, tmp_path: Path, capsys: Capture
) -> None:
    words, truth, score = FORMATS[name](tmp_path, 1)
    assert run(["score", *words, "-p", "toxicity", "-m", "roc_auc", "--by", "type", "--bootstrap", "0", "--json"]) == 0
    told = found(json.loads(capsys.readouterr().out)["estimates"])
    assert told == pytest.approx(expected(truth, score), abs=1e-12)
    assert told.keys() == expected(truth, score).keys()


@pytest.mark.parametrize("name", FORMATS)
def test_decisions_at_a_threshold_are_those_of_each_label(name: str, tmp_path: Path, capsys: Capture) -> None:
    words, truth, score = FORMATS[name](tmp_path, 1)
    asked = ["-p", "toxicity", "-m", "f1", "--threshold", "0.5", "--by", "type", "--bootstrap", "0", "--json"]
    assert run(["score", *words, *asked]) == 0
    told = found(json.loads(capsys.readouterr().out)["estimates"], "f1")
    for label in truth:
        assert told[label] == pytest.approx(f1_score(truth[label], [s >= 0.5 for s in score[label]]), abs=1e-12)
    every = [y for n in truth for y in truth[n]], [s >= 0.5 for n in truth for s in score[n]]
    assert told["pooled"] == pytest.approx(f1_score(*every), abs=1e-12)


@pytest.mark.parametrize("name", FORMATS)
def test_compare_pairs_each_text_and_label(name: str, tmp_path: Path, capsys: Capture) -> None:
    words, truth, score = FORMATS[name](tmp_path, 1)
    other_words, _, other = FORMATS[name](tmp_path, 2)
    asked = ["-p", "toxicity", "-m", "roc_auc", "--by", "type", "--bootstrap", "50", "--json"]
    assert run(["compare", words[0], other_words[0], *words[1:], *asked]) == 0
    told = json.loads(capsys.readouterr().out)["differences"]
    for side, own in (("a", expected(truth, score)), ("b", expected(truth, other))):
        seen = {d["average"] or d["slice"].get("type", "pooled"): d[side] for d in told}
        assert {label: seen[label] for label in own} == pytest.approx(own, abs=1e-12)
    whole = next(d for d in told if not d["slice"] and not d["average"])
    assert whole["n_pairs"] == sum(map(len, truth.values()))


@pytest.mark.parametrize("name", FORMATS)
def test_a_gate_stops_at_the_mean_over_labels(name: str, tmp_path: Path) -> None:
    words, truth, score = FORMATS[name](tmp_path, 1)
    other, _, _ = FORMATS[name](tmp_path, 2)
    mean = expected(truth, score)["macro"]
    asked = ["-p", "toxicity", "--by", "type", "--bootstrap", "50"]
    for limit, code in ((mean - 1e-6, 0), (mean + 1e-6, 1)):
        assert run(["gate", *words, *asked, "--fail-if", f"macro roc_auc < {limit!r}"]) == code
    assert run(["gate", *words, *asked, "--baseline", other[0], "--max-regression", "roc_auc=0.9"]) == 0


def is_in_row(page: str, label: str, value: float) -> bool:
    """Whether a row of a table of the page has the value, rounded to the digits that its interval leaves."""
    rows = [row for row in re.findall(r"<tr.*?</tr>", page, re.DOTALL) if f">{label}<" in row]
    shown = [f"{value:.{digits}f}" for digits in (2, 3, 4)] + [f"{100 * value:.{digits}f}" for digits in (0, 1, 2)]
    return any(text in row for row in rows for text in shown)


@pytest.mark.parametrize("name", FORMATS)
def test_a_report_and_python_read_the_same_rows(name: str, tmp_path: Path) -> None:
    words, truth, score = FORMATS[name](tmp_path, 1)
    page = tmp_path / "page.html"
    assert run(["report", *words, "-p", "toxicity", "--by", "type", "--bootstrap", "0", "-o", str(page)]) == 0
    text = page.read_text()
    for label, value in expected(truth, score).items():
        assert is_in_row(text, label, value), label
    given = dict(zip(words[1::2], words[2::2], strict=False)) if "--pair" not in " ".join(words) else {}
    pairs = dict(word.removeprefix("--pair=").split("=", 1) for word in words if word.startswith("--pair="))
    reading = {
        "missing": given.get("--missing"),
        "label_cut": float(given["--label-cut"]) if "--label-cut" in given else None,
        "pairs": pairs,
    }
    measured = hm.evaluate(words[0], given.get("--key"), protocol="toxicity", metrics=["roc_auc"], by="type", **reading)
    told = {e.average or e.slice.get("type", "pooled"): e.value for e in measured if e.metric == "roc_auc"}
    assert {label: told[label] for label in expected(truth, score)} == pytest.approx(expected(truth, score), abs=1e-12)
    trials = hm.read(words[0], given.get("--key"), positive="toxic", positive_value="1", **reading)
    for (label,), rows in trials.frame.group_by("type"):
        assert roc_auc_score(rows["label"], rows["score"]) == pytest.approx(
            roc_auc_score(truth[str(label)], score[str(label)]), abs=1e-12
        )
    assert trials.frame["item"].n_unique() == len(next(iter(truth.values()))), "the text is the item"


def test_intervals_draw_whole_texts(tmp_path: Path, capsys: Capture) -> None:
    words, _, _ = jigsaw_wide(tmp_path, 1)
    asked = ["-p", "toxicity", "-m", "roc_auc", "--by", "type", "--bootstrap", "60", "--json"]
    assert run(["score", *words, *asked]) == 0
    told = json.loads(capsys.readouterr().out)
    assert "unit=item" in told["signature"] and f"units:{N}" in told["signature"]


def test_labels_of_minus_one_are_refused_until_they_may_be_dropped(tmp_path: Path, capsys: Capture) -> None:
    words, _, _ = kaggle_pair(tmp_path, 1)
    assert run(["score", *words[:3], "-p", "toxicity", "--json"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "unlabelled" and "--missing drop" in error["message"]
    assert {(f["row"], f["column"]) for f in error["faults"]} == {(2 + i, n) for i in range(0, N, 10) for n in JIGSAW}


def test_a_wide_file_in_several_languages_is_sliced_by_both(tmp_path: Path, capsys: Capture) -> None:
    truth, score = drawn(JIGSAW[:2], 3)
    own = {f"{n}_prob": s for n, s in score.items()}
    languages = ["en" if i % 2 else "tr" for i in range(N)]
    path = csv(tmp_path / "w.csv", id=IDS, language=languages, **truth, **own)
    assert run(["score", path, "-p", "toxicity", "-m", "roc_auc", "--by", "type,language", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["estimates"]
    seen = {(e["slice"]["type"], e["slice"]["language"]): e["value"] for e in told if len(e["slice"]) == 2}
    for label in truth:
        for language in ("en", "tr"):
            kept = [i for i in range(N) if languages[i] == language]
            area = roc_auc_score([truth[label][i] for i in kept], [score[label][i] for i in kept])
            assert seen[label, language] == pytest.approx(area, abs=1e-12)


def test_an_undeclared_pair_is_refused_with_the_columns(tmp_path: Path, capsys: Capture) -> None:
    words, _, _ = jigsaw_wide(tmp_path, 1)
    assert run(["score", *words, "-m", "roc_auc", "--pair", "toxic=toxic_probs", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "missing-column" and "'toxic_prob'" in error["message"]


def test_a_bad_cell_is_named_with_its_row_and_value(tmp_path: Path, capsys: Capture) -> None:
    words, _, _ = jigsaw_wide(tmp_path, 1)
    path = Path(words[0])
    lines_of = path.read_text().splitlines()
    cells = lines_of[-1].split(",")
    path.write_text("\n".join([*lines_of[:-1], ",".join([*cells[:-1], "high"])]) + "\n")
    assert run(["score", str(path), "-p", "toxicity", "-m", "roc_auc", "--json"]) == 3
    fault = json.loads(capsys.readouterr().out)["error"]["faults"][0]
    assert (fault["row"], fault["value"], fault["column"]) == (N + 1, "high", "identity_hate_prob")


def test_what_init_writes_reads_the_same_labels(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, truth, score = jigsaw_wide(tmp_path, 1)
    monkeypatch.chdir(tmp_path)
    assert run(["init", *words]) == 0
    assert 'toxic = "toxic_prob"' in (tmp_path / "hitmiss.toml").read_text()
    capsys.readouterr()
    assert run(["score", *words, "-m", "roc_auc", "--by", "type", "--bootstrap", "0", "--json"]) == 0
    assert found(json.loads(capsys.readouterr().out)["estimates"]) == pytest.approx(expected(truth, score), abs=1e-12)


@pytest.mark.parametrize("name", FORMATS)
def test_the_toxicity_verb_gives_the_same_numbers(name: str, tmp_path: Path, capsys: Capture) -> None:
    words, truth, score = FORMATS[name](tmp_path, 1)
    assert run(["toxicity", *words, "--bootstrap", "0", "--json"]) == 0
    estimates = json.loads(capsys.readouterr().out)["estimates"]
    assert found(estimates) == pytest.approx(expected(truth, score), abs=1e-12)
    decided = found(estimates, "f1")
    for label in truth:
        assert decided[label] == pytest.approx(f1_score(truth[label], [s >= 0.5 for s in score[label]]), abs=1e-12)


@pytest.mark.parametrize("name", FORMATS)
def test_a_threshold_is_chosen_for_each_label(name: str, tmp_path: Path, capsys: Capture) -> None:
    words, truth, score = FORMATS[name](tmp_path, 1)
    assert run(["threshold", *words, "--bootstrap", "0", "--json"]) == 0
    told = {row["group"]: row["choices"]["exact"] for row in json.loads(capsys.readouterr().out)["thresholds"]}
    for label in truth:
        best = max(f1_score(truth[label], [s >= t for s in score[label]]) for t in score[label])
        assert told[label]["value"] == pytest.approx(best, abs=1e-12)


def test_thresholds_of_labels_side_by_side_are_not_written_into_the_file(tmp_path: Path) -> None:
    words, _, _ = jigsaw_wide(tmp_path, 1)
    test, _, _ = jigsaw_wide(tmp_path, 2)
    before = Path(test[0]).read_bytes()
    assert run(["threshold", *words, "--test", *test, "--write", "--bootstrap", "0"]) == 2
    assert Path(test[0]).read_bytes() == before
