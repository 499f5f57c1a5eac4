"""The tour of the code names files that exist, and a command passes through them in the order of its steps."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.conftest import SetUp

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
COMMAND = re.search(r"^`hitmiss (score .*)`$", PAGE, re.M)
STEPS = re.findall(r"^\| (\d+) \| .* \| (.*) \|$", PAGE, re.M)
NOT_ON_THIS_WAY = {
    *("cli/failures.py", "core/settings.py", "core/protocol.py", "protocols/asvspoof5.toml", "io/join.py"),
    *("derive/decisions.py", "engine/derived.py"),
}
"""Files of steps that this command does not need: it does not fail, and has no settings, protocol, key, threshold or derived
number."""


def files(text: str) -> list[str]:
    return [name for name in re.findall(r"`([\w/]+\.(?:py|toml))`", text) if name != "hitmiss.toml"]


def test_every_file_is_there() -> None:
    named = files(PAGE)
    assert len(named) > 40
    assert [
        name for name in named if not (ROOT / "src" / "hitmiss" / name).exists() and not (ROOT / name).exists()
    ] == []


def test_it_is_one_page() -> None:
    assert len(PAGE.splitlines()) <= 80


WATCHED = """
import contextlib, io, sys
seen = set()
sys.setprofile(lambda frame, event, argument: seen.add(frame.f_code.co_filename.replace(chr(92), "/").rpartition("/hitmiss/")[2]))
from hitmiss.cli.main import run
with contextlib.redirect_stdout(io.StringIO()):
    code = run(sys.argv[1:])
sys.setprofile(None)
print(code, *sorted(seen))
"""


def test_the_command_passes_through_the_files(set_up: SetUp, tmp_path: Path) -> None:
    """In a process of its own: what was already looked up would not be called again."""
    assert COMMAND is not None and len(STEPS) == 17
    set_up("demo --files --only clips", tmp_path)
    words = COMMAND[1].replace("1000", "100").split()
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *words], cwd=tmp_path, capture_output=True, encoding="utf-8", check=True
    )
    code, *seen = done.stdout.split()
    assert code == "0"
    assert {name for _, named in STEPS for name in files(named)} - {*seen} <= NOT_ON_THIS_WAY
