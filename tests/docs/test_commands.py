"""Every command and every Python block in README and docs is run, in a folder with the files that they speak of.

A block that cannot run in the tests is preceded by `<!-- not run: why -->`; those are listed as skipped.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import hitmiss as hm
from hitmiss.cli.main import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"(?:<!-- not run: (?P<why>[^>]*?) -->\n)?```(?P<kind>console|python)\n(?P<text>.*?)```", re.S)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    kind: str
    text: str
    why_not: str | None

    @property
    def commands(self) -> list[list[str]]:
        lines = re.sub(r"\\\n\s*", " ", self.text).splitlines()
        typed = [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ ")]
        return [words[1:] for words in typed if words and words[0] == "hitmiss"]


def blocks(kind: str) -> Iterator[object]:
    for page in PAGES:
        for i, found in enumerate(FENCE.finditer(page.read_text(encoding="utf-8"))):
            if found["kind"] == kind:
                block = Block(page.name, kind, found["text"], found["why"])
                yield pytest.param(block, id=f"{page.stem}-{i}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder: the small demo, and files under the names that the pages use."""
    here = tmp_path_factory.mktemp("docs")
    with contextlib.chdir(here), contextlib.redirect_stdout(io.StringIO()):
        from hitmiss.simulate.asvspoof5 import write

        data = write(Path("demo/asvspoof5_small"), share=0.02)
        shutil.copytree(data, "demo/asvspoof5")
        key = data / "ASVspoof5.eval.track_1.tsv"
        copies = {
            "scores.tsv": "scores_a",
            "run_seed1.tsv": "scores_a",
            "run_seed2.tsv": "scores_b",
            "dev.tsv": "dev_scores_a",
        }
        for name, source in copies.items():
            shutil.copy(data / f"{source}.tsv", name)
        for name in ("key.tsv", "protocol.tsv", key.name):
            shutil.copy(key, name)
        shutil.copy(data / "ASVspoof5.dev.track_1.tsv", "dev_key.tsv")
        _table_of_two_systems(data, key)
        _shards(data, key)
        assert run(["score", "scores.tsv", "--key", "key.tsv", "-p", "asvspoof5", "-o", "results.json"]) == 0
        rng = np.random.default_rng(0)
        codec, speaker = np.repeat(["C01", "C02"], 60), np.tile(np.arange(20).astype(str), 6)
        np.savez(
            "embeddings.npz",
            layer_0=rng.normal(size=(120, 4)),
            layer_1=rng.normal(size=(120, 4)),
            codec=codec,
            speaker=speaker,
        )
        _toxicity_runs()
        _triage_results()
        _pictures()
        _reviewed()
        _presentation_attacks()
        extending = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
        Path("my_metrics.py").write_text(next(FENCE.finditer(extending))["text"], encoding="utf-8")
        Path("my-lab.toml").write_text(re.search(r"```toml\n(.*?)```", extending, re.S)[1], encoding="utf-8")  # type: ignore[index]
    return here


def _toxicity_runs() -> None:
    from hitmiss.simulate.toxicity import write

    write("demo/toxicity")
    for name in ("output/predictions", "output/validation"):
        shutil.copytree("demo/toxicity/predictions", name)
    shutil.copytree("demo/toxicity/configs", "configs")


def _triage_results() -> None:
    from hitmiss.simulate.triage import write

    write("demo/triage")


def _reviewed() -> None:
    """A finished review, as the example makes it."""
    spec = importlib.util.spec_from_file_location("example_review", ROOT / "examples" / "review.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(Path("demo/review"))


def _presentation_attacks() -> None:
    """Scores of presentations, and the example of a protocol for them."""
    Path("examples").mkdir()
    shutil.copy(ROOT / "examples" / "iso-30107-3.toml", "examples")
    rng, n = np.random.default_rng(0), 400
    species = np.array(["none", "print", "replay", "mask"])[np.arange(n) % 4]
    score = np.clip(rng.normal(0.3, 0.2, n) + 0.4 * (species == "none"), 0.0, 1.0)
    label = np.where(species == "none", "bonafide", "attack")
    columns = {"id": [f"c{i}" for i in range(n)], "label": label, "score": score, "attack_type": species}
    pl.DataFrame({**columns, "subject": [f"p{i % 50}" for i in range(n)]}).write_csv("pad.csv")


def _pictures() -> None:
    from hitmiss.simulate.pictures import write

    write("demo/llm")


def _table_of_two_systems(data: Path, key: Path) -> None:
    trials = hm.read(data / "scores_a.tsv", key)
    b = hm.read(data / "scores_b.tsv", key)
    words = ["bonafide" if y else "spoof" for y in trials.label]
    pl.DataFrame({"id": trials.items, "key": words, "a": trials.score, "b": b.score}).write_csv("table.csv")


def _shards(data: Path, key: Path) -> None:
    """Trials with their labels and codecs in several files, and the same counted by score."""
    trials = hm.read(data / "scores_a.tsv", key)
    words = pl.when(pl.col("label") == 1).then(pl.lit("bonafide")).otherwise(pl.lit("spoof"))
    table = trials.frame.select("item", "codec", words.alias("label"), "score")
    Path("scores").mkdir()
    for k in range(3):
        table[k::3].write_parquet(f"scores/part_{k}.parquet")
    table.group_by("codec", "label", "score").agg(n=pl.len()).write_parquet("counts.parquet")


@pytest.mark.parametrize("block", list(blocks("console")))
def test_commands(block: Block, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if block.why_not:
        pytest.skip(f"{block.page}: {block.why_not}")
    with contextlib.chdir(folder):
        for words in block.commands:
            assert run(words) == 0, f"hitmiss {shlex.join(words)}\n{capsys.readouterr().err}"


@pytest.mark.parametrize("block", list(blocks("python")))
def test_python(block: Block, folder: Path) -> None:
    """Every statement runs, every expression is a figure or a table with something in it, what is printed and written is there."""
    if block.why_not:
        pytest.skip(f"{block.page}: {block.why_not}")
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        trials = hm.read("scores.tsv", "key.tsv", positive="bonafide")
        names = {"label": trials.label, "score": trials.score, "trials": trials, "__name__": "block"}
        before = dict(names)
        try:
            values = evaluated(block, names)
        finally:
            from hitmiss.core.registry import forget

            forget("d_prime")
            forget("hum", "attack")
            forget("loudness", "detector")
        for told in re.findall(r"(?:save|write)\((?:\w+, )?\"([^\"]+)\"", block.text):
            assert Path(told).exists(), f"{block.page}: {told} was not written"
    made = [name for name in names if name not in before and not name.startswith("_")]
    assert values or made, f"{block.page}: the block does nothing that can be seen"
    for text, value in values.items():
        assert says_something(value), f"{block.page}: {text} gives {value!r}"
    comments = re.findall(r"^print\(.*\)\s+# (\S.*)$", block.text, re.M)
    for told, line in zip(comments, printed.getvalue().splitlines(), strict=False):
        pattern = r".*".join(re.escape(part) for part in told.split("…"))
        assert re.fullmatch(pattern, line), f"{block.page}: prints {line}, says {told}"


def evaluated(block: Block, names: dict[str, object]) -> dict[str, object]:
    """Run a block statement by statement; the value of each expression by its text, save for what only acts."""
    values: dict[str, object] = {}
    source = block.text.replace(">>> ", "")
    for node in ast.parse(source).body:
        text = ast.unparse(node)
        if isinstance(node, ast.Expr) and not re.match(r"print\(|.*\b(save|write|update|log|add)\(", text):
            values[text] = eval(compile(ast.Expression(node.value), block.page, "eval"), names)
        else:
            exec(compile(ast.Module([node], []), block.page, "exec"), names)
    return values


def says_something(value: object) -> bool:
    """Whether a value is a defined figure, or holds one, or is a thing to go on with."""
    if isinstance(value, float | int):
        return bool(np.isfinite(value))
    if isinstance(value, hm.Results):
        return any(e.value is not None and np.isfinite(e.value) for e in value)
    if hasattr(value, "shape"):
        return all(value.shape)
    return value is not None and (not isinstance(value, dict | list | tuple | str) or len(value) > 0)


def test_the_pages_link_to_what_exists() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
