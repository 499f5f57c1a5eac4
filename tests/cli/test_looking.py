"""The verbs that look and change nothing: list, show, doctor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from hitmiss import __version__
from hitmiss.cli.doctor import package
from hitmiss.cli.main import run
from hitmiss.core import registry

Capture = pytest.CaptureFixture[str]


def printed(words: list[str], capsys: Capture) -> str:
    assert run(words) == 0
    return capsys.readouterr().out


def printed_json(words: list[str], capsys: Capture) -> dict[str, Any]:
    found = json.loads(printed([*words, "--json"], capsys))
    assert found["schema"] == 1
    return dict(found)


def test_the_version(capsys: Capture) -> None:
    assert printed(["--version"], capsys) == f"hitmiss {__version__}\n"


def test_list_metrics_lists_them_all(capsys: Capture) -> None:
    rows = printed_json(["list", "metrics"], capsys)["metrics"]
    assert [row["name"] for row in rows] == list(registry.all_metrics())
    eer = next(row for row in rows if row["name"] == "eer")
    assert eer["best"] == "low" and eer["columns"] == ["label", "score"] and eer["about"]
    lines = printed(["list", "metrics"], capsys).splitlines()
    assert lines[0].split() == ["name", "columns", "best", "about"]
    assert [line.split()[0] for line in lines[1:]] == [row["name"] for row in rows]


@pytest.mark.parametrize("kind", ["protocol", "reader"])
def test_list_others_lists_them_all(kind: str, capsys: Capture) -> None:
    rows = printed_json(["list", f"{kind}s"], capsys)[f"{kind}s"]
    assert [row["name"] for row in rows] == list(registry.all_of(kind))


@pytest.mark.parametrize("kind", ["protocol", "reader"])
def test_every_protocol_and_reader_can_be_shown(kind: str, capsys: Capture) -> None:
    for name in registry.all_of(kind):
        entries = printed_json(["show", name], capsys)["entries"]
        assert name in [entry.get(kind) for entry in entries]
        assert name in printed(["show", name], capsys)


def test_every_metric_can_be_shown_with_its_docstring(capsys: Capture) -> None:
    for name, metric in registry.all_metrics().items():
        (entry, *_) = printed_json(["show", name], capsys)["entries"]
        assert entry["metric"] == name and entry["best"] == metric.best
        assert set(entry["settings"]) == set(metric.defaults)
        assert (metric.function.__doc__ or "").strip().splitlines()[0] in printed(["show", name], capsys)


def test_show_takes_settings(capsys: Capture) -> None:
    (entry,) = printed_json(["show", "min_dcf(c_fa=1)"], capsys)["entries"]
    defaults = registry.find_metric("min_dcf").defaults
    assert entry["settings"] == {**defaults, "c_fa": 1}


def test_doctor_finds_this_machine_fit(capsys: Capture) -> None:
    findings = {f["what"]: f for f in printed_json(["doctor"], capsys)["findings"]}
    assert findings["hitmiss"]["found"] == __version__
    assert findings["numpy"]["state"] == "ok" and findings["python"]["state"] == "ok"
    assert "usable" in findings["threads"]["found"] and findings["clock"]["state"] == "ok"
    assert "numpy" in printed(["doctor"], capsys)


def test_doctor_names_thread_limits(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    findings = {f["what"]: f for f in printed_json(["doctor"], capsys)["findings"]}
    assert findings["threads"]["state"] == "note" and "OMP_NUM_THREADS=1" in findings["threads"]["found"]


def test_doctor_fails_without_the_core(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = "Requires-Dist: numpy<1\nRequires-Dist: no-such-package\n"
    metadata = f"Metadata-Version: 2.1\nName: hitmiss\nVersion: 9\n{needs}"
    (tmp_path / "hitmiss-9.dist-info").mkdir()
    (tmp_path / "hitmiss-9.dist-info" / "METADATA").write_text(metadata)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert run(["doctor"]) == 5
    seen = capsys.readouterr()
    assert seen.err == "hitmiss: this machine needs attention: numpy, no-such-package\n"
    assert "pip install 'numpy<1'" in seen.out


def test_a_missing_extra_is_not_broken() -> None:
    finding = package(Requirement("no-such-package>=1"), extra="frames")
    assert finding.state == "missing" and finding.advice == "pip install 'hitmiss[frames]'"
