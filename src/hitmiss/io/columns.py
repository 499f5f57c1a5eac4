"""Decide which column of a file is which: by name, by position, by content, or as the caller declares."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import polars as pl

from hitmiss.core.classes import about_spoofing, code_of, is_word
from hitmiss.core.columns import column_name, find_column, prefixed
from hitmiss.core.errors import UsageError, nearest
from hitmiss.core.finding import Finding, Place, Remark
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.text import quoted
from hitmiss.core.trials import ANSWERS, FIXED
from hitmiss.findings.options import option
from hitmiss.io.aliases import (
    ALIASES,
    DECIDED,
    EXTRAS,
    KNOWN,
    OURS,
    PUBLISHED,
    SASV_LABELS,
    SASV_SCORES,
    SYSTEM_PREFIX,
    TRUTHS,
    WEIGHTS,
    class_of_score,
    is_condition,
    may_name_runs,
    plain,
)
from hitmiss.io.diagnostics import Diagnostics, Stop, listed, near_or_listed
from hitmiss.io.layouts import LAYOUTS, Layout, find_positional, is_number
from hitmiss.io.source import Kinds, Row, SourceHead
from hitmiss.io.words import is_absent

Role = Literal["scores", "key", "both", "manifest"]
"""The role of a file.

scores: a file with scores. key: a file with labels. both: a file that must hold both, because there is no other.
manifest: a key whose items are files and whose labels may be absent.
"""
TABLE: Final = Layout("table", "any table with names of columns", has_header=True, aliases=ALIASES)
"""What a file is read as unless something else is known about it."""

WORD: Final = re.compile(r"[^\W\d_][^\d]*")
"""A word, and no number in any spelling."""


def fits(ours: str, cells: Sequence[str]) -> bool:
    """Return whether the first cells of a column can be ours: numbers for a score, known classes for a label."""
    held = [cell for cell in cells if not is_absent(cell)]
    if ours == "score":
        return all(map(is_number, held))
    if ours == "label":
        return all(is_word(cell) or code_of(cell.strip()) is not None for cell in held)
    return True


def resolve(
    names: Row,
    wanted: frozenset[str],
    options: ReadSpec,
    file: str,
    ledger: Diagnostics,
    is_settled: bool = False,
    layout: Layout = TABLE,
    role: Role = "both",
    rows: Sequence[Row] = (),
) -> dict[str, int]:
    """Map our name to the position of every column. `wanted` are the fixed columns that this file may hold.

    Columns that the caller declares come first (if this file has them: another file may), then the known names. All
    other columns keep their own names, or get a modified one if the name is reserved. `is_settled`: a layout has
    already done so. `rows` are the first rows: a name that fits several columns means the one whose values fit.
    """
    found = {OURS.get(ours, ours): names.index(theirs) for ours, theirs in options.columns.items() if theirs in names}
    found |= {prefixed(name): names.index(name) for name in options.identities if name in names}
    if "score" in wanted:
        found |= {SYSTEM_PREFIX + name: names.index(name) for name in options.score_columns if name in names}
        wanted -= {"score"} if options.score_columns else set()
    for ours in sorted(wanted - set(found)):
        known = _target_names(names, options) if ours == "target" else layout.aliases[ours]
        columns = Columns(names, rows, file, frozenset(found.values()), role, layout)
        at = _claim(ours, columns, known, options, ledger)
        words = at if ours == "score" and at is not None and not is_settled and _holds_words(rows, at) else None
        at = None if words is not None else at  # a column called `score` with high and low in it is none
        if at is None and not is_settled and ours in PUBLISHED:
            at = _claim_published(ours, columns, ledger)
        if at is None and "decision" not in found:
            at = words  # nothing else answers: its cells are refused, each by its row
        if ours == "label" and at is not None and any(row[at][:2] == '{"' for row in rows[:1] if at < len(row)):
            at = None  # an object, whose fields are named by their paths
        if at is not None:
            found[ours] = at
    taken, theirs = set(found.values()), {*names}
    for at, name in enumerate(names):
        if at not in taken:
            ours = EXTRAS.get(plain(name), name)
            ours = ours if ours not in found and ours not in theirs else name
            found[ours if is_settled else _kept(ours, found)] = at
    return found


def _holds_words(rows: Sequence[Row], at: int) -> bool:
    """Return whether the first cells of a column are words, every one, and they repeat: classes and not bad numbers."""
    cells = [row[at].strip() for row in rows if at < len(row)]
    return len(cells) > 2 * len({*cells}) and all(map(WORD.fullmatch, cells)) and not any(map(is_absent, cells))


def _kept(name: str, taken: Collection[str]) -> str:
    own = column_name(name)
    return own if own not in taken else prefixed(name)


@dataclass(frozen=True)
class Columns:
    """The columns of a file among which one of ours is looked for: names, first rows, and those that are taken."""

    names: Row
    rows: Sequence[Row]
    file: str
    taken: frozenset[int]
    role: Role
    layout: Layout

    def called(self, aliases: Collection[str]) -> list[int]:
        """Return the columns that have one of the names and no other role."""
        return [at for at, name in enumerate(self.names) if at not in self.taken and plain(name) in aliases]

    def fitting(self, ours: str, hits: Sequence[int]) -> list[int]:
        """Return those of some columns whose values can be ours."""
        return [at for at in hits if fits(ours, [row[at] for row in self.rows if at < len(row)])]


def _claim(ours: str, columns: Columns, aliases: Row, options: ReadSpec, ledger: Diagnostics) -> int | None:
    """Return the column that has one of the names of ours; two are an error unless one has the documented name."""
    hits, names = columns.called(aliases), columns.names
    spelled = [plain(names[at]) for at in hits]  # `score` and `Score` are two columns with one name
    if columns.layout.documented and spelled.count(aliases[0]) == 1:
        return hits[spelled.index(aliases[0])]
    if len(hits) > 1 and set(spelled) <= {*SASV_LABELS, *SASV_SCORES}:
        preferred = _track_two(ours, names, options)
        hits = [at for at in hits if plain(names[at]) == preferred] or hits
    return _only(ours, columns, hits, ledger)


def _claim_published(ours: str, columns: Columns, ledger: Diagnostics) -> int | None:
    """Return the column with a name that published files use for ours, if its values fit."""
    if ours == "label" and columns.role == "scores":  # the key has the labels
        return None
    hits = columns.called(PUBLISHED[ours])
    if ours == "score":
        hits = [at for at, name in enumerate(columns.names) if at not in columns.taken and class_of_score(name)]
    sure = [at for at in hits if columns.layout.documented or plain(columns.names[at]) in TRUTHS]
    return _only(ours, columns, columns.fitting(ours, hits) or sure, ledger)


def _only(ours: str, columns: Columns, hits: Sequence[int], ledger: Diagnostics) -> int | None:
    """Return the one column that can be ours; several are an error, unless the values of one alone fit."""
    if len(hits) > 1:
        fitting = columns.fitting(ours, hits)
        hits = fitting if len(fitting) == 1 else hits
    if len(hits) > 1:
        several = [columns.names[at] for at in hits]
        way = option(f"{option_of(columns.role)} {ours}={several[0]}")
        told = {"ours": ours, "columns": map(quoted, several), "way": way}
        raise ledger.stop("ambiguous-column/roles", [Place(columns.file, 1)], ours, **told)
    return hits[0] if hits else None


def option_of(role: Role) -> str:
    """Return the option that says which column is which in a file of this role."""
    return "--key-column" if role == "key" else "--column"


def _track_two(ours: str, names: Row, options: ReadSpec) -> str:
    """Choose the ASVspoof 5 track 2 columns for the class asked for: spoofing alone, or the whole system."""
    if is_about_spoofing(names, options):
        return "cm_label" if ours == "label" else "cm_score"
    return "asv_label" if ours == "label" else "sasv_score"


def is_about_spoofing(names: Row, options: ReadSpec) -> bool:
    """Return whether the classes are bonafide and spoof rather than target and non-target.

    Full keys are mostly used for the former.
    """
    if options.positive is None:
        return "trial_anon" in map(plain, names)
    return about_spoofing(options.positive)


def _target_names(names: Row, options: ReadSpec) -> Row:
    """Return the names of the target column.

    In track 2 it is the claimed speaker; a full key has it too, but track 1 does not use it. Elsewhere a column
    `target` is an ordinary column until items repeat (see the reader), or the caller declares it.
    """
    known = set(map(plain, names))
    if "trial_anon" in known:
        return () if is_about_spoofing(names, options) else ("tar_spk_anon",)
    return ("spk",) if "spk" in known and known & {"asv_label", "sasv_score", "asv_score"} else ()


def refuse_undeclared(options: ReadSpec, columns: Row, file: str, ledger: Diagnostics) -> None:
    """Stop if the caller names a column that no file has."""
    for theirs in (*options.columns.values(), *options.key_columns.values(), *options.score_columns):
        if theirs not in columns:
            hint = near_or_listed(nearest(theirs, columns), columns)
            raise ledger.stop("missing-column/named", [Place(file, 1)], theirs, name=quoted(theirs), hint=hint)


SHARES: Final = ("y_true", "label", "target", "toxicity", "toxic")
"""Possible names of a column that holds shares of annotators, those first that win over the others."""
COUNTS: Final = "annotator_count"
"""The end of the names of columns that count annotators; they are numbers."""
WANTED: Final[Mapping[Role, frozenset[str]]] = {
    "scores": frozenset(FIXED),
    "both": frozenset(FIXED),
    "key": frozenset(FIXED) - frozenset(ANSWERS),
    "manifest": frozenset(("item", "label")),
}
FILES: Final = ("file", "filename", "path", "file_path", "filepath", "image_path", "audio_path", "flac_file")
IDS: Final = ("item", "id", "utt", "utt_id", "question_id")


@dataclass(frozen=True)
class Match:
    """The result of recognition: the layout, the positions of our columns, and which of them are slices and numbers."""

    layout: str
    has_header: bool
    picks: Mapping[str, int]
    slices: Row = ()
    numbers: Row = ()
    theirs: Mapping[str, str] = field(default_factory=dict)
    weight: str | None = None

    @property
    def numeric(self) -> frozenset[str]:
        """The columns that hold numbers; a typed source keeps them as numbers."""
        systems = [name for name in self.picks if name.startswith(SYSTEM_PREFIX)]
        weight = () if self.weight is None else (self.weight,)
        return frozenset((*systems, *self.numbers, *weight, "score", "confidence", "threshold"))

    def own(self, name: str) -> str | None:
        """Return our name of the column that a caller means, given as shown in tables or as in the file."""
        return find_column(name, self.picks) or next(
            (ours for ours, theirs in self.theirs.items() if theirs == name), None
        )

    def only(self, needed: Collection[str]) -> Match:
        """Return the same without the slices that nobody asks for, so that they are not parsed."""
        kept = {prefixed("target"), *map(self.own, needed)}
        told = {name for name in self.slices if may_name_runs(name) or is_condition(name)}
        dropped = {name for name in self.slices if name not in kept and name not in told}
        picks = {name: at for name, at in self.picks.items() if name not in dropped}
        theirs = {name: theirs for name, theirs in self.theirs.items() if name not in dropped}
        return replace(self, picks=picks, slices=tuple(n for n in self.slices if n not in dropped), theirs=theirs)

    def kinds(self, known: Kinds, options: ReadSpec) -> Kinds:
        """Return the types that columns may be parsed as directly, except columns whose original text is needed."""
        if options.decimal_sign != ".":
            return {}
        asked = {*options.rename, *(self.own(name) for name in options.where)}
        used = Counter(self.picks.values())  # a column with two roles, as --group label, is text in one of them
        asked |= {name for name, at in self.picks.items() if used[at] > 1}
        return {name: kind for name, kind in known.items() if name in self.picks and name not in asked}

    def words(self, first: Sequence[Row], options: ReadSpec) -> Kinds:
        """Return the columns of words, as labels and codecs, that are better parsed as codes: their first rows repeat."""
        used = Counter(self.picks.values())
        own = {"label", *(name for name in self.slices if not may_name_runs(name))}
        own -= {*options.runs, *options.itself, prefixed("target")}
        rows = first[self.has_header :]
        return {
            name: pl.Categorical
            for name, at in self.picks.items()
            if name in own and used[at] == 1 and 2 * len({row[at] for row in rows if at < len(row)}) < len(rows)
        }


def recognise(
    shape: SourceHead,
    role: Role,
    options: ReadSpec,
    ledger: Diagnostics,
    *,
    is_whole: bool = True,
    known: Layout = TABLE,
) -> Match:
    """Decide what the columns of a source are; stop if a needed column is missing or ambiguous.

    `is_whole`: every other column is a slice if the caller names none; `known`: the layout that every source here has.
    """
    layout: Layout | None = known
    if known is TABLE:
        layout = None if options.layout is None else _forced(shape, role, options, ledger)
    if role == "manifest":
        options = _with_id(shape, options)
    if options.label_cut is not None and role != "scores":
        options = _with_shares(shape, options)
    has_header = layout.has_header if layout else shape.names is not None
    if has_header or (layout is None and looks_headed(shape, options)):
        names, has_header = shape.names or shape.first[0], True
        refuse_twins(names, shape.name, ledger)
        layout_name = _layout_of(names, role) if known is TABLE else known.name
        options = _with_decision(shape, names, role, options, known, ledger)
        rows = shape.first if shape.names is not None else shape.first[1:]
        wanted = WANTED[role] if known is TABLE else frozenset(known.aliases)
        found = resolve(names, wanted, options, shape.name, ledger, shape.is_settled, known, role, rows)
    else:
        names = tuple(f"column_{i + 1}" for i in range(shape.width))
        layout_name, found = _by_position(shape, layout, role, options, ledger)
    _refuse_missing(found, names, role, shape.name, ledger, known)
    ledger.notes += unused_weights(names, role, options)
    match = _match(has_header, names, found, role, options, is_whole and options.slices is None, known)
    return replace(match, layout=layout_name)


def _with_decision(
    shape: SourceHead, names: Row, role: Role, options: ReadSpec, layout: Layout, ledger: Diagnostics
) -> ReadSpec:
    """Declare a column as the decision that has one of the further names, if it is binary beside a score.

    The first rows show whether it is; a later cell that is no decision is refused like any other.
    """
    ours = {OURS.get(name, name) for name in options.columns}
    asked = {*options.columns.values(), *options.score_columns, *options.runs, *options.numbers, *options.where}
    asked |= {*(options.slices or ())}
    known = {plain(name): name for name in names}
    has_score = "score" in ours or options.score_columns or ({*layout.aliases["score"]} - {*DECIDED}) & {*known}
    if role in ("key", "manifest") or "decision" in ours or {*layout.aliases["decision"]} & {*known} or not has_score:
        return options
    named = [known[name] for name in DECIDED if name in known and known[name] not in asked]
    rows = shape.first[shape.names is None :]
    binary = [name for name in named if _is_binary([row[at] for row in rows if len(row) > (at := names.index(name))])]
    if len(binary) > 1:
        told = {"ours": "decision", "columns": map(quoted, binary), "way": option(f"--column decision={binary[0]}")}
        raise ledger.stop("ambiguous-column/roles", [Place(shape.name, 1)], "decision", **told)
    if layout.documented:
        ledger.notes += [
            Remark.of("not-binary", file=shape.name, column=quoted(name)) for name in named if name not in binary
        ]
    return options.changed(columns={**options.columns, "decision": binary[0]}) if binary else options


def _is_binary(cells: Sequence[str]) -> bool:
    """Return whether cells hold 0 and 1, true and false or words for classes, and not only blanks."""
    texts = [cell.strip() for cell in cells if not is_absent(cell)]
    return bool(texts) and all(code_of(text) is not None or is_word(text) for text in texts)


def unused_weights(names: Sequence[str], role: Role, options: ReadSpec) -> list[str]:
    """Say that a column looks like weights and is not used as such."""
    if options.weight is not None or role == "manifest":
        return []
    declared = {*options.columns.values(), *options.key_columns.values(), *options.numbers, *(options.slices or ())}
    return [
        f"the column {quoted(name)} is not used as weights; --weight {name} --weight-kind frequency (or sampling) uses it"
        for name in names
        if plain(name) in WEIGHTS and name not in declared
    ]


def _with_id(shape: SourceHead, options: ReadSpec) -> ReadSpec:
    """If a manifest has both an id and a file column, use the id as the item; if it has only one, use that one."""
    known = {name.strip().lower(): name for name in shape.names or shape.first[0]}
    ids = [known[name] for name in IDS if name in known]
    if "item" in options.columns or not ids or not any(name in known for name in FILES):
        return options
    return options.changed(columns={**options.columns, "item": ids[0]})


def _with_shares(shape: SourceHead, options: ReadSpec) -> ReadSpec:
    """Declare the column of the shares of annotators, if the caller does not and it has one of the usual names."""
    known = {plain(name): name for name in reversed(shape.names or shape.first[0])}
    named = next((known[name] for name in SHARES if name in known), None)
    if "label" in options.columns or named is None:
        return options
    return options.changed(columns={**options.columns, "label": named})


def refuse_twins(names: Sequence[str], file: str, ledger: Diagnostics) -> None:
    """Stop if two columns have the same name."""
    twice = [name for name, n in Counter(names).items() if n > 1 and name.strip()]
    if twice:
        raise ledger.stop("ambiguous-column/twins", [Place(file, 1, twice[0])], name=quoted(twice[0]))


def _forced(shape: SourceHead, role: Role, options: ReadSpec, ledger: Diagnostics) -> Layout | None:
    """Return the layout that the caller names, if it applies to this file: scores, or a key if it has no score."""
    layout = next((known for known in LAYOUTS if known.name == options.layout), None)
    if layout is None or (role != "both" and (role == "scores") != ("score" in layout.columns)):
        return None
    if not layout.has_header and len(layout.columns) != shape.width:
        told = {"layout": layout.name, "of": len(layout.columns), "width": shape.width}
        raise ledger.stop("missing-column/layout", [Place(shape.name, 1)], **told)
    return layout


def looks_headed(shape: SourceHead, options: ReadSpec) -> bool:
    """Return whether the first row of a source names its columns."""
    first, *others = shape.first
    declared = {name for name in (*options.columns.values(), *options.score_columns) if not name.isdigit()}
    if declared & set(first):
        return True
    if any(is_number(cell) for cell in first):
        return False
    if any(plain(cell) in KNOWN for cell in first):
        return True
    # Unknown names above a column of numbers are a header. A placeholder for an empty value is not a name.
    columns = [[row[i] for row in others if len(row) > i] for i in range(len(first))]
    return not {"-", ""} & set(first) and any(column and all(map(is_number, column)) for column in columns)


def _by_position(
    shape: SourceHead, layout: Layout | None, role: Role, options: ReadSpec, ledger: Diagnostics
) -> tuple[str, dict[str, int]]:
    need = "label" if role in ("key", "manifest") else "score"
    layout = layout or find_positional(shape.first, need)
    # Declared positions apply to one file; a key that is recognised needs no declaration.
    declared = options.columns if need == "score" or layout is None else {}
    declared = options.key_columns if role == "key" and options.key_columns else declared
    found = {OURS.get(ours, ours): _position(theirs, shape, ledger) for ours, theirs in declared.items()}
    columns = layout.columns if layout and need not in found else ()
    for at, ours in enumerate(columns):
        if ours and at not in found.values():
            found.setdefault(ours, at)
    if need not in found:
        first = quoted(shape.separator.join(shape.first[0]))
        ways = [option(f"{option_of(role)} {which}") for which in ("item=1", f"{need}=2")]
        told = {"width": shape.width, "row": first, "ways": ways}
        raise ledger.stop("missing-column/no-header", [Place(shape.name, 1)], need, **told)
    silent = {at for at, ours in enumerate(columns) if not ours}
    rest = {f"column_{at + 1}": at for at in range(shape.width) if at not in found.values() and at not in silent}
    return layout.name if columns and layout else "columns", found | rest


def _position(theirs: str, shape: SourceHead, ledger: Diagnostics) -> int:
    number = theirs.removeprefix("column_")
    if number.isdecimal() and 1 <= int(number) <= shape.width:
        return int(number) - 1
    told = {"name": quoted(theirs), "width": shape.width}
    raise ledger.stop("missing-column/position", [Place(shape.name, 1)], **told)


def _layout_of(names: Row, role: Role) -> str:
    known = set(map(plain, names))
    if "trial_anon" in known:
        return "evaluation-full-key"
    if "spk" in known and known & {"asv_label", "sasv_score"}:
        return "sasv-key" if role == "key" else "sasv-scores"
    if known == {"filename", "cm_score"}:
        return "cm-scores"
    if known == {"filename", "cm_label"}:
        return "cm-key"
    return "asvspoof5-protocol with header" if {"flac_file_name", "attack_label"} <= known else "table"


def _match(
    has_header: bool,
    names: Row,
    found: Mapping[str, int],
    role: Role,
    options: ReadSpec,
    is_whole: bool,
    layout: Layout,
) -> Match:
    """Select the columns to read among those found, and their roles."""
    systems = [name for name in found if name.startswith(SYSTEM_PREFIX)]
    wanted = WANTED[role] if layout is TABLE else frozenset(layout.aliases)
    fixed = [name for name in dict.fromkeys((*FIXED, *layout.aliases)) if name in found and name in wanted]
    runs = [name for name in options.runs if name in found]
    own = {
        *options.numbers,
        *map(prefixed, options.identities),
        *(SASV_SCORES if layout is TABLE and role in ("scores", "both") else ()),
    }
    numbers = [name for name in found if name in own or (layout is TABLE and plain(name).endswith(COUNTS))]
    # A column without a name is the row number that pandas writes, or comes from a comma at the end of the lines.
    named = [name for name in found if name.strip()]
    weight = None
    if options.weight is not None:
        weight = _weight(names, found, has_header, {*fixed, *runs, *numbers, *systems}, options.weight)
    others = [n for n in named if n not in {*fixed, *runs, *numbers, *systems, *FIXED, *SASV_SCORES, weight}]
    asked = {find_column(name, others) for name in options.where} | {
        n for n in others if names[found[n]] in options.where
    }
    slices = [name for name in others if is_whole or name in (options.slices or ()) or name in asked]
    weighed = () if weight is None else (weight,)
    picks = {name: found[name] for name in (*fixed, *systems, *runs, *numbers, *weighed, *slices)}
    theirs = {name: names[at] for name, at in picks.items()}
    return Match(layout.name, has_header, picks, tuple(slices), tuple(numbers), theirs, weight)


def _weight(names: Row, found: Mapping[str, int], has_header: bool, taken: Collection[str], weight: str) -> str | None:
    """Return our name of the column of weights, if this file has it; a column with another role is refused."""
    wanted = weight if has_header else f"column_{weight.removeprefix('column_')}"  # a name, or a position
    ours = next((name for name, at in found.items() if names[at] == wanted), None)
    if ours in taken:
        raise UsageError.of("ambiguous-column", weight=weight, ours=ours)
    return ours


def _refuse_missing(
    found: Mapping[str, int], names: Row, role: Role, file: str, ledger: Diagnostics, layout: Layout
) -> None:
    """Stop if the file lacks a required column. Ids may be absent if the file is not joined with another."""
    if layout is not TABLE:
        lacking: dict[str, Finding | None] = {ours: None for ours in layout.needs if ours not in found}
    else:
        has_answer = any(name.startswith(SYSTEM_PREFIX) or name in ("score", "decision") for name in found)
        needs = {
            "item": ("item" in found or role == "both", None),
            "label": ("label" in found or role in ("scores", "manifest"), "or-key" if role == "both" else None),
            "score": (has_answer or role in ("key", "manifest"), "or-other-answers"),
        }
        lacking = {ours: Finding(code) if code else None for ours, (is_met, code) in needs.items() if not is_met}
    if lacking:
        raise no_column(lacking, names, role, file, ledger, layout)


def no_column(
    lacking: Mapping[str, Finding | None], names: Row, role: Role, file: str, ledger: Diagnostics, layout: Layout
) -> Stop:
    """Return the finding that required columns are missing, to be raised; each with what else would do."""
    ours = list(lacking)
    told: dict[str, object] = {
        "names": listed(names),
        "which": "which they are" if len(ours) > 1 else "which one it is",
        "ways": [option(f"{option_of(role)} {one}=NAME") for one in ours],
        "or_else": list({f.code: f for f in lacking.values() if f is not None}.values()),
    }
    if layout is TABLE:
        return ledger.stop("missing-column/role", [Place(file, 1)], ours[0], ours=" and none the ".join(ours), **told)
    called = [", ".join(dict.fromkeys((*layout.aliases[one], *PUBLISHED.get(one, ())))) for one in ours]
    told |= {"ours": " column and no ".join(ours), "called": "; it may be called ".join(called)}
    return ledger.stop("missing-column/documented", [Place(file, 1)], ours[0], **told)


def no_weight(wanted: str, names: Sequence[str], file: str, ledger: Diagnostics) -> Stop:
    """Return the finding that a file has no such column of weights, to be raised."""
    near = nearest(wanted, names)
    hint = Finding("did-you-mean/weight", values={"near": near}) if near else near_or_listed(None, names)
    return ledger.stop("missing-column/weight", [Place(file, 1)], name=quoted(wanted), hint=hint)
