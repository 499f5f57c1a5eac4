"""The golden net: what each golden command gave, and what each documented command printed, when it was written down.

    python -m tests.golden.frozen                      say what differs: numbers, then texts as a diff
    python -m tests.golden.frozen --write [NAME …]     write down again, everything or these
    python -m tests.golden.frozen --texts [--write]    the texts alone; --numbers: the numbers alone

A NAME is that of a command in commands.py, or that of a session in texts/ (`README`, `docs-gate`, `golden`, `refusals`).
Of the numbers (figures.json) only they and what they are of are kept, to nine significant digits: new fields may appear
beside the old ones. Terminal texts, refusals and exit codes are in texts/, one file per session.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FIGURES = HERE / "figures.json"
TEXTS = {
    "signature", "warnings", "note", "notes", "method", "message", "hitmiss", "version", "versions", "numpy", "schema",
    "origin", "title", "text", "words", "seconds", "created", "time", "times", "digest", "sha256", "sources", "provenance",
    "path", "folder", "output", "reason", "remarks", "rate", "clips_per_second", "waited", "elapsed", "started", "finished",
    "design", "reading", "seal", "verdict", "pictures", "shares", "questions", "facts",
}  # fmt: skip


def figures_of(command: Any, folder: Path) -> Any:
    """What a command gives, run in `folder`: its exit code, and its JSON or its text without what may be reworded."""
    from hitmiss.cli.main import run

    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as said:
        code = run(command.words.split())
    text = (folder / command.reads).read_text(encoding="utf-8") if command.reads else out.getvalue()
    given: Any = text.splitlines()
    with contextlib.suppress(ValueError):
        given = json.loads(text)
    if command.computed and isinstance(given, dict):
        given.pop("content", None)
    if command.reads:
        given = [{k: _number(v) for k, v in row.items()} for row in csv.DictReader(io.StringIO(text))]
    return {"exit": code, "gives": kept(given) if code in (0, 1) else said.getvalue().splitlines()[:1]}


def _number(text: str) -> float | str:
    with contextlib.suppress(ValueError):
        return float(text)
    return text


def kept(value: Any) -> Any:
    """A JSON value with its numbers rounded and its free texts left out."""
    if isinstance(value, dict):
        return {k: kept(v) for k, v in value.items() if k not in TEXTS}
    if isinstance(value, list):
        return [kept(v) for v in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def differences(frozen: Any, found: Any, place: str = "") -> Iterator[str]:
    """Where what is found lacks or contradicts what is frozen; what it has more of is no difference."""
    if isinstance(frozen, dict) and isinstance(found, dict):
        for name, value in frozen.items():
            if name not in found:
                yield f"{place}/{name}: missing"
            else:
                yield from differences(value, found[name], f"{place}/{name}")
    elif isinstance(frozen, list) and isinstance(found, list):
        if len(frozen) != len(found):
            yield f"{place}: {len(frozen)} entries were frozen, {len(found)} found"
        for i, (a, b) in enumerate(zip(frozen, found, strict=False)):
            yield from differences(a, b, f"{place}/{i}")
    elif isinstance(frozen, float) and isinstance(found, int | float) and not isinstance(found, bool):
        if abs(frozen - found) > 1e-7 * max(abs(frozen), 1e-3):
            yield f"{place}: {frozen} was frozen, {found} found"
    elif frozen != found:
        yield f"{place}: {frozen!r} was frozen, {found!r} found"


def all_figures(names: set[str] | None = None) -> dict[str, Any]:
    """The figures of all commands, or of some, on fresh files; a command runs once, and after those it needs."""
    sys.path.insert(0, str(HERE))
    from commands import COMMANDS
    from data import write_all

    by_name = {c.name: c for c in COMMANDS}
    done: dict[str, Any] = {}

    def make(name: str, folder: Path) -> None:
        if name not in done:
            for earlier in by_name[name].after:
                make(earlier, folder)
            done[name] = figures_of(by_name[name], folder)

    with tempfile.TemporaryDirectory() as place:
        write_all(Path(place))
        for name in by_name if names is None else names:
            make(name, Path(place))
    return done


def main(words: list[str]) -> int:
    """Write down the numbers and texts, or say what differs."""
    from tests.golden import texts

    os.environ.setdefault("COLUMNS", "120")
    names = {w for w in words if not w.startswith("-")}
    ours = names & {*texts.sessions()}
    differs = False
    if "--texts" not in words and (names - ours or not names):
        differs |= _numbers(names - ours or None, is_written="--write" in words)
    if "--numbers" not in words and (ours or not names):
        differs |= _texts(sorted(ours) or None, is_written="--write" in words)
    return int(differs)


def _numbers(names: set[str] | None, *, is_written: bool) -> bool:
    """Write the numbers of these commands, or say which differ; return whether any does."""
    found = all_figures(names)
    frozen = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    if is_written:
        merged = found if names is None else {**frozen, **found}
        lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in sorted(merged.items()))
        FIGURES.write_text("{\n" + lines + "\n}\n", encoding="utf-8")
        return False
    wrong = [f"{name}{w}" for name, figures in found.items() for w in differences(frozen.get(name), figures)]
    print("\n".join(wrong) or f"{len(found)} commands give the numbers that were frozen")
    return bool(wrong)


def _texts(names: list[str] | None, *, is_written: bool) -> bool:
    """Write the texts of these sessions, or show how they differ; return whether any does."""
    from tests.golden import texts

    wrong = 0
    chosen = names or [*texts.sessions()]
    with tempfile.TemporaryDirectory() as place:
        stage = texts.Stage(Path(place))
        for name in chosen:
            found = stage.transcribe(name)
            if diff := texts.difference(name, found):
                wrong += 1
                print(diff, flush=True)
            if is_written:
                texts.write(name, found)
    if names is None and is_written:
        for old in {f.stem for f in texts.TEXTS.glob("*.txt")} - {*texts.sessions()}:
            (texts.TEXTS / f"{old}.txt").unlink()
    print(f"{len(chosen)} sessions: {wrong} {'written anew' if is_written else 'differ from what was frozen'}")
    return bool(wrong) and not is_written


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
