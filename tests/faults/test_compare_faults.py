"""Faults that a comparison must refuse in one sentence, from files, with exit code 3 and nothing on stdout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hitmiss.cli.main import run

Capture = pytest.CaptureFixture[str]
GOOD = [
    ("a", "real", 0.9),
    ("b", "fake", 0.2),
    ("c", "real", 0.7),
    ("d", "fake", 0.1),
    ("e", "real", 0.8),
    ("f", "fake", 0.3),
]
Rows = list[tuple[str, str, float]]


def write(path: Path, rows: Rows, head: str = "id,label,score") -> str:
    path.write_text("\n".join([head, *(f"{i},{y},{s}" for i, y, s in rows)]) + "\n")
    return str(path)


FAULTS: dict[str, tuple[Callable[[Rows], Rows], str]] = {
    "other ids": (lambda rows: [(f"x{i}", y, s) for i, y, s in rows], "no id is in both runs"),
    "ids missing in B": (lambda rows: rows[:4], "2 of A.csv are not in B.csv (as e, f)"),
    "ids missing in A": (lambda rows: [*rows, ("g", "real", 0.5)], "1 of B.csv are not in A.csv (as g)"),
    "duplicate ids": (lambda rows: [*rows, rows[0]], "'a'"),
    "one label differs": (lambda rows: [("a", "fake", 0.9), *rows[1:]], "1 of 6 questions have another label"),
    "all labels differ": (
        lambda rows: [(i, "fake" if y == "real" else "real", s) for i, y, s in rows],
        "one of them has its classes reversed",
    ),
    "direction differs": (
        lambda rows: [(i, y, 1 - s) for i, y, s in rows],
        "higher scores of B.csv go with fake; read it with --higher",
    ),
    "a NaN": (lambda rows: [("a", "real", float("nan")), *rows[1:]], "NaN"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_refused(name: str, tmp_path: Path, capsys: Capture) -> None:
    spoil, words = FAULTS[name]
    rows = (
        [(f"{i}{k}" if k else i, y, s) for k in ("", *"123456789") for i, y, s in GOOD]
        if name.startswith("direction")
        else GOOD
    )
    a, b = write(tmp_path / "A.csv", rows), write(tmp_path / "B.csv", spoil(rows))
    assert run(["compare", a, b, "-m", "eer", "--positive", "real"]) == 3
    seen = capsys.readouterr()
    assert seen.out == "" and words in seen.err and seen.err.startswith("hitmiss: ")


def test_the_direction_can_be_declared_for_one_run(tmp_path: Path, capsys: Capture) -> None:
    rows = [(f"{i}{k}", y, s) for k in range(10) for i, y, s in GOOD]
    a = write(tmp_path / "A.csv", rows)
    b = write(tmp_path / "B.csv", [(i, y, -s) for i, y, s in rows])
    assert run(["compare", a, b, "-m", "eer", "--positive", "real", "--higher", "real", "--higher", "fake"]) == 0
    assert "identical" in capsys.readouterr().out


def test_missing_partners_are_counted_where_they_are_allowed(tmp_path: Path, capsys: Capture) -> None:
    a, b = write(tmp_path / "A.csv", GOOD), write(tmp_path / "B.csv", GOOD[:4])
    assert run(["compare", a, b, "-m", "eer", "--positive", "real", "--allow-missing"]) == 0
    out = capsys.readouterr().out
    assert (
        "4 pairs: 2 real, 2 fake" in out and "left out because they have no partner: 2 of A.csv and 0 of B.csv" in out
    )
    assert "|left-out:2/0|" in out


def test_files_without_ids_have_no_partners(tmp_path: Path, capsys: Capture) -> None:
    for name in ("A", "B"):
        (tmp_path / f"{name}.txt").write_text("".join(f"- - {y} {s}\n" for _, y, s in GOOD))
    words = ["compare", str(tmp_path / "A.txt"), str(tmp_path / "B.txt"), "-m", "eer", "--positive", "real"]
    assert run(words) == 3
    assert "A.txt cannot be compared: A.txt has no ids" in capsys.readouterr().err


def test_other_score_kinds_cannot_be_mixed(tmp_path: Path, capsys: Capture) -> None:
    """The kind is declared for all runs at once; results of another kind are no trials either."""
    a = write(tmp_path / "A.csv", GOOD)
    assert run(["score", a, "-m", "eer", "--positive", "real", "-o", str(tmp_path / "A.json")]) == 0
    capsys.readouterr()
    assert run(["compare", a, str(tmp_path / "A.json"), "-m", "eer", "--positive", "real"]) == 3
    assert "A.json holds numbers, not trials" in capsys.readouterr().err


def test_identical_files_do_not_differ(tmp_path: Path, capsys: Capture) -> None:
    a, b = write(tmp_path / "A.csv", GOOD), write(tmp_path / "B.csv", GOOD[::-1])
    assert run(["compare", a, b, "-m", "eer", "-m", "accuracy", "--threshold", "0.5", "--positive", "real"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("eer", "accuracy"))]
    assert len(rows) == 2 and all("identical" in row for row in rows)


def test_ids_cannot_play_with_the_terminal(tmp_path: Path, capsys: Capture) -> None:
    a = write(tmp_path / "A.csv", GOOD)
    b = write(tmp_path / "B.csv", [*GOOD, ("\x1b[31mred", "real", 0.5)])
    assert run(["compare", a, b, "-m", "eer", "--positive", "real"]) == 3
    err = capsys.readouterr().err
    assert "\x1b" not in err and r"\x1b[31mred" in err
