"""`hitmiss init`: look at files, ask once what they mean, and write it down as `hitmiss.toml`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import field_option
from hitmiss.core import progress
from hitmiss.core.design import Design
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.settings import NAME
from hitmiss.core.spec import CERTAINTY, OTHERS, READING, WRITING, opt

if TYPE_CHECKING:
    from hitmiss.evaluation.proposing import Choice, Look, Proposal, Question

FILES = (
    "The files: scores, and a key if another file has the labels; CSV, TSV, JSON lines, Parquet or an official file."
)
WIDEST = 24
"""Characters of a cell that are shown."""


def init(
    files: Annotated[list[str], arg(FILES, "FILE…")],
    key: Annotated[
        str | None, opt("Which file has the labels, if the files do not show it.", READING, common=True)
    ] = None,
    protocol: Annotated[str | None, field_option(Design, "protocol")] = None,
    metric: Annotated[list[str] | None, field_option(Design, "metrics")] = None,
    by: Annotated[list[str] | None, field_option(Design, "by")] = None,
    unit: Annotated[
        str | None, opt("Column(s) whose values are resampled as a whole; none for no unit.", CERTAINTY, common=True)
    ] = None,
    *,
    reading: Annotated[ReadSpec, fields(without=("settings",))],
    yes: Annotated[bool, opt("Take what is proposed, and ask nothing.", OTHERS, "--yes", "-y", common=True)] = False,
    force: Annotated[bool, opt("Replace a settings file.", CERTAINTY)] = False,
    output: Annotated[str, opt("The settings file to write.", WRITING, "--output", "-o", common=True)] = NAME,
) -> None:
    """Look at files, ask what they do not say, and write hitmiss.toml, which every verb takes from the folder.

    $ hitmiss init scores.csv key.csv
    """
    from hitmiss.core import artifacts
    from hitmiss.core.errors import UsageError
    from hitmiss.evaluation.proposing import look_at, propose
    from hitmiss.evaluation.protocol import find_protocol

    if Path(output).exists() and not force:
        raise UsageError.of("settings-exist", output=output)
    if "-" in (*files, key):
        raise UsageError.of("stdin-twice")
    if protocol is not None:
        find_protocol(protocol)
    given = printing.expanded(files)
    for path in dict.fromkeys((*given, *([key] if key else []))):
        _show(look_at(path, reading))
    found = propose(given, key, protocol, reading, (lambda q: q.proposed) if yes else _asked)
    asked = {"metrics": metric, "by": by, "unit": unit}
    printing.out(f"\n{_told(found)}")
    artifacts.write(output, "\n".join([*_lines(found, asked, Path(output).parent), ""]))
    printing.out(f"\nwrote {output}; next:\n  {_command(found, output, by)}")


def _show(own: Look) -> None:
    """Print the columns of a file and its first three rows."""
    from hitmiss.evaluation.proposing import rows_of

    printing.out(f"{own.path}:")
    header, *rows = (tuple(_short(cell) for cell in row) for row in rows_of(own))
    full = [(*row, *([""] * (len(header) - len(row))))[: len(header)] for row in rows]
    for line in printing.aligned([header, *full]):
        printing.out(f"  {line}")


def _short(cell: str) -> str:
    return cell if len(cell) <= WIDEST else f"{cell[: WIDEST - 1]}…"


def _asked(question: Question) -> Choice | None:
    """Ask at the terminal; without one, the question stays open."""
    if not sys.stdin.isatty():
        return None
    printing.out(f"\n{question.sentence}")
    for n, choice in enumerate(question.choices, 1):
        printing.out(f"  {n}  {choice.title}{' (proposed)' if choice is question.proposed else ''}")
    return _typed(question) if question.choices else None


def _typed(question: Question) -> Choice | None:
    """Read the answer: a number, or the words of a choice; Enter takes the proposal."""
    hint = f"1 to {len(question.choices)}" + (", Enter for the proposal" if question.proposed else "")
    while True:
        printing.out(f"{hint}: ")
        sys.stdout.flush()
        with progress.paused():
            line = sys.stdin.readline()
        text = line.strip()
        if not line:
            return None
        if not text and question.proposed is not None:
            return question.proposed
        if text.isdecimal() and 1 <= int(text) <= len(question.choices):
            return question.choices[int(text) - 1]
        named = [c for c in question.choices if text in (c.title, c.option, *c.keywords.values())]
        if len(named) == 1:
            return named[0]


def _told(found: Proposal) -> str:
    """Return what was found, one thing a line."""
    head = found.trials.header
    n, positive = len(found.trials), found.trials.n_positive
    roles = {
        "scores": ", ".join(found.scores),
        "key": found.key or "",
        "protocol": found.protocol or "",
        "trials": f"{n:,}: {positive:,} {head.positive}, {n - positive:,} {head.negative}",
        **{name: found.columns.get(name, "") for name in ("item", "label", "score", "decision", "confidence")},
        "positive": head.settled.removeprefix("positive = ") or head.positive,
        "higher": (head.negative if head.scale.is_reversed else head.positive)
        if "score" in found.trials.frame.columns
        else "",
        "runs": ", ".join(head.runs),
        "unit": ", ".join(found.unit),
        "slices": ", ".join(found.slices),
    }
    lines = printing.aligned([(name, value) for name, value in roles.items() if value])
    return "\n".join([*lines, *(f"note: {note}" for note in head.notes)])


def _lines(found: Proposal, asked: Mapping[str, object], folder: Path) -> Iterator[str]:
    yield "# What the files of this folder mean; every verb, hm.read and hm.evaluate take it. Options come first."
    if found.protocol is not None:
        yield f"protocol = {_value(found.protocol)}"
    if found.key is not None:
        yield f"key = {_value(_relative(found.key, folder))}"
    said = {name: getattr(found.read, name) for name in found.read.stated}
    if said:
        yield from ("", "[read]")
        yield from (f"{name} = {_value(value)}" for name, value in said.items() if value)
    metrics = asked["metrics"] or found.metrics
    unit = () if asked["unit"] == "none" else str(asked["unit"]).split(",") if asked["unit"] else found.unit
    ask = {"metrics": metrics, "by": asked["by"], "unit": unit, "bootstrap": 1000 if unit else None}
    if any(ask.values()) or found.slices:
        yield from ("", "[ask]")
    yield from (f"{name} = {_value(value)}" for name, value in ask.items() if value)
    if found.slices and not asked["by"]:
        yield f"# by = {_value(found.slices)}"


def _relative(path: str, folder: Path) -> str:
    """Return a path as it is written in a settings file of a folder."""
    import os

    return Path(os.path.relpath(path, folder)).as_posix()


def _value(value: object) -> str:
    """Return a value in TOML.

    >>> _value({"item": "my id"}), _value(("a", "b")), _value(True), _value(1000)
    ('{item = "my id"}', '["a", "b"]', 'true', '1000')
    """
    import json
    import re

    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, Mapping):
        named = ((k if re.fullmatch(r"[A-Za-z0-9_-]+", k) else _value(k), v) for k, v in value.items())
        return "{" + ", ".join(f"{name} = {_value(inner)}" for name, inner in named) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _command(found: Proposal, output: str, by: Sequence[str] | None) -> str:
    """Return the complete next command, with the first slices that the files offer."""
    import shlex

    other = [] if Path(output) == Path(NAME) else ["--settings", output]
    sliced = ["--by", found.slices[0]] if found.slices and not by else []
    return shlex.join(["hitmiss", found.verb, *found.scores, *sliced, *other])
