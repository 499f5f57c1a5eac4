"""A reader that somebody registers is a layout like any other: every verb that opens files takes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core import registry

NAME = "piped-for-this-test"


def piped(path: str | Path) -> pl.DataFrame:
    cells = [line.split("|") for line in Path(path).read_text().splitlines()]
    label, score, item, site = zip(*cells, strict=True)
    return pl.DataFrame({"id": item, "label": label, "score": [float(s) for s in score], "site": site})


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    if NAME not in registry.all_of("reader"):
        hm.register("reader", NAME, piped)
    yield


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    for name, seed in (("one", 1), ("two", 2)):
        draw = Random(seed)
        rows = [
            (i % 3 == 0, round(0.4 * (i % 3 == 0) + 0.6 * draw.random(), 4), f"u{i}", "ab"[i % 2]) for i in range(60)
        ]
        text = "\n".join(f"{'toxic' if y else 'non-toxic'}|{s}|{item}|{site}" for y, s, item, site in rows)
        (tmp_path / f"{name}.piped").write_text(text + "\n")
    return str(tmp_path / "one.piped"), str(tmp_path / "two.piped")


VERBS = {
    "score": ("score", 1, "-m", "roc_auc", "--by", "site", "--bootstrap", "0"),
    "stream": ("score", 1, "-m", "roc_auc", "--bootstrap", "0", "--stream"),
    "compare": ("compare", 2, "-m", "roc_auc", "--bootstrap", "20"),
    "gate": ("gate", 1, "--fail-if", "roc_auc < 0.1", "--bootstrap", "0"),
    "validate": ("validate", 1),
    "toxicity": ("toxicity", 1, "--bootstrap", "0"),
    "threshold": ("threshold", 1, "--bootstrap", "0"),
    "report": ("report", 1, "-m", "roc_auc", "--bootstrap", "0", "-o", "PAGE"),
    "init": ("init", 1, "-o", "SETTINGS"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_it(
    verb: str, files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, n, *words = VERBS[verb]
    monkeypatch.chdir(tmp_path)
    places = {"PAGE": str(tmp_path / "page.html"), "SETTINGS": str(tmp_path / "hitmiss.toml")}
    told = [places.get(str(word), str(word)) for word in words]
    assert run([str(name), *files[: int(n)], *told, "--layout", NAME]) == 0
    if verb not in ("init", "validate"):
        assert run([str(name), *files[: int(n)], *told, "--settings", "none"]) != 0, "without it the file says nothing"


def test_results_of_such_a_file_are_verified_and_exported(files: tuple[str, str], tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    assert run(["score", files[0], "-m", "roc_auc", "--bootstrap", "0", "--layout", NAME, "-o", str(out)]) == 0
    rows = piped(files[0])
    value = next(e["value"] for e in json.loads(out.read_text())["estimates"] if e["metric"] == "roc_auc")
    assert value == pytest.approx(roc_auc_score(rows["label"] == "toxic", rows["score"]), abs=1e-12)
    assert run(["verify", str(out), files[0]]) == 0
    assert run(["export", str(out), "--to", "csv", "-o", str(tmp_path / "e.csv")]) == 0
