"""Recognise the log of another tool, and say how its rows are read.

An answer that is graded yes or no is a trial whose truth is `right`: accuracy is then the share that the tool itself
reports, and two runs are compared by McNemar's test. Grades between are compared by their means. Where the caller names
a class (`--positive fake`), the target of a sample is its class and the answer the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hitmiss.core.columns import FIXED
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.header import GRADES
from hitmiss.core.read_spec import ReadSpec
from hitmiss.io.addresses import STDIN, is_remote
from hitmiss.io.fetch import expand
from hitmiss.io.frames import head_of
from hitmiss.io.logs import ENDINGS, choices, garak, inspect_ai, lm_eval, promptfoo
from hitmiss.io.logs.log import RIGHT, WRONG, Log, Row, table_of
from hitmiss.io.source import SourceBytes, SourceHead

HEAD_BYTES: Final = 1 << 16
NUMBERS: Final = ("grade", "seconds", "cost")
UNCERTAIN: Final = "uncertain"


@dataclass(frozen=True)
class Tool:
    """A tool whose logs are read: how they are recognised, and how they are read."""

    name: str
    about: str
    is_log: Callable[[bytes], bool]
    read: Callable[[Path], Log]


LM_EVAL: Final = Tool("lm-eval", "a folder of lm-eval with --log_samples", lm_eval.is_log, lm_eval.read_log)
TOOLS: Final = (
    Tool("inspect_ai", "logs of inspect_ai: .eval, or .json", inspect_ai.is_log, inspect_ai.read_log),
    LM_EVAL,
    Tool("promptfoo", "results of promptfoo eval -o results.json", promptfoo.is_log, promptfoo.read_log),
    Tool("garak", "report.jsonl of garak", garak.is_log, garak.read_log),
    Tool("label-studio", "JSON export of Label Studio", choices.is_label_studio, choices.read_label_studio),
    Tool("argilla", "JSON export of Argilla", choices.is_argilla, choices.read_argilla),
)


@dataclass(frozen=True)
class OpenedLog:
    """A log as a table, how to read it, and what it says about how it was made."""

    sources: tuple[SourceHead, ...]
    options: ReadSpec
    provenance: Mapping[str, object]
    notes: tuple[str, ...]
    choices: tuple[str, ...] = ()


def find_tool(path: Path) -> Tool | None:
    """Return the tool that wrote a file or a folder; None for anything else."""
    if path.is_dir():
        return LM_EVAL if lm_eval.has_logs(path) else None
    if path.suffix not in ENDINGS or not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES).removeprefix(b"\xef\xbb\xbf")
    return next((tool for tool in TOOLS if tool.is_log(head.lstrip())), None)


def open_log(source: object, options: ReadSpec) -> OpenedLog | None:
    """Open the log of another tool; None for any other source. Several logs are not one run: they are refused."""
    given = source if isinstance(source, list | tuple) else [source]
    if not all(isinstance(one, str | Path) and str(one) != STDIN and not is_remote(one) for one in given):
        return None
    if options.layout is not None:  # the caller, or a protocol, says what the file is
        return None
    paths = [Path(str(one)) for one in expand(list(given))] if given else []
    tools = [find_tool(path) for path in paths]
    if not any(tools):
        return None
    if len(paths) > 1:
        raise UsageError.of("several-logs", path_name=paths[1].name)
    assert tools[0] is not None
    log = tools[0].read(paths[0])
    rows, notes = _of_one_scorer(log, options, paths[0])
    own = _graded(log, rows, options) if log.is_graded else _chosen(rows)
    frame = table_of(own)
    runs = [name for name in log.runs if name in frame.columns and (name != "trial" or frame[name].n_unique() > 1)]
    unused = [name for name in log.runs if name not in runs and name in frame.columns]
    frame = frame.drop([*unused, "scorer"], strict=False)
    content = SourceBytes(paths[0].name, log.sha256, b"", log.tool)
    head = SourceHead(paths[0].name, head_of(frame), tuple(frame.columns), content=content, frame=frame)
    columns = {name: name for name in FIXED if name in frame.columns}
    numbers = tuple(name for name in NUMBERS if name in frame.columns)
    classes: dict[str, object] = {} if options.positive or not log.is_graded else {"positive": RIGHT, "negative": WRONG}
    read = options.changed(
        columns=dict(columns) | dict(options.columns),
        runs=tuple(dict.fromkeys((*options.runs, *runs))),
        numbers=tuple(dict.fromkeys((*options.numbers, *numbers))),
        where={name: value for name, value in options.where.items() if name != "scorer"},
        **classes,
    )
    made = {name: value for name, value in log.facts.items() if value is not None}
    graded = {GRADES: rows[0].get("scorer") or log.tool} if log.is_graded and not options.positive else {}
    provenance = {**made, **graded, **({"summary": dict(log.summary)} if log.summary else {})}
    choices_made = tuple(f"graded:{by}" for by in graded.values())
    return OpenedLog((head,), read, provenance, (*log.notes, *notes, *_failures(log, rows)), choices_made)


def _of_one_scorer(log: Log, options: ReadSpec, path: Path) -> tuple[list[Row], list[str]]:
    """Return the rows of the scorer that the caller names, or of the first one, and what was not taken."""
    if not log.scorers:
        return list(log.rows), []
    asked = next(iter(options.where.get("scorer", ())), None)
    named = next((n for n in log.scorers if asked in (n, n.split(",")[0])), None) if asked else log.scorers[0]
    if named is None:
        raise UnknownName(f"scorer in {path.name}", str(asked), log.scorers)
    rows = [row for row in log.rows if row["scorer"] == named]
    others = [name for name in log.scorers if name != named]
    first = others[0].split(",")[0] if others else ""
    said = f"answers are graded by {named}; the log has {', '.join(others)} too: --where scorer={first} takes it"
    return rows, [said] if others and not asked else []


def _failures(log: Log, rows: list[Row]) -> list[str]:
    """Say how many answers have no grade, which most tools leave out of their own numbers."""
    n = sum(row.get("grade") is None for row in rows) if log.is_graded else 0
    if not n:
        return []
    if not _is_binary(rows):
        return [f"{n:,} of {len(rows):,} answers have no grade and are left out of the mean, as {log.tool} does"]
    return [
        f"{n:,} of {len(rows):,} answers have no grade: they count as wrong in accuracy, and {log.tool} leaves them out, "
        "as accuracy_answered does"
    ]


def _is_binary(rows: list[Row]) -> bool:
    return all(row["grade"] in (0.0, 1.0, None) for row in rows)


def _graded(log: Log, rows: list[Row], options: ReadSpec) -> list[Row]:
    """Return graded answers as rows of trials."""
    if options.positive:
        return _classified(rows)
    if all(row["grade"] is None for row in rows):
        raise DataError.of("log-not-graded", path_name=log.sources[0].name)
    is_binary = _is_binary(rows)
    dropped = () if log.tool == "garak" else ("target",)
    found = []
    for row in rows:
        kept = {name: value for name, value in row.items() if name not in (*dropped, "answer")}
        said = "" if row["grade"] is None else RIGHT if row["grade"] == 1.0 else WRONG
        if is_binary or row["grade"] is not None:  # a mean takes the answers that have a grade
            found.append({**kept, "label": RIGHT, **({"decision": said} if is_binary else {"score": row["grade"]})})
    return found


def _classified(rows: list[Row]) -> list[Row]:
    """Return answers with their targets as classes; an answer that is no class of the data is an abstention."""
    classes = {str(row["target"]).strip().lower() for row in rows}
    found = []
    for row in rows:
        answer = str(row.get("answer") or "").strip()
        said = answer if answer.lower() in classes else UNCERTAIN
        kept = {name: value for name, value in row.items() if name not in ("target", "answer", "grade")}
        found.append({**kept, "label": row["target"], "decision": "" if row.get("error") else said})
    return found


def _chosen(rows: list[Row]) -> list[Row]:
    """Return choices of people and models as rows of trials."""
    return [{**{k: v for k, v in row.items() if k != "choice"}, "decision": row["choice"]} for row in rows]
