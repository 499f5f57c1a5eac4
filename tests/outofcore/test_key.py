"""Scores in shards and a key beside them: the digits, the faults and the notes of memory, however the scores are cut."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.outofcore.conftest import processes, simulated, write, write_shards

from hitmiss.cli.main import run
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.evaluation.evaluate import evaluate
from hitmiss.outofcore import keys, stream
from hitmiss.outofcore.coarse_cells import CoarseCells
from hitmiss.outofcore.stream import evaluate_streamed
from hitmiss.stats import sketch

LITTLE = 10**7


def two_sides(n: int, seed: int = 0, kind: str = "normal") -> tuple[pl.DataFrame, pl.DataFrame]:
    """Scores and their key, whose rows are in another order."""
    whole = simulated(n, seed, kind).with_columns(
        speaker=pl.int_range(pl.len()).map_elements(lambda i: f"S{i % 23:02d}", pl.String)
    )
    key = whole.drop("score")
    return whole.select("item", "score"), key[np.random.default_rng(seed + 1).permutation(n).tolist()]


def write_key(key: pl.DataFrame, folder: Path, form: str) -> str:
    """The key in one of the forms that users have."""
    path = folder / f"key.{form}"
    if form == "official.txt":  # ten columns without names, separated by spaces
        columns = [
            pl.lit("F").alias("g"),
            "codec",
            pl.lit("-").alias("q"),
            pl.lit("-").alias("s"),
            pl.lit("AC1").alias("t"),
        ]
        wide = key.select("speaker", "item", *columns, "attack", "label", pl.lit("-").alias("tmp"))
        path.write_text("".join(" ".join(row) + "\n" for row in wide.iter_rows()))
    elif form == "aliases.tsv.gz":
        named = key.rename(
            {
                "item": "FLAC_FILE_NAME",
                "label": "KEY",
                "codec": "CODEC",
                "attack": "ATTACK_LABEL",
                "speaker": "SPEAKER_ID",
            }
        )
        named = named.rename({"CODEC": "codec"})
        path.write_bytes(gzip.compress(named.write_csv(None, separator="\t").encode()))
    else:
        write(key, path)
    return str(path)


def both(scores: list[Path], key: str, memory: int = 10**9, **asked: Any) -> tuple[Any, Any]:
    """The results in memory and in the stream, or the errors that they end with."""
    reading = asked.pop("reading", {})
    found: list[Any] = []
    for evaluated in (
        lambda: evaluate(list(map(str, scores)), key, "asvspoof5", **asked, **reading),
        lambda: (
            evaluate_streamed(
                list(map(str, scores)), "asvspoof5", key=key, memory=memory, reading=ReadSpec(**reading), **asked
            ).results
        ),
    ):
        try:
            found.append(evaluated())
        except (DataError, UsageError) as error:
            found.append(error)
    return found[0], found[1]


def countable(warnings: Any) -> list[str]:
    """The warnings without the one about units: by how much they widen intervals is not known from counts."""
    return [warning for warning in warnings if "trials were drawn one by one" not in warning]


def assert_alike(memory: Any, stream: Any) -> None:
    assert stream.estimates == memory.estimates
    assert countable(stream.warnings) == countable(memory.warnings)
    assert stream.signature.replace("+stream", "").replace("choices:stream|", "") == memory.signature


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl", ".tsv.gz"])
@pytest.mark.parametrize("form", ["tsv", "parquet", "jsonl", "official.txt", "aliases.tsv.gz"])
def test_every_format_gives_the_digits_of_memory(tmp_path: Path, suffix: str, form: str) -> None:
    scores, key = two_sides(900)
    shards = write_shards(scores, tmp_path / "s", suffix, 3)
    asked: dict[str, Any] = {"by": ["codec", "attack"], "reading": {"score_kind": "llr"}}
    assert_alike(*both(shards, write_key(key, tmp_path, form), **asked))  # replicates of joined scores: test_matrix.py


def test_a_file_of_scores_in_the_order_of_the_key_is_joined_as_well(tmp_path: Path) -> None:
    whole = simulated(3000)
    write(whole.select("item", "score"), tmp_path / "scores.tsv")
    assert_alike(
        *both(
            [tmp_path / "scores.tsv"],
            write_key(whole.with_columns(speaker=pl.lit("S")).drop("score"), tmp_path, "tsv"),
            by=["codec"],
        )
    )


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("kind", ["normal", "tied", "zeros"])
def test_scores_on_disk_are_joined_too(tmp_path: Path, kind: str) -> None:
    scores, key = two_sides(4000, kind=kind)
    shards = write_shards(scores, tmp_path / "s", ".parquet", 3)
    where = write_key(key, tmp_path, "tsv")
    asked: dict[str, Any] = {"metrics": ["eer", "min_dcf", "roc_auc"], "by": ["codec"], "bootstrap": 30, "unit": "none"}
    found = evaluate_streamed(list(map(str, shards)), "asvspoof5", key=where, memory=10**8, **asked)
    assert isinstance(found.trials.scored, CoarseCells)
    assert_alike(evaluate(list(map(str, shards)), where, "asvspoof5", **asked), found.results)


@given(
    score=st.lists(
        st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 0.25, 1e300]) | st.floats(-4, 4), min_size=8, max_size=50
    ),
    cuts=st.lists(st.integers(0, 4), min_size=50, max_size=50),
    seed=st.integers(0, 2**16),
    coarse=st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_any_cut_of_the_scores_and_any_order_of_the_key_give_the_same_bits(
    score: list[float], cuts: list[int], seed: int, coarse: bool
) -> None:
    assume(len(set(score)) > 1)
    rng, n = np.random.default_rng(seed), len(score)
    positive = rng.random(n) < 0.5
    positive[:4] = [True, True, False, False]
    whole = pl.DataFrame(
        {
            "item": [f"u{i}" for i in rng.permutation(n)],
            "score": score,
            "label": np.where(positive, "bonafide", "spoof"),
            "codec": rng.choice(["-", "C01"], n),
        }
    )
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        if coarse:
            patch.setattr(sketch, "LARGE", 4)
            patch.setattr(stream, "KEY_BYTES", 10**9)
        shards = []
        for k in sorted(set(cuts[:n])):
            part = whole.filter(pl.Series(cuts[:n]) == k)
            shards.append(folder / f"part{k}.{('csv', 'parquet', 'tsv')[k % 3]}")
            write(part.select("item", "score")[rng.permutation(part.height).tolist()], shards[-1])
        write(whole.drop("score")[rng.permutation(n).tolist()], folder / "key.tsv")
        rng.shuffle(shards)  # type: ignore[arg-type]
        asked: dict[str, Any] = {"metrics": ["eer", "min_dcf", "roc_auc"], "by": ["codec"], "bootstrap": 10}
        assert_alike(*both(shards, str(folder / "key.tsv"), 10**8, **asked))


Change = Callable[[pl.DataFrame], pl.DataFrame]


def at(row: int, column: str, value: Any) -> Change:
    return lambda frame: frame.with_columns(
        pl.when(pl.int_range(pl.len()) == row).then(pl.lit(value)).otherwise(column).alias(column)
    )


def and_again(*rows: int, **changes: str) -> Change:
    return lambda frame: pl.concat(
        [frame, frame[list(rows)].with_columns(**{k: pl.lit(v) for k, v in changes.items()})]
    )


SAME: Change = lambda frame: frame  # noqa: E731


@pytest.mark.parametrize("suffix", [".tsv", ".parquet"])
@pytest.mark.parametrize(
    ("of_scores", "of_key", "kinds"),
    [
        pytest.param(lambda f: f[3:], SAME, ["only-in-key"], id="ids of the key without a score"),
        pytest.param(SAME, lambda f: f[:-4], ["only-in-scores"], id="scored ids missing from the key"),
        pytest.param(lambda f: f[2:], lambda f: f[1:], ["only-in-key", "only-in-scores"], id="both"),
        pytest.param(
            lambda f: f.with_columns(item=pl.col("item") + ".flac"), SAME, ["no-common-id"], id="nothing in common"
        ),
        pytest.param(at(5, "item", "E_0000005.wav"), SAME, ["only-in-key", "only-in-scores"], id="one with a suffix"),
        pytest.param(SAME, and_again(3, 9), ["duplicate-in-key"], id="rows of the key twice"),
        pytest.param(SAME, and_again(3, codec="C77"), ["conflicting-in-key"], id="an id of the key with two codecs"),
        pytest.param(
            SAME, and_again(3, speaker="S99"), ["conflicting-in-key"], id="with two speakers, which nobody asked for"
        ),
        pytest.param(
            SAME,
            lambda f: and_again(0, label="spoof" if f["label"][0] == "bonafide" else "bonafide")(f),
            ["both-labels"],
            id="with both labels",
        ),
        pytest.param(SAME, at(7, "label", "zebra"), ["unknown-label"], id="an unknown label"),
        pytest.param(SAME, at(7, "item", ""), ["empty-id"], id="a row of the key without an id"),
        pytest.param(at(8, "item", ""), SAME, ["empty-id"], id="a score without an id"),
        pytest.param(at(8, "score", float("nan")), SAME, ["nan-score"], id="a NaN score"),
        pytest.param(
            lambda f: f.with_columns(codec=pl.lit("C01")),
            lambda f: f.with_columns(codec=pl.lit("C01")).pipe(at(4, "codec", "C02")),
            ["column-conflict"],
            id="another codec in the key",
        ),
        pytest.param(
            lambda f: f.with_columns(label=pl.lit("real")), SAME, ["label-conflict"], id="another label in the key"
        ),
        pytest.param(SAME, lambda f: f.drop("label"), ["missing-column"], id="a key without labels"),
        pytest.param(SAME, lambda f: f[:0], ["empty-file"], id="a key without rows"),
    ],
)
def test_faults_are_those_of_memory(
    tmp_path: Path, suffix: str, of_scores: Change, of_key: Change, kinds: list[str]
) -> None:
    scores, key = two_sides(400)
    changed = of_scores(scores)
    (tmp_path / "s").mkdir()
    shards = [tmp_path / "s" / f"{name}{suffix}" for name in "ab"]
    write(changed[:250], shards[0])
    write(changed[250:], shards[1])
    memory, stream = both(shards, write_key(of_key(key), tmp_path, suffix[1:]), by=["codec"])
    assert isinstance(memory, DataError) and isinstance(stream, DataError), (memory, stream)
    told = {(f.kind, f.file, f.row) for f in stream.faults}
    assert {kind for kind, _, _ in told} & set(kinds) and told <= {
        (f.kind, f.file, f.row) for f in memory.faults
    } | told
    # Where a fault of the key ends the reading, what it makes of the scores is not told any more.
    expected = {(f.kind, f.file, f.row) for f in memory.faults if f.kind in {kind for kind, _, _ in told}}
    assert told == expected
    assert str(stream).split(";")[0].split("(")[0] in str(memory)


def test_a_scored_id_that_is_repeated_is_found_in_two_shards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores, key = two_sides(300)
    write(scores[:200], tmp_path / "a.tsv")
    write(pl.concat([scores[200:], scores[41:42]]), tmp_path / "b.tsv")
    asked = ["score", str(tmp_path / "[ab].tsv"), "--key", write_key(key, tmp_path, "tsv"), "-p", "asvspoof5"]
    assert run([*asked, "--stream"]) == 3
    assert "a.tsv, row 43: 2 rows of repeated ids (id 'E_0000041')" in capsys.readouterr().err
    assert run(asked) == 3


@pytest.mark.parametrize("rule", ["refuse", "drop", "worst"])
def test_what_both_sides_have_is_scored_where_that_is_allowed(tmp_path: Path, rule: str) -> None:
    scores, key = two_sides(500)
    scores = scores if rule == "refuse" else at(30, "score", float("nan"))(scores)
    shards = write_shards(scores[5:], tmp_path / "s", ".tsv", 2)
    asked: dict[str, Any] = {"by": ["codec"], "bootstrap": 20, "reading": {"allow_missing": True, "on_nan": rule}}
    memory, stream = both(shards, write_key(key[7:], tmp_path, "tsv"), **asked)
    assert stream.estimates == memory.estimates and countable(stream.warnings) == countable(memory.warnings)
    assert stream.signature.replace("+stream", "") == memory.signature
    assert "coverage:" in memory.signature and "unlisted:" in memory.signature


def test_scores_that_point_the_other_way_are_turned_by_the_words_of_the_key(tmp_path: Path) -> None:
    scores, key = two_sides(600)
    shards = write_shards(scores.with_columns(-pl.col("score")), tmp_path / "s", ".parquet", 2)
    assert_alike(*both(shards, write_key(key, tmp_path, "tsv"), by=["codec"], reading={"higher": "spoof"}))


def test_processes_read_the_key_for_themselves(tmp_path: Path) -> None:
    scores, key = two_sides(1500)
    shards = list(map(str, write_shards(scores, tmp_path / "s", ".parquet", 3)))
    where = write_key(key, tmp_path, "parquet")
    here, there = (
        evaluate_streamed(shards, "asvspoof5", key=where, by=["codec"], bootstrap=20, **how)
        for how in ({}, {"run": processes})
    )
    assert here.results == there.results


def test_a_key_in_several_files_is_one(tmp_path: Path) -> None:
    scores, key = two_sides(700)
    shards = write_shards(scores, tmp_path / "s", ".csv", 2)
    write(key[:300], tmp_path / "key1.tsv")
    write(key[300:], tmp_path / "key2.tsv")
    assert_alike(*both(shards, str(tmp_path / "key*.tsv"), by=["codec"]))


@pytest.mark.usefixtures("few_are_many")
def test_a_key_beyond_memory_is_refused_with_what_would_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "INDEX_BYTES", 10**5)
    scores, key = two_sides(300)
    write(scores, tmp_path / "s.tsv")
    asked = ["score", str(tmp_path / "s.tsv"), "--key", write_key(key, tmp_path, "tsv"), "-p", "asvspoof5", "--stream"]
    assert run([*asked, "--memory", "10MB"]) == 2
    said = capsys.readouterr().err
    assert "a key of 30 MB" in said and "raise --memory to 0.2GB, or write the labels into the score files" in said
    assert run([*asked, "--memory", "0.2GB"]) == 0


def test_a_key_that_changes_while_it_is_used_is_refused(tmp_path: Path) -> None:
    from hitmiss.core.read_spec import ReadSpec
    from hitmiss.outofcore.plan import KeyFiles

    (tmp_path / "k.tsv").write_text("item\tlabel\na\tspoof\n")
    with pytest.raises(DataError, match=r"k\.tsv: the key has changed"):
        keys.key_of(KeyFiles((str(tmp_path / "k.tsv"),), ("0" * 64,)), ReadSpec())


def test_what_was_counted_before_takes_no_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"")
    assert run(["score", str(path), "--key", "k.tsv", "-m", "eer", "--counts"]) == 2
    assert "counts have no ids to join a key with" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".parquet", ".tsv"])
def test_ids_match_without_folder_and_suffix_as_in_memory(tmp_path: Path, suffix: str) -> None:
    scores, key = two_sides(400)
    scores = scores.with_columns(item="audio/" + pl.col("item") + ".flac")
    write_shards(scores, tmp_path / "in", suffix, 3)
    write(key, tmp_path / "key.csv")
    asked: dict[str, Any] = {"by": ["codec"], "metrics": ["eer", "min_dcf"]}
    files, said = str(tmp_path / "in" / f"*{suffix}"), ReadSpec(match="stem")
    whole = evaluate(files, str(tmp_path / "key.csv"), "asvspoof5", match="stem", **asked)
    found = evaluate_streamed(files, "asvspoof5", key=str(tmp_path / "key.csv"), reading=said, **asked)
    assert [(e.value, e.n, e.slice) for e in found.results] == [(e.value, e.n, e.slice) for e in whole]
    with pytest.raises(DataError) as err:
        evaluate_streamed(files, "asvspoof5", key=str(tmp_path / "key.csv"), **asked)
    assert err.value.code == "no-common-id"
    write(scores[:1].with_columns(item=pl.col("item").str.replace("audio/", "copy/")), tmp_path / "in" / f"t{suffix}")
    with pytest.raises(DataError) as err:
        evaluate_streamed(files, "asvspoof5", key=str(tmp_path / "key.csv"), reading=said, **asked)
    assert err.value.code == "duplicate-id"


def test_different_ids_with_one_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, key = two_sides(300)
    shards = write_shards(scores, tmp_path / "s", ".parquet", 2)
    monkeypatch.setattr(keys, "hashed_ids", lambda frame, names: (frame[names[0]].str.len_bytes() % 2).cast(pl.UInt64))
    assert_alike(*both(shards, write_key(key, tmp_path, "tsv"), by=["codec"]))
