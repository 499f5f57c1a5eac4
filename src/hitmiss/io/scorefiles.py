"""What the columns of a file are: recognised by their names or by their content, or as the caller says.

Also the one file that we write in somebody else's format: the official score file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from hitmiss.columns import find
from hitmiss.errors import DataError, UsageError
from hitmiss.io.findings import Ledger, Place, listed, quoted
from hitmiss.io.layouts import LAYOUTS, Layout, find_positional, is_number
from hitmiss.io.names import KNOWN, OURS, SASV_SCORES, SYSTEM_PREFIX, plain, resolve
from hitmiss.io.shapes import Row, Shape
from hitmiss.io.words import same_class
from hitmiss.readspec import ReadSpec
from hitmiss.trials import ANSWERS, FIXED, Trials

Role = Literal["scores", "key", "both"]
"""A file with scores, one with labels, or one that must hold both because there is no other."""

WANTED: Final[Mapping[Role, frozenset[str]]] = {
    "scores": frozenset(FIXED),
    "both": frozenset(FIXED),
    "key": frozenset(FIXED) - frozenset(ANSWERS),
}


@dataclass(frozen=True)
class Match:
    """What was recognised: the layout, where our columns are, and which of them are slices and numbers."""

    layout: str
    has_header: bool
    picks: Mapping[str, int]
    slices: Row = ()
    numbers: Row = ()
    theirs: Mapping[str, str] = field(default_factory=dict)

    @property
    def numeric(self) -> frozenset[str]:
        """The columns that hold numbers: in a typed source they stay the numbers that they are."""
        systems = [name for name in self.picks if name.startswith(SYSTEM_PREFIX)]
        return frozenset((*systems, *self.numbers, "score", "confidence"))


def recognise(shape: Shape, role: Role, options: ReadSpec, ledger: Ledger) -> Match:
    """Decide what the columns of a source are; stops where a needed one is missing or could be two."""
    layout = _forced(shape, role, options, ledger)
    has_header = layout.has_header if layout else shape.names is not None or looks_headed(shape, options)
    if has_header:
        names = shape.names or shape.first[0]
        refuse_twins(names, shape.name, ledger)
        layout_name = _layout_of(names, role)
        found = resolve(names, WANTED[role], options, shape.name, ledger, shape.is_settled)
    else:
        names = tuple(f"column_{i + 1}" for i in range(shape.width))
        layout_name, found = _by_position(shape, layout, role, options, ledger)
    _refuse_missing(found, names, role, shape.name, ledger)
    return _match(layout_name, has_header, names, found, role, options)


def refuse_twins(names: Sequence[str], file: str, ledger: Ledger) -> None:
    """Stop where two columns have one name."""
    twice = [name for name in dict.fromkeys(names) if name.strip() and names.count(name) > 1]
    if twice:
        what, fix = f"two columns are called {quoted(twice[0])}", "give each column a name of its own"
        raise ledger.stop("ambiguous-column", what, fix, [Place(file, 1, twice[0])])


def _forced(shape: Shape, role: Role, options: ReadSpec, ledger: Ledger) -> Layout | None:
    """The layout that the caller names, for the file that it is about: scores, or a key where it has no score."""
    layout = next((known for known in LAYOUTS if known.name == options.layout), None)
    if layout is None or (role != "both" and (role == "scores") != ("score" in layout.columns)):
        return None
    if not layout.has_header and len(layout.columns) != shape.width:
        what = f"the layout {layout.name} has {len(layout.columns)} columns, the first row has {shape.width}"
        raise ledger.stop("missing-column", what, "leave --layout out, or say --separator", [Place(shape.name, 1)])
    return layout


def looks_headed(shape: Shape, options: ReadSpec) -> bool:
    """Whether the first row of a source names its columns."""
    first, *others = shape.first
    declared = {name for name in (*options.columns.values(), *options.score_columns) if not name.isdigit()}
    if declared & set(first):
        return True
    if any(is_number(cell) for cell in first):
        return False
    if any(plain(cell) in KNOWN for cell in first):
        return True
    # Names that nobody knows, over a column of numbers. What holds a place for nothing is no name.
    columns = [[row[i] for row in others if len(row) > i] for i in range(len(first))]
    return not {"-", ""} & set(first) and any(column and all(map(is_number, column)) for column in columns)


def _by_position(
    shape: Shape, layout: Layout | None, role: Role, options: ReadSpec, ledger: Ledger
) -> tuple[str, dict[str, int]]:
    need = "label" if role == "key" else "score"
    layout = layout or find_positional(shape.first, need)
    # Positions are told of one file, and a key that is recognised needs no telling.
    declared = options.columns if role != "key" or layout is None else {}
    declared = options.key_columns if role == "key" and options.key_columns else declared
    found = {OURS.get(ours, ours): _position(theirs, shape, ledger) for ours, theirs in declared.items()}
    columns = layout.columns if layout and need not in found else ()
    for at, ours in enumerate(columns):
        if ours and at not in found.values():
            found.setdefault(ours, at)
    if need not in found:
        first = quoted(shape.separator.join(shape.first[0]))
        what = f"the layout was not recognised: there is no header, and the first of its {shape.width}-column rows is {first}"
        fix = f"say which column is which by position, as --column item=1 --column {need}=2"
        raise ledger.stop("missing-column", what, fix, [Place(shape.name, 1)], column=need)
    silent = {at for at, ours in enumerate(columns) if not ours}
    rest = {f"column_{at + 1}": at for at in range(shape.width) if at not in found.values() and at not in silent}
    return layout.name if columns and layout else "columns", found | rest


def _position(theirs: str, shape: Shape, ledger: Ledger) -> int:
    number = theirs.removeprefix("column_")
    if number.isdecimal() and 1 <= int(number) <= shape.width:
        return int(number) - 1
    what = f"there is no header, so the column {quoted(theirs)} is not known"
    raise ledger.stop("missing-column", what, f"give its position, from 1 to {shape.width}", [Place(shape.name, 1)])


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


def _match(layout: str, has_header: bool, names: Row, found: Mapping[str, int], role: Role, options: ReadSpec) -> Match:
    """The columns to be read of those found, and what they are for."""
    systems = [name for name in found if name.startswith(SYSTEM_PREFIX)]
    fixed = [name for name in FIXED if name in found and name in WANTED[role]]
    runs = [name for name in options.runs if name in found]
    numbers = [name for name in found if name in options.numbers or (name in SASV_SCORES and role != "key")]
    # A column without a name is the row number that pandas writes, or follows a comma at the end of lines.
    named = [name for name in found if name.strip()]
    others = [name for name in named if name not in {*fixed, *runs, *numbers, *systems, *FIXED, *SASV_SCORES}]
    asked = {find(name, others) for name in options.where}
    slices = [name for name in others if options.slices is None or name in options.slices or name in asked]
    picks = {name: found[name] for name in (*fixed, *systems, *runs, *numbers, *slices)}
    theirs = {name: names[at] for name, at in picks.items()}
    return Match(layout, has_header, picks, tuple(slices), tuple(numbers), theirs)


def _refuse_missing(found: Mapping[str, int], names: Row, role: Role, file: str, ledger: Ledger) -> None:
    """Stop where the file lacks what it must hold. Ids may be lacking in a file that needs no other."""
    has_answer = any(name.startswith(SYSTEM_PREFIX) or name in ("score", "decision") for name in found)
    needs = {
        "item": ("item" in found or role == "both", ""),
        "label": ("label" in found or role == "scores", " or --key KEY" if role == "both" else ""),
        "score": (has_answer or role == "key", " or --score-column NAME"),
    }
    for ours, (is_met, otherwise) in needs.items():
        if not is_met:
            what = f"no column is the {ours}; there are {listed(names)}"
            fix = f"say which one it is with --column {ours}=NAME{otherwise}"
            raise ledger.stop("missing-column", what, fix, [Place(file, 1)], ours)


def write_official_scores(trials: Trials, path: str | Path) -> None:
    """Write the score file of the ASVspoof 5 package: TAB, header `filename cm-score`, every score to the last bit.

    The package takes a higher score to mean bonafide, once an id: trials that say otherwise are refused.
    """
    positive = trials.header.positive
    if any(same_class(positive, word) for word in ("spoof", "nontarget")):
        raise UsageError(
            f"in an official file a higher score means bonafide, in these trials {positive}; read them with positive='bonafide'"
        )
    items, scores = trials.items, trials.score.tolist()
    if len(set(items)) != len(items):
        raise UsageError(
            "an official file holds one system and each id once; choose one run, as trials.where(system=…)"
        )
    broken = [item for item in items if any(c in item for c in '\t\n\r"')]
    if broken:
        raise DataError(
            f"{len(broken)} ids hold a tab, a quote or a line end, the first is {quoted(broken[0])}; the official format has no way to write them"
        )
    rows = [f"{item}\t{score!r}\n" for item, score in zip(items, scores, strict=True)]
    Path(path).write_text("".join(["filename\tcm-score\n", *rows]), encoding="utf-8", newline="\n")
