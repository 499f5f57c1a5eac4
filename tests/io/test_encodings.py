"""A corpus of encodings, line ends and quotings: the same trials, or a fault that names the line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.trials import Trials
from hitmiss.io import examine, read

ROWS = [("E_0001", "bonafide", 1.5), ("Zoë", "spoof", -0.25), ("NA", "spoof", 0.125)]
TEXT = "filename,label,score\n" + "".join(f"{item},{label},{score}\n" for item, label, score in ROWS)


def zipped(data: bytes) -> bytes:
    """The same bytes at any time of day."""
    return gzip.compress(data, mtime=0)


def save(folder: Path, data: bytes | str, name: str = "s.csv") -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def check(trials: Trials) -> None:
    assert trials.items == [item for item, _, _ in ROWS]
    assert trials.score.tolist() == [score for _, _, score in ROWS]
    assert trials.label.tolist() == [int(label == "bonafide") for _, label, _ in ROWS]


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (TEXT.encode(), "utf-8"),
        (TEXT.encode("utf-8-sig"), "utf-8 with BOM"),
        (TEXT.encode("utf-16"), "utf-16-le with BOM"),
        (b"\xfe\xff" + TEXT.encode("utf-16-be"), "utf-16-be with BOM"),
        (TEXT.encode("utf-16-le"), "utf-16-le"),
        (TEXT.encode("utf-16-be"), "utf-16-be"),
        (TEXT.encode("utf-32"), "utf-32-le with BOM"),
        (TEXT.encode("latin-1"), "latin-1"),
        (TEXT.replace("\n", "\r\n").encode(), "utf-8"),
        (TEXT.replace("\n", "\r").encode(), "utf-8"),
        (TEXT.rstrip("\n").encode(), "utf-8"),
        ((TEXT + "\n\n").encode(), "utf-8"),
        (("\n" + TEXT.replace("\nZ", "\n\n  \nZ")).encode(), "utf-8"),
        (TEXT.replace(",", "\t").encode(), "utf-8"),
        (TEXT.replace(",", ";").encode(), "utf-8"),
        (TEXT.replace(",", "|").encode(), "utf-8"),
        (TEXT.replace(",", " ").encode(), "utf-8"),
        (TEXT.replace(",", "   ").replace("\n", " \n").encode(), "utf-8"),
        (TEXT.replace("Zoë", '"Zoë"').encode(), "utf-8"),
        (TEXT.replace("Zoë", '"Zoë"').replace("\n", "\r\n").encode("utf-16"), "utf-16-le with BOM"),
        (zipped(TEXT.encode()), "utf-8"),
        (zipped(TEXT[:30].encode()) + zipped(TEXT[30:].encode()), "utf-8"),
    ],
)
def test_same_trials_whatever_the_bytes(tmp_path: Path, data: bytes, encoding: str) -> None:
    trials = read(save(tmp_path, data))
    check(trials)
    assert trials.header.provenance["files"][0]["encoding"] == encoding


def test_a_guessed_encoding_is_noted_and_a_declared_one_is_not(tmp_path: Path) -> None:
    path = save(tmp_path, TEXT.encode("latin-1"))
    assert any("latin-1" in note for note in read(path).header.notes)
    declared = read(path, encoding="cp1252")
    check(declared)
    assert declared.header.notes == ()


@pytest.mark.parametrize(
    ("data", "kind", "row"),
    [
        (b"", "empty-file", None),
        (b" \r\n\n", "empty-file", None),
        (b"\xef\xbb\xbf", "empty-file", None),
        (b"\xfe\xff", "empty-file", None),
        (" \n".encode("utf-16"), "empty-file", None),
        (b"filename,label,score\n", "empty-file", 1),
        (zipped(b""), "empty-file", None),
        (TEXT.encode().replace(b"NA", b"N\0A"), "unreadable-encoding", 4),
        (TEXT.encode().replace(b"0001", b"\x93\x94"), "unreadable-encoding", 2),
        (TEXT.encode("utf-8-sig").replace(b"NA", b"\xff"), "unreadable-encoding", 4),
        (TEXT.encode("utf-16")[:-1], "unreadable-encoding", None),
        (zipped(TEXT.encode())[:-12], "unreadable-file", None),
        (zipped(TEXT.encode())[:20] + b"garbage" * 5, "unreadable-file", None),
        (TEXT.replace("bonafide,1.5", "bonafide").encode(), "ragged-row", 2),
        (TEXT.replace("-0.25", "-0.25,9").encode(), "ragged-row", 3),
        (TEXT.replace("bonafide,1.5", "bonafide").replace("0.125", "0.125,7").encode(), "ragged-row", 2),
        (TEXT.replace("Zoë", '"Zo,ë"').replace("0.125", "0.125,7").encode(), "ragged-row", 4),
        (TEXT.replace("Zoë", '"Zoë').encode(), "bad-quotes", 3),
        (TEXT.replace("Zoë,", "Zoë\r,").encode(), "stray-line-end", 3),
    ],
)
def test_damage_is_named_with_its_line(tmp_path: Path, data: bytes, kind: str, row: int | None) -> None:
    path = save(tmp_path, data)
    with pytest.raises(DataError) as caught:
        read(path)
    fault = caught.value.faults[0]
    assert (fault.kind, fault.file) == (kind, "s.csv")
    assert row is None or fault.row == row
    assert examine(path).faults == caught.value.faults


def test_a_folder_is_told_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "scores").mkdir()
    with pytest.raises(DataError, match="scores: it is a folder, but not a run of hitmiss; give the files in it"):
        read(tmp_path / "scores")


def test_long_and_short_rows_that_balance_are_seen_in_unread_columns_too(tmp_path: Path) -> None:
    text = "filename,label,score,a,b\nx,spoof,1,p,q\ny,spoof,2,p\nz,bonafide,3,p,q,r\n"
    with pytest.raises(DataError, match="2 rows with another number of fields"):
        read(save(tmp_path, text), slices=())


def test_an_empty_last_field_is_a_value_and_no_short_row(tmp_path: Path) -> None:
    trials = read(save(tmp_path, "filename,label,score,a,b\nx,spoof,1,p,\ny,bonafide,2,,q\n"), slices=("b",))
    assert trials.frame["b"].to_list() == ["", "q"]


def test_fields_over_several_lines_keep_their_text_and_later_rows_their_line(tmp_path: Path) -> None:
    text = 'id,text,label,score\n1,"a, ""b""\r\nc\rd",toxic,0.5\n2,plain,non-toxic,nan\n'
    path = save(tmp_path, text)
    assert read(path, on_nan="drop").frame["text"].to_list() == ['a, "b"\r\nc\rd']
    assert examine(path).faults[0].row == 5


def test_stray_quotes_in_a_tab_file_are_text(tmp_path: Path) -> None:
    trials = read(save(tmp_path, 'id\ttext\tlabel\tscore\n1\t"hi\ttoxic\t1\n2\the said "no\tnon-toxic\t0\n'))
    assert trials.frame["text"].to_list() == ['"hi', 'he said "no']
    assert any("quote" in note for note in trials.header.notes)


def test_quotes_that_can_be_read_in_two_ways_are_refused(tmp_path: Path) -> None:
    text = 'id\ttext\n1\t"a\n2\tb"\n'
    with pytest.raises(DataError, match="two ways"):
        read(save(tmp_path, text), columns={"score": "text"}, key=save(tmp_path, TEXT, "k.csv"))


@pytest.mark.parametrize("separator", [";", "\t", " "])
def test_a_decimal_comma_is_refused_by_name_and_right_when_declared(tmp_path: Path, separator: str) -> None:
    rows = [separator.join((item, str(score).replace(".", ","))) for item, _, score in ROWS]
    path, key = save(tmp_path, "\n".join(rows)), save(tmp_path, TEXT, "k.csv")
    with pytest.raises(DataError, match="decimal comma"):
        read(path, key)
    check(read(path, key, decimal=","))


def test_a_decimal_comma_in_a_comma_file_never_becomes_a_number(tmp_path: Path) -> None:
    key = save(tmp_path, TEXT, "k.csv")
    with pytest.raises(DataError):
        read(save(tmp_path, "filename,score\nE_0001,1,5\nZoë,-0,25\nNA,0,125\n"), key)


def test_an_archive_that_unfolds_without_end_is_given_up(tmp_path: Path) -> None:
    path = save(tmp_path, zipped(b"filename,score\n" + bytes(200 * 2**20)), "s.csv.gz")
    with pytest.raises(DataError, match="unfolds beyond"):
        read(path)


def test_an_unknown_encoding_is_a_wrong_question(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown encoding 'utf8000'"):
        read(save(tmp_path, TEXT), encoding="utf8000")


def test_the_hash_is_that_of_the_bytes_on_disk(tmp_path: Path) -> None:
    import hashlib

    data = zipped(TEXT.encode())
    source = read(save(tmp_path, data)).header.sources[0]
    assert (source.name, source.sha256) == ("s.csv", hashlib.sha256(data).hexdigest())
