"""Propose what files mean, from what the reader recognises in them, and ask for what it does not (`hitmiss init`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Final

from hitmiss.core.classes import about_spoofing
from hitmiss.core.columns import find_column, user_name
from hitmiss.core.design import names_of
from hitmiss.core.errors import Fault, HitmissError, UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.trials import Trials
from hitmiss.engine.measure import measure, usual_metrics
from hitmiss.engine.natural_unit import USUAL_UNITS
from hitmiss.evaluation.protocol import find_protocol
from hitmiss.io.aliases import ALIASES, class_of_score, plain
from hitmiss.io.columns import Match, Role, fits, looks_headed, option_of, recognise
from hitmiss.io.diagnostics import Diagnostics, Stop
from hitmiss.io.layouts import is_number
from hitmiss.io.nested_fields import with_leaves
from hitmiss.io.reader import Examination, examine, read
from hitmiss.io.sides import look
from hitmiss.io.source import Row, SourceHead
from hitmiss.io.verdicts import verdict_in
from hitmiss.metrics.usual import AREA

SHOWN_ROWS: Final = 3
FEW: Final = 20
"""Most values of a column that is proposed to slice by."""
OF_LAYOUT: Final[Mapping[str, str]] = {
    "asvspoof2019": "asvspoof2019",
    "asvspoof2021": "asvspoof2021",
    "asvspoof5": "asvspoof5",
    "cm-": "asvspoof5",
    "evaluation-full-key": "asvspoof5",
}
"""The protocol of files whose layout begins so."""
MEASURED: Final = re.compile(
    r"(^|_)(latency|duration|seconds|secs?|msec|ms|time|timestamp|date|year|age|tokens?|cost|price|length|size|width|height"
    r"|bytes|count|number|index|row|line|fold|seed|trial|rate_hz|fs|weights?)($|_)"
)
"""Names of numbers that say how long, how many or when, and are never how sure a detector is."""
DECIMAL_COMMA: Final = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
THOUSANDS: Final = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")
VERDICTS: Final = "triage"
DECLARED: Final = ("item", "target", "label", "score", "decision", "confidence")
COLUMNS: Final = ("missing-column", "ambiguous-column")


@dataclass(frozen=True)
class Choice:
    """One answer to a question: how it reads, the read options that it means, and as a command line writes them."""

    title: str
    means: ReadSpec
    keywords: Mapping[str, str]

    @property
    def option(self) -> str:
        """The options of the answer."""
        return " ".join(f"--{name.replace('_', '-')} {quote(value)}" for name, value in self.keywords.items())


@dataclass(frozen=True)
class Question:
    """Something that the files do not say: a sentence, the answers, and the proposed one if there is one."""

    about: str
    sentence: str
    choices: tuple[Choice, ...]
    proposed: Choice | None = None
    otherwise: str = ""
    """What else settles it, as an option."""

    @property
    def options(self) -> tuple[str, ...]:
        """The options of which one settles the question."""
        return (*(choice.option for choice in self.choices), *([self.otherwise] if self.otherwise else []))


@dataclass(frozen=True)
class Look:
    """The first look at a file: its name, its columns, its first rows, and what the reader recognises in it."""

    path: str
    shape: SourceHead
    names: Row
    rows: tuple[Row, ...]
    has_score: bool
    has_label: bool

    def cells(self, at: int) -> list[str]:
        """Return the first cells of a column."""
        return [row[at] for row in self.rows if at < len(row)]


@dataclass(frozen=True)
class Proposal:
    """What files mean: which are scores and which the key, how they are read, by which protocol, and what is asked."""

    scores: tuple[str, ...]
    key: str | None
    read: ReadSpec
    protocol: str | None
    trials: Trials
    unit: tuple[str, ...] = ()
    slices: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def verb(self) -> str:
        """The verb that measures such files."""
        return VERDICTS if self.protocol == VERDICTS else "score"


Answer = Callable[[Question], "Choice | None"]
"""Asks a question; None leaves it open."""


class Undecided(UsageError):
    """Raised if questions were left open; they are in `questions`."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = tuple(questions)
        listed = "; ".join(f"{q.sentence} ({' or '.join(q.options)})" for q in questions)
        left = [q for q in questions if q.proposed is None] or list(questions[-1:])
        more = {"yes": ""} if len(questions) > 1 and any(q.proposed for q in questions) else {}
        ways = [{**choice.keywords, **more} for choice in left[0].choices] if len(left) == 1 else []
        taking = "; --yes takes what is proposed" if any(q.proposed for q in questions) else ""
        super().__init__(f"undecided, so nothing was written: {listed}{taking}", code="undecided", choices=ways)


def look_at(path: str, spec: ReadSpec) -> Look:
    """Take a first look at a file, with what is recognised in it."""
    ledger = Diagnostics()
    try:
        shape = with_leaves(look(path, "both", replace(spec, layout=None), ledger))
    except Stop:
        raise ledger.error() from None
    is_headed = shape.names is not None or looks_headed(shape, spec)
    names = shape.names or (shape.first[0] if is_headed else tuple(str(i + 1) for i in range(shape.width)))
    rows = shape.first if shape.names is not None or not is_headed else shape.first[1:]
    made = Look(path, shape, names, tuple(rows), False, False)
    score, label = (_recognised(shape, role, spec) for role in ("scores", "key"))
    has_label = label is not None and fits("label", made.cells(label.picks["label"]))
    return replace(made, has_score=score is not None, has_label=has_label)


def has_decimal_comma(own: Look) -> bool:
    """Return whether a column holds numbers with a decimal comma, which cannot be thousands."""
    columns = (own.cells(at) for at in range(len(own.names)))
    commas = (cells for cells in columns if cells and all(DECIMAL_COMMA.fullmatch(cell.strip()) for cell in cells))
    return any(not all(THOUSANDS.fullmatch(cell.strip()) for cell in cells) for cells in commas)


def _recognised(shape: SourceHead, role: Role, spec: ReadSpec) -> Match | None:
    try:
        return recognise(shape, role, spec.for_key if role == "key" else spec, Diagnostics())
    except Stop:
        return None


def propose(files: Sequence[str], key: str | None, protocol: str | None, said: ReadSpec, answer: Answer) -> Proposal:
    """Return what files mean; `answer` is asked for each thing that neither they nor the caller's options say.

    Raises
    ------
    Undecided
        If questions were left open.
    DataError
        If the files cannot be read whatever they mean.
    """
    looks = [look_at(path, said) for path in files]
    if said.decimal is None and any(map(has_decimal_comma, looks)):
        said = ReadSpec(decimal=",").over(said)
    if key is None and len(looks) > 1:
        keys = [one for one in looks if one.has_label and not one.has_score]
        key = keys[0].path if len(keys) == 1 else None
    scores = tuple(one.path for one in looks if one.path != key)
    dialogue = Dialogue(scores, key, protocol, said, answer, looks if key is None else [*looks, look_at(key, said)])
    return dialogue.settled()


class Dialogue:
    """Read files, ask for what stops the reader, and read again, until they can be read or a question stays open."""

    def __init__(
        self,
        scores: tuple[str, ...],
        key: str | None,
        protocol: str | None,
        said: ReadSpec,
        answer: Answer,
        looks: Sequence[Look],
    ) -> None:
        self.scores, self.key, self.protocol, self.spec = scores, key, protocol, said
        self.answer, self.looks = answer, {one.shape.name: one for one in looks}
        self.open: list[Question] = []

    def settled(self) -> Proposal:
        """Return the proposal, or raise what is left open."""
        if self.protocol is None and self._gives_verdicts():
            self.protocol = VERDICTS
        seen = self._read()
        trials = seen.trials
        assert trials is not None  # what stops the reader was raised
        if self.protocol is None and (named := _protocol_of(trials)) is not None:
            self.protocol = named
            return self.settled()
        if self.protocol is None and "item" not in self.spec.columns and (item := _id_of(trials)) is not None:
            self.spec = ReadSpec(columns={"item": item}).over(self.spec)
            return self.settled()
        question = self._direction(trials)
        if question is not None:
            self._put(question)
            self._refuse_open()
            return self.settled()
        return self._proposal(trials)

    def _gives_verdicts(self) -> bool:
        """Return whether the files hold verdicts of real and fake without a score, which are a triage."""
        match = _recognised(self.looks[_name(self.scores[0], self.looks)].shape, "both", self.spec)
        if match is None or "decision" not in match.picks or "score" in match.picks:
            return False
        own = {ours: match.theirs[ours] for ours in ("item", "label", "decision", "confidence") if ours in match.picks}
        spec = replace(self.spec, columns={**own, **self.spec.columns})
        try:
            seen = examine(list(self.scores), self.key, spec.over(find_protocol(VERDICTS).read))
        except HitmissError:
            return False
        if seen.trials is None or not about_spoofing(seen.trials.header.positive):
            return False
        self.spec = spec
        return True

    def _read(self) -> Examination:
        """Read until nothing stops the reader; questions that stay open are raised together."""
        while True:
            question, seen = self._tried()
            if question is None:
                self._refuse_open()
                return seen if seen is not None and seen.trials is not None else self._refused()
            if question.about == "positive" and not all(q.proposed for q in self.open):
                self._refuse_open()  # whose labels these are is open itself
            self._put(question)
            if self.protocol is None and question.about == "score" and self._gives_verdicts():
                self.protocol = VERDICTS

    def _tried(self) -> tuple[Question | None, Examination | None]:
        try:
            seen = examine(self._given, self.key, self._ruled)
        except HitmissError as error:
            if not error.choices:
                raise
            return _of_choices(error.choices, error.message, self._looked()), None
        words = [f for f in seen.faults if f.column == "score" and f.kind not in COLUMNS]
        if words and len(words) >= len(self.looks[words[0].file or ""].cells(0)):  # all of them: it is another column
            return self._column(words[0]), seen
        if seen.choices:
            return _of_choices(seen.choices, seen.faults[0].message, self._looked()), seen
        fault = next((f for f in seen.faults if f.kind in COLUMNS and f.column in ("item", "label", "score")), None)
        return (None if fault is None else self._column(fault)), seen

    def _refused(self) -> Examination:
        read(self._given, self.key, self._ruled)  # raises what is wrong with the data
        raise AssertionError("unreachable")

    @property
    def _given(self) -> object:
        return list(self.scores) if len(self.scores) > 1 else self.scores[0]

    @property
    def _ruled(self) -> ReadSpec:
        return self.spec if self.protocol is None else self.spec.over(find_protocol(self.protocol).read)

    def _looked(self) -> Look:
        return self.looks[_name(self.scores[0], self.looks)]

    def _column(self, fault: Fault) -> Question:
        """Ask which column is ours, among those whose values can be."""
        own = self.looks[fault.file or ""]
        is_key = self.key is not None and own.path == self.key
        ours, option = str(fault.column), "key_column" if is_key else "column"
        names, sure = _candidates(ours, own, {*self.spec.columns.values(), *self.spec.key_columns.values()})
        choices = [Choice(name, self._named_so(ours, name, is_key), {option: f"{ours}={name}"}) for name in names]
        if ours == "score" and not is_key:  # answers in words come before numbers, which may be how sure they are
            said = [name for name in self._answers(own) if name not in names]
            decided = [
                Choice(
                    f"{name}, which holds decisions", ReadSpec(columns={"decision": name}), {option: f"verdict={name}"}
                )
                for name in said
            ]
            choices, sure = [*decided, *choices], [c.title for c in decided] or sure
        otherwise = "--key FILE, if another file has the labels" if ours == "label" and self.key is None else ""
        if not choices and ours == "score":
            otherwise = f"no column holds numbers; {option_of('both')} verdict=NAME, if one holds decisions"
        proposed = next((choice for choice in choices if [choice.title] == sure), None)
        return Question(ours, f"{own.shape.name}: which column is the {ours}?", tuple(choices), proposed, otherwise)

    def _answers(self, own: Look) -> list[str]:
        """Return the columns that hold the words of the label, and perhaps one more for no answer."""
        match = _recognised(own.shape, "key", self.spec)
        if match is None or "label" not in match.picks:
            return []
        at = match.picks["label"]
        classes = {*own.cells(at)}
        others = ((i, name, {*map(verdict_in, own.cells(i))}) for i, name in enumerate(own.names))
        return [
            name
            for i, name, said in others
            if i != at and len(classes) == 2 and len(said & classes) == 2 >= len(said - classes)
        ]

    def _named_so(self, ours: str, name: str, is_key: bool) -> ReadSpec:
        """Return the declaration of a column; a key may use the same name for another column of ours."""
        if is_key:
            return ReadSpec(key_columns={ours: name})
        key = next((one for one in self.looks.values() if one.path == self.key), None)
        match = _recognised(key.shape, "key", self.spec) if key is not None else None
        others = {o: t for o, t in match.theirs.items() if t == name and o != ours} if match is not None else {}
        return ReadSpec(columns={ours: name}, key_columns=others)

    def _put(self, question: Question) -> None:
        """Ask a question; if it stays open, go on with its first answer, to find what else is open."""
        chosen = self.answer(question)
        if chosen is None:
            self.open.append(question)
            if question.about not in ("label", "score", "item") or not question.choices:
                self._refuse_open()
            chosen = question.proposed or question.choices[0]
        self.spec = chosen.means.over(self.spec)

    def _refuse_open(self) -> None:
        if self.open:
            raise Undecided(self.open)

    def _direction(self, trials: Trials) -> Question | None:
        """Ask what a higher score means, if the scores of the positive class are the lower ones."""
        is_said = self._ruled.higher is not None or class_of_score(self._named("score")) is not None
        if is_said or "score" not in trials.frame.columns or not 0 < trials.n_positive < len(trials):
            return None
        area = measure(trials, [AREA]).estimates[0].value
        if area is None or area >= 0.5:
            return None
        head = trials.header
        means = [Choice(word, ReadSpec(higher=word), {"higher": word}) for word in (head.negative, head.positive)]
        return Question(
            "higher",
            f"which class does a higher score mean? The scores of {head.negative} are the higher ones (area {area:.3f})",
            tuple(means),
        )

    def _named(self, ours: str) -> str:
        match = _recognised(self._looked().shape, "scores", self._ruled)
        return match.theirs.get(ours, "") if match is not None else ""

    def _proposal(self, trials: Trials) -> Proposal:
        head, rules = trials.header, find_protocol(self.protocol) if self.protocol else None
        unit = _unit(trials, rules.natural if rules and rules.natural else USUAL_UNITS)
        few = [n for n in head.slices if 1 < trials.frame[n].n_unique() <= min(FEW, len(trials) - 1)]
        plain_few = [name for name in few if trials.frame[name][0][:1] != "{"]
        slices = tuple(name for name in map(user_name, plain_few) if name not in unit)
        spec, columns = self.spec, {}
        if rules is None:
            spec = spec.changed(**self._declared(trials))
            columns = {
                **{ours: theirs for file in head.files for ours, theirs in _told(file, "columns").items()},
                **spec.columns,
                **spec.key_columns,
            }
        elif rules.name == VERDICTS and head.runs and not spec.runs:
            spec = spec.changed(runs=tuple(map(user_name, head.runs)))
        metrics = () if rules is not None else usual_metrics([trials])
        return Proposal(self.scores, self.key, spec, self.protocol, trials, unit, slices, metrics, columns)

    def _declared(self, trials: Trials) -> dict[str, object]:
        """Return the read options that state what was recognised by names, so that they are declared from now on."""
        head, columns = trials.header, dict[str, dict[str, str]]()
        for file in head.files:
            if file.get("layout") == "table":
                name = "key_columns" if file.get("role") == "key" else "columns"
                own = {ours: theirs for ours, theirs in _told(file, "columns").items() if ours in DECLARED}
                columns[name] = {**own, **getattr(self.spec, name)}
        side_by_side = {label: score for file in head.files for label, score in _told(file, "pairs").items()}
        made: dict[str, object] = {**columns}
        if len(side_by_side) == 1 and self.key is not None and not self.spec.pairs:  # one label of each item
            ((label, score),) = side_by_side.items()
            made |= {
                "columns": {**columns.get("columns", {}), "score": score},
                "key_columns": {**columns.get("key_columns", {}), "label": label},
            }
        elif side_by_side:
            made["pairs"] = {**side_by_side, **self.spec.pairs}
        is_named = (head.positive, head.negative) != ("positive", "negative")
        if is_named:
            made |= {"positive": head.positive, "negative": head.negative}
        if is_named and "score" in trials.frame.columns:
            made["higher"] = head.negative if head.scale.is_reversed else head.positive
        if head.runs and not self.spec.score_columns:
            made["runs"] = tuple(map(user_name, head.runs))
        return made


def _name(path: str, looks: Mapping[str, Look]) -> str:
    return next(name for name, one in looks.items() if one.path == path)


def _told(file: Mapping[str, object], name: str) -> Mapping[str, str]:
    found = file.get(name)
    return found if isinstance(found, Mapping) else {}


def _of_choices(choices: Sequence[Mapping[str, str]], sentence: str, own: Look) -> Question:
    """Make a question of the declarations that the reader offers; a score column that names a class proposes it."""
    made = [
        Choice(
            ", ".join(f"{name.replace('_', ' ')} = {value}" for name, value in choice.items()),
            ReadSpec().changed(**choice),
            choice,
        )
        for choice in choices
    ]
    named = {class_of_score(name) for name in own.names} - {None}
    fit = [c for c, choice in zip(made, choices, strict=True) if choice.get("positive") in named and len(choice) == 1]
    return Question("positive", sentence, tuple(made), fit[0] if len(fit) == 1 and len(named) == 1 else None)


def _candidates(ours: str, own: Look, taken: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the columns of a file that can be ours, and those of them that are meant if they are alone."""
    free = [(name, own.cells(at)) for at, name in enumerate(own.names) if name not in taken]
    if ours == "score":
        found = [n for n, cells in free if cells and all(map(is_number, cells)) and len({*cells}) > 2 and not _is_id(n)]
        found = [n for n in found if not MEASURED.search(plain(n))]
        return found, found
    if ours == "label":
        found = [n for n, cells in free if 1 < len({*cells}) <= 3]
        two = [n for n, cells in free if len({*cells}) == 2]
        return found, [n for n, cells in free if n in found and fits("label", cells)] or two or found
    found = [n for n, cells in free if len({*cells}) == len(cells)]
    texts = [n for n, cells in free if n in found and not all(map(is_number, cells))]
    return found, texts if len(texts) == 1 else found


def _is_id(name: str) -> bool:
    return plain(name) in ALIASES["item"] or plain(name).endswith("id")


def _id_of(trials: Trials) -> str | None:
    """Return the one column of texts whose values are all different, if the files have no ids."""
    if any("item" in _told(file, "columns") for file in trials.header.files):
        return None
    texts = [name for name in trials.header.slices if trials.frame[name].n_unique() == len(trials)]
    named = [name for name in texts if not all(map(is_number, trials.frame[name].head(FEW).to_list()))]
    return user_name(named[0]) if len(named) == 1 else None


def _protocol_of(trials: Trials) -> str | None:
    """Return the protocol that the layout of a file shows."""
    layouts = [str(file.get("layout", "")) for file in trials.header.files]
    found = {p for start, p in OF_LAYOUT.items() for layout in layouts if layout.startswith(start)}
    return found.pop() if len(found) == 1 else None


def _unit(trials: Trials, candidates: Sequence[str]) -> tuple[str, ...]:
    """Return the first of the usual units that the trials have: its columns vary and repeat."""

    def repeats(name: str) -> bool:
        column = find_column(name, trials.header.slices)
        return column is not None and 1 < trials.frame[column].n_unique() < trials.frame["item"].n_unique()

    return next((names for names in map(names_of, candidates) if all(map(repeats, names))), ())


def rows_of(own: Look) -> Iterator[Row]:
    """Yield the names and the first three rows of a file."""
    yield own.names
    yield from own.rows[:SHOWN_ROWS]
