"""Joining, starting and leaving clusters from the command line: quietly, and with nothing left behind."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from hitmiss.cli.main import run
from hitmiss.cluster.ray import Cluster, joined, place_of
from hitmiss.cluster.sending import Sent
from hitmiss.core.errors import EnvironmentFault, UsageError
from hitmiss.runs.manifest import load_manifest

HITMISS = [sys.executable, "-c", "import sys; from hitmiss.cli.main import run; sys.exit(run())"]
SCORER = """
import time

import numpy as np

def odds(batch):
    return 4.0 * np.array([text.count("!") for text in batch]) - 2.0 + 0.01 * np.array([len(t) for t in batch])

def slow(batch):
    time.sleep(0.02)
    return odds(batch)
"""


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A folder with a table of texts and a detector for them."""
    (tmp_path / "scorer.py").write_text(SCORER)
    rows = [f"t{i}\t{'hm' * (i % 7)}{'!' * (i % 3)}\t{'toxic' if i % 3 > 1 else 'non-toxic'}" for i in range(400)]
    (tmp_path / "texts.tsv").write_text("\n".join(["id\ttext\tlabel", *rows]) + "\n")
    return tmp_path


def detecting(output: str, *more: str, name: str = "odds", data: Path | str = "texts.tsv") -> list[str]:
    """The words of a command in the folder of the texts; its paths are relative."""
    return ["detect", "--detector", f"scorer.py:{name}", "--data", str(data), "--input", "text", "-o", output, *more]


def done(folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    return subprocess.run([*HITMISS, *words], cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def client_port(cluster: Cluster) -> Iterator[int]:
    """The port of a server that lets programs outside the cluster in."""
    import ray

    assert cluster.address == "auto"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = ray.get_runtime_context().gcs_address
    module = ["-m", "ray.util.client.server", "--mode", "legacy", "--address", address]
    words = [sys.executable, *module, "--host", "127.0.0.1", "--port", str(port)]
    nowhere = subprocess.DEVNULL
    server = subprocess.Popen(words, stdout=nowhere, stderr=nowhere, env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"})
    yield port
    server.terminate()
    server.wait()


@pytest.mark.extras
def test_a_cluster_that_runs_already_is_joined_by_its_address(cluster: Cluster, texts: Path, client_port: int) -> None:
    import ray

    assert cluster.machines == 1 and cluster.cpus >= 1
    here = done(texts, detecting("one"))
    assert here.returncode == 0, here.stderr
    table = pl.read_parquet(texts / "one" / "trials.parquet")
    address = ray.get_runtime_context().gcs_address
    until_open(client_port)
    for name, where in (("inside", address), ("outside", f"ray://127.0.0.1:{client_port}")):
        there = done(texts, detecting(name, "--cluster", where, "--actors", "1", "--json"))
        assert there.returncode == 0, there.stderr
        assert json.loads(there.stdout)["scored"] == 400, "nothing but the result on stdout"
        said = [line for line in there.stderr.splitlines() if "no process has opened" not in line]  # a busy machine
        taken = [line for line in said if line.startswith("taken for: ")]
        assert [line for line in said if line not in taken] == [
            f"cluster: {cluster}",
            "scored by 1 process on 1 machine",
        ], "and nothing of Ray's on stderr"
        assert len(taken) == 1
        assert pl.read_parquet(texts / name / "trials.parquet").equals(table)
    assert ray.is_initialized() and ray.cluster_resources(), "the cluster goes on when its guests have left"


def until_open(port: int) -> None:
    """Come back when somebody listens."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the server of the cluster did not start")


@pytest.mark.extras
def test_interrupted_it_leaves_a_run_to_go_on_with_and_no_process(texts: Path) -> None:
    pytest.importorskip("ray")
    words = [*HITMISS, *detecting("run", "--cluster", "auto", "--batch-items", "1", name="slow")]
    pipe = subprocess.PIPE
    home = {**os.environ, "HOME": str(texts)}
    process = subprocess.Popen(words, cwd=texts, stdout=pipe, stderr=pipe, text=True, start_new_session=True, env=home)
    segments = texts / "run" / "items"
    while not any(path.stat().st_size for path in segments.glob("*.jsonl")):
        time.sleep(0.02)
        assert process.poll() is None, process.communicate()[1]
    family = children(process.pid)
    assert len(family) > 3, "the processes of a cluster"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does at Ctrl-C: all of them are told
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and out == ""
    assert errors.splitlines()[-1] == "hitmiss: interrupted"
    assert not [line for line in errors.splitlines() if not line.startswith(("cluster: ", "hitmiss: "))]
    assert load_manifest(texts / "run")["state"] == "interrupted"
    assert not (texts / ".ray").exists(), "no secret is left in the user's home"
    for pid in family:
        until_gone(pid)
    again = done(texts, detecting("run", "--resume", name="slow"))
    assert again.returncode == 0 and "400 scored, 0 failed" in again.stdout


def children(pid: int) -> list[int]:
    """The descendants of a process."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [child for one in map(int, found) for child in (one, *children(one))]


def until_gone(pid: int) -> None:
    """Come back when a process has ended."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} is still there: {Path(f'/proc/{pid}/cmdline').read_bytes()!r}")


@pytest.mark.extras
def test_strangers_are_turned_away(cluster: Cluster) -> None:
    """Ray listens on every interface, and whoever may call it may run code."""
    grpc = pytest.importorskip("grpc")
    import ray

    assert cluster.machines == 1 and os.environ["RAY_AUTH_TOKEN"]
    with grpc.insecure_channel(ray.get_runtime_context().gcs_address) as channel:
        ask = channel.unary_unary("/ray.rpc.NodeInfoGcsService/GetClusterId")
        with pytest.raises(grpc.RpcError) as refused:
            ask(b"", timeout=20)
        assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
        secret = (("authorization", f"Bearer {os.environ['RAY_AUTH_TOKEN']}"),)
        assert ask(b"", timeout=20, metadata=secret), "the same question with the secret is answered"


@pytest.mark.extras
def test_an_address_where_nobody_listens_is_told_at_once(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ray")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # ours, and nobody listens
        port = closed.getsockname()[1]
        for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
            assert run([*detecting(str(texts / "run"), data=texts / "texts.tsv"), "--cluster", address]) == 5
            assert f"nothing answers at 127.0.0.1:{port}" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["head", "http://head:80", "ray://head", "head:port", ""])
def test_what_is_no_address_is_a_question_of_usage(address: str) -> None:
    with pytest.raises(UsageError, match="cluster is auto, HOST:PORT or ray://HOST:PORT"):
        place_of(address)


def test_without_ray_the_extra_is_named(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if importlib.util.find_spec("ray") is not None:
        pytest.skip("ray is here")
    assert run([*detecting(str(texts / "run"), data=texts / "texts.tsv"), "--cluster", "auto"]) == 5
    assert "pip install 'hitmiss[cluster]'" in capsys.readouterr().err
    with pytest.raises(EnvironmentFault, match=r"hitmiss\[cluster\]"), joined("auto"):
        pass


def test_actors_go_with_a_cluster(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*detecting(str(texts / "run"), data=texts / "texts.tsv"), "--actors", "2"]) == 2
    assert "--actors goes with --cluster" in capsys.readouterr().err


def test_another_version_on_a_machine_is_refused() -> None:
    with pytest.raises(EnvironmentFault, match="install one version on all"):
        Sent(pickle.dumps(1), version="0.0.1").open()
    with pytest.raises(EnvironmentFault, match=r"lacks what the work needs: No module named 'no_such_module'"):
        Sent(b"cno_such_module\nname\n.").open()
