"""Artifacts: whole or not at all, through links and into devices, never over an input; every edit of them is noticed."""

from __future__ import annotations

import copy
import errno
import json
import os
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, EnvironmentFault, HitmissError, UsageError
from hitmiss.core.results import Estimate, Results
from hitmiss.runs.manifest import require_complete
from hitmiss.runs.manifest import sealed as sealed_run
from hitmiss.runs.store import start


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Trials with two classes and two codecs."""
    rng = np.random.default_rng(1)
    positive = np.arange(60) % 3 == 0
    frame = pl.DataFrame(
        {
            "item": [f"i{k}" for k in range(60)],
            "label": np.where(positive, "bonafide", "spoof"),
            "score": np.round(rng.normal(size=60) + positive, 4),
            "codec": ["C01", "C02"] * 30,
        }
    )
    frame.write_csv(tmp_path / "table.csv")
    return tmp_path / "table.csv"


# --- writing ---------------------------------------------------------------------------------------------------------


def test_a_file_keeps_its_mode_and_a_link_is_followed(tmp_path: Path) -> None:
    secret, link = tmp_path / "secret.json", tmp_path / "link.json"
    secret.write_text("old")
    secret.chmod(0o600)
    link.symlink_to(secret)
    artifacts.write(link, "new")
    assert link.is_symlink() and secret.read_text() == "new"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    (tmp_path / "dangling").symlink_to(tmp_path / "made.txt")
    artifacts.write(tmp_path / "dangling", b"bytes")
    assert (tmp_path / "dangling").is_symlink() and (tmp_path / "made.txt").read_bytes() == b"bytes"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["dangling", "link.json", "made.txt", "secret.json"]


def test_a_pipe_is_written_into(tmp_path: Path, table: Path) -> None:
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    assert run(["score", str(table), "-m", "eer", "-o", str(pipe)]) == 0
    reader.join()
    assert stat.S_ISFIFO(pipe.stat().st_mode) and json.loads(found[0])["schema"] == 1


@pytest.mark.parametrize("verb", ["score", "report", "compare", "export", "gate"])
def test_a_device_is_written_into_and_stays(tmp_path: Path, table: Path, verb: str) -> None:
    device = tmp_path / "nothing"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.write_bytes(b"x")
    except OSError:
        pytest.skip("a device cannot be made here")
    results = tmp_path / "r.json"
    assert run(["score", str(table), "-m", "eer", "-o", str(results)]) == 0
    words = {
        "score": ["score", str(table), "-m", "eer", "-o", str(device)],
        "report": ["report", str(results), "-o", str(device)],
        "compare": ["compare", str(table), str(table), "-m", "eer", "-o", str(device)],
        "export": ["export", str(results), "--to", "csv", "-o", str(device)],
        "gate": ["gate", str(results), "--fail-if", "eer > 0.99", "--junit", str(device)],
    }[verb]
    assert run(words) == 0
    assert stat.S_ISCHR(device.stat().st_mode) and list(tmp_path.glob(".*")) == []


def test_a_path_of_an_open_file_is_that_file(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as file:
        file.write("before ")
        file.flush()
        artifacts.write(f"/dev/fd/{file.fileno()}", "after")
    assert (tmp_path / "out").read_text() == "before after"


def test_inputs_are_not_written_over(tmp_path: Path, table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, comparison = tmp_path / "r.json", tmp_path / "c.json"
    assert run(["score", str(table), "-m", "eer", "-o", str(results)]) == 0
    assert run(["compare", str(table), str(table), "-m", "eer", "-o", str(comparison)]) == 0
    (tmp_path / "link.csv").symlink_to(table)
    (page := tmp_path / "results.html").symlink_to(results)
    before = {path: path.read_bytes() for path in (table, results, comparison, page)}
    for words in (
        ["score", str(table), "-m", "eer", "-o", str(table)],
        ["score", str(table), "-m", "eer", "-o", str(tmp_path / "link.csv")],
        ["score", str(table), "-m", "eer", "--stream", "-o", str(table)],
        ["score", str(table), "-m", "eer", "--report", str(table)],
        ["compare", str(table), str(table), "-m", "eer", "-o", str(table)],
        ["export", str(results), "--to", "csv", "-o", str(results)],
        ["export", str(results), "--to", "markdown", "--comparison", str(comparison), "-o", str(comparison)],
        ["report", str(results), "-o", str(page)],
        ["gate", str(results), "--fail-if", "eer > 0.99", "--junit", str(results)],
    ):
        capsys.readouterr()
        assert run(words) == 2, words
        assert "is an input of this command" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in before} == before


def test_outside_a_command_a_file_may_be_read_and_written_again(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    Results((Estimate("eer", 0.1),)).save(path)
    Results.load(path).save(path)
    assert Results.load(path).one("eer").value == 0.1


def test_what_cannot_be_a_file_is_refused(tmp_path: Path) -> None:
    for path, code in ((tmp_path / "no" / "r.json", "no-folder"), (tmp_path, "is-folder")):
        with pytest.raises(UsageError) as refused:
            artifacts.write(path, "x")
        assert refused.value.code == code


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")

    def full(fd: int, data: Any) -> int:
        if len(data) > 3:
            return os.write(fd, data[:3])
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(artifacts, "push", full)
    with pytest.raises(EnvironmentFault) as refused:
        artifacts.write(path, "new and longer")
    assert refused.value.code == "disk-full" and "r.json" in str(refused.value)
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"] and path.read_text() == "old"


# --- edits -----------------------------------------------------------------------------------------------------------


def edits(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Every single edit of JSON data: a value changed, a field or an entry removed, doubled or added."""
    if isinstance(data, dict):
        yield f"{path} + field", _at(path, lambda part: part.__setitem__("added", 1))
        for key in data:
            yield f"{path} - {key}", _at(path, lambda part, key=key: part.pop(key))
            yield from edits(data[key], (*path, key))
    elif isinstance(data, list):
        yield f"{path} + entry", _at(path, lambda part: part.append(copy.deepcopy(part[-1]) if part else "more"))
        for i in range(min(len(data), 2)):
            yield f"{path} - {i}", _at(path, lambda part, i=i: part.pop(i))
            yield from edits(data[i], (*path, i))
    else:
        yield f"{path} changed", _at(path[:-1], lambda part: part.__setitem__(path[-1], _other(data)))


def _at(path: tuple[Any, ...], change: Callable[[Any], Any]) -> Callable[[Any], None]:
    def apply(data: Any) -> None:
        for step in path:
            data = data[step]
        change(data)

    return apply


def _other(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return "x" if value is None else not value
    return value + "x" if isinstance(value, str) else value * 2 + 1


def edited(path: Path) -> Iterator[tuple[str, str]]:
    """The texts of a JSON artifact after each single edit but the removal of its digest."""
    data = json.loads(path.read_text())
    for name, change in edits(data):
        if name == "() - digest":
            continue
        copied = copy.deepcopy(data)
        change(copied)
        yield name, json.dumps(copied)


def consumers(results: Path, table: Path, out: Path) -> list[list[str]]:
    """Every verb that reads results."""
    return [
        ["gate", str(results), "--fail-if", "eer > 0.99"],
        ["export", str(results), "--to", "csv"],
        ["report", str(results), "-o", str(out)],
        ["verify", str(results), str(table)],
    ]


def test_every_edit_of_results_is_noticed(tmp_path: Path, table: Path) -> None:
    results = tmp_path / "r.json"
    assert run(["score", str(table), "-m", "eer", "--by", "codec", "--bootstrap", "20", "-o", str(results)]) == 0
    whole = results.read_text()
    assert [run(words) for words in consumers(results, table, tmp_path / "r.html")] == [0, 0, 0, 0]
    found = 0
    for name, text in edited(results):
        if "pictures" in name and "displays" in name and found % 7:
            found += 1
            continue
        results.write_text(text)
        for load in (Results.load, _pictures):
            with pytest.raises(DataError):
                load(results)
        if found % 60 == 0:  # they all load by one of the two
            assert [run(words) for words in consumers(results, table, tmp_path / "r.html")] == [3, 3, 3, 1], name
        found += 1
    assert found > 150
    results.write_text(whole.replace("0.", "0.0", 1))
    assert run(["gate", str(results), "--fail-if", "eer > 0.99"]) == 3


def _pictures(path: Path) -> object:
    from hitmiss.reports.pictures import load

    return load(path)


def test_results_without_their_digest_are_refused(
    tmp_path: Path, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "r.json"
    assert run(["score", str(table), "-m", "eer", "-o", str(results)]) == 0
    data = json.loads(results.read_text())
    del data["digest"]
    results.write_text(json.dumps(data))
    for words in consumers(results, table, tmp_path / "r.html"):
        capsys.readouterr()
        assert run(words) != 0
        assert "carries no digest" in capsys.readouterr().err
    with pytest.raises(DataError) as caught:
        Results.load(results)
    assert caught.value.code == "unsealed-artifact"


def test_no_output_replaces_an_input_or_another_output(tmp_path: Path, table: Path) -> None:
    """Keys and plug-ins are inputs too; two outputs of one command need two names."""
    plugin, key = tmp_path / "plugin.py", tmp_path / "id_key"
    plugin.write_text("VALUE = 1\n")
    key.write_text("a private key\n")
    asked = ["score", str(table), "-m", "eer", "-o"]
    assert run(["--plugin", str(plugin), *asked, str(plugin)]) == 2
    assert run(["--sign", str(key), *asked, str(key)]) == 2
    assert (plugin.read_text(), key.read_text()) == ("VALUE = 1\n", "a private key\n")
    both = tmp_path / "both"
    assert run([*asked, str(both), "--report", str(both)]) == 2
    assert json.loads(both.read_text())["estimates"]


def test_a_link_beside_the_target_is_not_followed(tmp_path: Path) -> None:
    """What is written first has a name that cannot be guessed, and a name of any length works."""
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (tmp_path / f".r.json.{os.getpid()}.part").symlink_to(victim)
    artifacts.write(tmp_path / "r.json", "new")
    long = tmp_path / ("x" * 250)
    artifacts.write(long, "new")
    assert victim.read_text() == "untouched" and long.read_text() == "new"


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-16"])
def test_json_is_utf_8_whatever_the_terminal_is(encoding: str, tmp_path: Path) -> None:
    """Two slices that differ by a character which an encoding lacks stay two."""
    path = tmp_path / "scores.csv"
    rows = [f"{i},{'bonafide' if i % 2 else 'spoof'},{i % 7},{'−x' if i % 3 else '-x'}" for i in range(60)]
    path.write_text("\n".join(["item,label,score,codec", *rows]), encoding="utf-8")
    words = [sys.executable, "-m", "hitmiss", "score", str(path), "-m", "eer", "--by", "codec", "--json"]
    done = subprocess.run(words, capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding})
    found = json.loads(done.stdout.decode("utf-8"))
    assert {e["slice"]["codec"] for e in found["estimates"] if e["slice"]} >= {"−x", "-x"}


@pytest.mark.parametrize("runs", [2, 3])
def test_every_edit_of_a_comparison_is_noticed(tmp_path: Path, table: Path, runs: int) -> None:
    """Of a comparison and of a ranking: each edit by the loader that all verbs share, and by the verbs in turn."""
    results, comparison = tmp_path / "r.json", tmp_path / "c.json"
    other = tmp_path / "other.csv"
    pl.read_csv(table).with_columns(score=pl.col("score") + pl.int_range(pl.len()) % 5 * 0.1).write_csv(other)
    files = [str(table), str(other), str(table)][:runs]
    assert run(["score", str(table), "-m", "eer", "-o", str(results)]) == 0
    assert run(["compare", *files, "-m", "eer", "--bootstrap", "20", "-o", str(comparison)]) == 0
    export = ["export", str(results), "--to", "markdown", "--comparison", str(comparison)]
    takers = [
        *([(export, 0, 3)] if runs == 2 else []),
        (["report", str(comparison), "-o", str(tmp_path / "c.html")], 0, 3),
        (["verify", str(comparison), *files], 0, 1),
        (["gate", str(comparison), "--fail-if", "eer > 0.99"], 3, 3),  # takes results, and says so of a sound one too
        (["export", str(comparison), "--to", "csv"], 0, 3),
    ]
    assert [run(words) for words, _, _ in takers] == [code for _, code, _ in takers]
    texts = list(edited(comparison))
    assert len(texts) > 30
    for at, (name, text) in enumerate(texts):
        comparison.write_text(text)
        with pytest.raises(DataError) as refused:
            artifacts.load(comparison, "results")
        assert refused.value.code == "edited-artifact", name
        words, _, code = takers[at % len(takers)]
        assert run(words) == code, (name, words)


def a_run(folder: Path) -> Path:
    """A finished run of a detector."""
    items = [f"i{k}" for k in range(40)]
    frame = pl.DataFrame(
        {
            "item": items,
            "label": ["bonafide" if k % 2 else "spoof" for k in range(40)],
            "score": [(k % 7) / 3 + k % 2 for k in range(40)],
        }
    )
    with start(folder, kind="detect", config={"model": "m"}, items=items) as made:
        for at in made.todo():
            made.add(at, {"score": float(frame["score"][at])})
        facts = {"positive": "bonafide", "negative": "spoof", "score_kind": "logit"}
        made.finish(frame, **facts)
    return folder


@pytest.mark.parametrize("wrong", ["x", None, [], 1.5, {"a": 1}, True, -1])
def test_a_field_of_another_type_in_a_run_is_a_sentence(tmp_path: Path, wrong: object) -> None:
    """Anybody can make a new seal; what the fields are is checked all the same."""
    folder = a_run(tmp_path / "run")
    manifest = folder / "manifest.json"
    data = json.loads(manifest.read_text())
    data["facts"] |= {
        "numbers": [],
        "runs": [],
        "n_failed": 0,
        "n_scored": 40,
        "notes": [],
        "provenance": {},
        "rows": "x",
    }
    for path in [(name,) for name in data if name != "seal"] + [("facts", name) for name in data["facts"]]:
        changed = copy.deepcopy(data)
        del changed["facts"]["rows"]
        part = changed if len(path) == 1 else changed[path[0]]
        part[path[-1]] = wrong
        manifest.write_bytes(sealed_run(changed))
        try:
            assert len(hm.read(folder)) == 40
        except HitmissError as error:
            assert "bug" not in str(error)


def test_every_edit_of_a_run_is_noticed(tmp_path: Path) -> None:
    """Of the manifest every field, of the items every line, of the table its bytes: by score, gate, report and compare."""
    folder = a_run(tmp_path / "run")
    takers = [
        ["score", str(folder), "-m", "eer", "--bootstrap", "0"],
        ["gate", str(folder), "--fail-if", "eer > 0.99"],
        ["report", str(folder), "-m", "eer", "--bootstrap", "0", "-o", str(tmp_path / "r.html")],
        ["compare", str(folder), str(folder), "-m", "eer", "--bootstrap", "20"],
    ]
    assert [run(words) for words in takers] == [0, 0, 0, 0]
    results = tmp_path / "r.json"
    assert run([*takers[0], "-o", str(results)]) == 0
    takers.append(["verify", str(results), str(folder)])
    manifest = folder / "manifest.json"
    whole = manifest.read_bytes()
    texts = list(edited(manifest))
    assert len(texts) > 25
    for at, (name, text) in enumerate(texts):
        manifest.write_text(text)
        with pytest.raises(HitmissError):
            require_complete(folder)
        assert run(takers[at % len(takers)]) in (2, 3), name
    manifest.write_bytes(whole)
    (segment,) = (folder / "items").iterdir()
    for path in (segment, folder / "trials.parquet"):
        data = path.read_bytes()
        for at, place in enumerate(range(0, len(data), max(1, len(data) // 15))):
            for changed in (
                data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :],
                data[:place],
                data + data[:place],
            ):
                if changed != data:
                    path.write_bytes(changed)
                    with pytest.raises(DataError, match="changed after it was finished"):
                        require_complete(folder)
            path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            assert run(takers[at % len(takers)]) == 3, (path, place)
        path.write_bytes(data)
    assert run(takers[0]) == 0


MODELS = """import numpy as np
def look(item):
    return min(1.0, len(item.text) / 9)
def leads(x):
    found = np.stack([np.abs(x).mean((1, 2)), np.abs(np.diff(x, axis=1)).mean((1, 2))], axis=1)
    return 1 / (1 + np.exp(-(found * 9.0 - [1.6, 2.2])))
"""


def an_attack_run(folder: Path) -> list[list[str]]:
    """A run of attacks, and the commands that read it."""
    names, classes = np.array([f"r{k}" for k in range(6)]), np.array(["MI", "STTC"])
    signals, truth = (
        0.2 * np.random.default_rng(3).normal(size=(6, 60, 2)),
        np.array([[k % 2, k // 2] for k in range(6)]),
    )
    fs = np.array(100.0)
    np.savez(folder / "ecg.npz", x=signals, y=np.minimum(truth, 1), classes=classes, fs=fs, record=names)
    made = ["attack", "--detector", f"{folder / 'models.py'}:leads", "--data", str(folder / "ecg.npz")]
    way = ["--family", "band_noise", "--strengths", "0.5", "--outputs", "probability", "-o", str(folder / "run")]
    assert run([*made, *way]) == 0
    asked = [str(folder / "run"), "-p", "ecg-attacks", "--bootstrap", "0"]
    return [
        ["score", *asked],
        ["gate", *asked, "--fail-if", "changed > 0.999"],
        ["report", *asked, "-o", str(folder / "r.html")],
        ["compare", str(folder / "run"), str(folder / "run"), "-p", "ecg-attacks", "--bootstrap", "9"],
        [*made, *way, "--resume"],
    ]


def a_run_of_models(folder: Path) -> list[list[str]]:
    """A run of a model asked about texts, and the commands that read it."""
    rows = [{"id": f"q{k}", "text": "x" * (k + 1), "label": ("real", "fake")[k % 2]} for k in range(8)]
    (folder / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = ["llm", "--dataset", str(folder / "asked.jsonl"), "--models", f"{folder / 'models.py'}:look"]
    made += ["-o", str(folder / "run.jsonl"), "--run", str(folder / "run")]
    assert run(made) == 0
    asked = [str(folder / "run"), "--bootstrap", "0"]
    return [
        ["triage", *asked],
        ["gate", *asked, "-p", "triage", "--fail-if", "accuracy < 0.001"],
        ["report", *asked, "-p", "triage", "-o", str(folder / "r.html")],
        ["compare", asked[0], asked[0], "-p", "triage", "--bootstrap", "9"],
    ]


@pytest.mark.parametrize("make", [an_attack_run, a_run_of_models])
def test_every_verb_notices_edits_of_other_runs(tmp_path: Path, make: Callable[[Path], list[list[str]]]) -> None:
    """Of runs of attacks and of models: each edit of the manifest, and bytes of each file that the run holds."""
    (tmp_path / "models.py").write_text(MODELS)
    takers = make(tmp_path)
    assert [run(words) for words in takers] == [0] * len(takers)
    manifest = tmp_path / "run" / "manifest.json"
    whole = manifest.read_bytes()
    texts = list(edited(manifest))
    for at, (name, text) in enumerate(texts):
        manifest.write_text(text)
        with pytest.raises(HitmissError):
            require_complete(tmp_path / "run")
        if at % 5 == 0:
            assert run(takers[at // 5 % len(takers)]) in (2, 3), (name, takers[at // 5 % len(takers)])
    manifest.write_bytes(whole)
    for path in sorted((tmp_path / "run").rglob("*.parquet")):
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :])
        if path.name == "trials.parquet":
            assert [run(words) for words in takers[:4]] == [3] * 4, path
        path.write_bytes(data)
    assert len(texts) > 40 and run(takers[0]) == 0


WRONG = ("x", None, [], {}, -1, 1.5, True, [[]], {"a": [1]})


def test_a_field_of_another_type_is_a_sentence(tmp_path: Path) -> None:
    """Also where somebody made a digest for it."""
    plain = Results(
        (Estimate("eer", 0.1, 0.05, 0.2, n=20, n_positive=8, run={"seed": "1"}, slice={"codec": "C01"}),),
        "hitmiss:0.1.0|n:20/8",
        ("beware",),
    ).to_dict()
    path = tmp_path / "r.json"
    refused = 0
    for where in ((), ("estimates", 0)):
        part: Any = plain
        for step in where:
            part = part[step]
        for key, value in part.items():
            for wrong in WRONG:
                if wrong == value and type(wrong) is type(value):
                    continue
                made = copy.deepcopy(plain)
                inner: Any = made
                for step in where:
                    inner = inner[step]
                inner[key] = wrong
                path.write_text(json.dumps(artifacts.sealed(made)))
                try:
                    Results.load(path)
                except DataError as error:
                    assert error.code in ("malformed-results", "results-schema"), (key, wrong)
                    refused += 1
    assert refused > 100


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"{" * 100_000,
        b"[" * 100_000,
        b'{"schema": 1, "schema": 1}',
        b'{"schema": NaN}',
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
    ],
)
def test_what_is_no_json_object_is_a_sentence(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(text)
    with pytest.raises(DataError) as refused:
        Results.load(path)
    assert refused.value.code == "not-results"
    assert run(["gate", str(path), "--fail-if", "eer > 0.9"]) == 3


def test_results_without_a_figure_are_shown_by_nobody(tmp_path: Path, table: Path) -> None:
    results = tmp_path / "r.json"
    assert run(["score", str(table), "-m", "eer", "-o", str(results)]) == 0
    data = json.loads(results.read_text())
    results.write_text(json.dumps(artifacts.sealed({**data, "estimates": []})))
    assert [run(words) for words in consumers(results, table, tmp_path / "r.html")] == [2, 3, 3, 1]


# --- tallies ---------------------------------------------------------------------------------------------------------


def test_archives_that_unfold_beyond_reason_are_not_unfolded(tmp_path: Path) -> None:
    packed = tmp_path / "ecg.npz"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", bytes(100 * 2**20))
    with pytest.raises(DataError) as refused:
        artifacts.load_arrays(packed, ".npz", packed.name)
    assert refused.value.code == "oversized-archive"


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,",
        "  (\n x\n y)",
        "(" * 9000,
        "1",
        "{'descr': (1, 2)}",
        "\0",
    ],
)
def test_an_array_with_a_damaged_header_is_a_sentence(tmp_path: Path, header: str) -> None:
    text = header.encode("latin-1") + b"\n"
    packed = tmp_path / "ecg.npz"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(24))
    with pytest.raises(DataError) as refused:
        artifacts.load_arrays(packed, ".npz", packed.name)
    assert refused.value.code == "unreadable-file"


@pytest.mark.parametrize("wrong", ["x", None, -1, 1.5, True, 10**400, {"model": 1}])
def test_a_confusion_of_another_form_is_a_sentence(wrong: object) -> None:
    from hitmiss.protocols.triage import OUTCOMES, TriageExtras

    sound = {"run": {"model": "m"}, **{name: dict.fromkeys(OUTCOMES, 1) for name in ("fake", "real")}}
    assert TriageExtras.from_dict({"confusion": [sound]}) is not None
    for change in ({"run": wrong}, {"fake": {**dict.fromkeys(OUTCOMES, 1), "real": wrong}}):
        with pytest.raises(DataError) as refused:
            TriageExtras.from_dict({"confusion": [{**sound, **change}]})
        assert refused.value.code == "malformed-results"


@pytest.mark.parametrize("number", ["NaN", "1e999"])
def test_a_number_that_is_none_is_an_edit(tmp_path: Path, table: Path, number: str) -> None:
    """JSON readers take NaN and turn 1e999 into infinity; no digest can be made of either."""
    results = tmp_path / "r.json"
    assert run(["score", str(table), "-m", "eer", "-o", str(results)]) == 0
    text = results.read_text()
    value = json.loads(text)["estimates"][0]["value"]
    results.write_text(text.replace(str(value), number, 1))
    for words in consumers(results, table, tmp_path / "r.html"):
        assert run(words) in (1, 3), words
    folder = a_run(tmp_path / "run")
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"n_items": 40', f'"n_items": {number}'))
    assert run(["score", str(folder), "-m", "eer"]) == 3


def test_a_direction_that_is_none_is_refused(tmp_path: Path, table: Path) -> None:
    """Whoever edits a file may seal it again: each field is checked all the same."""
    results = tmp_path / "r.json"
    assert run(["score", str(table), "-m", "eer", "-o", str(results)]) == 0
    data = json.loads(results.read_text())
    data["estimates"][0]["best"] = "\u202e"
    results.write_text(json.dumps(artifacts.sealed(data)))
    assert [run(words) for words in consumers(results, table, tmp_path / "r.html")] == [3, 3, 3, 3]
