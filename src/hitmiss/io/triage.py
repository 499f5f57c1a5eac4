"""The files of the triage evaluation document: a dataset (`id, image, label, meta`) and results, one JSON object a line.

A result row becomes one trial. Its verdict (`prediction`) becomes the decision: fake, real or uncertain. A row with
an `error` has no decision; a verdict that is empty or not understood is an abstention, marked `unparsed`. `model`,
`use_tools` and `trial` identify the run; the fields of `meta` are slices; `timings`, `latency_seconds`, the tools'
seconds, `tokens` and `cost` are numbers. How the run was made (models by role, prompt hashes, settings, cache, times,
the dataset's digest) goes into the header.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Final

import polars as pl

from hitmiss.core.columns import OWN, column_name, prefixed
from hitmiss.core.errors import DataError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.trials import Trials
from hitmiss.io.aliases import is_condition, is_known, may_name_runs, numbers_repetitions
from hitmiss.io.cells import amount_in, number_in
from hitmiss.io.json_lines import Repeated, strict_json
from hitmiss.io.labels import word_of
from hitmiss.io.layouts import BadCell, Conflict, FlatRows, Layout
from hitmiss.io.reader import read
from hitmiss.io.verdicts import (
    MEANING_OF_CODE,
    UNCERTAIN,
    VERDICT_FIELDS,
    VerdictWords,
    folded,
    json_or_text,
    verdict_in,
)
from hitmiss.io.words import flag, is_absent

Row = Mapping[str, object]
RUNS: Final = ("model", "tools", "trial")
NESTED: Final = (
    "meta",
    "run_config",
    "models",
    "prompt_hashes",
    "timings",
    "tool_usage",
    "tool_details",
    "tokens",
    "tokens_by_role",
)
VERDICTS: Final = ("analysis_verdict", "parsed_verdict")
TEXTS: Final = (
    "image",
    "image_path",
    "rationale",
    "raw_analysis",
    "raw_parsed",
    "visual_description",
    "full_text",
    "description",
)
TEXTS_OF_RUNS: Final = (
    "audio",
    "audio_path",
    "problem",
    "outcome",
    "cost_reason",
    "sent",
    "turns",
    "first_answer",
    "strict_verdict",
    "first_verdict",
    "agent_verdict",
    "confidence_word",
    "confidence_logprobs",
)
OTHERS: Final = ("prompts", "forensic_summary", "tool_results", "use_tools", "ground_truth", "error_type", "error")
MADE: Final = (
    "prediction",
    "verdict",
    "decision",
    "id",
    "item",
    "label",
    "latency_seconds",
    "retries",
    "seconds",
    "cost",
)
CACHE: Final = ("cache", "cache_hit", "cached", "from_cache")
TIMES: Final = ("timestamp", "created_at")
STATES: Final = ("cache_state", "tool_cache")
KNOWN: Final = frozenset((*NESTED, *VERDICTS, *TEXTS, *TEXTS_OF_RUNS, *OTHERS, *MADE, *CACHE, *TIMES, *STATES))
SECONDS: Final = "_seconds"
FIRST_ROW: Final = 1 << 20
"""Bytes of the first row of a file that are looked at."""
CODES: Final = {"fake": 1.0, "real": 0.0}
MADE_HERE: Final = ("cache", "tool_count", f"tools{SECONDS}", "served", "component")
"""Columns that are made from several fields."""
Values = Mapping[str, Sequence[object]]
Group = dict[str, pl.Series]


class Flat:
    """The flat table of a dataset or of results, made from pieces of its rows, which are given as text columns.

    Which columns a file has (ids, times, a cache) is decided when all its rows were seen, so it does not matter how
    they were cut. The texts of a row are not kept.
    """

    def __init__(self, options: ReadSpec) -> None:
        self._words = VerdictWords.of(options)
        self._asked: list[Group] = []
        self._times: list[Group] = []
        self._tokens: list[Group] = []
        self._plain: list[Group] = []
        self._cache: list[Group] = []
        self._others: list[Group] = []
        self._slices: list[Group] = []
        self._heights: list[int] = []
        self._has_ids: list[bool] = []
        self._is_results = False
        self._told: Settings = {}
        self._conditions: dict[str, dict[str, list[object]]] = {}
        self._made_at: list[str] = []
        self._failed: Counter[str] = Counter()
        self._conflicts: list[Conflict] = []
        self._faults: list[BadCell] = []
        self._n_heard = 0
        self._n_coded = 0
        self.bytes = 0

    def add(self, texts: pl.DataFrame) -> None:
        """Add the next rows; all pieces have the same columns."""
        rows, words, before = [_parsed(row) for row in texts.iter_rows(named=True)], self._words, sum(self._heights)
        self._is_results = any(name in texts.columns for name in ("prediction", "verdict", *VERDICTS))
        faults: list[BadCell] = []
        runs, (times, tokens, plain) = _runs(rows, texts.columns), _triage_numbers(rows, faults)
        answer = _answer(rows, words) if self._is_results else _given(texts, ("decision", "error"))
        plain |= _readings(rows, words)
        others = {name: texts[name].to_list() for name in texts.columns if name not in KNOWN}
        if self._is_results:
            faults += _unread(rows, words)
            heard = zip(answer["error"], answer["unparsed"], strict=True)
            self._n_heard += sum(not error and not unparsed for error, unparsed in heard)
            self._n_coded += sum(
                word_of(verdict_in(_word(row, "prediction", "verdict"))) in MEANING_OF_CODE for row in rows
            )
            if "confidence" not in texts.columns and any(sure := [_sure(row) for row in rows]):
                others["confidence"] = sure
        self._faults += [replace(fault, row=before + fault.row) for fault in faults]
        self._put(self._asked, {**_question(rows, words), **answer, **runs})
        self._put(self._times, times, pl.Float64)
        self._put(self._tokens, tokens, pl.Float64)
        self._put(self._plain, plain, pl.Float64)
        self._put(self._cache, _cache(rows))
        self._put(self._others, others)
        self._put(self._slices, _slices(rows, texts.columns))
        self._heights.append(len(rows))
        self._has_ids.append(_have_ids(rows))
        found = (*_repeated(texts), *_conflicts(rows), *_twice(rows, words))
        self._conflicts += [replace(conflict, row=before + conflict.row) for conflict in found]
        if self._is_results:
            _note_settings(self._told, rows, runs)
            named = [n for n in texts.columns if may_name_runs(n) and not numbers_repetitions(n) and n not in runs]
            who = [*(runs[name] for name in RUNS[:2] if name in runs), *(texts[name].to_list() for name in named)]
            self._condition(rows, [", ".join(run) for run in zip(*who, strict=True)] or [""] * len(rows))
            made_at = sorted((*self._made_at, *(str(row[name]) for row in rows for name in TIMES if row.get(name))))
            self._made_at = [made_at[0], made_at[-1]] if made_at else []
            self._failed.update(str(row.get("error_type") or "error") for row in rows if _error(row))

    def _condition(self, rows: Sequence[Row], runs: Sequence[str]) -> None:
        """Note under which conditions the answers of each run were given."""
        for run, row in zip(runs, rows, strict=True):
            for name, value in _settings(row):
                if is_condition(name):
                    known = self._conditions.setdefault(run, {}).setdefault(name, [])
                    known += [value] if value not in known else []

    def _put(self, group: list[Group], columns: Values, kind: type[pl.DataType] = pl.String) -> None:
        kinds = {"unparsed": pl.Float64}
        group.append({name: pl.Series(name, v, kinds.get(name, kind), strict=False) for name, v in columns.items()})
        self.bytes += sum(int(column.estimated_size()) for column in group[-1].values())

    def _joined(self, group: list[Group], fill: str | None, kind: type[pl.DataType] = pl.String) -> Group:
        """Return the columns of all pieces; `fill` where a piece does not have one."""
        names = dict.fromkeys(name for one in group for name in one)
        return {
            name: pl.concat(
                [
                    one[name] if name in one else pl.Series(name, [fill], kind).new_from_index(0, n)
                    for one, n in zip(group, self._heights, strict=True)
                ]
            )
            for name in names
        }

    def flat(self) -> FlatRows:
        """Return the flat table of all rows."""
        if any(self._has_ids):  # a piece without any id has rows without an id
            for one, n, has_ids in zip(self._asked, self._heights, self._has_ids, strict=True):
                one.update({} if has_ids else {"item": pl.Series("item", [""], pl.String).new_from_index(0, n)})
        asked = self._joined(self._asked, "")
        numbers = {
            name: column
            for group in (self._times, self._tokens, self._plain)
            for name, column in self._joined(group, None, pl.Float64).items()
        }
        columns = {**asked, **numbers, **self._joined(self._cache, "unknown")}
        others = {_kept(name): own for name, own in self._joined(self._others, "").items() if name not in columns}
        columns |= others
        columns |= {
            prefixed(name) if name in numbers else name: own for name, own in self._joined(self._slices, "-").items()
        }
        facts = _facts(self._told, self._made_at, asked) if self._is_results else {}
        return FlatRows(
            pl.DataFrame([column.alias(name) for name, column in columns.items()]),
            tuple(name for name in RUNS if name in asked),
            (*numbers, *(["unparsed"] if self._is_results else [])),
            facts,
            (*_failures(self._failed, sum(self._heights)), *self._codes()),
            tuple(self._conflicts),
            conditions=self._conditions,
            classes=("fake", "real") if self._words.is_own else None,
            faults=tuple(self._faults),
            n_understood=self._n_heard,
            fills={"cache": "unknown", **dict.fromkeys(others, "")},
        )

    def _codes(self) -> tuple[str, ...]:
        """Say what verdicts mean that are codes."""
        one = self._words.declared.get("1")
        if not self._n_coded or one is None:
            return ()
        return (f"{self._n_coded:,} verdicts are 1, 0, true or false: 1 and true mean {one}",)


def flatten(texts: pl.DataFrame, options: ReadSpec) -> FlatRows:
    """Return the flat table of a dataset or of results, given as text columns."""
    made = Flat(options)
    made.add(texts)
    return made.flat()


def results_in(folder: str | Path) -> list[Path]:
    """Return the files of results in a folder: JSON lines whose first row has a verdict. None is an error."""
    found = []
    for path in sorted(Path(folder).rglob("*.jsonl")):
        with path.open("rb") as file:
            first = file.readline(FIRST_ROW)
        if any(f'"{name}"'.encode() in first for name in ("prediction", "verdict")) and path.stem != "canaries":
            found.append(path)
    if not found:
        raise DataError.of("no-results-in-folder", folder=str(folder))
    return found


CALLED: Final = {"item": "id", "decision": "prediction", "verdict": "prediction", "tools": "use_tools"}
"""The names, in the triage evaluation document, of the columns that a caller may declare."""
LAYOUT: Final = Layout(
    "triage",
    "the documented triage dataset and results: one JSON object per line",
    has_header=True,
    declares=CALLED,
    expand=Flat,
    inside=results_in,
)


def _kept(name: str) -> str:
    """Return the name of a further field of the rows: its own, unless the layout makes a column of that name."""
    return name if name in ("confidence", "score") or name.startswith(OWN) else column_name(name)


def _parsed(row: Mapping[str, str]) -> dict[str, object]:
    """Return a row with its nested fields parsed; fields that are not JSON stay text."""
    return {name: json_or_text(text) if name in NESTED and text else text for name, text in row.items()}


def _repeated(texts: pl.DataFrame) -> Iterator[Conflict]:
    """Find cells with an object that has a name twice; for JSON lines the parser already refuses these."""
    for column in (name for name in (*NESTED, *VERDICT_FIELDS) if name in texts.columns):
        for at, text in enumerate(texts[column].to_list()):
            if column in VERDICT_FIELDS and not str(text).lstrip().startswith("{"):
                continue
            try:
                strict_json(text or "null")
            except Repeated as found:
                yield Conflict(at, found.name, found.one, found.other, column, is_inside=True)
            except ValueError:
                continue


def _word(row: Row, *names: str) -> str:
    """Return the first of some fields that has a text; empty if none has."""
    return next((value for name in names if isinstance(value := row.get(name), str) and value), "")


def _table(row: Row, name: str) -> Mapping[str, object]:
    """Return a nested field; empty if the row does not have it."""
    found = row.get(name)
    return found if isinstance(found, Mapping) else {}


def _list(row: Row, name: str) -> list[object]:
    found = row.get(name)
    return found if isinstance(found, list) else []


def _question(rows: Sequence[Row], words: VerdictWords) -> dict[str, list[str]]:
    """Return ids (the file's stem if there is no id) and labels; files with other names for them keep those."""
    found: dict[str, list[str]] = {}
    if _have_ids(rows):
        found["item"] = [_word(row, "id") or _stem(_word(row, "image", "image_path")) for row in rows]
    elif any("item" in row for row in rows):
        found["item"] = [_word(row, "item") for row in rows]
    if any("label" in row or "ground_truth" in row for row in rows):
        found["label"] = [words.label(_word(row, "label", "ground_truth")) for row in rows]
    return found


def _have_ids(rows: Sequence[Row]) -> bool:
    return any(row.get("id") or row.get("image") or row.get("image_path") for row in rows)


def _stem(path: str) -> str:
    return (PureWindowsPath(path) if "\\" in path else PurePosixPath(path)).stem


def _answer(rows: Sequence[Row], words: VerdictWords) -> dict[str, Sequence[object]]:
    said = [_decision(row, words) for row in rows]
    errors = [_error(row) for row in rows]
    return {"decision": [d for d, _ in said], "unparsed": [float(u) for _, u in said], "error": errors}


def _decision(row: Row, words: VerdictWords) -> tuple[str, bool]:
    """Return the decision, empty for a failed call, and whether the verdict could not be understood."""
    if _error(row):
        return "", False
    found = words.read(_word(row, "prediction", "verdict"))
    sources = [_word(row, name) for name in VERDICTS if name in row]
    unheard = found in (None, UNCERTAIN) and bool(sources) and all(words.read(text) is None for text in sources)
    return found or UNCERTAIN, found is None or unheard


def _sure(row: Row) -> str:
    """Return the confidence inside a verdict that is an object; empty if there is none."""
    found = json_or_text(_word(row, "prediction", "verdict") or "null")
    told = found.get("confidence") if isinstance(found, Mapping) else None
    return "" if told is None else str(told)


def _unread(rows: Sequence[Row], words: VerdictWords) -> Iterator[BadCell]:
    """Find verdicts that name no class: codes without a declaration, two in one object, words that nobody knows."""
    for at, row in enumerate(rows):
        name = next((n for n in ("prediction", "verdict") if _word(row, n)), "")
        text = _word(row, name) if name and not _error(row) else ""
        if not text or words.read(text) is not None:
            continue
        if word_of(verdict_in(text)) in MEANING_OF_CODE:
            yield BadCell(at, "ambiguous-verdict", name, text)
        else:
            yield BadCell(at, "unknown-verdict", name, text, if_all=True)


def _error(row: Row) -> str:
    """Return why a call failed; empty if the fields say, in any spelling, that it did not."""
    for name in ("error", "error_type"):
        value = row.get(name)
        if not is_absent(value) and flag(value) is not False:
            return str(value)
    return ""


def _given(texts: pl.DataFrame, names: Sequence[str]) -> dict[str, Sequence[object]]:
    return {name: texts[name].to_list() for name in names if name in texts.columns}


def _runs(rows: Sequence[Row], names: Sequence[str]) -> dict[str, list[str]]:
    found = {name: [_word(row, name) or "-" for row in rows] for name in RUNS if name in names}
    if "use_tools" in names:
        found["tools"] = [_tools(_word(row, "use_tools")) for row in rows]
    return {name: found[name] for name in RUNS if name in found}


def _tools(text: str) -> str:
    said = flag(text)
    return "-" if is_absent(text) else text if said is None else "tools" if said else "no-tools"


Numbers = dict[str, list[float | None]]


def _triage_numbers(rows: Sequence[Row], faults: list[BadCell]) -> tuple[Numbers, Numbers, Numbers]:
    """Return the seconds of each component, tokens, and the other numbers of rows; None if a row does not say."""
    timings, used = [_table(row, "timings") for row in rows], [_table(row, "tokens") for row in rows]
    names = dict.fromkeys(name for timing in timings for name in timing if name.endswith(SECONDS))
    times = {name: _amounts(timings, name, faults) for name in names}
    names = dict.fromkeys(name for own in used for name in own)
    tokens = {f"tokens_{name}": _amounts(used, name, faults, "tokens") for name in names}
    found: Numbers = {}
    for name in ("latency_seconds", "retries", "seconds", "cost"):
        if any(row.get(name) for row in rows):
            found[name] = _amounts(rows, name, faults)
    if any(isinstance(row.get("tool_usage"), list) for row in rows):
        calls = [row.get("tool_usage") for row in rows]
        found["tool_count"] = [float(len(tools)) if isinstance(tools, list) else None for tools in calls]
    if any(_list(row, "tool_details") for row in rows):
        found[f"tools{SECONDS}"] = [_tool_seconds(row) for row in rows]
    return times, tokens, found


def _readings(rows: Sequence[Row], words: VerdictWords) -> Numbers:
    """Return what rows of language models say about each answer.

    That is whether it was refused, cut off or held back, its verdict by the strictest parser (1, 0, or -1 for none),
    before it was asked for again, and before another model structured it, and the probability of its words.
    """
    found: Numbers = {}
    if any("strict_verdict" in row for row in rows):
        found |= {n: [float(row.get("outcome") == n) for row in rows] for n in ("refused", "cut", "filtered")}
    for name in ("strict", "first", "agent"):
        own = f"{name}_verdict"
        if any(own in row for row in rows):
            found[f"decision_{name}"] = [CODES.get(words.read(_word(r, own)) or "", -1.0) for r in rows]
    if any(row.get("confidence_logprobs") for row in rows):
        found["confidence_logprobs"] = [_number(row.get("confidence_logprobs")) for row in rows]
    return found


def _amounts(tables: Sequence[Row], name: str, faults: list[BadCell], field: str = "") -> list[float | None]:
    """Return the numbers that a field has in each row, None where it is absent; record what is no number."""
    found = []
    for at, table in enumerate(tables):
        number, fault = amount_in(table.get(name), is_seconds=name.endswith("seconds"))
        found.append(number)
        if fault:
            faults.append(BadCell(at, fault, f"{field}.{name}" if field else name, str(table[name])))
    return found


def _tool_seconds(row: Row) -> float | None:
    """Return the total seconds of a row's tool calls; None if no tool was called."""
    calls = _list(row, "tool_details")
    seconds = [_number(call.get("seconds")) or 0.0 for call in calls if isinstance(call, Mapping)]
    return sum(seconds) if seconds else None


def _number(value: object) -> float | None:
    return number_in(str(value)) if isinstance(value, str | float | int) else None


def _plain(value: object) -> object:
    """Return a setting that is written as a number as that number; the reader keeps all numbers of a file as text."""
    if not isinstance(value, str) or _number(value) is None:
        return value
    return int(value) if value.lstrip("-").isdecimal() else float(value)


def _slices(rows: Sequence[Row], own: Collection[str]) -> dict[str, list[str]]:
    """Return the fields of `meta` under unused names; facts that the rows already state are not repeated."""
    metas = _metas(rows)
    names = dict.fromkeys(name for meta in metas for name in meta if name not in own or name in NESTED)
    clash = {*KNOWN, *RUNS, *MADE_HERE}
    return {
        prefixed(name) if name in clash or is_known(name) else column_name(name): [
            _text(meta.get(name)) for meta in metas
        ]
        for name in names
    }


def _metas(rows: Sequence[Row]) -> list[Mapping[str, object]]:
    return [_table(row, "meta") for row in rows]


def _twice(rows: Sequence[Row], words: VerdictWords) -> Iterator[Conflict]:
    """Find rows that state their label or their verdict under two names, with two meanings."""

    def meant(text: str) -> str:
        return words.read(text) or folded(text)

    for at, row in enumerate(rows):
        for name, other in (("label", "ground_truth"), ("prediction", "verdict")):
            one, two = _word(row, name), _word(row, other)
            if one and two and meant(one) != meant(two) and not (name == "prediction" and _error(row)):
                yield Conflict(at, name, one, two, other)
        for name in VERDICT_FIELDS:
            found = json_or_text(text) if (text := _word(row, name)).lstrip().startswith("{") else None
            inner = {} if not isinstance(found, Mapping) else {n: str(found[n]) for n in VERDICT_FIELDS if found.get(n)}
            if len({meant(said) for said in inner.values()}) > 1:
                one, two = (inner[n] for n in VERDICT_FIELDS)
                yield Conflict(at, name, one, two, f"the object {name}", is_inside=True)


def _conflicts(rows: Sequence[Row]) -> Iterator[Conflict]:
    """Find fields of `meta` that the row also has, with a different value."""
    for at, (row, meta) in enumerate(zip(rows, _metas(rows), strict=True)):
        for name in meta.keys() & row.keys() - {*NESTED}:
            one, other = str(row[name]), _text(meta[name])
            if not (is_absent(one) or is_absent(other) or other == "-" or _same(one, other)):
                yield Conflict(at, name, one, other, "meta")


def _same(one: str, other: str) -> bool:
    """Return whether two texts are equal: as text, as numbers, or as yes and no."""
    if one == other or (_number(one) is not None and _number(one) == _number(other)):
        return True
    return flag(one) is not None and flag(one) == flag(other)


def _text(value: object) -> str:
    return "-" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cache(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return whether each answer came from a cache (`hit`, `miss` or `unknown`); empty if no row says."""
    states = [_is_hit(row) for row in rows]
    if all(state is None for state in states):
        return {}
    return {"cache": ["unknown" if state is None else "hit" if state else "miss" for state in states]}


def _is_hit(row: Row) -> bool | None:
    flags = [_flag(row[name]) for name in CACHE if row.get(name)]
    flags += [_flag(call.get("cached")) for call in _list(row, "tool_details") if isinstance(call, Mapping)]
    known = [flag for flag in flags if flag is not None]
    if known:
        return any(known)
    return False if str(_state(row)).lower() in ("off", "disabled", "false") else None


def _flag(value: object) -> bool | None:
    return {"hit": True, "miss": False}.get(str(value).lower(), flag(value))


def _state(row: Row) -> object:
    config = _table(row, "run_config")
    return next(
        (source[name] for source in (row, config) for name in STATES if source.get(name) not in (None, "")), None
    )


def _failures(kinds: Counter[str], n: int) -> tuple[str, ...]:
    if not kinds:
        return ()
    told = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
    return (f"{kinds.total():,} of {n:,} calls failed ({told}): wrong for accuracy, neither answers nor abstentions",)


Settings = dict[str, dict[str, list[object]]]
"""What rows say about how they were made: by name and run, each value once."""


def _note_settings(told: Settings, rows: Sequence[Row], columns: Mapping[str, list[str]]) -> None:
    """Add what some rows say about how they were made."""
    keys = ["|".join(key) for key in zip(*(columns[r] for r in RUNS[:2] if r in columns), strict=True)]
    for run, row in zip(keys or [""] * len(rows), rows, strict=True):
        for name, value in _settings(row):
            values = told.setdefault(name, {}).setdefault(run, [])
            values += [value] if value not in values else []


def _facts(told: Settings, times: Sequence[str], columns: Group) -> dict[str, object]:
    """Return facts of all rows by name, facts that differ between runs under `by_run`, and the dataset's digest."""
    facts: dict[str, object] = {}
    differing: dict[str, dict[str, object]] = {}
    for name, by_run in told.items():
        values = [value for own in by_run.values() for value in own]
        if all(value == values[0] for value in values):
            _put(facts, name, values[0])
        else:
            facts["by_run"] = differing
            for run, own in by_run.items():
                # the order of rows, which says nothing, is not the order of the values
                _put(differing.setdefault(run, {}), name, own[0] if len(own) == 1 else sorted(own, key=str))
    if times:
        facts["timestamps"] = [times[0], times[-1]]
    pairs = pl.DataFrame([columns[name] for name in ("item", "label") if name in columns]).unique()
    known = [pairs[name].to_list() if name in pairs.columns else [] for name in ("item", "label")]
    return {**facts, "dataset": dataset_digest(*known)}


def _settings(row: Row) -> list[tuple[str, object]]:
    """Return how one row was made, as pairs of dotted name and value."""
    nested = {"models": "models.", "prompt_hashes": "prompt_hashes.", "run_config": ""}
    told = [
        (f"{prefix}{name}", value if prefix else _plain(value))
        for field, prefix in nested.items()
        for name, value in _table(row, field).items()
        if name not in STATES
    ]
    state = _state(row)
    return told if state is None else [*told, ("cache", str(state))]


def _put(facts: dict[str, object], name: str, value: object) -> None:
    group, _, inner = name.rpartition(".")
    held = facts.setdefault(group, {}) if group else facts
    if isinstance(held, dict):
        held[inner] = value


def dataset_digest(items: Sequence[str], labels: Sequence[str]) -> str:
    """Return a short hash of the items and their true labels, independent of order and repetition.

    >>> dataset_digest(["a", "b"], ["fake", "real"]) == dataset_digest(["b", "a", "a"], ["real", "fake", "fake"])
    True
    """
    pairs = sorted(set(zip(items, labels, strict=False)))
    return hashlib.sha256("\n".join("\t".join(pair) for pair in pairs).encode()).hexdigest()[:16]


def read_results(path: object, key: object = None, *, memory: int | None = None, **changes: object) -> Trials:
    """Read trials from triage evaluation results; `key` is the dataset if the results have no labels.

    With a bound on the memory in bytes, a file is read in pieces.
    """
    options = ReadSpec(positive="fake", negative="real", positive_value="1", layout=LAYOUT.name)
    return read(path, key, options.changed(**changes), memory=memory)
