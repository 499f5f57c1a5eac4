"""Open a run as a user writes it: a file, one of several runs in a file, or the form that a protocol documents.

scores.tsv                         a score file, read by the rules of the protocol
results.jsonl[model=m,tools=yes]   the rows of a file in which these columns have these values
output/predictions:baseline        a folder and a run tag (toxicity)
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import polars as pl

from hitmiss.core import artifacts
from hitmiss.core.columns import find_column, user_name
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.results import SCHEMA, Results
from hitmiss.core.trials import Trials
from hitmiss.engine.pairing import REPEATS
from hitmiss.evaluation.protocol import Protocol, read_trials
from hitmiss.io.addresses import source_shown
from hitmiss.io.logs.opening import find_tool

CHOSEN: Final = re.compile(r"^(?P<path>.*?)\[(?P<cells>[^\[\]]*=[^\[\]]*)\]$", re.DOTALL)


def open_run(
    text: str, key: str | None, protocol: Protocol | None, spec: ReadSpec, *, languages: Sequence[str] = ()
) -> Trials:
    """Read the trials of one run.

    Parameters
    ----------
    text
        The run as a user writes it: a path, `path[column=value,…]` for one of several runs in a file, or `folder:tag`.
    key
        The file with the true classes, if the score file does not contain them.
    protocol
        The protocol whose rules the file is read by; None without one.
    spec
        How to read the file.
    languages
        The languages to read, for the toxicity protocol; all if empty.

    Returns
    -------
    Trials
        The trials of the run.

    Raises
    ------
    UsageError
        If the text names a column or a value that the file does not have.
    DataError
        If no row matches, or if the file holds results instead of trials.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "scores.csv")
    ...     _ = path.write_text("id,label,score\\nx,real,2\\ny,fake,1\\n")
    ...     len(open_run(str(path), None, None, ReadSpec(positive="real")))
    2
    """
    path, cells = split_choice(text)
    trials = choose(_open(path, key, protocol, languages, spec), cells, source_shown(text))
    if not len(trials):
        raise DataError.of("no-rows", text=source_shown(text), cells=", ".join((f"{k}={v}" for k, v in cells.items())))
    return trials


def split_choice(text: str) -> tuple[str, dict[str, str]]:
    """Split a run's text into its path and the columns that choose one run of several.

    >>> split_choice("results.jsonl[model=m,tools=yes]")
    ('results.jsonl', {'model': 'm', 'tools': 'yes'})
    >>> split_choice("scores.tsv")
    ('scores.tsv', {})
    """
    found = CHOSEN.match(text)
    if found is None or Path(text).exists():
        return text, {}
    cells = dict(part.strip().partition("=")[::2] for part in found["cells"].split(","))
    if not all(name and value for name, value in cells.items()):
        raise UsageError.of("bad-choice", text=text, path=found["path"])
    return found["path"], cells


def choose(trials: Trials, cells: dict[str, str], text: str) -> Trials:
    """Return the trials whose run or slice columns have these values. An unknown column or value is an error."""
    known = (*trials.header.runs, *trials.header.slices)
    for name, value in cells.items():
        column = find_column(name, known)
        if column is None:
            raise UnknownName(f"column in {text!r}", name, map(user_name, known))
        values = trials.frame[column].unique().to_list()
        if value not in values:
            raise UnknownName(f"{name} in {text!r}", value, values)
    return trials.where(**cells) if cells else trials


def _open(path: str, key: str | None, protocol: Protocol | None, languages: Sequence[str], spec: ReadSpec) -> Trials:
    folder, colon, tag = path.rpartition(":")
    if protocol and protocol.reader and colon and Path(folder).is_dir():
        from hitmiss.protocols.toxicity import read_run

        return read_run(folder, tag, list(languages) or None, spec=spec)
    if is_results(path):
        raise DataError.of("results-not-trials", name=Path(path).name)
    return read_trials(path, key, protocol, spec)


def is_results(path: str | Path) -> bool:
    """Return whether a file was written by `hitmiss score -o`."""
    return "estimates" in json_object(path)


def open_source(text: str, key: str | None, protocol: Protocol | None, spec: ReadSpec) -> Results | Trials:
    """Read a run that is given as results (a file, or a folder with `results.json`) or as what `score` reads."""
    path = Path(text)
    if find_tool(path) is not None:
        return open_run(text, key, protocol, spec)
    if (path / "results.json").is_file():
        path /= "results.json"
    elif path.is_dir() and not (path / "manifest.json").is_file():
        raise DataError.of("no-results", run=text)
    if is_results(path) or (path.suffix == ".json" and not (key or protocol or spec.layout)):
        if spec.weight is not None:
            raise UsageError.of("unread-option", run=text, weight=spec.weight)
        return Results.load(path)
    return open_run(text, key, protocol, spec)


def load_contest(path: str | Path, kinds: Sequence[str] = ("comparison", "ranking")) -> dict[str, object]:
    """Read the JSON object of a comparison, a ranking or the outcome of a gate, and check its digest.

    Raises
    ------
    DataError
        `not-comparison`: the file is of another kind, or of another version of the form.
    """
    data = artifacts.load(path, "comparison")
    if data.get("schema") != SCHEMA or data.get("kind") not in kinds:
        raise DataError.of("not-comparison", name=Path(path).name)
    return data


def json_object(path: str | Path) -> dict[str, object]:
    """Return the object that a .json file holds; an empty one for any other file."""
    file = Path(path)
    if file.suffix != ".json" or not file.is_file():
        return {}
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def name_runs(texts: Sequence[str]) -> list[str]:
    """Return short, distinct names of runs: as much of the end of each path as is needed.

    >>> name_runs(["main/scores.tsv", "branch/scores.tsv", "other.tsv"])
    ['main/scores.tsv', 'branch/scores.tsv', 'other.tsv']
    >>> name_runs(["runs/a.tsv", "runs/b.tsv"])
    ['a.tsv', 'b.tsv']
    """
    parts = [source_shown(t).replace("\\", "/").split("/") for t in texts]
    names = []
    for own in parts:
        depth = next((d for d in range(1, len(own) + 1) if sum(p[-d:] == own[-d:] for p in parts) == 1), len(own))
        names.append("/".join(own[-depth:]))
    twice = {n for n in names if names.count(n) > 1}
    return [f"{n} ({i + 1})" if n in twice else n for i, n in enumerate(names)]


def runs_inside(trials: Trials) -> dict[str, Trials]:
    """Return the runs that one set of trials holds, by name. Repetitions of a run stay together."""
    columns = [c for c in trials.header.runs if c not in REPEATS and trials.frame[c].n_unique() > 1]
    keys = trials.frame.select(columns).unique(maintain_order=True).rows() if columns else []
    return {
        "|".join(key): trials.keep(pl.all_horizontal(*(pl.col(c) == v for c, v in zip(columns, key, strict=True))))
        for key in keys
    }
