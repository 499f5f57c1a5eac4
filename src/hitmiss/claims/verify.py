"""Verify a claim: recompute what a file or a signature states from the files it was made from, and compare both ways.

Results, comparisons and rankings state what was asked (`design`) and how the files were read (`reading`); both are used
again as they are. So do the outcome of a gate and a board. The folder of a run is checked against its own records. A
signature alone is parsed instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from hitmiss._version import __version__
from hitmiss.claims.differences import WARNED, document_differences, protocol_differences
from hitmiss.claims.open import json_object, load_contest
from hitmiss.claims.replay import Files, development_of, languages_of, replayed_as_drawn, replayed_signature
from hitmiss.claims.runs import run_differences
from hitmiss.claims.shown import SHOWN, Recomputed, shown_differences, verdict_differences
from hitmiss.core import artifacts
from hitmiss.core.design import Design
from hitmiss.core.errors import DataError, GateFailed, UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.results import Results
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.trials import COUNTED, Trials
from hitmiss.engine.comparison import Comparison
from hitmiss.engine.ranking import Ranking
from hitmiss.engine.signature import digest_of, read_signature
from hitmiss.evaluation.protocol import read_side
from hitmiss.runs.manifest import MANIFEST

OTHERS: Final = {
    "gate": ("hitmiss.claims.gate", "gate_differences"),
    "board": ("hitmiss.boards.claim", "board_differences"),
}
"""Claims that are judged by modules of their own, by name: boards are above claims."""
COMPARISONS: Final = ("comparison", "ranking")
LATER: Final = ("units",)
"""Parts of a signature that older versions did not write; they are compared only if the claim has them."""
ELSEWHERE: Final = ("hitmiss", "numpy", "out", "data", "a", "b", "runs")
"""Parts of a signature that are not compared as texts: versions, and hashes, which have their own rules."""
BYTES: Final = ("data", "a", "b", "runs")
"""Parts of a signature that are hashes of the bytes of files, whose rows may stand in another order now."""


@dataclass(frozen=True)
class Claim:
    """A claim as it was given: its signature and, if it is a file, everything that the file states."""

    signature: str
    document: Mapping[str, object] | None = None
    """The JSON form of its numbers, as this version writes it."""
    design: Design | None = None
    reading: ReadSpec | None = None
    file: Mapping[str, object] | None = None
    """Everything that the file holds, what is no number included."""

    @property
    def parts(self) -> dict[str, str]:
        """The parts of the signature, without the note that trials were streamed, which changes no number."""
        parts = self._signed
        if "choices" in parts:
            parts["choices"] = "+".join(c for c in self.choices if c != "stream")
        return {name: text for name, text in parts.items() if text}

    @property
    def choices(self) -> tuple[str, ...]:
        """The choices that the signature names: how values that are missing were treated, whether trials were streamed."""
        return tuple(self._signed.get("choices", "").split("+"))

    @property
    def _signed(self) -> dict[str, str]:
        return read_signature(self.signature.splitlines()[0] if self.signature else "")


@dataclass(frozen=True)
class Verification:
    """What was claimed, what was recomputed, and every difference in words."""

    claim: dict[str, str]
    recomputed: Results | Comparison | Ranking | None
    """What was recomputed; None for the outcome of a gate and for a board."""
    differences: tuple[str, ...]
    not_recomputed: tuple[str, ...] = ()
    """What the claim shows and nobody can recompute from the files."""
    n_others: int = 0
    """The number of checks or systems that were judged again, of a gate or a board."""

    @property
    def holds(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    @property
    def n_figures(self) -> int:
        """The number of estimates that were recomputed."""
        made = self.recomputed
        if made is None:
            return self.n_others
        return len(made.duels) if isinstance(made, Ranking) else len(made)


def load_claim(text: str) -> Claim:
    """Read a claim: a signature, or a file with one; a file that was edited after it was written is refused.

    Raises
    ------
    GateFailed
        If a file was edited after it was written.
    DataError
        If it carries no digest, or does not state what was asked.
    """
    if "|" in text or not Path(text).is_file():
        return Claim(text)
    try:
        if json_object(text).get("kind") in COMPARISONS:
            data = load_contest(text)
            design = Design.from_plain(data["design"]) if data.get("design") is not None else None
            given = Claim(str(data.get("signature") or ""), data, design, file=data)
        else:
            data = artifacts.load(text, "results")
            results = Results.from_dict(data)
            given = Claim(results.signature, _document(results), results.design, results.reading, data)
    except DataError as error:
        if error.code == "edited-artifact":
            raise GateFailed.like(error) from None
        raise
    if given.design is None:
        raise DataError.of("claim-without-design", file_name=Path(text).name)
    return given


def verify(
    claim: str,
    scores: object = None,
    key: object = None,
    reading: ReadSpec | None = None,
    *,
    calibrate_on: str | None = None,
    calibrate_key: str | None = None,
    **said: object,
) -> Verification:
    """Recompute a claim from the files it was made from.

    Parameters
    ----------
    claim
        A signature, a file of results, of a comparison, a ranking, a gate or a board, or the folder of a run.
    scores, key
        The files, as they were given when the claim was made. For a comparison: one file per run, with one key for all
        or one per run.
    reading
        Read options that the claim does not state; keywords are its fields.
    calibrate_on, calibrate_key
        Development files, if scores were calibrated or confidences recalibrated.
    **said
        Fields of `reading`, as keywords.

    Returns
    -------
    Verification
        What was recomputed, and every difference; `holds` is true if there is none.

    Raises
    ------
    UsageError
        If the claim cannot be read, or the files do not fit it.
    DataError
        If the files cannot be scored as they are.
    GateFailed
        If the claim is a file that was edited after it was written.

    >>> import tempfile
    >>> from hitmiss.evaluation.evaluate import evaluate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "scores.csv")
    ...     _ = path.write_text("id,label,score\\nx,real,2\\ny,fake,1\\nz,real,0\\n")
    ...     evaluate(path, metrics=["eer"], positive="real").save(f"{folder}/results.json")
    ...     verify(f"{folder}/results.json", str(path)).holds
    True
    """
    own = (reading or ReadSpec()).changed(**said)
    judged = _other_kinds(claim, _listed(scores), _listed(key), own)
    if judged is not None:
        return judged
    given = load_claim(claim)
    files = Files(_listed(scores), _listed(key), calibrate_on, calibrate_key)
    if not files.scores:
        raise UsageError.of("no-scores/claim", claim=claim)
    parts = given.parts
    if given.design is not None:
        read = own.over(given.reading or ReadSpec())
        made = replayed_as_drawn(given.design, parts, read, files, given.choices)
    else:
        made = replayed_signature(parts, files, own)
    left_out: list[str] = []
    differences = list(_differences(given, parts, made, left_out))
    if given.file is not None:
        shown, more = _shown(given, given.file, made, files, own)
        differences += shown
        left_out += more
    return Verification(parts, made, tuple(differences), tuple(left_out))


def _other_kinds(
    claim: str, scores: tuple[object, ...], key: tuple[object, ...], reading: ReadSpec
) -> Verification | None:
    """Verify the outcome of a gate, a board, or the folder of a run alone; None for any other claim."""
    if not scores and (Path(claim) / MANIFEST).is_file():
        n, differences, left_out = run_differences(claim)
        return Verification({}, None, tuple(differences), tuple(left_out), n)
    kind = json_object(claim).get("kind") if "|" not in claim else None
    if kind not in OTHERS:
        return None
    try:
        data = load_contest(claim, (str(kind),))
    except DataError as error:
        if error.code == "edited-artifact":
            raise GateFailed.like(error) from None
        raise
    module, name = OTHERS[str(kind)]
    words = [str(word) for word in scores]
    n, differences, left_out = getattr(import_module(module), name)(data, words, str(key[0]) if key else None, reading)
    return Verification({}, None, tuple(differences), tuple(left_out), n)


def _shown(
    given: Claim, file: Mapping[str, object], made: Results | Comparison | Ranking, files: Files, reading: ReadSpec
) -> tuple[list[str], list[str]]:
    """Compare what a file shows besides its numbers; return the differences, and what was left out."""
    known = {*_document(made), *SHOWN, "digest", *_OPTIONAL}
    unknown = [f"{name}: hitmiss does not know this field" for name in file if name not in known]
    if isinstance(made, Results):
        shown, left_out = shown_differences(file, _recomputed(given, made, files, reading))
        return unknown + shown, left_out
    if "verdict" in file:
        unknown += verdict_differences(file["verdict"], json.loads(json.dumps(made.verdict.to_dict())))
    return unknown, []


_OPTIONAL: Final = ("warning_values", "note_codes", "decisions")
"""Fields that are written only if there is something to say."""


def _recomputed(given: Claim, made: Results, files: Files, reading: ReadSpec) -> Recomputed:
    """Return what was measured again, with what the curves and the parts of a triage need."""
    design, trials = given.design, made.behind
    if design is None or not isinstance(trials, Trials):
        return Recomputed(made, trials)
    development, drawn = None, trials
    if design.calibration is not None and design.triage is None:  # drawn before and after
        read = reading.over(given.reading or ReadSpec())
        development, drawn = development_of(design, read, files), read_side(files.scores, files.key, read, design)
    extras = None
    if design.triage is not None and design.protocol is not None:
        from hitmiss.protocols.triage import extras_of

        plan = SamplingPlan(design.bootstrap, design.units, design.seed, design.level)
        extras = extras_of(trials, design.protocol, plan)
    board = None
    if design.languages is not None and {"table", "verdict"} & {*(given.file or ())}:
        board = languages_of(design, design.languages, reading.over(given.reading or ReadSpec()), files)
    return Recomputed(made, drawn, extras, board, development, design.calibration or "affine")


def _listed(given: object) -> tuple[object, ...]:
    return () if given is None else tuple(given) if isinstance(given, list | tuple) else (given,)


def _document(made: Results | Comparison | Ranking) -> dict[str, object]:
    """Return what is compared: the JSON form, as a file would hold it."""
    data: dict[str, object] = json.loads(json.dumps(made.to_dict()))
    return data


def _differences(
    given: Claim, parts: Mapping[str, str], made: Results | Comparison | Ranking, left_out: list[str]
) -> Iterator[str]:
    """Yield every statement of the claim that differs, is missing, or is not reproduced; add what cannot be to a list."""
    lines, again = given.signature.splitlines(), made.signature.splitlines()
    found, told = read_signature(again[0]), _document(made)
    found["choices"] = "+".join(c for c in found.get("choices", "").split("+") if c != "stream")
    names = dict.fromkeys([*parts, *found])
    texts = [
        f"{name}: claimed {parts.get(name) or 'nothing'}, found {found.get(name) or 'nothing'}"
        for name in names
        if name not in ELSEWHERE
        and not (name in LATER and name not in parts)
        and (parts.get(name) or "") != (found.get(name) or "")
    ]
    if len(lines) != len(again):
        texts.append(f"the signature: claimed {len(lines)} lines, found {len(again)}")
    behind = made.behind if isinstance(made, Results) else None
    trials = behind if isinstance(behind, Trials) else None
    others = [name for name in BYTES if not artifacts.same_digests(parts.get(name, ""), found.get(name, ""))]
    rows = _data_differences(given, told, trials)
    texts += rows
    if given.document is not None and given.design is not None:
        is_counted = str(given.document.get("content", "")).startswith(COUNTED)
        files = [] if trials is None else [source.name for source in trials.header.sources]
        claimed = {name: value for name, value in given.document.items() if name not in SHOWN}
        claimed |= {name: value for name, value in (given.file or {}).items() if name in WARNED}
        texts += document_differences(claimed, told, is_counted=is_counted, files=files)
        unlike, own = protocol_differences(given.design.protocol)
        texts += unlike
        left_out += own
    if not texts and not _is_same_outcome(given, parts.get("out", ""), found.get("out", "")):
        texts.append(f"the numbers differ (claimed digest {parts.get('out')}, found {found.get('out')})")
    if given.document is None and texts:  # the numbers of a signature stand for its rows: these are others
        claimed_bytes = [f"{name}: claimed {parts.get(name)}, found {found.get(name)}" for name in others]
        texts = claimed_bytes + texts
    elif others and not rows:
        same = "every choice and number comes out as claimed" if given.document is None else "the rows are the same"
        left_out.append(f"the hash of the files in the signature (these files have other bytes; {same})")
    hint = _versions(dict(parts), found)
    if hint and not texts:
        left_out.append(f"versions{hint.removeprefix(';')}")
    yield from texts[:-1]
    yield from (text + hint for text in texts[-1:])


def _is_same_outcome(given: Claim, claimed: str, found: str) -> bool:
    """Return whether the hash of the numbers is that of the recomputed ones, or of the numbers that the file states.

    The numbers of a file are compared one by one, within the tolerance; another scipy may change their tenth digit, and
    with it the hash.
    """
    if artifacts.same_digests(claimed, found):
        return True
    if given.document is None or "estimates" not in given.document:
        return False
    return artifacts.same_digests(claimed, digest_of(Results.from_dict(given.document).estimates))


def _data_differences(given: Claim, told: Mapping[str, object], behind: Trials | None) -> list[str]:
    """Compare the rows of the data, which may stand in any order; the numbers of a signature alone stand for them."""
    if given.document is None:
        return []
    claimed, now = _contents(given.document), _contents(told)
    if behind is not None and claimed and claimed[0].startswith(COUNTED):  # streamed: how often each score occurs
        now = [text for text in [behind.content_like(claimed[0])] if text]
    if len(claimed) != len(now):
        return ["data: the claim does not say which rows it was made from"] if now else []
    return [f"data: claimed rows {a[:12]}, found {b[:12]}" for a, b in zip(claimed, now, strict=True) if a != b]


def _contents(document: Mapping[str, object]) -> list[str]:
    """Return the hashes of the rows of every run; empty if one of them is not known."""
    design = document.get("design") or {}
    sides = (design.get("contest") or {}).get("sides") if isinstance(design, Mapping) else None
    found = [side.get("content", "") for side in sides] if sides else [document.get("content", "")]
    return [str(text) for text in found] if all(found) else []


def _versions(parts: dict[str, str], found: dict[str, str]) -> str:
    if parts.get("hitmiss") == __version__ and parts.get("numpy") == found.get("numpy"):
        return ""
    return (
        f"; the claim was made with hitmiss {parts.get('hitmiss')} and numpy {parts.get('numpy')}, "
        f"this is hitmiss {__version__} and numpy {found.get('numpy')}"
    )
