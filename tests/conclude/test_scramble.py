"""Nothing is decided by reading a sentence: with every sentence replaced by its code, only sentences change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hitmiss as hm
from hitmiss.findings import catalogue

SENTENCES = ("text", "headline", "warnings", "note", "message", "reason", "digest", "listed", "said")
"""Fields of the JSON that are written for people, and the digest over all of them."""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A good system, a coin, one that is reversed, one with a repeated id and one without a label."""
    rng = np.random.default_rng(8)
    for name, apart in {"good": 2.5, "coin": 0.0, "reversed": -2.0}.items():
        rows = ["id,label,score,codec,speaker"]
        for k in range(400):
            score = rng.normal() + apart * (k % 2 - 0.5)
            rows.append(f"u{k},{'bonafide' if k % 2 else 'spoof'},{score:.4f},c{k // 2 % 3},s{k // 20}")
        (tmp_path / f"{name}.csv").write_text("\n".join(rows))
    (tmp_path / "twice.csv").write_text("id,label,score\na,bonafide,1\na,spoof,0\nb,spoof,0\n")
    (tmp_path / "bare.csv").write_text("id,score\na,1\nb,0\n")
    return tmp_path


COMMANDS = {
    "good": ("score good.csv -m eer -m roc_auc --by codec --bootstrap 100 --json", 0),
    "coin": ("score coin.csv -m eer --by codec --bootstrap 100 --json", 0),
    "reversed": ("score reversed.csv -m eer --bootstrap 100 --json", 0),
    "strict": ("score reversed.csv -m eer --strict --json", 3),
    "strict, good": ("score good.csv -m eer --strict --json", 0),
    "met": ("score good.csv -m eer --bootstrap 100 --require eer<=0.4 --json", 0),
    "not shown": ("score good.csv -m eer --bootstrap 100 --require eer<=0.12 --json", 1),
    "broken": ("score coin.csv -m eer --bootstrap 100 --require eer<=0.2 --json", 1),
    "gate kept": ("gate good.csv --fail-if eer>0.4 --json", 0),
    "gate broken": ("gate coin.csv --fail-if eer>0.2 --json", 1),
    "gate not shown": ("gate good.csv --bootstrap 100 --require eer[codec=*]<=0.12 --json", 1),
    "vain": ("gate good.csv --fail-if eer>5 --json", 2),
    "compared": ("compare good.csv coin.csv -m eer --by codec --bootstrap 100 --json", 0),
    "three": ("compare good.csv coin.csv reversed.csv -m eer --bootstrap 100 --force --json", 0),
    "repeated": ("score twice.csv -m eer --json", 3),
    "no label": ("score bare.csv -m eer --json", 3),
    "no metric": ("score good.csv -m eeer --json", 2),
    "units": ("score good.csv -m eer --unit speaker --by codec --bootstrap 100 --json", 0),
}


def bare(value: object) -> object:
    """A document without its sentences."""
    if isinstance(value, Mapping):
        return {k: bare(v) for k, v in value.items() if k not in SENTENCES}
    return [bare(v) for v in value] if isinstance(value, list) else value


def scrambled() -> dict[str, catalogue.Entry]:
    """The catalogue with every sentence replaced by its code."""
    return {
        code: replace(e, text=code, short=e.short and code, about=e.about and code, fix="")
        for _, code, e in catalogue.everything()
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_exit_codes_gates_checks_and_data_do_not_depend_on_sentences(
    name: str, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files)
    words, code = COMMANDS[name]
    assert hm.run(words.split()) == code
    before = capsys.readouterr()
    entries = scrambled()
    monkeypatch.setattr(catalogue, "entries_of", lambda package: entries if package == "core" else {})
    assert hm.run(words.split()) == code
    after = capsys.readouterr()
    assert bare(json.loads(before.out)) == bare(json.loads(after.out))
    assert before.out != after.out, "the sentences themselves did change"
