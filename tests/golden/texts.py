"""Frozen texts: what each documented command, golden command and wrong input printed, and its exit code.

A session is a list of commands in one folder: a page of the documentation after its set-up, the golden commands without
`--json`, the wrong inputs. Each has one file in `texts/`, made to be read in a diff. What depends on the machine (its
folders, versions, clocks) is replaced by a name.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
import shlex
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.docs.pages import PLUGINS, SET_UP, blocks
from tests.golden.commands import COMMANDS
from tests.golden.data import write_all
from tests.golden.wrong import WRONG, write_wrong

from hitmiss.core.registry import forget

TEXTS = Path(__file__).resolve().parent / "texts"
ROOT = Path(__file__).resolve().parents[2]
GENERATED = ("api.md", "cli.md", "metrics.md")
LEFT_OUT = ("report", "--for")
"""Words of commands of pages that take seconds and print one line; the pages' own test runs them."""
MACHINE = {"doctor"}
"""Verbs that print what this machine has."""
CHANGING = (
    (re.compile(r"hitmiss[ _:|/-]*v?\d+\.\d+(\.\d+)?(\.?(dev|rc|post)\d+)?(\+\w+)?"), "hitmiss VERSION"),
    (re.compile(r"\b(numpy|polars|python|scipy)[ :|]+\d+\.\d+[.\w+]*", re.I), r"\1 VERSION"),
    (re.compile(r"\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d)?)?"), "DATE"),
    (re.compile(r"\d[\d.,]*(?: ?(?:m?s|seconds|minutes|min)|/s| per second)\b(?! of)"), "TIME"),
    (re.compile(r"^\d[\d,]* of \d[\d,]*, .*left.*\n", re.M), ""),
    (re.compile(r"\((?:decode|read) \d+%[^)]*\)|(?<=waited for: ).*"), "SHARES"),
    (re.compile(r"[\d.,]+ (?:kB|KB|KiB|MB|MiB|GB|GiB)\b"), "SIZE"),
    (re.compile(r"(?<=criteria )[0-9a-f]{16}|(?<=digest )[0-9a-f]{64}"), "HASH"),
)
CLOCKED = re.compile(r"(?<=\|data:)[0-9a-f]+|(?<=miss)( +\d+ ) .*\[.*\].*")
"""Latencies, and the hash of rows that hold them, in sessions that ask a model themselves."""
COMPUTED = re.compile(r"(?<=\|protocol:)((?:ecg-attacks|shortcuts)\|.*?\|)((?:(?:data|a|b):[0-9a-f.]+\|)+)")
"""Hashes of scores that a network computed on this machine: their last bits depend on its processor."""
Session = Callable[[Path], Iterator[list[str]]]


def page(path: Path) -> Session:
    """Return the commands of a page, its set-up apart."""

    def commands(folder: Path) -> Iterator[list[str]]:
        for block in blocks(path):
            if title := re.match(r"# (\S+\.(?:py|toml))\n", block.text):
                (folder / title[1]).write_text(block.text, encoding="utf-8")
            if block.why_not is None:
                yield from (words for words in block.commands if words[0] != "demo" and is_frozen(words))

    return commands


def is_frozen(words: list[str]) -> bool:
    """Return whether the text of a page's command is kept."""
    return not {*words} & {*LEFT_OUT}


def session_of(page: Path) -> str:
    """Return the name of the session of a page."""
    return page.relative_to(ROOT).with_suffix("").as_posix().replace("/", "-")


def golden(folder: Path) -> Iterator[list[str]]:
    """Return the golden commands, printed for people, each after those that it needs."""
    write_all(folder)
    by_name = {c.name: c for c in COMMANDS}
    done: set[str] = set()

    def with_earlier(name: str) -> Iterator[list[str]]:
        if name not in done:
            done.add(name)
            for earlier in by_name[name].after:
                yield from with_earlier(earlier)
            yield [word for word in by_name[name].words.split() if word != "--json"]

    for name in by_name:
        yield from with_earlier(name)


def wrong(folder: Path) -> Iterator[list[str]]:
    """Return the wrong inputs."""
    write_all(folder)
    write_wrong(folder)
    yield from (words.split() for words in WRONG)


def sessions() -> dict[str, Session]:
    """Return every session by the name of its file."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    typed = {p for p in pages if p.name not in GENERATED and any(b.commands for b in blocks(p) if b.why_not is None)}
    named = {session_of(p): page(p) for p in pages if p in typed}
    return {**named, "golden": golden, "refusals": wrong}


def set_ups(name: str) -> list[str]:
    """Return the set-up commands of a session."""
    path = ROOT / f"{name.replace('docs-', 'docs/').replace('tutorials-', 'tutorials/')}.md"
    if not path.exists():
        return []
    return list(dict.fromkeys(found[1].strip() for found in SET_UP.finditer(path.read_text(encoding="utf-8"))))


def printed(words: list[str], folder: Path) -> str:
    """Return a command, what it printed on both streams, and its exit code."""
    from hitmiss.cli.main import run

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = run(words)
    text = out.getvalue()
    if "--json" in words or {*words} & MACHINE:
        text = f"({'JSON' if '--json' in words else 'what this machine has'})\n"
    parts = [f"$ hitmiss {shlex.join(words)}", plain(text, folder)]
    if err.getvalue().strip():
        parts += ["--- stderr", plain(err.getvalue(), folder)]
    return "\n".join([*(p for p in parts if p), f"--- exit {code}"])


def plain(text: str, folder: Path) -> str:
    """Return a text without what depends on the machine or the hour."""
    for place in {str(folder), str(folder.resolve())}:
        text = text.replace(place, "FOLDER")
    for pattern, name in CHANGING:
        text = pattern.sub(name, text)
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


def transcript(name: str, printed: list[str]) -> str:
    """Return what the commands of a session printed as one text."""
    text = "\n\n".join(printed) + "\n"
    text = COMPUTED.sub(lambda found: found[1] + re.sub(r"(?<=:)[0-9a-f.]+", "HASH", found[2]), text)
    return CLOCKED.sub(r"\1 TIME", text) if name == "docs-llm" else text


class Stage:
    """A place where sessions run, each in a folder of its own; a set-up runs once and is copied."""

    def __init__(self, place: Path) -> None:
        self.place = place.resolve()
        self.made: dict[str, Path] = {}

    def transcribe(self, name: str) -> str:
        """Run the commands of a session and return what they printed."""
        os.environ["COLUMNS"] = "100"
        folder = self.place / name
        folder.mkdir()
        for set_up in set_ups(name):
            shutil.copytree(self._set_up(set_up), folder, dirs_exist_ok=True)
        with contextlib.chdir(folder):
            text = transcript(name, [printed(words, folder) for words in sessions()[name](folder)])
        for kind, own in PLUGINS:
            with contextlib.suppress(KeyError):
                forget(own, kind)
        return text

    def _set_up(self, command: str) -> Path:
        if command not in self.made:
            folder = self.made[command] = self.place / f"set-up {len(self.made)}"
            folder.mkdir()
            with contextlib.chdir(folder):
                printed(command.split(), folder)
        return self.made[command]


def frozen_text(name: str) -> str:
    """Return what a session printed when it was frozen."""
    path = TEXTS / f"{name}.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def difference(name: str, found: str) -> str:
    """Return a diff of a session against what was frozen, each part under its command; empty where they are equal."""
    lines = difflib.unified_diff(
        frozen_text(name).splitlines(), found.splitlines(), f"{name}: frozen", f"{name}: now", n=2, lineterm=""
    )
    return "\n".join(lines)


def write(name: str, found: str) -> None:
    """Freeze what a session prints."""
    TEXTS.mkdir(exist_ok=True)
    (TEXTS / f"{name}.txt").write_text(found, encoding="utf-8")
