"""The faults that the official scripts score in silence: here each one stops, or stands in the notes, with its place.

Clean data gives EER 10.92 % with the official package; the comments tell what it printed for each fault, exit code 0.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hitmiss.core.errors import DataError
from hitmiss.core.trials import Trials
from hitmiss.io import examine, read

N = 400


@pytest.fixture
def rows() -> tuple[list[list[str]], list[list[str]]]:
    """Score rows and key rows of a clean evaluation."""
    rng = np.random.default_rng(7)
    is_real = rng.random(N) < 0.25
    scores = [[f"E_{i:04d}", repr(float(s))] for i, s in enumerate(rng.normal(size=N) + 2 * is_real)]
    return scores, [[f"E_{i:04d}", "bonafide" if real else "spoof"] for i, real in enumerate(is_real)]


class Files:
    """The two official files, written anew for each test."""

    def __init__(self, folder: Path) -> None:
        self.scores, self.key = folder / "scores.tsv", folder / "key.tsv"

    def write(self, scores: list[list[str]], key: list[list[str]]) -> Files:
        for path, head, body in ((self.scores, "cm-score", scores), (self.key, "cm-label", key)):
            lines = ["\t".join(row) for row in (["filename", head], *body)]
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return self

    def read(self, **options: object) -> Trials:
        return read(self.scores, self.key, **options)

    def places(self, **options: object) -> set[tuple[str, str | None, int | None]]:
        """Kind, file and row of every fault; the error that `read` raises must carry the same."""
        faults = examine(self.scores, self.key, **options).faults
        with pytest.raises(DataError) as caught:
            self.read(**options)
        assert caught.value.faults == faults
        assert caught.value.exit_code == 3
        return {(fault.kind, fault.file, fault.row) for fault in faults}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


Rows = tuple[list[list[str]], list[list[str]]]


def test_clean_files_pass(files: Files, rows: Rows) -> None:
    trials = files.write(*rows).read()
    assert trials.items == [item for item, _ in rows[0]]
    assert trials.score.tolist() == [float(score) for _, score in rows[0]]
    assert trials.label.tolist() == [int(label == "bonafide") for _, label in rows[1]]
    assert (trials.header.notes, trials.header.choices) == ((), ())


def test_nan(files: Files, rows: Rows) -> None:  # EER 11.50 %, Cllr nan
    scores, key = rows
    for i in (3, 50, 399):
        scores[i][1] = "NaN"
    assert files.write(scores, key).places() == {("nan-score", "scores.tsv", i + 2) for i in (3, 50, 399)}
    with pytest.raises(DataError, match=r"scores\.tsv, row 5: 3 NaN scores \(ids 'E_0003', 'E_0050', 'E_0399'\)"):
        files.read()


def test_infinity_is_allowed_and_noted(files: Files, rows: Rows) -> None:  # EER 11.50 %
    scores, key = rows
    scores[3][1], scores[4][1] = "inf", "-INFINITY"
    trials = files.write(scores, key).read()
    assert trials.score[3:5].tolist() == [np.inf, -np.inf]
    assert any("2 scores are infinite" in note for note in trials.header.notes)


def test_duplicates(files: Files, rows: Rows) -> None:  # 11.07 %
    scores, key = rows
    found = files.write([*scores, scores[10], scores[11]], key).places()
    assert found == {("duplicate-id", "scores.tsv", row) for row in (12, 13, 402, 403)}
    assert len(files.read(dedupe=True)) == N


def test_conflicting_duplicates(files: Files, rows: Rows) -> None:
    scores, key = rows
    files.write([*scores, [scores[10][0], "9.5"]], key)
    expected = {("conflicting-id", "scores.tsv", row) for row in (12, 402)}
    assert files.places() == files.places(dedupe=True) == expected


def test_constant_score_is_noted(files: Files, rows: Rows) -> None:  # EER 100 %
    scores, key = rows
    trials = files.write([[item, "0.5"] for item, _ in scores], key).read()
    assert any("all 400 scores are 0.5" in note for note in trials.header.notes)


def test_label_typo(files: Files, rows: Rows) -> None:  # trials dropped, 10.78 %
    scores, key = rows
    real = [i for i, (_, label) in enumerate(key) if label == "bonafide"][:40]
    for i in real:
        key[i][1] = "bonafied"
    assert files.write(scores, key).places() == {("unknown-label", "key.tsv", i + 2) for i in real}
    with pytest.raises(DataError, match=r"40 rows with the unknown label 'bonafied'.*did you mean 'bonafide'"):
        files.read()


def test_label_case(files: Files, rows: Rows) -> None:  # nan
    scores, key = rows
    real = [i for i, (_, label) in enumerate(key) if label == "bonafide"]
    for i in real:
        key[i][1] = ("Bonafide", "bona-fide", "BONAFIDE")[i % 3]
    assert files.write(scores, key).read().n_positive == len(real)


def test_ids_missing_from_the_scores(files: Files, rows: Rows) -> None:  # a bare assertion, without a list
    scores, key = rows
    assert files.write(scores[:-2], key).places() == {("only-in-key", "key.tsv", 400), ("only-in-key", "key.tsv", 401)}


def test_ids_missing_from_the_key(files: Files, rows: Rows) -> None:
    scores, key = rows
    found = files.write(scores, key[2:]).places()
    assert found == {("only-in-scores", "scores.tsv", 2), ("only-in-scores", "scores.tsv", 3)}


def test_a_quarter_of_the_scores_missing(files: Files, rows: Rows) -> None:  # evaluation_full.py scores the rest
    scores, key = rows
    files.write(scores[: 3 * N // 4], key)
    assert len(files.places()) == N // 4
    trials = files.read(allow_missing=True)
    assert (trials.header.coverage, trials.header.choices) == ((300, 400), ("coverage:300/400",))


def test_the_same_id_with_both_labels(files: Files, rows: Rows) -> None:
    scores, key = rows
    other = {"spoof": "bonafide", "bonafide": "spoof"}[key[7][1]]
    found = files.write(scores, [*key, [key[7][0], other]]).places(dedupe=True)
    assert found == {("both-labels", "key.tsv", 9), ("both-labels", "key.tsv", 402)}


def test_space_separated_scores_without_a_header(files: Files, rows: Rows) -> None:  # KeyError
    scores, key = rows
    clean = files.write(scores, key).read()
    files.scores.write_text("".join(f"{item} {score}\n" for item, score in reversed(scores)), encoding="utf-8")
    trials = files.read()
    assert trials.items == clean.items[::-1]
    assert np.array_equal(trials.score, clean.score[::-1])
    assert np.array_equal(trials.label, clean.label[::-1])


def test_all_faults_are_told_at_once(files: Files, rows: Rows) -> None:
    scores, key = rows
    scores[0][1], scores[1][1], scores[2][0], key[5][1] = "nan", "x", "", "spooof"
    kinds = {kind for kind, _, _ in files.write([*scores, scores[9]], key[:-1]).places()}
    assert kinds == {
        "nan-score",
        "not-a-number",
        "empty-id",
        "duplicate-id",
        "unknown-label",
        "only-in-key",
        "only-in-scores",
    }
