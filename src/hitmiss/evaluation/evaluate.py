"""`hm.read` and `hm.evaluate`: files or tables, by keywords over the settings of the folder."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from hitmiss.core.design import Design, Taken, as_gap
from hitmiss.core.errors import HitmissError, UnknownName
from hitmiss.core.protocol import Protocol
from hitmiss.core.public_call import meant_by
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.results import Results
from hitmiss.core.settings import Settings, blamed
from hitmiss.core.settings import find as find_settings
from hitmiss.core.spec import options_of
from hitmiss.core.trials import Trials
from hitmiss.evaluation.given import EvaluateKeywords, TableKeywords, of_arrays, reading_of, refuse_arrays
from hitmiss.evaluation.protocol import decided, find_protocol, measure_trials, read_trials


def evaluate(
    scores: object = None,
    key: object = None,
    protocol: str | Path | Protocol | Design | None = None,
    *,
    settings: str | Path | None = None,
    **options: Unpack[EvaluateKeywords],
) -> Results:
    """Read files or tables, measure them by a protocol or a design, and return the results.

    Parameters
    ----------
    scores, key
        The score file(s) or table and those with the true classes, as for `read`; or trials that are read already; or
        two arrays, labels and scores: `evaluate(y, s)`.
    protocol
        A protocol, given by name, file or object; or a design, which then states everything else that is asked.
    settings
        A settings file, whose values hold where no keyword is given; None: `hitmiss.toml` of the working folder, if
        there is one; `"none"`: no file. A note of the results says what was taken from it.
    **options
        What is asked, the fields of `Design`: `metrics` (by default those of the protocol, or else `eer` and `roc_auc`
        of scores, `accuracy` and `f1` of decisions), `by`, `unit`, `bootstrap` (None:
        that of the protocol; 0: none), `seed`, `level`, `interval`, `threshold`, `matrix`, `stratify`, `gap` (as
        `codec=NONE`, or a list of gaps; None: that of the protocol, if its column is in `by`; False: none), `require`
        (what must be shown, such as `eer.high <= 0.05`; `results.verdict.outcome` is then PASS, FAIL or NOT SHOWN).
        And columns by their roles and read options, as for `read`: `label="truth"`, `score="p"`, `positive="fake"`,
        `run="model"`, `score_kind="llr"`, `allow_missing=True`, …

    Returns
    -------
    Results
        One estimate per metric, run and slice.

    Raises
    ------
    UsageError
        For an unknown protocol, metric, column or option.
    DataError
        If the files cannot be scored as they are.

    >>> made = evaluate(Trials.of([1, 1, 0, 0], [3.0, 1.0, 2.0, 0.0]), metrics=["eer", "roc_auc"])
    >>> made["roc_auc"].value
    0.75
    >>> print(evaluate(label=[1, 1, 0, 0], score=[3.0, 1.0, 2.0, 0.0], metrics="roc_auc", bootstrap=0)[0])
    roc_auc = 0.7500 [0.0470, 0.9946]
    """
    from hitmiss.evaluation.asking import make_design

    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if unknown := [name for name in given if name not in EvaluateKeywords.__annotations__]:
        near = meant_by(unknown[0], EvaluateKeywords.__annotations__)
        raise UnknownName("option", unknown[0], EvaluateKeywords.__annotations__, {unknown[0]: near} if near else None)
    scores, key, given = of_arrays(scores, key, given)
    refuse_arrays(given)
    asked = {name: given.pop(name) for name in options_of(Design) if name in given}
    asked = {name: value for name, value in asked.items() if value not in ((), [], "")}
    scores, key, reading = reading_of(scores, given, key)
    layer = AppliedSettings.found(settings)
    if isinstance(protocol, Design):
        design = protocol.alone(Design().changed(**{**asked, "gap": as_gap(asked.get("gap"), None)}), Design()).filled()
    else:
        chosen = layer.protocol(protocol)
        rules = find_protocol(chosen) if chosen is not None else None
        if "gap" in asked:
            asked["gap"] = as_gap(asked["gap"], rules)
        design, taken = make_design({"protocol": rules, **asked}, layer.settings)
        layer.take(taken)
    with layer:
        trials = layer.read(scores, key, design.protocol, ReadSpec().changed(**reading))
        return measure_trials(decided(layer.noted(trials), design), layer.signed(design))


class AppliedSettings:
    """The settings of a folder as one layer of a call: below its keywords, above a protocol."""

    def __init__(self, settings: Settings | None) -> None:
        self.settings = settings
        self.taken = settings.taken() if settings is not None else None

    @classmethod
    def found(cls, named: str | Path | None) -> AppliedSettings:
        """Return the layer of a named file, or of that in the working folder; without a file it changes nothing."""
        return cls(find_settings(named))

    def __enter__(self) -> AppliedSettings:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Name the settings in an error that they may have caused."""
        if self.taken is not None and isinstance(error, HitmissError):
            blamed(error, self.taken)

    def protocol(self, said: str | Path | Protocol | None) -> str | Path | Protocol | None:
        """Return the protocol of the caller, or else that of the settings."""
        if said is None and self.settings is not None and self.settings.protocol is not None:
            self.take(self.settings.taken(protocol=self.settings.protocol))
            return self.settings.protocol
        return said

    def read(
        self,
        scores: object,
        key: object,
        protocol: Protocol | None,
        said: ReadSpec,
        memory: int | None = None,
        needed: Collection[str] | None = None,
    ) -> Trials:
        """Read files by the caller's options over the settings; trials that are read already stay as they are."""
        if self.settings is None or isinstance(scores, Trials):
            return read_trials(scores, key, protocol, said)
        spec, taken = self.settings.reading({name: getattr(said, name) for name in said.stated})
        self.take(taken)
        if key is None and self.settings.key is not None:
            self.take(self.settings.taken(key=self.settings.key))
            key = self.settings.key
        return read_trials(scores, key, protocol, spec, memory, needed)

    def noted(self, trials: Trials) -> Trials:
        """Return trials with a note of what was taken."""
        if self.taken is None or not self.taken.values:
            return trials
        return trials.retitle(notes=(str(self.taken), *trials.header.notes))

    def signed(self, design: Design) -> Design:
        """Return a design that states what was taken."""
        return design if self.taken is None or not self.taken.values else replace(design, taken=self.taken)

    def take(self, taken: Taken | None) -> None:
        """Note what was taken."""
        if taken is not None:
            self.taken = taken if self.taken is None else self.taken | taken


def read(
    scores: object = None,
    key: object = None,
    options: ReadSpec | None = None,
    *,
    memory: int | None = None,
    needed: Collection[str] | None = None,
    settings: str | Path | None = None,
    **changes: Unpack[TableKeywords],
) -> Trials:
    """Read trials from score files and, if those have no labels, a key.

    Parameters
    ----------
    scores
        A path, `-` for stdin, a pattern, a list of these (shards of one run), a table (a frame of polars or pandas, a
        Hugging Face dataset, an Arrow table, a list of dicts, a dict of columns), or nothing if arrays are given by name;
        or an array of labels, with the array of the scores after it.
    key
        The labels, given in the same ways; None if the score files hold them.
    options
        How to read (columns, classes, score kind, …); None for the defaults.
    memory
        Read files in pieces, so that they need not fit into memory; what is kept of their rows may take so many bytes.
    needed
        The slices that are used; others may be left out, which saves time. None keeps all.
    settings
        A settings file, whose values hold where no option is given; None: `hitmiss.toml` of the working folder, if
        there is one; `"none"`: no file. A note in the header says what was taken from it.
    **changes
        Columns by their roles (`item`, `label`, `score`, `decision`, `confidence`, `run`), as names or as arrays, and
        single options, the fields of `ReadSpec`, that replace those in `options`.

    Returns
    -------
    Trials
        One row per trial; a higher score means the positive class.

    Raises
    ------
    DataError
        If the data cannot be scored: a single error that carries every fault.
    UsageError
        If the rows do not fit into `memory`.

    Examples
    --------
    >>> import polars as pl
    >>> scores = pl.DataFrame({"utt": ["a", "b"], "score": [1.5, -0.5]})
    >>> read(scores, key=pl.DataFrame({"filename": ["b", "a"], "cm-label": ["spoof", "bonafide"]}))
    Trials(2 trials, 1 bonafide, 1 spoof, raw scores, slices [])
    >>> rows = [{"clip": "a", "truth": "fake", "p": 0.9}, {"clip": "b", "truth": "real", "p": 0.2}]
    >>> read(rows, item="clip", label="truth", score="p", positive="fake")
    Trials(2 trials, 1 fake, 1 real, raw scores, slices [])
    """
    from hitmiss.io.reader import read as read_files

    scores, key, stated = of_arrays(scores, key, changes)
    refuse_arrays(stated)
    scores, key, stated_here = reading_of(scores, stated, key)
    layer, said = AppliedSettings.found(settings), (options or ReadSpec()).changed(**stated_here)
    if layer.settings is None:
        return read_files(scores, key, said, memory=memory, needed=needed)
    named = layer.protocol(None)
    rules = find_protocol(named) if named is not None else None
    with layer:
        return layer.noted(layer.read(scores, key, rules, said, memory, needed))
