"""Wide files: several labels of one text side by side, each of them a question about the text.

A file with `toxic, obscene, …` and `toxic_prob, obscene_prob, …`, or a submission and its key with the same names, is
turned into one row per text and label. The published nested forms (categories of a moderation endpoint, attributes
with a summary score, lists of label and score) are spread into columns first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from hitmiss.core.columns import INNER
from hitmiss.core.errors import UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.io.aliases import ALIASES, OURS, PREDICTED, plain
from hitmiss.io.cells import number_in
from hitmiss.io.columns import looks_headed
from hitmiss.io.diagnostics import Diagnostics, Stop, listed
from hitmiss.io.frames import SAMPLE_ROWS, as_codes, head_of
from hitmiss.io.json_lines import cell_text
from hitmiss.io.languages import language_of
from hitmiss.io.layouts import is_number
from hitmiss.io.nested_fields import field_at, opened, paths_in, with_columns, with_fields
from hitmiss.io.sides import look
from hitmiss.io.source import SourceHead
from hitmiss.io.tables import lines_of, load_all, look_at_head
from hitmiss.io.texts import TEXTS
from hitmiss.io.words import flag, is_absent

TYPE: Final = "type"
"""The slice that says which label a row is about."""
QUESTION: Final = f"{INNER}question"
"""The same as the engine's target: an item and a type are one question."""
MADE_OF_WIDE: Final = ("target", "label", "score", TYPE)
"""The columns that are made, and that no file has."""
SCORES_OF: Final = re.compile(
    r"(?P<first>.+?)_(?:probability|probabilities|prob|proba|score|pred|prediction|predicted)"
    r"|(?:p|prob|proba|probability|score|pred|prediction|predicted)_(?P<last>.+)"
)
"""Names of score columns beside a label: `toxic_prob`, `pred_toxic`."""
SAME: Final = {
    "toxicity": "toxic",
    "severe_toxicity": "severe_toxic",
    "identity_attack": "identity_hate",
}
"""Names that published data sets and the outputs of published models have for the same label."""
NESTED: Final = (
    ("category_scores", ""),
    ("results", "0.category_scores"),
    ("result", "category_scores"),
    ("response", "results.0.category_scores"),
    ("attributeScores", ""),
    ("response", "attributeScores"),
)
"""Where published endpoints put the scores of all labels: a column, and the path inside it."""
SUMMARY: Final = "summaryScore.value"
LISTS: Final = ("predictions", "scores", "outputs", "results")
"""Columns that may hold a list of label and score for each text, or a list of scores."""


@dataclass(frozen=True)
class Wide:
    """The labels of a wide file, by name: the column of the label and that of its score."""

    labels: Mapping[str, str]
    scores: Mapping[str, str]

    @property
    def titles(self) -> tuple[str, str]:
        """The names of the two columns that are made, as messages show them: those of the file."""
        return listed_plainly(self.labels.values()), listed_plainly(self.scores.values(), "score of ")


def listed_plainly(names: Iterable[str], before: str = "label of ") -> str:
    """Return some names as one, which no column of a file has."""
    return before + ", ".join(names)


def canonical(name: str) -> str:
    """Return the form of a label's name in which files are compared.

    >>> canonical("SEVERE_TOXICITY"), canonical("hate/threatening"), canonical("Identity attack")
    ('severe_toxic', 'hate_threatening', 'identity_hate')
    """
    own = plain(name).replace("/", "_")
    return SAME.get(own, own)


def label_of_score(name: str) -> str | None:
    """Return the label that a score column is about by its name.

    >>> label_of_score("toxic_prob"), label_of_score("pred-Severe_Toxicity"), label_of_score("toxic")
    ('toxic', 'severe_toxic', None)
    """
    found = SCORES_OF.fullmatch(plain(name))
    return canonical(found["first"] or found["last"]) if found else None


def spread(shape: SourceHead) -> SourceHead:
    """Return a source with a column `prob_LABEL` for each label whose score stands in a published nested field."""
    if shape.frame is None or shape.names is None:
        return shape
    for head, path in NESTED:
        if head in shape.names:
            found = [_scores_in(field_at(value, path) if path else value) for value in opened(shape.frame[head])]
            if any(found):
                return _spread(shape, head, found)
    for head in LISTS:
        if head in shape.names:
            found = [_listed_scores(value) for value in opened(shape.frame[head])]
            if any(found):
                return _spread(_spread_labels(shape, found), head, found)
    return shape


def _scores_in(value: object) -> dict[str, str]:
    """Return the score of each label of one text: a number, or an attribute with a summary score."""
    if not isinstance(value, Mapping):
        return {}
    scores = {name: field_at(inner, SUMMARY) if isinstance(inner, Mapping) else inner for name, inner in value.items()}
    return {name: cell_text(score) for name, score in scores.items() if score is not None}


def _listed_scores(value: object) -> dict[str, str]:
    """Return the score of each label of one text in a list: of label and score, or of scores alone, by position."""
    inner = value[0] if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list) else value
    if not isinstance(inner, list) or not inner:
        return {}
    if all(isinstance(one, Mapping) and {"label", "score"} <= {*one} for one in inner):
        return {str(one["label"]): cell_text(one["score"]) for one in inner}
    if all(is_number(cell_text(one)) for one in inner):
        return {str(at): cell_text(one) for at, one in enumerate(inner)}
    return {}


def _spread_labels(shape: SourceHead, scores: Sequence[Mapping[str, str]]) -> SourceHead:
    """Return a source with a column for each label that a list of the texts' labels has: names, or 0 and 1 by position."""
    assert shape.frame is not None
    types = list(dict.fromkeys(name for own in scores for name in own))
    head = next((name for name in ("labels", "label", "y_true") if name in shape.frame.columns), None)
    values = [] if head is None else list(opened(shape.frame[head]))
    if head is None or not values or not all(isinstance(value, list) for value in values):
        return shape
    cells: dict[str, list[str]] = {name: [] for name in types}
    for value in values:
        texts = [cell_text(one) for one in value] if isinstance(value, list) else []
        is_coded = len(texts) == len(types) and all(text in ("0", "1") for text in texts)
        for at, name in enumerate(types):
            cells[name].append(texts[at] if is_coded else str(int(name in texts)))
    return with_columns(shape, [pl.Series(name, own, pl.String) for name, own in cells.items()], [head])


def _spread(shape: SourceHead, head: str, found: Sequence[Mapping[str, str]]) -> SourceHead:
    names = list(dict.fromkeys(name for own in found for name in own))
    columns = [pl.Series(f"prob_{name}", [own.get(name, "") for own in found], pl.String) for name in names]
    return with_columns(shape, columns, [head])


def find_wide(scores: Sequence[SourceHead], key: Sequence[SourceHead] | None, options: ReadSpec) -> Wide | None:
    """Return the labels that files have side by side; None if they have one label, or the caller says which it is."""
    if options.layout is not None or not all(_is_named(shape, options) for shape in (*scores, *(key or ()))):
        return None
    truths = key if key is not None else scores
    if options.pairs:
        return _declared(scores, truths, options)
    ours = {OURS.get(name, name) for name in (*options.columns, *options.key_columns)}
    if options.score_columns or ours & {"label", "score", "decision"}:
        return None
    own, theirs = scores[0], truths[0]
    has_score = {*map(plain, _names(own))} & {*ALIASES["score"], *PREDICTED["score"]}
    has_label = {*map(plain, _names(theirs))} & {*ALIASES["label"]}
    if has_score and has_label:
        return None
    labels = {canonical(n): n for n in reversed(_names(theirs)) if _may_be_labels(theirs, n, options)}
    by_name = {canonical(n): n for n in reversed(_names(own)) if key is not None and _are_numbers(own, n, options)}
    found = {label: n for n in _names(own) if (label := label_of_score(n)) and _are_numbers(own, n, options)}
    pairs = {label: {**by_name, **found}.get(label) for label in labels}
    both = [label for label in reversed(labels) if pairs[label] is not None and labels[label] not in _ids(theirs)]
    if len(both) < (2 if key is None else 1) or (key is not None and len(both) == 1 and has_score):
        return None
    return Wide({labels[n]: labels[n] for n in both}, {labels[n]: str(pairs[n]) for n in both})


def are_wide(paths: Sequence[str], options: ReadSpec) -> bool:
    """Return whether files have several labels of a text side by side; what is wrong with a file is said when it is read."""
    if options.layout is not None or not all(Path(path).is_file() for path in paths):
        return False
    try:
        heads = [spread(with_fields(_first_look(path, options), paths_in(options))) for path in paths]
    except (Stop, OSError):
        return False
    return find_wide(heads, None, options) is not None


def _first_look(path: str, options: ReadSpec) -> SourceHead:
    """Return the head of a file, of which no more is read if its format allows it."""
    try:
        return look_at_head(path, options, Diagnostics())
    except Stop:
        return look(path, "both", options, Diagnostics())


def _ids(shape: SourceHead) -> list[str]:
    return [name for name in _names(shape) if plain(name) in ALIASES["item"]]


def _declared(scores: Sequence[SourceHead], truths: Sequence[SourceHead], options: ReadSpec) -> Wide:
    for names, there in ((options.pairs.keys(), _names(truths[0])), (options.pairs.values(), _names(scores[0]))):
        absent = [name for name in names if name not in there]
        if absent:
            raise UsageError.of("missing-column/pair", absent=absent[0], there=listed(there))
    return Wide({name: name for name in options.pairs}, dict(options.pairs))


def _is_named(shape: SourceHead, options: ReadSpec) -> bool:
    return shape.pieced is None and (shape.names is not None or looks_headed(shape, options))


def _names(shape: SourceHead) -> tuple[str, ...]:
    return shape.names if shape.names is not None else shape.first[0]


def _head(shape: SourceHead, name: str) -> list[str]:
    at, rows = _names(shape).index(name), shape.first if shape.names is not None else shape.first[1:]
    return [row[at].strip() for row in rows if at < len(row) and not is_absent(row[at])]


def _may_be_labels(shape: SourceHead, name: str, options: ReadSpec) -> bool:
    """Return whether the first cells of a column are 0, 1 and -1, yes and no, or shares where labels are cut."""
    cells = _head(shape, name)
    numbers = [_number(cell, options) for cell in cells]
    if options.label_cut is not None and cells and None not in numbers:
        return all(number is not None and 0 <= number <= 1 for number in numbers)
    return bool(cells) and all(flag(cell) is not None or cell in ("-1", "-1.0") for cell in cells)


def _are_numbers(shape: SourceHead, name: str, options: ReadSpec) -> bool:
    cells = _head(shape, name)
    return bool(cells) and all(_number(cell, options) is not None for cell in cells)


def _number(cell: str, options: ReadSpec) -> float | None:
    return number_in(cell.replace(",", ".") if options.decimal_sign == "," else cell)


def long_options(wide: Wide, options: ReadSpec, *, has_key: bool) -> ReadSpec:
    """Return how to read the rows that `long_rows` makes."""
    label, score = wide.titles
    columns = {**options.columns, "target": QUESTION, "score": score}
    if has_key:
        key = {**options.key_columns, "label": label, "target": QUESTION}
        return options.changed(columns=columns, key_columns=key)
    return options.changed(columns={**columns, "label": label})


def long_rows(
    shapes: Sequence[SourceHead], wide: Wide, ledger: Diagnostics, *, labels: bool, scores: bool
) -> list[SourceHead]:
    """Return sources with one row per text and label: the columns of labels become one, and those of scores another."""
    languages = [language_of(shape.name) for shape in shapes]
    is_named = all(languages) and not any({"language", "lang"} & {*map(plain, _names(s))} for s in shapes)
    made = []
    for shape, language in zip(shapes, languages, strict=True):
        table = load_all(shape, ledger)
        frame = table.frame
        used = {*(wide.labels.values() if labels else ()), *(wide.scores.values() if scores else ())}
        kept = [c for c in frame.columns if c not in used and plain(c) not in TEXTS and c not in (TYPE, QUESTION)]
        beside = frame.select(as_codes(frame[c]) if repeats(frame[c]) else frame[c] for c in kept)
        if is_named and scores:
            beside = beside.with_columns(pl.lit(language).alias("language"))
        parts = []
        for name in wide.labels:
            own = [pl.lit(name, pl.Categorical).alias(TYPE), pl.lit(name).alias(QUESTION)]
            if labels:
                own.append(pl.lit(frame[wide.labels[name]]).alias(wide.titles[0]))
            if scores:
                own.append(pl.lit(frame[wide.scores[name]]).alias(wide.titles[1]))
            parts.append(beside.with_columns(own))
        long = pl.concat(parts)
        lines = lines_of([table])
        made.append(
            replace(
                shape,
                first=head_of(long),
                names=tuple(long.columns),
                frame=long,
                lines=np.tile(lines, len(wide.labels)),
            )
        )
    return made


def repeats(column: pl.Series) -> bool:
    """Return whether the first cells of a column of texts repeat, as those of languages and identities do."""
    head = column.head(SAMPLE_ROWS)
    return column.dtype == pl.String and 2 * head.n_unique() < len(head)


def note_wide(wide: Wide, ledger: Diagnostics) -> None:
    """Say which labels were found side by side; one label is an ordinary file."""
    if len(wide.scores) == 1:
        return
    pairs = [name if name == score else f"{name} ({score})" for name, score in wide.scores.items()]
    ledger.notes.append(
        f"{len(pairs)} labels of each text are read side by side, each as a question of its own: {', '.join(pairs)}"
    )
