"""Every code of the catalogue is produced by a test: checked at the end of a run of all tests (`make test`).

A code that no test produces fails the run, unless `extras.txt` lists it (tests with heavy packages produce it) or `open.txt`
(nothing is known to produce it). `open.txt` only gets shorter: a run of all tests
names the codes in it that were produced, and `PRODUCED=write make test` strikes them out.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OPEN, EXTRAS = HERE / "open.txt", HERE / "extras.txt"
FOLDER = "HITMISS_PRODUCED"


def begin(config: pytest.Config) -> None:
    """Record the findings of this process and of those that it starts, if all tests are to run."""
    if FOLDER not in os.environ and _is_whole(config):
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="produced-")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    if FOLDER in os.environ:
        found = spec_from_file_location("produced_watch", HERE / "sitecustomize.py")
        assert found is not None
        assert found.loader is not None
        found.loader.exec_module(module_from_spec(found))


def _is_whole(config: pytest.Config) -> bool:
    asked = config.option
    return (
        not (asked.keyword or asked.collectonly)
        and asked.markexpr == "not extras"
        and config.args == config.getini("testpaths")
    )


def end(session: pytest.Session) -> list[str]:
    """Return what is wrong after a run of all tests, and let it fail; nothing in a worker, or after another run."""
    config = session.config
    if hasattr(config, "workerinput") or FOLDER not in os.environ or not _is_whole(config):
        return []
    from hitmiss.findings.catalogue import everything

    folder = Path(os.environ[FOLDER])
    seen = {code for file in folder.glob("*.codes") for code in file.read_text(encoding="utf-8").split()}
    shutil.rmtree(folder, ignore_errors=True)
    known, left = {code for _, code, _ in everything()}, set(OPEN.read_text(encoding="utf-8").split())
    if os.environ.get("PRODUCED") == "write":
        OPEN.write_text("".join(f"{code}\n" for code in sorted(left & known - seen)), encoding="utf-8")
    told = [
        f"open.txt lists {len(left & seen)} codes that a test produces, strike them out: PRODUCED=write make test"
    ] * bool(left & seen)
    elsewhere = set(EXTRAS.read_text(encoding="utf-8").split())
    if missing := sorted(known - seen - left - elsewhere):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        told.append(f"no test produces these codes of the catalogue: {', '.join(missing)}")
    return told
