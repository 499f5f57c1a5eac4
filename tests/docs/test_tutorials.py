"""Each tutorial, as its reader types it: an empty folder, a wheel in a fresh environment, at most five commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.docs.pages import joined

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
READERS = {"spoofing", "moderation", "medical", "llm", "challenge"}
MOST = 5
LATER = dict.fromkeys(READERS - {"spoofing"}, pytest.mark.extras)
"""One tutorial is followed by `make test`, the others by `make test-extras`: they start most processes of all tests."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A fresh environment with the wheel; the packages that it depends on are those of this one."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    python = folder / "venv" / "bin" / "python"
    own = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    own |= {"PATH": f"{folder / 'venv' / 'bin'}:/usr/bin:/bin", "PYTHONIOENCODING": "utf-8", "COLUMNS": "200"}
    install = [
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-index",
        "--no-compile",
        str(wheel),
    ]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *install], check=True, env=own)
    ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    place = subprocess.run(ask, check=True, capture_output=True, text=True, env=own).stdout.strip()
    (Path(place) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = [str(python), "-c", "import hitmiss; print(hitmiss.__file__)"]
    found = subprocess.run(where, check=True, capture_output=True, text=True, env=own, cwd=folder).stdout
    assert found.startswith(str(folder)), "the wheel must be the one that is used, not the checkout"
    return own


def steps(page: Path) -> list[tuple[str, list[str]]]:
    """The commands of a page, each with the lines that the page shows of its output."""
    (block,) = re.findall(r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    found: list[tuple[str, list[str]]] = []
    for line in joined(block).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(" ".join(line.split()))
    return found


def test_there_is_a_tutorial_for_every_reader() -> None:
    assert {page.stem for page in PAGES} == READERS


@pytest.mark.skipif(sys.platform == "win32", reason="the commands are typed into a POSIX shell")
@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem, marks=LATER.get(page.stem, ())) for page in PAGES])
def test_the_commands_work_in_an_empty_folder(page: Path, environment: dict[str, str], tmp_path: Path) -> None:
    assert "](../installation.md)" in page.read_text(encoding="utf-8"), "a reader must learn how to install"
    assert len(steps(page)) <= MOST
    for command, shown in steps(page):
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8"
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        printed = [" ".join(line.split()) for line in done.stdout.splitlines()]
        assert [line for line in shown if line not in printed] == [], command
    assert any(tmp_path.glob("*.html"))
    assert re.search(r"!\[[^\]]+\]\(\.\./\w+\.png\)", page.read_text(encoding="utf-8")), "a tutorial has a picture"
