"""Where developers see a gate: one comment, JUnit, SARIF, a pytest fixture, in a GitHub that is played here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import pytest
from benchmarks.gates import BROKEN, pull_request
from ruamel.yaml import YAML
from tests.moderation.test_gate_to_sign import written

from hitmiss.cli.main import run
from hitmiss.core.gate_spec import GateSpec
from hitmiss.core.spec import options_of
from hitmiss.reports.gate_report import MARK

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[2]
TOKEN = "t0ken"


class Host(BaseHTTPRequestHandler):
    """The comments of one pull request, as GitHub and GitLab keep them."""

    comments: ClassVar[dict[int, str]] = {}
    seen: ClassVar[list[tuple[str, str]]] = []

    def answer(self) -> None:
        held = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(held))["body"] if held else None
        allowed = TOKEN in (self.headers.get("Authorization") or "") or self.headers.get("PRIVATE-TOKEN") == TOKEN
        Host.seen.append((self.command, self.path.split("?")[0]))
        if body is not None:
            last = self.path.rsplit("/", 1)[-1]
            Host.comments[int(last) if last.isdigit() else len(Host.comments) + 1] = body
        self.send_response(200 if allowed else 401)
        self.end_headers()
        self.wfile.write(json.dumps([{"id": i, "body": b} for i, b in Host.comments.items()]).encode())

    do_GET = do_POST = do_PATCH = do_PUT = answer

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def host() -> Iterator[str]:
    Host.comments, Host.seen = {}, []
    server = HTTPServer(("127.0.0.1", 0), Host)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def github(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment of a job of a pull request, whose folder has the run, the baseline and the rules."""
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
    for name, value in {
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"), "GITHUB_REPOSITORY": "us/moderation", "GITHUB_TOKEN": TOKEN,
        "GITHUB_API_URL": host, "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_EVENT_NAME": "pull_request",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    for name, loss in (("same", 0.0), ("broken", 0.25)):
        now, before = pull_request(1, loss)
        written(now, tmp_path / f"{name}.csv")
        written(before, tmp_path / "before.csv")
    (tmp_path / "gate.toml").write_text(
        'baseline = "before.csv"\nowners = ["@safety"]\nmax_regression = ["roc_auc[language=*]=0", "f1[language=*]=0"]\n'
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


WORDS = ["--rules", "gate.toml", "-p", "toxicity", "--threshold", "0.5"]


def test_a_broken_language_stands_in_the_first_line_of_the_one_comment(github: Path, capsys: Capture) -> None:
    files = ["--junit", "gate.xml", "--sarif", "gate.sarif", "--comment", "gate.md"]
    assert run(["gate", "broken.csv", *WORDS, *files, "--post", "github"]) == 1
    (text,) = Host.comments.values()
    lines = text.splitlines()
    assert len(lines) <= 12 and f"language {BROKEN}" in lines[0] and "Stopped" in lines[0]
    assert "→" in text and " worse |" in text and "@safety" in text and text == Path("gate.md").read_text()
    ids = text.split("wrong now: ")[1].splitlines()[0].split(", ")
    assert len(ids) == 5
    # the ids are those that the two files decide otherwise, counted by hand
    rows = [
        [line.split(",") for line in Path(name).read_text().splitlines()[1:]] for name in ("before.csv", "broken.csv")
    ]
    lost = {
        a[0]
        for a, b in zip(*rows, strict=True)
        if a[3] == BROKEN and (float(a[2]) >= 0.5) == (a[1] == "1") and (float(b[2]) >= 0.5) != (b[1] == "1")
    }
    assert {i.strip("`") for i in ids} <= lost
    assert "::error" in capsys.readouterr().err and BROKEN in Path("summary.md").read_text()
    names = [c.get("name") for c in ElementTree.parse("gate.xml").iter("testcase")]
    assert f"roc_auc [language={BROKEN}] is worse by at most 0 than the baseline" in names
    found = json.loads(Path("gate.sarif").read_text())
    assert found["version"] == "2.1.0" and BROKEN in found["runs"][0]["results"][0]["message"]["text"]
    assert {r["ruleId"] for r in found["runs"][0]["results"]} <= {
        r["id"] for r in found["runs"][0]["tool"]["driver"]["rules"]
    }
    # the next push writes the same comment anew
    assert run(["gate", "same.csv", *WORDS, "--post", "github"]) == 0
    (text,) = Host.comments.values()
    assert text.startswith("**hitmiss: nothing got worse**") and MARK in text and len(text.splitlines()) <= 12
    assert Host.seen[-1] == ("PATCH", "/repos/us/moderation/issues/comments/1")
    assert github.is_dir()


@pytest.mark.usefixtures("github")
def test_texts_are_quoted_only_on_request() -> None:
    ids = [line.split(",")[0] for line in Path("before.csv").read_text().splitlines()[1:]]
    Path("texts.csv").write_text("id,text\n" + "\n".join(f"{i},words of {i}" for i in ids) + "\n")
    assert run(["gate", "broken.csv", *WORDS, "--comment", "bare.md"]) == 1
    assert run(["gate", "broken.csv", *WORDS, "--comment", "quoted.md", "--texts", "texts.csv"]) == 1
    assert "words of" not in Path("bare.md").read_text() and "words of n" in Path("quoted.md").read_text()


@pytest.mark.usefixtures("github")
def test_gitlab_gets_a_note(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "CI_API_V4_URL": host, "CI_PROJECT_ID": "5", "CI_MERGE_REQUEST_IID": "9", "GITLAB_TOKEN": TOKEN,
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    assert run(["gate", "broken.csv", *WORDS, "--post", "gitlab"]) == 1
    assert Host.seen[-1] == ("POST", "/projects/5/merge_requests/9/notes") and len(Host.comments) == 1


@pytest.mark.usefixtures("github")
def test_without_a_pull_request_or_the_right_token(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "wrong")
    assert run(["gate", "same.csv", *WORDS, "--post", "github"]) == 5
    assert "github did not take the comment: HTTP Error 401" in capsys.readouterr().err
    monkeypatch.delenv("GITHUB_EVENT_PATH")
    assert run(["gate", "same.csv", *WORDS, "--post", "github"]) == 2
    assert "there is no pull request to comment on" in capsys.readouterr().err


def test_the_action_runs_as_github_would(github: Path, host: str) -> None:
    """The script of the composite action, in bash, with the inputs that it declares."""
    action = YAML(typ="safe").load((ROOT / "action.yml").read_text())
    step = action["runs"]["steps"][1]
    given = {"run": "broken.csv", "options": "-p toxicity --threshold 0.5", "github-token": TOKEN}
    inputs = {name: str(given.get(name, about.get("default", ""))) for name, about in action["inputs"].items()}
    env = {name: inputs[value[len("${{ inputs.") : -len(" }}")]] for name, value in step["env"].items()}
    tool = github / "bin" / "hitmiss"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m hitmiss "$@"\n')
    tool.chmod(0o755)
    path = {"PATH": f"{tool.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
    made = subprocess.run(
        ["bash", "-c", step["run"]], env={**os.environ, **env, **path, "GITHUB_API_URL": host}, capture_output=True
    )
    assert made.returncode == 1, made.stderr.decode()
    assert f"language {BROKEN}" in next(iter(Host.comments.values())).splitlines()[0]


def test_the_hooks_and_templates_name_options_that_there_are() -> None:
    hooks = YAML(typ="safe").load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {h["entry"] for h in hooks} == {"hitmiss validate", "hitmiss gate"}
    known = {f"--{name.replace('_', '-')}" for name in options_of(GateSpec)} | {
        "--rules",
        "--post",
        "--junit",
        "--quiet",
    }
    for name in ("gitlab.yml", "github.yml"):
        words = (ROOT / "examples" / "ci" / name).read_text().split()
        assert {w for w in words if w.startswith("--") and w != "--out"} <= known


@pytest.mark.usefixtures("github")
def test_the_fixture_fails_the_test_with_the_comment(tmp_path: Path) -> None:
    (tmp_path / "test_quality.py").write_text(
        "RULES = dict(baseline='before.csv', max_regression='roc_auc[language=*]=0', protocol='toxicity')\n"
        "def test_same(hitmiss_gate):\n    assert hitmiss_gate('same.csv', **RULES).passed\n"
        "def test_broken(hitmiss_gate):\n    hitmiss_gate('broken.csv', **RULES)\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "hitmiss.bridges.pytest_gate", "-p", "no:cacheprovider"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    made = subprocess.run([*words, "test_quality.py"], env=env, capture_output=True, text=True)
    assert "1 failed, 1 passed" in made.stdout and f"worse in language {BROKEN}" in made.stdout
