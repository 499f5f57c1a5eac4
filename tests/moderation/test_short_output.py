"""What is printed by default is short: at most 40 lines, each number once; `--full` prints the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
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
