"""A cluster of several nodes: nodes and the head are killed, one does not see a file, a caller has no token."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from ray_nodes import OURS, Nodes, environment

from hitmiss.cli.main import run

pytestmark = pytest.mark.extras
HITMISS = [sys.executable, "-c", "import sys; from hitmiss.cli.main import run; sys.exit(run())"]
ASKED = ["-m", "eer", "-m", "min_dcf", "-m", "roc_auc", "--by", "codec", "--bootstrap", "40"]
SLOWLY = f"""
import json, sys
sys.path[:0] = {OURS!r}
from cluster_parts import Noted
from hitmiss.cli.main import run
from hitmiss.cluster.tasks import RayTasks

counts = RayTasks.__call__
RayTasks.__call__ = lambda self, function, given: counts(self, Noted(function, sys.argv[1], float(sys.argv[2])), given)
sys.exit(run(sys.argv[3:]))
"""
"""The command line, whose tasks take their time and leave a note each."""

SCORER = """
import time

import numpy as np

def slow(batch):
    time.sleep(0.05)
    return np.array([4.0 * text.count("!") - 2.0 for text in batch])
"""


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty files of trials in a folder of their own."""
    folder, rng = tmp_path_factory.mktemp("shards"), np.random.default_rng(5)
    for k in range(20):
        real = rng.random(200) < 0.3
        frame = pl.DataFrame(
            {
                "item": [f"u{k:02d}_{i:03d}" for i in range(200)],
                "label": np.where(real, "bonafide", "spoof"),
                "score": rng.normal(size=200) + 2 * real,
                "codec": rng.choice(["NONE", "C01"], 200),
            }
        )
        frame.write_parquet(folder / f"part-{k:02d}.parquet")
    return folder


def scoring(nodes: Nodes, shards: Path) -> list[str]:
    """The words of a command that counts the shards on the cluster."""
    return ["score", str(shards / "*.parquet"), "-p", "asvspoof5", *ASKED, "--cluster", nodes.address, "--json"]


def slowly(folder: Path, words: list[str], seconds: float = 0.3) -> subprocess.Popen[str]:
    """Such a command, begun; its tasks leave notes in the folder, and take these seconds."""
    words = [sys.executable, "-c", SLOWLY, str(folder), str(seconds), *words]
    return subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until(process: subprocess.Popen[str], is_so: Callable[[], object]) -> None:
    """Come back when something is so, while a process runs."""
    end = time.monotonic() + 120
    while not is_so():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


def figures(text: str) -> list[tuple[Any, ...]]:
    """The estimates of a JSON output."""
    found = json.loads(text)["estimates"]
    return [(e["metric"], e["slice"], e["value"], e["low"], e["high"], e["n"]) for e in found]


def own_lines(errors: str) -> list[str]:
    """What hitmiss says of a failure; native code of Ray may say something before it."""
    return [line for line in errors.splitlines() if not line.startswith(("cluster: ", "["))]


def in_memory(shards: Path, capsys: pytest.CaptureFixture[str]) -> list[tuple[Any, ...]]:
    assert run(["score", str(shards / "*.parquet"), "-p", "asvspoof5", *ASKED, "--json"]) == 0
    return figures(capsys.readouterr().out)


def test_a_node_that_is_killed_in_mid_run_changes_no_digit(
    nodes: Nodes, shards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process = slowly(tmp_path, scoring(nodes, shards))
    lost = nodes.others[0]
    until(process, lambda: list(tmp_path.glob(f"{lost.process.pid}.*")))
    lost.kill()
    out, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    assert "cluster: 3 CPUs on 3 machines" in errors
    assert figures(out) == in_memory(shards, capsys)
    assert len({note.name.partition(".")[0] for note in tmp_path.iterdir()}) == 3, "all three nodes had counted"


def test_a_file_that_one_node_does_not_see_is_refused(nodes: Nodes, shards: Path, tmp_path: Path) -> None:
    """The node gets a file system of its own, where the folder of the shards is empty."""
    hide = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs none {shards} && exec "$@"', "sh"]
    may = subprocess.run([*hide, "true"], capture_output=True, text=True, check=False)
    if may.returncode:
        pytest.skip(f"no file systems of our own here: {may.stderr.strip()}")
    nodes.others[0].kill()
    blind = nodes.make_whole(*hide).others[-1]
    process = slowly(tmp_path, scoring(nodes, shards))
    out, errors = process.communicate(timeout=240)
    blind.kill()
    assert process.returncode == 3, errors
    told = json.loads(out)["error"]
    assert told["code"] == "unseen-file" and str(shards / "part-") in told["message"]
    assert own_lines(errors) == [f"hitmiss: {told['message']}"]


def test_without_the_token_nobody_gets_in(nodes: Nodes, shards: Path) -> None:
    for token in ("0" * 64, ""):
        words = [*HITMISS, *scoring(nodes, shards)]
        found = subprocess.run(
            words, env=environment(RAY_AUTH_TOKEN=token), capture_output=True, text=True, timeout=240, check=False
        )
        assert found.returncode == 5, found.stderr
        assert "RAY_AUTH_TOKEN here must be the cluster's" in json.loads(found.stdout)["error"]["message"]


def test_the_loss_of_the_head_is_one_sentence(nodes: Nodes, shards: Path, tmp_path: Path) -> None:
    # the other nodes could finish shorter tasks without it
    process = slowly(tmp_path, scoring(nodes, shards), seconds=20)
    until(process, lambda: len(list(tmp_path.iterdir())) > 1)
    assert nodes.head is not None
    nodes.head.kill()
    out, errors = process.communicate(timeout=240)
    assert process.returncode == 5, errors
    told = json.loads(out)["error"]
    assert told["code"] == "lost-cluster" and nodes.address in told["message"]
    assert own_lines(errors) == [f"hitmiss: {told['message']}"]


def test_a_run_whose_head_is_lost_goes_on_elsewhere(nodes: Nodes, tmp_path: Path) -> None:
    (tmp_path / "scorer.py").write_text(SCORER)
    rows = [f"t{i}\t{'!' * (i % 3)}\t{'toxic' if i % 3 > 1 else 'non-toxic'}" for i in range(200)]
    (tmp_path / "texts.tsv").write_text("\n".join(["id\ttext\tlabel", *rows]) + "\n")
    words = ["detect", "--detector", "scorer.py:slow", "--data", "texts.tsv", "--input", "text", "-o", "run"]
    words += ["--batch-items", "1"]
    process = subprocess.Popen(
        [*HITMISS, *words, "--cluster", nodes.address, "--json"],
        env=environment(),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(process, lambda: any(path.stat().st_size for path in (tmp_path / "run" / "items").glob("*.jsonl")))
    assert nodes.head is not None
    nodes.head.kill()
    out, errors = process.communicate(timeout=240)
    assert process.returncode == 5, errors
    assert json.loads(out)["error"]["code"] == "lost-cluster" and "--resume" in own_lines(errors)[-1]
    again = subprocess.run([*HITMISS, *words, "--resume"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 0 and "200 scored, 0 failed" in again.stdout, again.stderr
