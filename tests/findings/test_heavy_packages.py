"""What models of torch and ONNX, clusters and databases are refused for: each code made with the package itself."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.findings.producing import Case, assert_produces

from hitmiss.attacks.onnx_gradients import onnx_function
from hitmiss.cluster.sending import Sent, accepted
from hitmiss.core.ask_spec import AskSpec
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.detection.checkpoints import load_weights
from hitmiss.detection.on_device import pick_device
from hitmiss.detection.opening import open_detector
from hitmiss.detection.scorer import Scorer
from hitmiss.detection.tracing import Settled
from hitmiss.io.addresses import TableAddress
from hitmiss.llm.plain_models import PlainModel
from hitmiss.llm.secrets import Secrets
from hitmiss.outofcore.warehouse import evaluate_table

pytestmark = pytest.mark.extras


def torch() -> Any:
    return pytest.importorskip("torch")


def graph(kinds: Sequence[str], use: Callable[[str], object], **attributes: object) -> Callable[[], object]:
    """Use an ONNX file with one output for each of these steps of three values; a step takes weights if it has any."""

    def call() -> object:
        onnx = pytest.importorskip("onnx")
        form, make = onnx.TensorProto.FLOAT, onnx.helper
        weights = ["scale", "bias", "mean", "variance"] if "BatchNormalization" in kinds else []
        nodes = [make.make_node(kind, ["x", *weights], [kind], **attributes) for kind in kinds]
        places = [make.make_tensor_value_info(name, form, ["batch", 3]) for name in ("x", *kinds)]
        numbers = [make.make_tensor(name, form, [3], [1.0, 1.0, 1.0]) for name in weights]
        whole = make.make_graph(nodes, "steps", places[:1], places[1:], numbers)
        onnx.save(make.make_model(whole, opset_imports=[make.make_opsetid("", 17)], ir_version=9), "m.onnx")
        return use("m.onnx")

    return call


def weights(saved: Callable[[], object]) -> Callable[[], object]:
    """Load what was saved into a layer with two inputs."""

    def call() -> object:
        torch().save(saved(), "w.pt")
        return load_weights(torch().nn.Linear(2, 1), "w.pt")

    return call


def moody() -> object:
    """A model that ends with a sigmoid for single items only."""

    class Moody(torch().nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return torch().sigmoid(x.mean(dim=1)) if len(x) == 1 else x.mean(dim=1)

    return Settled(Moody())(torch().zeros(3, 4))


CASES: Sequence[tuple[str, Case, str]] = [
    ("int8-on-cpu", graph(["Neg"], partial(open_detector, precision="int8", device="cuda")), ""),
    ("int8-nothing", graph(["Neg"], partial(open_detector, precision="int8")), ""),
    ("no-gradients/batchnorm", graph(
        ["BatchNormalization"],
        lambda path: onnx_function(path, "BatchNormalization")(torch().zeros(2, 3)),  # type: ignore[misc]
        training_mode=1,
    ), ""),
    ("no-weights", weights(lambda: [1.0]), "w.pt"),
    ("on-machine", lambda: accepted(Scorer().open(Sent.of(partial(open_detector, "gone.py:f")))), "gone.py"),
    ("two-endings", moody, ""),
    ("weights-unfit/error", weights(lambda: torch().nn.Linear(3, 1).state_dict()), "w.pt"),
    ("which-output/onnx", graph(["Neg", "Abs"], open_detector), "Neg"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case", "named"), [pytest.param(*case, id=case[0]) for case in CASES])
def test_produced(code: str, case: Case, named: str, tmp_path: Path) -> None:
    assert_produces(code, case, tmp_path, named)


def test_a_machine_without_a_cuda_device(tmp_path: Path) -> None:
    if torch().cuda.is_available():
        pytest.skip("there is a CUDA device here")
    assert_produces("no-cuda", lambda: pick_device("cuda"), tmp_path)


def test_a_spark_that_does_not_start_is_one_sentence(tmp_path: Path) -> None:
    """In a process of its own: Spark starts Java once in a process."""
    pytest.importorskip("pyspark")
    words = [sys.executable, "-m", "hitmiss", "score", "spark:t", "-m", "eer", "--json"]
    own = {**os.environ, "JAVA_HOME": str(tmp_path)}
    done = subprocess.run(words, env=own, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (5, "no-spark"), done.stderr


def database(statement: str, *more: str) -> None:
    """Write a DuckDB file with a table of trials, and others."""
    with pytest.importorskip("duckdb").connect("a.db") as connection:
        connection.execute(f"CREATE TABLE t AS {statement}")
        for at, other in enumerate(more):
            connection.execute(f"CREATE TABLE k{at} AS {other}")


def keyed_runs() -> object:
    """Score two runs of a table with a key that is another table."""
    item, label = "'i' || (i // 2) AS item", "CASE WHEN i % 2 = 0 THEN 'spoof' ELSE 'bonafide' END AS label"
    database(
        f"SELECT {item}, 's' || (i % 2) AS system, i * 7 % 11 AS score FROM range(80) AS r(i)",
        f"SELECT 'i' || i AS item, {label} FROM range(40) AS r(i)",
    )
    table, key = TableAddress("duckdb", "a.db", "t"), TableAddress("duckdb", "a.db", "k0")
    reading = ReadSpec(runs=("system",))
    return evaluate_table(table, key=key, reading=reading, design=Design.of(["eer"], bootstrap=0))


def many_counts() -> object:
    """Count a table in which more than a million trials have scores of their own, with little memory."""
    label = "CASE WHEN i % 2 = 0 THEN 'spoof' ELSE 'bonafide' END AS label"
    database(f"SELECT 'i' || i AS item, {label}, i AS score FROM range(1000100) AS r(i)")
    design = Design.of(["eer"], bootstrap=0)
    return evaluate_table(TableAddress("duckdb", "a.db", "t"), design=design, memory=1)


@pytest.mark.parametrize(("code", "case"), [("key-of-runs", keyed_runs), ("needs-more-memory", many_counts)])
def test_tables_that_a_database_counts(code: str, case: Case, tmp_path: Path) -> None:
    assert_produces(code, case, tmp_path)


class Blocking(BaseHTTPRequestHandler):
    """A provider that answers with an error and the status of success."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b'{"error": {"message": "the prompt was blocked"}}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # the name of the base class
        """Say nothing."""


def test_a_provider_that_answers_without_an_answer(tmp_path: Path) -> None:
    pytest.importorskip("httpx")

    async def ask(address: str) -> object:
        model = PlainModel("judge", AskSpec(base_url=address, max_retries=0), None, Secrets(), None)
        try:
            return await model.send([])
        finally:
            await model.aclose()

    with HTTPServer(("127.0.0.1", 0), Blocking) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/v1"
        assert_produces("provider-refused", lambda: asyncio.run(ask(address)), tmp_path, "the prompt was blocked")
        thread.join()
