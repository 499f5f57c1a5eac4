"""Coverage-guided fuzzing of every reader and stored artifact (needs Atheris: `pip install atheris`).

    python -m tests.adversary.fuzzing --minutes 30          # or: make fuzz MINUTES=30

The first byte of an input chooses a file of `corpus.make` and a command that reads it; the others are that file. Half of the
changes are those of `mutating`, half libFuzzer's own; sealed files are sealed again, or the digest would stop every change.
Inputs that reached new code are kept in `seeds/`, and `test_adversary.py` reads them again. A finding ends the run; libFuzzer
writes its input to the current folder, and `--again FILE` repeats it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Final

from tests.adversary import corpus, judging, mutating

from hitmiss.core.artifacts import sealed

SEEDS: Final = Path(__file__).with_name("seeds")
MOST: Final = 1 << 17
"""Bytes of the longest input."""
LLM: Final = ("--dataset", "questions.jsonl", "--models", "detector.py:look", "-o", "llm.jsonl", "--dry-run")
TARGETS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("table.csv", ("validate", "table.csv")),
    ("table.parquet", ("validate", "table.parquet")),
    ("table.jsonl", ("validate", "table.jsonl")),
    ("scores.tsv", ("validate", "scores.tsv", "--key", "key.tsv")),
    ("key.tsv", ("validate", "scores.tsv", "--key", "key.tsv")),
    ("protocol.txt", ("validate", "scores.tsv", "--key", "protocol.txt")),
    ("verdicts.jsonl", ("triage", "verdicts.jsonl", "--bootstrap", "0")),
    ("base_en.csv", ("toxicity", "--pred_dir", ".", "--run_tag", "base", "--bootstrap", "0")),
    ("config.yaml", ("toxicity", "--config", "config.yaml", "--bootstrap", "0")),
    ("mine.toml", ("score", "table.csv", "-p", "mine.toml", "--bootstrap", "0")),
    ("table.csv", ("score", "table.csv", "-m", "eer", "--bootstrap", "0", "--stream")),
    ("layers.npz", ("probe", "layers.npz", "--labels", "codec")),
    ("questions.jsonl", ("llm", *LLM)),
    ("people.csv", ("triage", "llm.jsonl", "--human", "people.csv", "--bootstrap", "0")),
    ("results.json", ("report", "results.json", "-o", "out.html")),
    ("results.json", ("verify", "results.json", "table.csv")),
    ("results.json", ("gate", "results.json", "--fail-if", "eer > 0.9")),
    ("results.json", ("export", "results.json", "--to", "markdown")),
    ("comparison.json", ("export", "results.json", "--to", "markdown", "--comparison", "comparison.json")),
    ("comparison.json", ("verify", "comparison.json", "table.csv", "other.csv")),
    ("triage.json", ("report", "triage.json", "-o", "out.html")),
    ("triage.json", ("verify", "triage.json", "llm.jsonl")),
    ("counted.json", ("verify", "counted.json", "run")),
    ("gate.json", ("verify", "gate.json", "results.json")),
    ("board.json", ("verify", "board.json", "systems", "--key", "key.tsv")),
    ("criteria.json", ("gate", "results.json", "--require", "criteria.json")),
    ("fit.json", ("calibrate", "table.csv", "--model", "fit.json")),
    ("signature.txt", ("verify", "signature.txt", "table.csv")),
    ("run/manifest.json", ("score", "run", "-m", "eer", "--bootstrap", "0")),
    ("run/items/000001.jsonl", ("score", "run", "-m", "eer", "--bootstrap", "0")),
    ("run/trials.parquet", ("score", "run", "-m", "eer", "--bootstrap", "0")),
    (
        "people.db",
        (
            "review",
            "llm.jsonl",
            "--verdicts",
            "all",
            "--dataset",
            "questions.jsonl",
            "--store",
            "people.db",
            "--status",
        ),
    ),
    ("gate.toml", ("gate", "results.json", "--rules", "gate.toml")),
    ("requirements.toml", ("score", "table.csv", "-m", "eer", "--bootstrap", "0", "--require", "requirements.toml")),
    ("table.xlsx", ("validate", "table.xlsx")),
    ("table.csv.gz", ("validate", "table.csv.gz")),
)
"""A file, and a command that reads it."""


def again(data: bytes, clean: Path) -> str | None:
    """Give one input to its command; what is wrong with how that ends, or None."""
    if not data:
        return None
    name, words = TARGETS[data[0] % len(TARGETS)]
    path = clean / name
    before = path.read_bytes()
    try:
        path.write_bytes(resealed(data[1:], name))
        given = [path.read_text(encoding="utf-8", errors="replace") if w == "signature.txt" else w for w in words]
        return judging.fault(*judging.ended(given, clean))
    finally:
        path.write_bytes(before)


def resealed(data: bytes, name: str) -> bytes:
    """A sealed file with a digest that fits."""
    if not name.endswith(".json"):
        return data
    try:
        whole = json.loads(data)
        for seal in ("digest", "seal"):
            if isinstance(whole, dict) and seal in whole:
                whole = sealed(whole, seal)
        return json.dumps(whole, indent=1, sort_keys="seal" in whole).encode() + b"\n"
    except (ValueError, TypeError, RecursionError):
        return data


def changed(data: bytes, most: int, seed: int) -> bytes:
    """One change of an input: of its file, by its kind, or by libFuzzer."""
    import atheris

    rng = Random(seed)
    if len(data) < 2 or rng.random() < 0.5:
        return bytes(atheris.Mutate(data, most))
    name = TARGETS[data[0] % len(TARGETS)][0]
    return (data[:1] + mutating.damaged(rng, data[1:], name))[:most]


def make(folder: Path) -> None:
    """The sound files, quietly."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        corpus.make(folder)
        corpus.make_more(folder)


def main() -> int:
    """Fuzz for so many minutes, or give one input again."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversary.fuzzing", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--again", type=Path, help="an input, once more")
    parser.add_argument("--seeds", type=Path, default=SEEDS, help="where inputs that reach new code are kept")
    asked = parser.parse_args()
    judging.quiet()
    with tempfile.TemporaryDirectory() as place:
        clean = Path(place) / "clean"
        if asked.again is None:
            import atheris

            with atheris.instrument_imports(include=["hitmiss"]):
                make(clean)
        else:
            make(clean)
            wrong = again(asked.again.read_bytes(), clean)
            print(wrong or "nothing is wrong")
            return int(wrong is not None)
        asked.seeds.mkdir(exist_ok=True)
        sound = Path(place) / "sound"
        sound.mkdir()
        for number, (name, _) in enumerate(TARGETS):
            (sound / f"{number:02d}").write_bytes(bytes([number]) + (clean / name).read_bytes())

        def one(data: bytes) -> None:
            wrong = again(data, clean)
            if wrong is not None:
                raise AssertionError(f"{TARGETS[data[0] % len(TARGETS)][1]}: {wrong}")

        limits = [f"-max_total_time={60 * asked.minutes:.0f}", f"-max_len={MOST}", "-rss_limit_mb=6000", "-timeout=90"]
        atheris.Setup([sys.argv[0], *limits, str(asked.seeds), str(sound)], one, custom_mutator=changed)
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
