"""The folder of a run is a claim: what was edited and sealed again does not fit its records."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from claims import said, write_files

from hitmiss.core.artifacts import file_digest
from hitmiss.runs.manifest import sealed

Edit = Callable[[Path, dict], object]  # type: ignore[type-arg]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    write_files(place)
    words = "detect --detector detector.py:words --data texts.csv --input text --positive toxic --negative non-toxic --outputs logit -o run"
    code, text = said(words.split(), place)
    assert code == 0, text
    return place


def table(change: Callable[[pl.DataFrame], pl.DataFrame]) -> Edit:
    def edit(run: Path, _: dict[str, object]) -> None:
        change(pl.read_parquet(run / "trials.parquet")).write_parquet(run / "trials.parquet")

    return edit


def records(change: Callable[[list[str]], list[str]]) -> Edit:
    def edit(run: Path, _: dict[str, object]) -> None:
        path = next((run / "items").glob("*.jsonl"))
        path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")

    return edit


EDITS: dict[str, Edit] = {
    "a score": table(lambda t: t.with_columns(score=pl.col("score") + (pl.int_range(pl.len()) == 1) * 2.0)),
    "scores turned": table(lambda t: t.with_columns(score=-pl.col("score"))),
    "a row removed": table(lambda t: t.head(t.height - 1)),
    "an item renamed": table(lambda t: t.with_columns(item=pl.col("item").str.replace("^.*$", "x"))),
    "rows turned": table(lambda t: t.reverse()),
    "a record removed": records(lambda lines: lines[:-1]),
    "an output": records(lambda lines: [lines[0].replace('"outputs":[[', '"outputs":[[9'), *lines[1:]]),
    "an item of a record": records(lambda lines: [lines[0].replace('"item":"', '"item":"z'), *lines[1:]]),
    "n_scored": lambda _, m: m["facts"].update(n_scored=10**6),
    "n_failed": lambda _, m: m["facts"].update(n_failed=3),
    "n_items": lambda _, m: m.update(n_items=m["n_items"] + 1),
    "items": lambda _, m: m.update(items_digest="0" * 16),
    "the rule": lambda _, m: m["facts"]["extraction"].update(reversed=True),
    "no rule": lambda _, m: m["facts"].pop("extraction"),
}


def test_a_true_run_holds_and_says_what_is_only_stated(folder: Path) -> None:
    code, text = said(["verify", "run"], folder)
    assert code == 0 and "verified" in text and "the answers of the model" in text, text


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("is_sealed", [True, False], ids=["sealed again", "as it is"])
def test_an_edited_run_is_refused(folder: Path, edit: str, is_sealed: bool) -> None:
    run = folder / "edited"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(folder / "run", run)
    manifest = json.loads((run / "manifest.json").read_text())
    EDITS[edit](run, manifest)
    if is_sealed:
        manifest["files"] = {name: file_digest(run / name) for name in manifest["files"]}
        (run / "manifest.json").write_bytes(sealed(manifest))
    else:
        (run / "manifest.json").write_text(json.dumps(manifest))
    code, text = said(["verify", "edited"], folder)
    assert code in (1, 3) and "bug" not in text, text
