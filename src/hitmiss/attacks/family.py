"""What a perturbation is, single or in batches, and the list of all of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from hitmiss.core import registry
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.registry import MetricSpec, Setting, parse

# ----------------------------------------------------------------------
# Where in a record a perturbation acts: Hann windows, and windows where the model is sensitive.
#
# A window is the whole Hann taper of `window_seconds` around `center_time`, cut off (never compressed) at the record's
# ends; no window means the whole record, all ones.

Floats = NDArray[np.float64]


def hann_window(n: int, fs: float, center_time: float = 0.0, window_seconds: float | None = None) -> Floats:
    """Return weights in 0..1, one per sample.

    >>> hann_window(5, 1.0, 2.0, 4.0).round(4).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    >>> hann_window(3, 1.0, 0.0, 4.0).round(4).tolist()  # cut off at the start, not squeezed into what is left
    [1.0, 0.5, 0.0]
    >>> hann_window(3, 1.0).tolist()
    [1.0, 1.0, 1.0]
    """
    if window_seconds is None:
        return np.ones(n)
    if not window_seconds > 0:  # also refuses NaN
        raise UsageError(f"a window is longer than 0 seconds; found {window_seconds}")
    if not 0.0 <= center_time <= n / fs:
        raise UsageError(f"the centre of the window lies at {center_time} s; the record runs from 0 to {n / fs:g} s")
    away = np.abs(np.arange(n) / fs - center_time) / (window_seconds / 2)
    if not (away < 1.0).any():
        raise UsageError(f"a window of {window_seconds} s around {center_time} s holds no sample at {fs:g} a second")
    return np.where(away < 1.0, 0.5 * (1.0 + np.cos(np.pi * np.minimum(away, 1.0))), 0.0)


def hann_windows(n: int, fs: float, centers: ArrayLike, seconds: Sequence[float | None]) -> Floats:
    """Return one window per record: record × sample."""
    times = np.broadcast_to(np.asarray(centers, dtype=np.float64), len(seconds))
    made = {key: hann_window(n, fs, *key) for key in set(zip(times.tolist(), seconds, strict=True))}
    return np.stack([made[key] for key in zip(times.tolist(), seconds, strict=True)])


def center_times(n: int, fs: float, window_seconds: float, overlap: float = 0.5) -> Floats:
    """Return centres of windows that cover a record from its first whole window to its last.

    >>> center_times(1000, 100.0, 2.0).tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    """
    if not 0.0 <= overlap < 1.0:
        raise UsageError(f"windows overlap by 0 or more and less than 1; found {overlap}")
    last = n / fs - window_seconds / 2
    if window_seconds <= 0 or last < window_seconds / 2:
        raise UsageError(f"a window of {window_seconds} s does not fit into a record of {n / fs:g} s")
    step = window_seconds * (1.0 - overlap)
    places = np.arange(int((last - window_seconds / 2) / step + 1e-9) + 1, dtype=np.float64)
    return np.asarray((window_seconds / 2 + step * places).round(9))


def salient_centers(
    saliency: ArrayLike, fs: float, window_seconds: float = 2.0, count: int = 3, overlap: float = 0.25
) -> list[Floats]:
    """Return for each record the centres of the most salient windows, best first, overlapping by at most `overlap`.

    `saliency` is record × sample (see `methods.saliency`). A window's saliency is the sum under its Hann taper.

    >>> salient_centers(np.eye(400)[[200]], 100.0, 1.0, count=1)[0].tolist()
    [2.0]
    """
    values = np.atleast_2d(np.asarray(saliency, dtype=np.float64))
    n = values.shape[1]
    centers = center_times(n, fs, window_seconds, overlap=1.0 - 1.0 / max(round(window_seconds * fs / 10), 1))
    tapers = np.stack([hann_window(n, fs, c, window_seconds) for c in centers])
    found = values @ tapers.T
    return [_apart(centers, row, window_seconds * (1.0 - overlap), count) for row in found]


def _apart(centers: Floats, score: Floats, distance: float, count: int) -> Floats:
    """Return the best centres that keep a distance from each other."""
    chosen: list[float] = []
    for at in np.argsort(-score, kind="stable"):
        if all(abs(centers[at] - c) >= distance - 1e-9 for c in chosen):
            chosen.append(float(centers[at]))
        if len(chosen) == count:
            break
    return np.array(chosen)


def moving_mean(values: ArrayLike, size: int = 11) -> Floats:
    """Return the mean over `size` neighbours along the last axis; fewer at the ends.

    >>> moving_mean([0.0, 3.0, 0.0], 3).tolist()
    [1.5, 1.0, 1.5]
    """
    rows = np.atleast_2d(np.asarray(values, dtype=np.float64))
    kernel, ones = np.ones(size), np.ones(rows.shape[1])
    count = np.convolve(ones, kernel, mode="same")
    smooth = np.stack([np.convolve(row, kernel, mode="same") / count for row in rows])
    return smooth.reshape(np.shape(values))


# ----------------------------------------------------------------------
# The twelve leads of an ECG: eight are independent, the other four follow from them.
#
# III = II − I, aVR = −(I + II)/2, aVL = I − II/2, aVF = II − I/2. An attack that changes twelve leads independently
# makes a physically impossible signal; `consistent` keeps the changes of the eight and derives the rest.

LEADS: Final = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
INDEPENDENT: Final = (0, 1, 6, 7, 8, 9, 10, 11)
"""Positions of I, II and V1 to V6."""


def lead_name(text: str) -> str:
    """Return the usual spelling of a standard lead; another name is only freed of spaces.

    >>> [lead_name(name) for name in ("AVR", "Lead II", "ecg_v1", "MLII")]
    ['aVR', 'II', 'V1', 'MLII']
    """
    plain = text.strip()
    bare = "".join(c for c in plain.casefold() if c not in " _-").removeprefix("ecg").removeprefix("lead")
    return next((lead for lead in LEADS if lead.casefold() == bare), plain)


def standard_order(names: Sequence[str]) -> list[int] | None:
    """Return where each of the twelve standard leads is among these; None if they are not these twelve.

    >>> standard_order(["II", "I", "III", "AVL", "AVR", "AVF", "V1", "V2", "V3", "V4", "V5", "V6"])[:5]
    [1, 0, 2, 4, 3]
    """
    found = [lead_name(name) for name in names]
    return [found.index(lead) for lead in LEADS] if sorted(found) == sorted(LEADS) else None


def expansion() -> Floats:
    """Return the matrix (12 × 8) from the independent leads to all."""
    matrix = np.zeros((12, 8))
    matrix[INDEPENDENT, range(8)] = 1.0
    matrix[2, :2] = (-1.0, 1.0)
    matrix[3, :2] = (-0.5, -0.5)
    matrix[4, :2] = (1.0, -0.5)
    matrix[5, :2] = (-0.5, 1.0)
    return matrix


def need_twelve(n_leads: int) -> None:
    """Refuse anything but the twelve standard leads if their equations are needed."""
    if n_leads != 12:
        raise UsageError(f"the lead equations hold for the 12 standard leads ({', '.join(LEADS)}); found {n_leads}")


def consistent(delta: ArrayLike) -> Floats:
    """Return a change (…, sample, lead) with the four dependent leads derived from the eight others.

    >>> consistent(np.eye(12)[None, :2]).shape
    (1, 2, 12)
    >>> violation(consistent(np.random.default_rng(0).normal(size=(5, 12)))) < 1e-12
    True
    """
    changed = np.asarray(delta, dtype=np.float64)
    need_twelve(changed.shape[-1])
    return np.asarray(changed[..., INDEPENDENT] @ expansion().T)


def violation(x: ArrayLike) -> float:
    """Return the largest violation (in the unit of x) of the lead equations in a signal."""
    signal = np.asarray(x, dtype=np.float64)
    return float(np.abs(signal - consistent(signal)).max(initial=0.0))


# ----------------------------------------------------------------------
# R peaks of an ECG: band-pass, squared slope, smoothing, peaks. Enough to find beats, without delineation.
#
# On 40 PTB-XL records it agrees with NeuroKit2 on all but a few percent of the beats; pass your own `r_peaks` if you
# have better ones.

Ints = NDArray[np.int64]
BAND: Final = (5.0, 18.0)
REFRACTORY: Final = 0.25
"""Minimum seconds between two beats."""
REACH: Final = 0.08
"""Seconds around a burst of slope in which its R peak lies."""
SHORTEST: Final = 1.0
FEW: Final = 8
"""Records that are filtered together."""


def detect_r_peaks(x: ArrayLike, fs: float, *, lead: int | None = None) -> Ints:
    """Return the sample numbers of the R peaks of one record (sample × lead, or one lead).

    `lead`: use only this lead; None uses the energy of all leads together.

    >>> t = np.arange(1000) / 100.0
    >>> beats = sum(np.exp(-0.5 * ((t - c) / 0.015) ** 2) for c in (1.0, 2.0, 3.1, 4.0))
    >>> detect_r_peaks(beats, 100.0).tolist()
    [100, 200, 310, 400]
    """
    signal = np.asarray(x, dtype=np.float64)
    signal = signal[:, None] if signal.ndim == 1 else signal
    return _peaks(_band_passed((signal if lead is None else signal[:, [lead]])[None], fs)[0], fs)


def _peaks(filtered: Floats, fs: float) -> Ints:
    """Return the R peaks of one band-passed record."""
    from scipy.signal import find_peaks

    slope = np.gradient(filtered, axis=0) ** 2
    energy = _smoothed(slope.sum(axis=1), max(round(0.1 * fs), 1))
    if not energy.max() > 0:
        return np.zeros(0, dtype=np.int64)
    height = _beat_height(energy, fs)
    places, _ = find_peaks(energy, height=0.2 * height, prominence=0.15 * height, distance=round(REFRACTORY * fs))
    return _refined(places, np.abs(filtered).sum(axis=1), round(REACH * fs))


def detect_all(x: ArrayLike, fs: float) -> list[Ints]:
    """Return the R peaks of every record (record × sample × lead)."""
    signals = np.asarray(x, dtype=np.float64)
    parts = [_band_passed(signals[i : i + FEW], fs) for i in range(0, len(signals), FEW)]
    return [_peaks(record, fs) for part in parts for record in part]


def _band_passed(signals: Floats, fs: float) -> Floats:
    """Band-pass records (record × sample × lead) to the frequencies that hold most of a beat's slope."""
    from scipy.signal import sosfiltfilt

    if signals.shape[1] < SHORTEST * fs:
        raise DataError(f"R peaks need a record of at least {SHORTEST:g} s; found {signals.shape[1] / fs:g} s")
    return np.asarray(sosfiltfilt(_filter(fs), signals, axis=1))


@lru_cache(maxsize=8)
def _filter(fs: float) -> Floats:
    from scipy.signal import butter

    return np.asarray(butter(2, (BAND[0], min(BAND[1], 0.45 * fs)), "bandpass", fs=fs, output="sos"))


def _smoothed(values: Floats, size: int) -> Floats:
    return np.convolve(values, np.ones(size) / size, mode="same")


def _beat_height(energy: Floats, fs: float) -> float:
    """Return the energy of a typical beat: the median of the maxima of non-empty 1.5 s segments."""
    size = max(round(1.5 * fs), 1)
    tops = [energy[i : i + size].max() for i in range(0, max(len(energy) - size // 2, 1), size)]
    return float(np.median([top for top in tops if top > 0.05 * max(tops)]))


def _refined(places: Ints, size: Floats, reach: int) -> Ints:
    """Move each position to the nearby maximum of the filtered signal."""
    moved = []
    for at in places:
        low = max(at - reach, 0)
        moved.append(low + int(np.argmax(size[low : at + reach + 1])))
    return np.unique(np.array(moved, dtype=np.int64))


# ----------------------------------------------------------------------
# What a perturbation is: a named function of an array, a strength and a generator.
#
#     @attack
#     def hum(x, strength, rng, *, sample_rate=16000, hertz=50.0, level=0.1):
#         """Mains hum."""
#         t = np.arange(x.shape[-1]) / sample_rate
#         return x + strength * level * np.sin(2 * np.pi * hertz * t)
#
# Strength runs from 0 to 1: 0 returns the input exactly, 1 is what the settings say. A perturbation has a text form
# like a metric: `noise(snr=15)`, `noise(snr=15, strength=0.5)`. All random draws come from the generator that it is
# given.

Array = NDArray[np.floating]
F = TypeVar("F", bound=Callable[..., Array])
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True)
class Attack:
    """A registered perturbation: its name, its function and the defaults of its settings."""

    name: str
    function: Callable[..., Array]
    defaults: Mapping[str, Setting] = field(hash=False)

    @property
    def medium(self) -> str:
        """What it changes: audio, text, image or ecg; "any" for a plug-in's, whose medium is unknown."""
        package, _, name = self.function.__module__.rpartition(".")
        return name if package == "hitmiss.attacks" else "any"

    @property
    def about(self) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.function) or self.name).splitlines()[0]

    def apply(
        self, x: NDArray[Number], strength: float, rng: np.random.Generator, **settings: object
    ) -> NDArray[Number]:
        """Return the perturbed array: a copy of `x` at strength 0; NaN and infinities in the result are refused."""
        check_strength(self.name, strength)
        for key in settings:
            if key not in self.defaults:
                raise UnknownName(f"setting of {self.name}", key, self.defaults)
        if strength == 0.0:
            return x.copy()
        y = np.asarray(self.function(x, strength, rng, **settings))
        if not np.isfinite(y).all():
            raise DataError(f"{self.name} at strength {strength:g} made values that are not finite")
        return y.astype(x.dtype, copy=False)


@dataclass(frozen=True)
class Perturbation:
    """An attack with its strength and settings bound: `perturbation("noise(snr=15)")`."""

    attack: Attack
    strength: float = 1.0
    settings: Mapping[str, Setting] = field(default_factory=dict, hash=False)

    def __call__(self, x: NDArray[Number], rng: np.random.Generator, **more: object) -> NDArray[Number]:
        """Return the perturbed array; `more` are settings that only the caller knows, such as the sample rate."""
        known = {key: value for key, value in more.items() if key in self.attack.defaults}
        return self.attack.apply(x, self.strength, rng, **{**known, **self.settings})

    def __str__(self) -> str:
        strength = {} if self.strength == 1.0 else {"strength": self.strength}
        return str(MetricSpec.of(self.attack.name, **self.settings, **strength))


def attack(function: F) -> F:
    """Register a perturbation `f(x, strength, rng, *, settings…)` under its own name.

    Parameters
    ----------
    function
        Changes x by a strength from 0 to 1, with a random generator; its keywords are settings with defaults.

    Returns
    -------
    function
        The same function; `detect --manipulate NAME` and `attack --family NAME` know it.

    Raises
    ------
    UsageError
        If the function takes other positional arguments, or the name is taken.

    >>> @attack
    ... def halve(x, strength, rng, *, depth=0.5):
    ...     return x * (1 - strength * depth)
    >>> find_attack("halve").apply(np.ones(2), 0.5, np.random.default_rng(0)).tolist()
    [0.75, 0.75]
    >>> forget("halve")
    """
    name = function.__name__
    parameters = inspect.signature(function).parameters.values()
    positional = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    if positional != ["x", "strength", "rng"]:
        raise UsageError(f"attack {name!r} must take (x, strength, rng, *, settings…); it takes {positional}")
    defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    registry.add("attack", name, Attack(name, function, defaults), origin=function.__module__)
    return function


def forget(name: str) -> None:
    """Remove an attack from the registry (for tests of plug-ins)."""
    registry.forget(name, "attack")


def all_attacks() -> dict[str, Attack]:
    """Return every known attack by name."""
    return registry.all_of("attack")


def find_attack(name: str) -> Attack:
    """Return the attack of that name, ignoring case, or raise UnknownName with the nearest name."""
    known = all_attacks()
    if name.lower() not in known:
        raise UnknownName("attack", name, known)
    return known[name.lower()]


def perturbation(text: str | MetricSpec | Perturbation) -> Perturbation:
    """Return a perturbation from its text: a name with settings, including `strength`.

    Parameters
    ----------
    text
        A name with settings, `hum(hertz=60, strength=0.5)`.

    Returns
    -------
    Perturbation
        A function of a signal, a random generator and the sample rate.

    Raises
    ------
    UsageError
        For an unknown name or setting, or a strength outside 0..1.

    >>> str(perturbation("gain(db=-6, strength=0.5)"))
    'gain(db=-6, strength=0.5)'
    """
    if isinstance(text, Perturbation):
        return text
    spec = parse(text)
    found, settings = find_attack(spec.name), dict(spec.settings)
    strength = settings.pop("strength", 1.0)
    if isinstance(strength, bool) or not isinstance(strength, int | float):
        raise UsageError(f"{spec}: the strength must be a number from 0 to 1")
    check_strength(found.name, strength)
    for key in settings:
        if key not in found.defaults:
            raise UnknownName(f"setting of {found.name}", key, found.defaults)
    return Perturbation(found, float(strength), settings)


def check_strength(name: str, strength: float) -> None:
    """Refuse a strength outside 0..1."""
    if isinstance(strength, bool) or not isinstance(strength, int | float | np.number):
        raise UsageError(f"the strength of {name} is a number from 0 to 1; found {strength!r}")
    if not 0.0 <= strength <= 1.0:
        raise UsageError(f"the strength of {name} runs from 0 to 1; found {strength}")


# ----------------------------------------------------------------------
# Records in batches: the input of a batched family of perturbations, and how to register one.
#
# A family is written once, for a batch (record × sample × lead); each record has its own strength, window and
# generator, so its result does not depend on the other records. Once registered, it is also an `Attack`: one record,
# one generator.

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
class Records:
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

    def apply(self, records: Records, *, lead_consistent: bool = False, **settings: object) -> Floats:
        """Return the changed signals; a record of strength 0 is unchanged to the last bit."""
        for key in settings:
            if key not in self.defaults:
                raise UnknownName(f"setting of {self.name}", key, self.defaults)
        if self.needs_peaks and records.peaks is None:
            records = replace(records, peaks=detect_all(records.x, records.fs))
        delta = self.function(records, **settings)
        changed = records.x + (consistent(delta) if lead_consistent else delta)
        if not is_finite(changed):
            raise DataError(f"{self.name} made values that are not finite")
        acting = records.strength > 0.0
        return changed if acting.all() else np.where(acting, changed, records.x)


_batched: dict[str, Batched] = {}


def batched_families() -> dict[str, Batched]:
    """Return every family that changes records without a model, including those of plug-ins."""
    plain = {name: entry for name, entry in all_attacks().items() if name not in _batched and entry.medium == "any"}
    return {**_batched, **{name: _record_by_record(entry) for name, entry in plain.items()}}


def _record_by_record(entry: Attack) -> Batched:
    """Turn a plug-in's attack on single signals into a batched family: it is given lead × sample, time last."""

    def change(records: Records, **settings: object) -> Floats:
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
) -> Records:
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
    return Records(signals, strengths[:, None, None], rngs, window[:, :, None], fs, beats, spread, is_whole)


def check_signals(x: ArrayLike, finite: bool = True) -> Floats:
    """Return signals as record × sample × lead in float64.

    Other shapes, and with `finite` also NaN and infinite values, are refused.
    """
    signals = as_numbers(x)
    if signals.ndim != 3:
        raise DataError(f"signals are record × sample × lead; found the shape {signals.shape}")
    _, samples, leads = signals.shape
    if not samples or not leads:
        raise DataError(f"a record holds at least one sample and one lead; found {samples} samples × {leads} leads")
    if leads > max(samples, MOST_LEADS):
        raise DataError(
            f"records are sample × lead; found {samples} samples × {leads} leads, which look transposed: use layout='lead_sample'"
        )
    if finite and not is_finite(signals):
        wrong = ~np.isfinite(signals).all(axis=(1, 2))
        first = int(np.argmax(wrong))
        raise DataError(f"{int(wrong.sum())} records hold values that are NaN or infinite, the first at place {first}")
    return signals


def as_numbers(x: ArrayLike) -> Floats:
    """Return an array in float64; texts and complex numbers are refused."""
    array = np.asarray(x)
    if array.dtype.kind not in "fiubO":
        raise DataError(f"signals are numbers; found {array.dtype}")
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("signals are numbers in a regular array; found something else among them") from None


def _check_peaks(peaks: ArrayLike, samples: int) -> Ints:
    found = np.asarray(peaks).reshape(-1)
    if not len(found):
        return np.zeros(0, dtype=np.int64)
    if found.dtype.kind not in "iu" or (len(found) and not (found.min() >= 0 and found.max() < samples)):
        raise UsageError(f"R peaks are sample numbers from 0 to {samples - 1}; found {found[:3]}")
    return found.astype(np.int64)
