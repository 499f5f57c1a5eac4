"""Records in batches: the input of a batched family of perturbations, and how to register one.

A family is written once, for a batch (record × sample × lead); each record has its own strength, window and
generator, so its result does not depend on the other records. Once registered, it is also an `Attack`: one record,
one generator.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from hitmiss.attacks.arrays import Array, Floats, Ints
from hitmiss.attacks.family import Attack, all_attacks, attack, check_strength
from hitmiss.attacks.leads import consistent
from hitmiss.attacks.peaks import detect_all
from hitmiss.attacks.windows import hann_windows
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.metric_spec import Setting

PLACE: Final[Mapping[str, Setting]] = {
    "fs": 100.0,
    "center_time": 0.0,
    "window_seconds": None,
    "r_peaks": None,
    "lead_consistent": False,
}
"""Settings of every family: the sample rate, the window, R peaks, and whether the lead equations must hold."""
MOST_LEADS: Final = 64
"""More leads than this, and more leads than samples, mean that the array is transposed."""


@dataclass(frozen=True, eq=False)
class RecordBatch:
    """A batch: signals, and for each record its strength, generator, window and (if known) R peaks."""

    x: Floats
    strength: Floats
    rngs: Sequence[Generator]
    window: Floats
    fs: float
    peaks: Sequence[Ints] | None = None
    spread: Floats | None = None
    """The deviations of the leads (record × 1 × lead), if already computed."""
    is_whole: bool = False
    """Whether every window is the whole record, so that no multiplication is needed."""

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of samples and leads."""
        return self.x.shape[1], self.x.shape[2]

    @property
    def deviation(self) -> Floats:
        """The standard deviation of each lead: record × 1 × lead."""
        return deviations(self.x) if self.spread is None else self.spread

    def windowed(self, delta: Floats) -> Floats:
        """Return a change multiplied by the window of each record."""
        return delta if self.is_whole else np.asarray(delta * self.window)

    def draw(self, function: Callable[[Generator], ArrayLike]) -> Floats:
        """Return one draw per record, each from its own generator, stacked."""
        return np.stack([np.asarray(function(rng), dtype=np.float64) for rng in self.rngs])


def deviations(x: Floats) -> Floats:
    """Return the standard deviation of each lead: record × 1 × lead."""
    found = np.empty((len(x), 1, x.shape[2]))
    for own, record in zip(found, x, strict=True):  # one at a time: a record stays in the cache
        away = record - record.mean(axis=0)
        own[0] = np.sqrt(np.einsum("sl,sl->l", away, away) / len(record))
    return found


def is_finite(x: Floats) -> bool:
    """Return whether all values are finite: checked by the sum, which is fast; if that overflows, one by one."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(x.sum()) or np.isfinite(x).all())


def pick(x: Floats, rows: Sequence[int]) -> Floats:
    """Return some records by position: a view if they are consecutive, which saves a copy; do not write to it."""
    first = rows[0] if len(rows) else 0
    in_order = len(rows) > 0 and list(rows) == list(range(first, first + len(rows)))
    return x[first : first + len(rows)] if in_order else x[list(rows)]


Change = Callable[..., Floats]


@dataclass(frozen=True)
class Batched:
    """A batched family: its name, its function, its settings, and whether it needs R peaks."""

    name: str
    function: Change
    defaults: Mapping[str, Setting]
    needs_peaks: bool = False

    def apply(self, records: RecordBatch, *, lead_consistent: bool = False, **settings: object) -> Floats:
        """Return the changed signals; a record of strength 0 is unchanged to the last bit."""
        for key in settings:
            if key not in self.defaults:
                raise UnknownName(f"setting of {self.name}", key, self.defaults)
        if self.needs_peaks and records.peaks is None:
            records = replace(records, peaks=detect_all(records.x, records.fs))
        delta = self.function(records, **settings)
        changed = records.x + (consistent(delta) if lead_consistent else delta)
        if not is_finite(changed):
            raise DataError.of("not-finite", name=self.name)
        acting = records.strength > 0.0
        return changed if acting.all() else np.where(acting, changed, records.x)


_batched: dict[str, Batched] = {}


def batched_families() -> dict[str, Batched]:
    """Return every family that changes records without a model, including those of plug-ins."""
    plain = {name: entry for name, entry in all_attacks().items() if name not in _batched and entry.medium == "any"}
    return {**_batched, **{name: _record_by_record(entry) for name, entry in plain.items()}}


def _record_by_record(entry: Attack) -> Batched:
    """Turn a plug-in's attack on single signals into a batched family: it is given lead × sample, time last."""

    def change(records: RecordBatch, **settings: object) -> Floats:
        rate = {name: records.fs for name in ("sample_rate", "fs") if name in entry.defaults}
        changed = [
            entry.apply(x.T, float(strength.item()), rng, **{**rate, **settings}).T - x
            for x, strength, rng in zip(records.x, records.strength, records.rngs, strict=True)
        ]
        return records.windowed(np.stack(changed))

    return Batched(entry.name, change, {k: v for k, v in entry.defaults.items() if k not in ("sample_rate", "fs")})


def batched(*, needs_peaks: bool = False) -> Callable[[Change], Change]:
    """Register a family `f(records, *, settings…) -> change`, as a batch and as a plain attack of one record."""

    def register(function: Change) -> Change:
        found = inspect.signature(function).parameters.values()
        defaults = {p.name: p.default for p in found if p.kind is p.KEYWORD_ONLY}
        entry = Batched(function.__name__, function, defaults, needs_peaks)
        _batched[entry.name] = entry
        attack(_single(entry))
        return function

    return register


def _single(entry: Batched) -> Callable[..., Array]:
    """Turn a batched family into an attack on one record (sample × lead)."""

    def single(x: Array, strength: float, rng: Generator, **given: Any) -> Array:
        place = {**PLACE, **{k: v for k, v in given.items() if k in PLACE}}
        settings = {k: v for k, v in given.items() if k not in PLACE}
        consistent_leads, peaks = place.pop("lead_consistent"), place.pop("r_peaks")
        records = make_records(x[None], strength, [rng], peaks=None if peaks is None else [peaks], **place)
        return np.asarray(entry.apply(records, lead_consistent=consistent_leads, **settings)[0])

    kinds = inspect.Parameter
    positional = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in ("x", "strength", "rng")]
    settings = {**PLACE, **entry.defaults}
    single.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*positional, *(kinds(k, kinds.KEYWORD_ONLY, default=v) for k, v in settings.items())]
    )
    single.__name__ = single.__qualname__ = entry.name
    single.__module__, single.__doc__ = entry.function.__module__, entry.function.__doc__
    return single


def make_records(
    x: ArrayLike,
    strength: ArrayLike,
    rngs: Sequence[Generator],
    *,
    fs: float,
    center_time: ArrayLike = 0.0,
    window_seconds: float | Sequence[float | None] | None = None,
    peaks: Sequence[ArrayLike] | None = None,
    spread: Floats | None = None,
) -> RecordBatch:
    """Make a batch from signals (record × sample × lead); strengths, windows and centres may be given per record."""
    signals = check_signals(x)
    n, samples = signals.shape[:2]
    strengths = np.broadcast_to(np.asarray(strength, dtype=np.float64), n)
    for value in np.unique(strengths):
        check_strength("a perturbation", float(value))
    seconds = list(window_seconds) if isinstance(window_seconds, Sequence) else [window_seconds] * n
    window = hann_windows(samples, fs, center_time, seconds)
    beats = None if peaks is None else [_check_peaks(p, samples) for p in peaks]
    is_whole = all(s is None for s in seconds)
    return RecordBatch(signals, strengths[:, None, None], rngs, window[:, :, None], fs, beats, spread, is_whole)


def check_signals(x: ArrayLike, finite: bool = True) -> Floats:
    """Return signals as record × sample × lead in float64.

    Other shapes, and with `finite` also NaN and infinite values, are refused.
    """
    signals = as_numbers(x)
    if signals.ndim != 3:
        raise DataError.of("wrong-shape", name="signals", form="record × sample × lead", shape=str(signals.shape))
    _, samples, leads = signals.shape
    if not samples or not leads:
        raise DataError.of("empty-record", samples=samples, leads=leads)
    if leads > max(samples, MOST_LEADS):
        raise DataError.of("transposed-records", samples=samples, leads=leads)
    if finite and not is_finite(signals):
        wrong = ~np.isfinite(signals).all(axis=(1, 2))
        first = int(np.argmax(wrong))
        raise DataError.of("not-finite/records", wrong=int(wrong.sum()), first=first)
    return signals


def as_numbers(x: ArrayLike) -> Floats:
    """Return an array in float64; texts and complex numbers are refused."""
    try:
        array = np.asarray(x)
        if array.dtype.kind not in "fiubO":
            raise DataError.of("not-numeric", name="signals", found=array.dtype)
        return np.asarray(array, dtype=np.float64)
    except DataError:
        raise
    except (TypeError, ValueError):
        raise DataError.of("not-numeric", name="signals", found="something else among them") from None


def _check_peaks(peaks: ArrayLike, samples: int) -> Ints:
    found = np.asarray(peaks).reshape(-1)
    if not len(found):
        return np.zeros(0, dtype=np.int64)
    if found.dtype.kind not in "iu" or (len(found) and not (found.min() >= 0 and found.max() < samples)):
        raise UsageError.of("bad-peaks", samples=samples - 1, found=found[:3])
    return found.astype(np.int64)
