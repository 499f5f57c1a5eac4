"""What is printed by default is short: at most 40 lines, each number once; `--full` prints the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hitmiss.cli.main import run

Capture = pytest.CaptureFixture[str]
LANGUAGES = ("de", "en", "es", "fr", "it", "pt", "tr")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs in seven languages, one of them worse in Turkish."""
    rng = np.random.default_rng(4)
    for language in LANGUAGES:
        label = rng.integers(0, 2, 200)
        seen = rng.normal(0.0, 0.15, 200)
        for name in ("old", "new"):
            apart = 0.05 if (name, language) == ("new", "tr") else 0.3
            score = np.clip(0.35 + apart * label + seen + rng.normal(0.0, 0.05, 200), 0, 1)
            rows = [f"{i},{label[i]},{score[i]:.6f},0.5" for i in range(200)]
            (tmp_path / f"{name}_{language}.csv").write_text(
                "\n".join(["id,y_true,y_prob,best_threshold", *rows]) + "\n"
            )
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["toxicity", "--pred_dir", "{}", "--run_tag", "new", "--bootstrap", "50"],
        ["compare", "{}:old", "{}:new", "-p", "toxicity", "--by", "language", "--bootstrap", "50"],
    ],
)
def test_forty_lines(runs: Path, capsys: Capture, words: list[str]) -> None:
    asked = [word.replace("{}", str(runs)) for word in words]
    assert run(asked) == 0
    short = capsys.readouterr().out
    assert len(short.splitlines()) <= 40 and "(--full)" in short and " tr" in short
    assert "specificity" not in short.partition("hitmiss:")[0]
    assert run([*asked, "--full"]) == 0
    full = capsys.readouterr().out
    assert len(full.splitlines()) > 40 and "(--full)" not in full and "specificity" in full
    assert [line for line in short.splitlines() if line.startswith("hitmiss:")] == [
        line for line in full.splitlines() if line.startswith("hitmiss:")
    ]


def test_of_many_slices_and_identities_the_worst_are_shown(tmp_path: Path, capsys: Capture) -> None:
    """Six labels in seven languages with nine identities: 42 slices, and the whole table by `--full`."""
    rng, n = np.random.default_rng(5), 1400
    names = [f"kind{k}" for k in range(6)]
    shared = {"id": [f"c{i}" for i in range(n)], "language": [LANGUAGES[i % 7] for i in range(n)]}
    label = {name: (rng.random(n) < 0.4).astype(int) for name in names}
    member = {f"identity{k}": (rng.random(n) < 0.2).astype(int) for k in range(9)}
    paths = [str(tmp_path / f"{name}_run.csv") for name in ("first", "second")]
    for path in paths:
        score = {
            f"{k}_prob": np.round(np.clip(0.3 + 0.3 * y + rng.normal(0, 0.2, n), 0, 1), 4) for k, y in label.items()
        }
        if path == paths[1]:
            worse = np.array(shared["language"]) == "tr"
            score["kind3_prob"] = np.where(worse, np.round(rng.random(n), 4), score["kind3_prob"])
        pl.DataFrame({**shared, **label, **score, **member}).write_csv(path)
    words = ["compare", *paths, "-p", "toxicity", "--by", "type,language", "--identity", *member, "--bootstrap", "50"]
    assert run(words) == 0
    short = capsys.readouterr().out
    assert len(short.splitlines()) <= 40 and "the 6 of 42 that differ most" in short
    assert any(line.split()[:2] == ["kind3", "tr"] for line in short.splitlines())
    assert run([*words, "--full"]) == 0
    assert sum(line.startswith("kind") for line in capsys.readouterr().out.splitlines()) >= 42
    assert run(["toxicity", paths[0], "--identity", *member, "--bootstrap", "0"]) == 0
    assert "the 3 worst of 9 (--full)" in capsys.readouterr().out
