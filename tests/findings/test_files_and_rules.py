"""What files, logs, rules, signatures and requirements are refused for, each with the file, row or value that is wrong."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.findings.producing import Case, assert_produces, without

import hitmiss as hm
from hitmiss.core.design import Design
from hitmiss.core.envelope import sealed_envelope
from hitmiss.core.gate_spec import load_gate
from hitmiss.core.settings import load
from hitmiss.core.signing import sign, signer
from hitmiss.core.trials import Trials
from hitmiss.engine.requirement import read_requirements
from hitmiss.io.embeddings import Embeddings, load_embeddings
from hitmiss.io.manifest import read_manifest
from hitmiss.io.remote import addresses_in
from hitmiss.io.triage import results_in

TABLE = {"id": ["a", "b"], "label": [1, 0], "score": [1.0, 0.0]}
LAYERS = Embeddings({"a": np.zeros((2, 2))}, {"item": np.array(["x", "y"]), "codec": np.array(["c", "d"])})
DETECTED = Trials.of([1, 0], [1.0, 0.0])
SAMPLES = "samples_task_2024-01-01T00-00-00.000000.jsonl"
INSPECT = {"version": 2, "status": "success", "eval": {"run_id": "r", "task": "t", "model": "m"}, "samples": []}


def written(name: str, content: str | bytes, call: Callable[[], object]) -> Callable[[], object]:
    """Write a file, below new folders, and call something that reads it."""

    def made() -> object:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return call()

    return made


def packed(name: str, members: Mapping[str, object], call: Callable[[], object]) -> Callable[[], object]:
    """Write an archive and call something that reads it."""

    def made() -> object:
        with zipfile.ZipFile(name, "w") as archive:
            for member, content in members.items():
                archive.writestr(member, content if isinstance(content, bytes) else json.dumps(content))
        return call()

    return made


def two_models() -> object:
    for model in ("one", "two"):
        Path("logs", model).mkdir(parents=True)
        Path("logs", model, SAMPLES.replace("task", model)).write_text('{"doc_id": 0, "filtered_resps": []}\n')
    return hm.read("logs")


def weighed(**columns: object) -> Callable[[], object]:
    frame = pl.DataFrame({**TABLE, **columns})
    return lambda: hm.evaluate(frame, metrics="eer", weight="w", weight_kind="frequency", bootstrap=0)


def unwritable_key() -> object:
    Path("key").write_text("no key at all\n")
    Path("key").chmod(0o600)
    Path("results.json").write_text("{}")
    return sign("results.json", "key")


def no_program(call: Callable[[], object]) -> Callable[[], object]:
    """Call something on a machine without any program."""

    def lacking() -> object:
        Path("key").write_text("")
        Path("r.json").write_text("{}")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", "")
            return call()

    return lacking


PROMPTFOO = json.dumps({"evalId": "e", "results": {"version": 3, "results": []}, "config": {}})

CASES: Sequence[tuple[str, Case, str]] = [
    ("unreadable-file/array", packed("e.npz", {"notes.txt": b"text"}, lambda: load_embeddings("e.npz")), "notes.txt"),
    ("nan-threshold", lambda: Design.of(["eer"], threshold=float("nan")), "NaN"),
    ("unreadable-file/refused", lambda: (Path("g.toml").mkdir(), hm.gate(DETECTED, rules="g.toml")), "g.toml"),
    ("bad-settings", written("hitmiss.toml", "read = 3\n", lambda: load("hitmiss.toml")), "[read]"),
    ("bad-gate-file/rules", written("g.toml", "rules = 3\n", lambda: load_gate("g.toml")), "g.toml"),
    ("bad-gate-file/rule", written("g.toml", "[[rules]]\nwhy = 'x'\n", lambda: load_gate("g.toml")), "g.toml, rule 1"),
    ("not-signed", unwritable_key, "results.json"),
    ("no-signers", lambda: signer("r.json", "team.txt"), "team.txt"),
    ("missing-package",
        written("key", "", without("cryptography", lambda: sealed_envelope(b"{}", "key"))),
        "cryptography",
    ),
    ("no-ssh-keygen", no_program(lambda: sign("r.json", "key")), "ssh-keygen"),
    ("bad-weight", weighed(w=[0, 0]), "'w'"),
    ("duplicate-id/copy", weighed(id=["a", "a#2"], w=[2, 1]), "'a#2'"),
    ("bad-requirements-file",
        written("need.toml", "require = 'eer <= 0.1'\n", lambda: read_requirements("need.toml")),
        "need.toml",
    ),
    # logs of other tools
    ("no-results-in-folder", written("runs/a.jsonl", '{"id": 1}\n', lambda: results_in("runs")), "runs"),
    ("broken-log", written(f"logs/{SAMPLES}", "{\n", lambda: hm.read("logs")), f"{SAMPLES}, line 1"),
    ("log-not-finished",
        written("x.json", json.dumps({**INSPECT, "status": "started"}), lambda: hm.read("x.json")),
        "started",
    ),
    ("log-empty", written("out.json", PROMPTFOO, lambda: hm.read("out.json")), "out.json"),
    ("log-several-models", two_models, "one, two"),
    # tables and layers
    ("no-rows/item", lambda: LAYERS.where({"item": ["x"], "codec": ["d"]}), ""),
    ("missing-package",
        written("e.safetensors", "", without("safetensors", lambda: load_embeddings("e.safetensors"))),
        "safetensors",
    ),
    ("not-a-file", written("e.parquet", "text", lambda: load_embeddings("e.parquet")), "e.parquet"),
    ("missing-package", without("obstore", lambda: addresses_in("s3://bucket/run-*.csv")), "s3://"),
    ("missing-column/files",
        written("m.csv", "id,label\na,spoof\nb,bonafide\n", lambda: read_manifest("m.csv", file_column="where")),
        "'where'",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case", "named"), CASES, ids=[case[0] for case in CASES])
def test_produced(code: str, case: Case, named: str, tmp_path: Path) -> None:
    assert_produces(code, case, tmp_path, named)
