"""Files at an address are read as those on this machine, and nothing of an address but its file's name is kept."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hitmiss.cli.main import run
from hitmiss.core.errors import DataError, EnvironmentFault, HitmissError, UsageError
from hitmiss.io.addresses import is_remote
from hitmiss.io.remote import downloaded, remote_pieces

ASKED = ["-m", "eer", "-m", "min_dcf", "--by", "codec", "--bootstrap", "30", "--json"]
SECRET = "s3cr3t-w0rd"


class Server(SimpleHTTPRequestHandler):
    """Files of a folder; some addresses are refused or cut short."""

    def do_GET(self) -> None:
        if "/forbidden" in self.path:
            self.send_error(403)
        elif "/short" in self.path:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"item,label,score\na,bonafide,1\n")
        elif "/dripping" in self.path:
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):  # until the reader goes away
                while True:
                    self.wfile.write(b"i")
                    time.sleep(0.5)
        elif "/silent" in self.path:
            self.send_response(200)
            self.end_headers()
            self.connection.recv(1)  # until the reader goes away
        else:
            super().do_GET()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same trials in a Parquet file, as text, packed, and in two shards."""
    folder, rng = tmp_path_factory.mktemp("served"), np.random.default_rng(3)
    real = rng.random(600) < 0.4
    frame = pl.DataFrame(
        {
            "item": [f"u{i:04d}" for i in range(600)],
            "label": np.where(real, "bonafide", "spoof"),
            "score": rng.normal(size=600) + real,
            "codec": rng.choice(["NONE", "C01"], 600),
        }
    )
    frame.write_parquet(folder / "t.parquet")
    frame.write_csv(folder / "t.csv")
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    frame[:200].write_parquet(folder / "part-0.parquet")
    frame[200:].write_parquet(folder / "part-1.parquet")
    frame.select("item", "score").write_csv(folder / "scores.csv")
    frame.select("item", "label", "codec").write_csv(folder / "key.csv")
    return folder


@pytest.fixture
def web(folder: Path) -> Iterator[str]:
    """The address of a server on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = run([*words])
    return code, capsys.readouterr().out


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.csv.gz"])
@pytest.mark.parametrize("how", [(), ("--stream",)])
def test_a_file_of_the_web_gives_the_answer_of_the_file(
    name: str, how: tuple[str, ...], web: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = answer(capsys, "score", str(folder / name), *ASKED, *how)
    there = answer(capsys, "score", f"{web}/{name}?X-Amz-Signature={SECRET}", *ASKED, *how)
    assert here[0] == 0 and there == here, "figures, digest and names: the whole output"


@pytest.mark.parametrize("how", [(), ("--stream",)])
def test_a_key_of_the_web(how: tuple[str, ...], web: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = answer(capsys, "score", str(folder / "scores.csv"), "--key", str(folder / "key.csv"), *ASKED, *how)
    there = answer(capsys, "score", f"{web}/scores.csv", "--key", f"{web}/key.csv", *ASKED, *how)
    assert here[0] == 0 and there == here


def test_names_of_runs_hold_no_secret(web: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [f"{web}/{name}?token={SECRET}" for name in ("t.csv", "t.parquet")]
    assert run(["compare", *runs, "-m", "eer", "--bootstrap", "20", "-o", str(tmp_path / "c.json")]) == 0
    assert run(["report", *runs, "-m", "eer", "-o", str(tmp_path / "r.html")]) == 0
    assert run(["compare", f"{runs[0]}[codec=XX]", runs[1], "-m", "eer"]) == 2
    printed = capsys.readouterr()
    written = [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()]
    assert len(written) == 2 and "A = t.csv" in printed.out
    assert not [text for text in (*written, printed.out, printed.err) if SECRET in text]


@pytest.mark.parametrize(
    ("address", "kind", "code"),
    [
        ("{web}/absent.csv?token={secret}", DataError, "missing-file"),
        ("{web}/forbidden.csv?token={secret}", DataError, "forbidden-file"),
        ("{web}/short.csv?token={secret}", DataError, "cut-short"),
        ("http://me:{secret}@127.0.0.1:1/t.csv", UsageError, "password-in-address"),
        ("http://127.0.0.1:{closed}/t.csv?token={secret}", EnvironmentFault, "unreachable"),
        ("hf://datasets/x/{secret}?token={secret}", UsageError, "remote-file"),
    ],
)
def test_what_goes_wrong_is_one_sentence_without_secrets(
    address: str, kind: type[HitmissError], code: str, web: str
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(kind) as caught:
            list(remote_pieces(address.format(web=web, secret=SECRET, closed=port)))
    assert caught.value.code == code and caught.value.__cause__ is None
    assert f"={SECRET}" not in str(caught.value) and f":{SECRET}" not in str(caught.value)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "why"), [("dripping", "bytes came in 6"), ("silent", "TimeoutError")])
@pytest.mark.parametrize("how", [(), ("--stream",)])
def test_a_server_that_sends_next_to_nothing_is_given_up(name: str, why: str, how: tuple[str, ...], web: str) -> None:
    words = [sys.executable, "-m", "hitmiss", "score", f"{web}/{name}.csv?token={SECRET}", "-m", "eer", *how]
    began = time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 5 and why in done.stderr and SECRET not in done.stderr, done.stderr
    assert time.monotonic() - began < 90


def test_a_fetched_file_leaves_room_on_the_disk(web: str, tmp_path: Path) -> None:
    """A disk that has less room than must stay free, in a file system of the command's own."""
    small = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=100m none {tmp_path} && exec "$@"', "sh"]
    may = subprocess.run([*small, "true"], capture_output=True, text=True, check=False)
    if may.returncode:
        pytest.skip(f"no file systems of our own here: {may.stderr.strip()}")
    asked = ["score", f"{web}/t.csv?token={SECRET}", "-m", "eer", "--stream", "--scratch", str(tmp_path)]
    done = subprocess.run(
        [*small, sys.executable, "-m", "hitmiss", *asked], capture_output=True, text=True, check=False
    )
    assert done.returncode == 5, done.stderr
    assert "t.csv is larger than" in done.stderr and "--scratch" in done.stderr and SECRET not in done.stderr


def test_fetched_files_are_gone_afterwards(web: str, tmp_path: Path) -> None:
    with downloaded([f"{web}/t.csv", "here.csv"], str(tmp_path)) as (there, here):
        assert here == "here.csv" and Path(there).name == "t.csv" and tmp_path in Path(there).parents
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_called_like_an_address_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_remote("s3://bucket/a.csv")
    Path("s3:/bucket").mkdir(parents=True)
    Path("s3:/bucket/a.csv").write_text("x")
    assert not is_remote("s3://bucket/a.csv")


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def bucket(folder: Path) -> Iterator[dict[str, str]]:
    """A bucket of a real S3 server, and the variables that lead to it."""
    pytest.importorskip("moto")
    boto3 = pytest.importorskip("boto3")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    nowhere = subprocess.DEVNULL
    server = subprocess.Popen(words, stdout=nowhere, stderr=nowhere)
    try:
        end = time.monotonic() + 60
        while not is_open(port) and time.monotonic() < end:
            time.sleep(0.1)
        told = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}
        told["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
        client = boto3.client(
            "s3",
            endpoint_url=told["AWS_ENDPOINT_URL"],
            aws_access_key_id=told["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=SECRET,
            region_name=told["AWS_REGION"],
        )
        client.create_bucket(Bucket="trials")
        for path in folder.iterdir():
            client.upload_file(str(path), "trials", f"eval/{path.name}")
        client.upload_file(str(folder / "t.parquet"), "trials", "eval/deeper/part-9.parquet")
        yield told
    finally:
        server.terminate()
        server.wait()


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("how", [(), ("--stream",)])
def test_a_bucket_gives_the_answers_of_files(
    how: tuple[str, ...],
    bucket: dict[str, str],
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("obstore")
    for name, value in bucket.items():
        monkeypatch.setenv(name, value)
    for there, here in (
        ("t.csv", "t.csv"),
        ("part-*.parquet", "part-*.parquet"),
        ("part-[01].parquet", "part-?.parquet"),
    ):
        expected = answer(capsys, "score", str(folder / here), *ASKED, *how)
        results = tmp_path / "r.json"
        found = answer(capsys, "score", f"s3://trials/eval/{there}", *ASKED, *how, "-o", str(results))
        assert expected[0] == 0 and found == expected
        written = results.read_text()
        assert not [word for word in (*bucket.values(), "s3://") if word in written and word != "us-east-1"]
    assert run(["score", "s3://trials/eval/absent.csv", *ASKED, *how]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "missing-file"
    assert run(["score", "s3://trials/none-*.csv", *ASKED, *how]) == 2
    assert os.environ["AWS_SECRET_ACCESS_KEY"] == SECRET
