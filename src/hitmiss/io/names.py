"""Which of our columns the named columns of a file are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from hitmiss.columns import SCORES, apart, stored
from hitmiss.errors import nearest
from hitmiss.io.findings import Ledger, Place, listed, quoted
from hitmiss.io.layouts import PROTOCOL
from hitmiss.io.shapes import Row
from hitmiss.io.words import FAMILIES
from hitmiss.readspec import ReadSpec
from hitmiss.values import ScoreKind

SYSTEM_PREFIX: Final = SCORES
SASV_SCORES: Final = ("sasv_score", "cm_score", "asv_score")
SASV_LABELS: Final = ("cm_label", "asv_label")

ALIASES: Final[Mapping[str, Row]] = {
    "item": (
        *("item", "id", "item_id", "filename", "file_name", "file", "utt", "utt_id", "utterance", "utterance_id"),
        *("flac_file_name", "trial_anon", "sample_id"),
    ),
    "target": (),
    "label": ("label", "key", "y_true", *SASV_LABELS),
    "score": ("score", "llr", "logit", "log_odds", "y_score", "y_prob", "prob", "probability", *SASV_SCORES),
    "decision": ("decision", "y_pred", "verdict"),
    "confidence": ("confidence", "confidence_percent", "confidence_pct"),
    "error": ("error",),
}
EXTRAS: Final[Mapping[str, str]] = {
    **{name: name for name in (*PROTOCOL, *SASV_LABELS, *SASV_SCORES) if name not in ALIASES},
    "speaker_id": "speaker",
    "spk": "speaker",
    "speaker_gender": "gender",
    "attack_label": "attack",
    "attack_anon": "attack",
}
OURS: Final = {"verdict": "decision", "prediction": "decision", "confidence_percent": "confidence", "id": "item"}
"""Further words that a caller may use for our columns."""
KIND_OF_SCORE: Final[Mapping[str, ScoreKind]] = {"logit": "logit", "log_odds": "logit"}
"""What scores are where the name of their column says so and the caller says nothing; `write_scores` names them so."""
KNOWN: Final = {alias for aliases in ALIASES.values() for alias in aliases} | set(EXTRAS)


def plain(name: str) -> str:
    """A column's name as it is compared.

    >>> plain("CM-Label "), plain("y true")
    ('cm_label', 'y_true')
    """
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def is_known(name: str) -> bool:
    """Whether a column of this name would be taken for one of ours.

    >>> is_known("y_true"), is_known("codec")
    (True, False)
    """
    return any(plain(name) in aliases for aliases in ALIASES.values())


def resolve(
    names: Row, wanted: frozenset[str], options: ReadSpec, file: str, ledger: Ledger, is_settled: bool = False
) -> dict[str, int]:
    """Our name -> position, for every column. `wanted` are the fixed columns that this file may hold.

    What the caller declares comes first (where this file has it: another may), then the known names; all other
    columns keep their own, or one apart where the engine owns that. `is_settled`: a layout has seen to that already.
    """
    found = {OURS.get(ours, ours): names.index(theirs) for ours, theirs in options.columns.items() if theirs in names}
    if "score" in wanted:
        found |= {SYSTEM_PREFIX + name: names.index(name) for name in options.score_columns if name in names}
        wanted -= {"score"} if options.score_columns else set()
    for ours in sorted(wanted - set(found)):
        at = _claim(ours, names, set(found.values()), options, file, ledger)
        if at is not None:
            found[ours] = at
    taken = set(found.values())
    for at, name in enumerate(names):
        if at not in taken:
            ours = EXTRAS.get(plain(name), name)
            ours = ours if ours not in found and ours not in names else name
            found[ours if is_settled else _kept(ours, found)] = at
    return found


def _kept(name: str, taken: Collection[str]) -> str:
    own = stored(name)
    return own if own not in taken else apart(name)


def _claim(ours: str, names: Row, taken: set[int], options: ReadSpec, file: str, ledger: Ledger) -> int | None:
    """The column that answers to one of the names of ours; two that do are an error."""
    aliases = _target_names(names, options) if ours == "target" else ALIASES[ours]
    hits = {plain(name): at for at, name in enumerate(names) if at not in taken and plain(name) in aliases}
    if len(hits) > 1 and set(hits) <= {*SASV_LABELS, *SASV_SCORES}:
        preferred = _track_two(ours, names, options)
        hits = {preferred: hits[preferred]} if preferred in hits else hits
    if len(hits) > 1:
        several = [names[at] for at in hits.values()]
        what = f"the {ours} could be any of the columns {', '.join(map(quoted, several))}"
        fix = f"say which, as --column {ours}={several[0]}"
        raise ledger.stop("ambiguous-column", what, fix, [Place(file, 1)], column=ours)
    return next(iter(hits.values()), None)


def _track_two(ours: str, names: Row, options: ReadSpec) -> str:
    """Of the columns of ASVspoof 5 track 2, those for the class asked for: spoofing alone, or the whole system."""
    if is_about_spoofing(names, options):
        return "cm_label" if ours == "label" else "cm_score"
    return "asv_label" if ours == "label" else "sasv_score"


def is_about_spoofing(names: Row, options: ReadSpec) -> bool:
    """Whether the question is bonafide or spoof, and not target or not; full keys are mostly used for the former."""
    if options.positive is None:
        return "trial_anon" in map(plain, names)
    return options.positive in FAMILIES[0].words


def _target_names(names: Row, options: ReadSpec) -> Row:
    """In track 2 the speaker who is claimed is what is looked for; a full key names it, but track 1 does not ask.

    Elsewhere a column `target` is like any other until items repeat (see `door`), or the caller says what it is.
    """
    known = set(map(plain, names))
    if "trial_anon" in known:
        return () if is_about_spoofing(names, options) else ("tar_spk_anon",)
    return ("spk",) if "spk" in known and known & {"asv_label", "sasv_score", "asv_score"} else ()


def refuse_undeclared(options: ReadSpec, columns: Row, file: str, ledger: Ledger) -> None:
    """Stop where the caller names a column that no file has."""
    for theirs in (*options.columns.values(), *options.key_columns.values(), *options.score_columns):
        if theirs not in columns:
            near = nearest(theirs, columns)
            hint = f"did you mean {quoted(near)}?" if near else f"there are {listed(columns)}"
            raise ledger.stop("missing-column", f"there is no column {quoted(theirs)}", hint, [Place(file, 1, theirs)])
