"""A protocol: what a document settles once for everybody, as data. And `evaluate`, which goes by it from files to Results."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from hitmiss import artifacts
from hitmiss.declared import Misdeclared, declare
from hitmiss.errors import UsageError
from hitmiss.measuring.grouping import parse_by
from hitmiss.measuring.measurement import Choices, Gap, measure
from hitmiss.measuring.uncertainty import Method
from hitmiss.readspec import ReadSpec
from hitmiss.registry import all_of, find, find_metric
from hitmiss.results import Results
from hitmiss.spec import Setting, parse
from hitmiss.trials import Trials, stack


@dataclass(frozen=True)
class GapRule:
    """Which domain is "in"; everything else is "out" unless it is named."""

    column: str
    inside: tuple[str, ...]
    outside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Protocol:
    """A protocol as its TOML file declares it; unknown keys are errors."""

    name: str
    title: str
    primary: str
    metrics: tuple[str, ...]
    read: ReadSpec
    reference: str = ""
    slice_metrics: tuple[str, ...] = ()
    both_eers: bool = False
    zero_undefined: bool = False
    delong: bool = False
    within: bool = False
    reader: Literal["", "hitmiss.protocols.toxicity:read_files"] = ""
    """Who reads files of the protocol's own kind (None for others); only code of ours is called."""
    measured_by: Literal["", "hitmiss.robustness.attacks:measure_attacks"] = ""
    """What measures the trials instead, where a figure is about several trials together; only code of ours is called."""
    compared_by: Literal["", "hitmiss.robustness.versus:compare_attacks"] = ""
    """What compares two runs instead, in the same way."""
    negative_only: tuple[str, ...] = ()
    settings: dict[str, dict[str, str | bool | int | float | None]] = field(default_factory=dict)
    gap: GapRule | None = None
    remarks: dict[str, str] = field(default_factory=dict)

    @property
    def choices(self) -> Choices:
        """What it settles for measurements."""
        settings: Mapping[str, Mapping[str, Setting]] = self.settings
        return Choices(
            self.name,
            settings,
            self.negative_only,
            self.slice_metrics,
            self.both_eers,
            self.zero_undefined,
            self.delong,
            self.within,
        )


def load_protocol(path: str | Path) -> Protocol:
    """A protocol from a TOML file; one sentence says what is wrong with it."""
    try:
        artifacts.note_input(path)
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        return declared(data)
    except FileNotFoundError:
        raise UsageError(f"no protocol file {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{Path(path).name} is not TOML: {error}") from None
    except Misdeclared as fault:
        raise UsageError(f"{Path(path).name}: {fault}") from None


def declared(data: object) -> Protocol:
    """A protocol from the plain data of its file."""
    protocol = declare(Protocol, data)
    for name in ("positive", "negative"):
        if getattr(protocol.read, name) is None:
            raise Misdeclared(("read", name), "it is missing")
    return protocol


def find_protocol(name: str | Path | Protocol) -> Protocol:
    """A protocol by name, or from a `.toml` file of your own.

    >>> find_protocol("asvspoof5").primary
    'min_dcf'
    """
    if isinstance(name, Protocol):
        return name
    if str(name).endswith(".toml"):
        return load_protocol(name)
    found: Protocol = find("protocol", str(name))
    return found


def protocols() -> dict[str, Protocol]:
    """Every known protocol by name."""
    return all_of("protocol")


def evaluate(
    scores: Any,
    key: Any = None,
    protocol: str | Path | Protocol | None = None,
    *,
    metrics: Sequence[str] = (),
    by: Sequence[str | Sequence[str]] | str = (),
    bootstrap: int = 0,
    unit: str | Sequence[str] | None = None,
    seed: int = 0,
    level: float = 0.95,
    interval: Method = "auto",
    gap: Gap | bool | None = None,
    **reading: object,
) -> Results:
    """From files to Results by a protocol.

    `scores` and `key` as for `read`; `metrics` instead of those of the protocol. `gap`: None for the protocol's own where
    its column is asked for, False for none.
    Further keywords are read options (`score_kind="llr"`, `allow_missing=True`, …).
    """
    chosen = find_protocol(protocol) if protocol is not None else None
    trials = read_trials(scores, key, chosen, ReadSpec().changed(**reading))
    options: dict[str, Any] = {"by": by, "bootstrap": bootstrap, "unit": unit, "seed": seed, "level": level}
    return measure_trials(trials, chosen, metrics=metrics, gap=gap, interval=interval, **options)


def read_trials(scores: Any, key: Any, protocol: Protocol | None, spec: ReadSpec | None = None) -> Trials:
    """Trials from files, read by the rules of a protocol; what the caller says comes first."""
    said = spec or ReadSpec()
    if protocol is not None and protocol.reader and key is None:
        module, _, name = protocol.reader.partition(":")
        found: Trials | None = getattr(import_module(module), name)(scores, said)
        if found is not None:
            return found
    from hitmiss.io.door import read

    return read(scores, key, said.over(protocol.read) if protocol else said)


def read_runs(
    paths: Sequence[str], key: Any, protocol: Protocol | None, spec: ReadSpec | None = None, column: str = "seed"
) -> Trials:
    """Several score files as runs of one experiment (seeds, say), named after their files."""
    names = [Path(p).name.split(".")[0] for p in paths]
    if len(set(names)) != len(names):
        raise UsageError(
            f"two files are called {next(n for n in names if names.count(n) > 1)!r}; runs need names of their own"
        )
    return stack({n: read_trials(p, key, protocol, spec) for n, p in zip(names, paths, strict=True)}, column)


def measure_trials(
    trials: Trials,
    protocol: Protocol | None,
    *,
    metrics: Sequence[str] = (),
    gap: Gap | bool | None = None,
    **options: Any,
) -> Results:
    """`measure` by a protocol: its metrics where the score kind allows them, its settings, its gap, its remarks."""
    if not metrics and protocol is None:
        raise UsageError("say what to measure: a protocol (-p asvspoof5) or metrics (-m eer -m min_dcf)")
    if protocol and protocol.measured_by and not metrics:
        module, _, name = protocol.measured_by.partition(":")
        measured: Results = getattr(import_module(module), name)(trials, **options)
        return measured
    wanted = list(metrics) or list(protocol.metrics if protocol else ())
    warnings: list[str] = []
    if protocol and not metrics:
        wanted, unfit = fitting(wanted, trials)
        warnings += left_out(unfit, trials)
    asked = {grouping[0] for grouping in parse_by(options.get("by", ())) if len(grouping) == 1}
    if protocol:
        warnings += [text for column, text in protocol.remarks.items() if column in asked]
    choices = protocol.choices if protocol else Choices()
    return measure(trials, wanted, gap=_gap(gap, protocol, trials, asked), choices=choices, remarks=warnings, **options)


def measure_calibrated(
    trials: Trials,
    development: Trials,
    protocol: Protocol | None,
    *,
    method: str = "affine",
    **options: Any,
) -> Results:
    """The figures before and after a calibration fitted on a development set, as two runs."""
    from hitmiss.calibration import calibrate  # scipy.special takes a tenth of a second that scoring alone need not pay

    calibrated = calibrate(development, trials, method)
    sides = {"before": trials, f"after {method}": calibrated}
    measured = {name: measure_trials(side, protocol, **options) for name, side in sides.items()}
    rows = [replace(e, run={"calibration": name, **e.run}) for name, r in measured.items() for e in r]
    before, after = measured.values()
    warnings = tuple(dict.fromkeys((*before.warnings, *after.warnings)))
    return replace(after, estimates=tuple(rows), warnings=warnings)


def _gap(gap: Gap | bool | None, protocol: Protocol | None, trials: Trials, asked: set[str]) -> Gap | None:
    if gap is None and protocol is not None and protocol.gap is not None:
        rule = protocol.gap
        there = rule.column in asked and {*rule.inside} <= {*trials.column(rule.column).unique()}
        gap = there and trials.column(rule.column).n_unique() > 1
    if isinstance(gap, Gap) or not gap:
        return gap or None
    if protocol is None or protocol.gap is None:
        raise UsageError("no protocol says which domain is in; write --gap column=value")
    rule = protocol.gap
    trials.column(rule.column)
    return Gap(rule.column, rule.inside, rule.outside)


def fitting(metrics: list[str], trials: Trials) -> tuple[list[str], list[str]]:
    """The metrics that the score kind and the columns allow, and the others."""
    fits: list[str] = []
    rest: list[str] = []
    for text in metrics:
        entry = find_metric(parse(text).name)
        kind_ok = not entry.kinds or trials.header.score_kind in entry.kinds
        (fits if kind_ok and all(c in trials.frame.columns for c in entry.columns) else rest).append(text)
    return fits, rest


def left_out(metrics: list[str], trials: Trials) -> list[str]:
    """What to say about metrics that these trials do not allow."""
    absent = {m: [c for c in find_metric(parse(m).name).columns if c not in trials.frame.columns] for m in metrics}
    columns = sorted({c for names in absent.values() for c in names})
    lacking = [f"{', '.join(m for m in metrics if absent[m])} left out: there is no {' and no '.join(columns)}"]
    return (lacking if columns else []) + _unfit([m for m in metrics if not absent[m]], trials)


def _unfit(metrics: list[str], trials: Trials) -> list[str]:
    if not metrics:
        return []
    return [
        f"{' and '.join(metrics)} left out: they need natural-log likelihood ratios and these scores are declared "
        f"{trials.header.score_kind!r}; add --score-kind llr if they are LLRs, or --calibrate-on DEV to make them so"
    ]
