"""Faults at random places: the files give the clean trials or a `DataError`, never a third thing."""

from __future__ import annotations

import csv
import math
import struct
from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.core.errors import DataError, HitmissError
from hitmiss.core.trials import Trials
from hitmiss.io import examine, read
from hitmiss.io.cells import to_numbers

N = 12
CLEAN = [(f"E_{i:02d}", repr(math.sin(i)), "bonafide" if i % 3 == 0 else "spoof") for i in range(N)]


def files(tmp: Path, scores: list[list[str]], key: list[list[str]]) -> tuple[Path, Path]:
    one, other = tmp / "s.tsv", tmp / "k.tsv"
    one.write_text("\n".join(["filename\tcm-score", *map("\t".join, scores)]), encoding="utf-8", newline="")
    other.write_text("\n".join(["filename\tcm-label", *map("\t".join, key)]), encoding="utf-8", newline="")
    return one, other


def table(trials: Trials) -> list[tuple[str, int, float]]:
    return sorted(trials.frame.select("item", "label", "score").iter_rows())


EXPECTED = sorted((item, int(label == "bonafide"), float(score)) for item, score, label in CLEAN)

FAULTS = {
    "nan-score": lambda s, k, i, j: s[i].__setitem__(1, "nan"),
    "empty-score": lambda s, k, i, j: s[i].__setitem__(1, ""),
    "not-a-number": lambda s, k, i, j: s[i].__setitem__(1, "1,5"),
    "duplicate-id": lambda s, k, i, j: s.insert(j, list(s[i])),
    "conflicting-id": lambda s, k, i, j: s.insert(j, [s[i][0], "77.5"]),
    "duplicate-in-key": lambda s, k, i, j: k.insert(j, list(k[i])),
    "both-labels": lambda s, k, i, j: k.insert(j, [k[i][0], "spoof" if k[i][1] == "bonafide" else "bonafide"]),
    "only-in-key": lambda s, k, i, j: s.pop(i),
    "only-in-scores": lambda s, k, i, j: k.pop(i),
    "unknown-label": lambda s, k, i, j: k[i].__setitem__(1, "spoofy"),
    "ambiguous-label": lambda s, k, i, j: k[i].__setitem__(1, "1"),
    "empty-id": lambda s, k, i, j: s[i].__setitem__(0, ""),
    "ragged-row": lambda s, k, i, j: s[i].append("9"),
}


@given(st.permutations(range(N)), st.permutations(range(N)))
def test_clean_files_give_the_same_trials_in_any_order(tmp_path_factory, one: list[int], other: list[int]) -> None:  # type: ignore[no-untyped-def]
    paths = files(
        tmp_path_factory.mktemp("order"), [list(CLEAN[i][:2]) for i in one], [[CLEAN[i][0], CLEAN[i][2]] for i in other]
    )
    trials = read(*paths)
    assert trials.items == [CLEAN[i][0] for i in one]
    assert table(trials) == EXPECTED


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(FAULTS)), st.integers(0, N - 3), st.integers(0, N - 3)), min_size=1, max_size=3
    )
)
def test_injected_faults_are_always_found(tmp_path_factory, faults: list[tuple[str, int, int]]) -> None:  # type: ignore[no-untyped-def]
    scores, key = [list(row[:2]) for row in CLEAN], [[row[0], row[2]] for row in CLEAN]
    for kind, i, j in faults:
        FAULTS[kind](scores, key, i, j)
    seen = examine(*files(tmp_path_factory.mktemp("fault"), scores, key))
    if seen.trials is not None:  # faults can undo each other: then the files say something sound, and that is read
        labels = dict(key)
        assert len(labels) == len(key) == len(scores)
        assert table(seen.trials) == sorted((i, int(labels[i] == "bonafide"), float(s)) for i, s in scores)
    else:
        assert seen.faults
    if len(faults) == 1:
        assert faults[0][0] in {fault.kind for fault in seen.faults}


@given(st.data())
def test_one_changed_byte_never_gives_other_trials_in_silence(tmp_path_factory, data: st.DataObject) -> None:  # type: ignore[no-untyped-def]
    """A byte of the ids, the labels or the separators; a changed digit of a score is another score."""
    scores, key = files(
        tmp_path_factory.mktemp("byte"), [list(row[:2]) for row in CLEAN], [[row[0], row[2]] for row in CLEAN]
    )
    content = bytearray(key.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    key.write_bytes(bytes(content))
    try:
        trials = read(scores, key)
    except DataError:
        return
    assert table(trials) == EXPECTED


TEXT = st.text(st.characters(exclude_characters="\x00\r\n\t", exclude_categories=("Cs",)), min_size=1, max_size=12)


@given(st.lists(TEXT, min_size=2, max_size=20, unique=True))
def test_ids_of_any_text_come_back(tmp_path_factory, items: list[str]) -> None:  # type: ignore[no-untyped-def]
    lines = [f"{item}\t{('spoof', 'bonafide')[n % 2]}\t{n}" for n, item in enumerate(items)]
    path = tmp_path_factory.mktemp("ids") / "s.tsv"
    path.write_text("\n".join(["id\tlabel\tscore", *lines]) + "\n", encoding="utf-8", newline="")
    try:
        found = read(path).items
    except DataError as error:
        # Quotes that can be read in two ways are refused; so are ids that are quoted in the way of CSV and then equal.
        assert any('"' in item for item in items), error
        return
    assert found == items or any(item.startswith('"') for item in items)


@given(st.lists(TEXT, min_size=2, max_size=20, unique=True))
def test_ids_of_any_text_come_back_from_csv(tmp_path_factory, items: list[str]) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("csv") / "s.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label", "score"])
        writer.writerows([item, ("spoof", "bonafide")[n % 2], n] for n, item in enumerate(items))
    assert read(path).items == items


@given(st.binary(max_size=300))
def test_any_bytes_give_trials_or_one_of_our_errors(tmp_path_factory, data: bytes) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("bytes") / "s"
    path.write_bytes(data)
    try:
        trials = read(path)
    except HitmissError:
        return
    assert len(trials) > 0


@given(st.text(st.sampled_from('ab01.,;|\t\n "-{}:NnIi'), max_size=120))
def test_any_text_gives_trials_or_one_of_our_errors(tmp_path_factory, text: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("text") / "s"
    path.write_text("id,label,score\na,real,1\n" + text, encoding="utf-8", newline="")
    try:
        trials = read(path)
    except HitmissError:
        return
    assert trials.items[0] == "a"


@given(
    st.lists(st.one_of(st.floats().map(repr), st.floats().map("{:.30e}".format), st.decimals(allow_nan=False).map(str)))
)
def test_numbers_are_those_of_python_to_the_last_bit(texts: list[str]) -> None:
    numbers, wrong = to_numbers(pl.Series("score", texts, dtype=pl.String))
    is_lost = [text.lstrip("-").isdigit() and int(text) != int(float(text)) for text in texts]
    assert wrong.to_list() == is_lost
    kept = [(number, text) for number, text, lost in zip(numbers, texts, is_lost, strict=True) if not lost]
    assert [bits(number) for number, _ in kept] == [bits(float(text)) for _, text in kept]


@given(st.lists(st.text("0123456789+-.eE_xinfatyINFATY ", max_size=10)))
def test_whatever_is_taken_for_a_number_is_one(texts: list[str]) -> None:
    numbers, wrong = to_numbers(pl.Series("score", texts, dtype=pl.String))
    for text, number, is_wrong in zip(texts, numbers, wrong, strict=True):
        if number is not None:
            assert bits(number) == bits(float(text))
        elif is_wrong:
            assert "_" in text or not is_python_number(text)
        else:
            assert not text.strip()


def bits(number: float) -> bytes:
    return b"nan" if math.isnan(number) else struct.pack("d", number)


def is_python_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
