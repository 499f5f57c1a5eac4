"""The wheel alone, without extras and without the developer's packages: what the first minute and every page need."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *(p for p in sorted(DOCS.rglob("*.md")) if p.name not in ("cli.md", "metrics.md") and not p.name.startswith("api")),
]
PYTHONS = ("3.11", "3.12", "3.13")
LEFT_OUT = re.compile(r"no file|there is no")
"""What a command says whose file the set-up left out, for want of an extra that it named."""
NAMES_EXTRA = re.compile(r"pip install '?hitmiss\[[a-z]+\]")
pytestmark = [pytest.mark.extras, pytest.mark.skipif(sys.platform == "win32", reason="the paths are POSIX paths")]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


UV = Path(sys.executable).with_name("uv")


def interpreter(version: str) -> str | None:
    """Return a Python of this version that is installed here: on the path, by pyenv (whose shims may refuse), or by uv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    managed = Path.home() / ".local" / "share" / "uv" / "python"
    own = [*pyenv.glob(f"{version}.*"), *managed.glob(f"cpython-{version}.*")]
    places = [shutil.which(f"python{version}"), *(str(folder / "bin" / f"python{version}") for folder in sorted(own))]
    for place in places:
        if place and subprocess.run([place, "--version"], capture_output=True).returncode == 0:
            return place
    return None


Bare = tuple[str, dict[str, str]]
"""An interpreter of an environment that holds the wheel alone, and the variables of its commands."""


def bare(wheel: Path, version: str, folder: Path) -> Bare:
    """Install the wheel and what it requires into a new environment; return its interpreter and its variables."""
    found = interpreter(version)
    if found is None:
        pytest.skip(f"there is no Python {version} here")
    subprocess.run([found, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    own = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    own |= {"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "COLUMNS": "200", "PYTHONIOENCODING": "utf-8"}
    ways = [[str(UV), "pip", "install", "--quiet", "--python", python]] if UV.exists() else []
    for way in (*ways, [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]):
        if subprocess.run([*way, str(wheel)], env=own).returncode == 0:
            return python, own
    pytest.fail("the wheel cannot be installed")


@pytest.fixture(scope="module", params=PYTHONS)
def alone(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Bare:
    """The wheel alone, on each Python that is at hand."""
    return bare(wheel, request.param, tmp_path_factory.mktemp(request.param))


def test_the_first_commands_work_without_extras(alone: Bare, tmp_path: Path) -> None:
    _, own = alone
    for command in ("hitmiss --version", "hitmiss doctor", "hitmiss demo --small", "hitmiss demo --files"):
        done = subprocess.run(command.split(), cwd=tmp_path, env=own, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr[-2000:]}"
    assert "hitmiss[image]" in done.stderr, "what is left out is said, with the extra that brings it"


def test_every_page_works_with_the_wheel_alone_or_names_its_extra(alone: Bare, tmp_path: Path) -> None:
    python, own = alone
    typing = [python, str(Path(__file__).with_name("type_pages.py")), *map(str, PAGES)]
    done = subprocess.run(typing, cwd=tmp_path, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    pages = [json.loads(line) for line in done.stdout.splitlines()]
    typed = [(page["page"], each) for page in pages for each in page["typed"]]
    assert len(typed) > 80
    lacking = {page["page"] for page in pages for each in page["typed"] if NAMES_EXTRA.search(each["said"])}
    wrong = [
        f"{Path(page).name}: hitmiss {' '.join(each['words'])}\n{each['said'][-400:]}"
        for page, each in typed
        if each["code"]
        and not NAMES_EXTRA.search(each["said"])
        and not (page in lacking and LEFT_OUT.search(each["said"]))
    ]
    print(
        f"{len(typed)} commands of {len(pages)} pages: {sum(not each['code'] for _, each in typed)} work with the wheel alone"
    )
    assert wrong == [], "\n".join(wrong)
