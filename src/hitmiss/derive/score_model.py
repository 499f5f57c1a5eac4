"""A fitted mapping of the scores of one or several systems to log-likelihood ratios: fit, apply, store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Literal

import numpy as np
import polars as pl

from hitmiss._version import __version__
from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.finding import Remark
from hitmiss.core.kinds import ScoreKind
from hitmiss.core.scale import ScoreScale
from hitmiss.core.sorting import Floats
from hitmiss.core.trials import Trials, TrialsLike, demanded
from hitmiss.core.weights import refuse_sampling
from hitmiss.derive.calibration import (
    METHODS,
    AffineCalibrator,
    Calibrator,
    LogOdds,
    PavCalibrator,
    fit_affine,
    fit_pav,
)
from hitmiss.derive.fusion import LinearFusion, fit_fusion, score_matrix

__all__ = ["ScoreModel", "calibrate", "cost_prior", "fit_calibration", "fit_fused", "fuse", "read_model"]

KIND: Final = "score model"
SCHEMA: Final = 1
Method = Literal["affine", "pav", "fusion"]
FUSION: Final = "fusion"


@dataclass(frozen=True)
class FitOrigin:
    """What a model was fitted on."""

    n: int
    n_positive: int
    digest: str
    sources: tuple[str, ...] = ()

    @classmethod
    def of(cls, trials: Trials) -> FitOrigin:
        """Return the size, the hash and the files of a fit set."""
        return cls(len(trials), trials.n_positive, trials.digest, tuple(s.name for s in trials.header.sources))


@dataclass(frozen=True)
class SystemScale:
    """How the scores of a system go into a model: of which kind they are, and how probabilities become log-odds."""

    name: str
    score_kind: ScoreKind
    odds: LogOdds | None = None
    n: int = 0
    """Scores of the fit set."""
    n_saturated: int = 0
    """Of them, probabilities of exactly 0 or 1."""
    n_missing: int = 0
    """Trials of the fit set without a score."""
    is_like_probability: bool = False
    """Whether raw scores of the fit set all lie in 0..1."""

    @classmethod
    def of(cls, name: str, fit_on: Trials, *, linear: bool) -> SystemScale:
        """Describe the scores of a fit set; `linear`: for a mapping that adds them up, which needs log-odds."""
        scores = fit_on.column("score").drop_nulls()
        kind = fit_on.header.score_kind
        odds = LogOdds.of(fit_on.keep(pl.col("score").is_not_null())) if linear and kind == "probability" else None
        missing = fit_on.column("score").null_count()
        is_like = linear and kind == "raw" and _like_probabilities(scores)
        return cls(name, kind, odds, len(scores), _saturated(scores), missing, is_like)

    def notes(self, trials: Trials) -> list[str]:
        """Say that probabilities were mapped, how many are saturated, or that raw scores may be probabilities."""
        scores = trials.column("score").drop_nulls()
        if self.odds is None:
            if not self.is_like_probability or not _like_probabilities(scores):
                return []
            return [
                "calibration: all scores lie in 0..1 and were fitted as they are; if they are probabilities, declare "
                "--score-kind probability, so that their log-odds are fitted"
            ]
        if not self.n_saturated + _saturated(scores):
            return ["calibration: the probabilities were mapped to log-odds"]
        found = f"{self.n_saturated:,} of {self.n:,} of the fit set and "
        found += f"{_saturated(scores):,} of {len(scores):,} of the calibrated set"
        least, margin = self.odds.least, self.odds.margin
        return [
            f"calibration: the probabilities were mapped to log-odds; saturated ones, exactly 0 or 1 ({found}), were "
            f"taken as {least:.3g} and 1 - {margin:.3g}, half as far from 0 or 1 as the nearest other score of the fit set"
        ]

    def linear(self, scores: Floats) -> Floats:
        """Return scores that can be added up: the log-odds of probabilities, other scores as they are."""
        return scores if self.odds is None else self.odds.apply(scores)


@dataclass(frozen=True)
class ScoreModel:
    """A mapping of scores to natural-log likelihood ratios, fitted on one set of trials and applied to others.

    `method` is `affine` or `pav` for one system, `fusion` for several. The mapping takes the scores of the systems in
    the order of `systems`.
    """

    method: Method
    systems: tuple[SystemScale, ...]
    mapping: Calibrator
    positive: str
    origin: FitOrigin
    prior: float = 0.5
    name: str = FUSION
    """What a fused system is called."""

    def apply(self, trials: Trials | Mapping[str, Trials], fit_on: Trials | None = None) -> Trials:
        """Return trials whose scores are log-likelihood ratios.

        Parameters
        ----------
        trials
            The trials of the system, or of each system by the name that it was fitted under. The first system's trials
            are returned. With one system, trials without a score stay without one.
        fit_on
            The trials of the first system that the model was fitted on, if they are at hand: those that occur in both
            are counted. Otherwise only a set with the same hash is recognised.

        Raises
        ------
        UsageError
            For other systems, another positive class or another kind of scores than the model was fitted on.
        DataError
            If several systems do not have the same trials, or a score is missing.
        """
        given = {self.systems[0].name: trials} if isinstance(trials, Trials) else dict(trials)
        if len(given) == len(self.systems) == 1:
            given = {self.systems[0].name: next(iter(given.values()))}
        if unlike := sorted({s.name for s in self.systems} ^ set(given)):
            raise UsageError.of("other-systems", unlike=tuple(unlike))
        for system in self.systems:
            self._check(system, given[system.name])
        first = given[self.systems[0].name]
        n_again = self._count_fitted(first, fit_on)
        if self.method == FUSION:
            llr = pl.Series("score", self.mapping.apply(self._columns(given)))
            return self._retitled(first, given, llr, n_again)
        scores = first.column("score")
        filled = self.mapping.apply(self.systems[0].linear(scores.fill_null(0.5).to_numpy()))
        nothing = pl.Series([None] * len(scores), dtype=pl.Float64)
        llr = pl.Series("score", filled).zip_with(scores.is_not_null(), nothing)
        return self._retitled(first, given, llr, n_again)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form, without its seal."""
        return {
            "schema": SCHEMA,
            "kind": KIND,
            "hitmiss": __version__,
            "method": self.method,
            "systems": [asdict(system) for system in self.systems],
            "mapping": self.mapping.parameters,
            "positive": self.positive,
            "prior": self.prior,
            "name": self.name,
            "fit": {**asdict(self.origin), "sources": list(self.origin.sources)},
        }

    def write(self, path: str | Path) -> None:
        """Write the model as a sealed file, which `read_model` reads."""
        import json

        artifacts.write(path, json.dumps(artifacts.sealed(self.to_dict()), indent=1, allow_nan=False) + "\n")

    @property
    def choice(self) -> str:
        """What the signature says of the model."""
        fitted = f"fitted on {self.origin.digest} (n={self.origin.n})"
        if isinstance(self.mapping, LinearFusion):
            slopes = zip(self.systems, self.mapping.slopes, strict=True)
            short = ", ".join(f"{system.name}={slope:.6g}" for system, slope in slopes)
            return f"fusion({short}, offset={self.mapping.offset:.6g}) {fitted}"
        numbers = [f"{k}={v:.6g}" for k, v in self._described.items() if isinstance(v, float)]
        short = ", ".join([*(["log-odds"] if self.systems[0].odds else []), *numbers])
        return f"calibration={self.method}({short}) {fitted}"

    @property
    def _described(self) -> dict[str, object]:
        return {
            "method": self.method,
            **({"prior": self.prior} if self.method == "affine" else {}),
            **({"of": "log-odds"} if self.systems[0].odds is not None else {}),
            **self.mapping.parameters,
        }

    @property
    def _provenance(self) -> dict[str, object]:
        """What the header of trials records of the model."""
        if isinstance(self.mapping, LinearFusion):
            slopes = {s.name: w for s, w in zip(self.systems, self.mapping.slopes, strict=True)}
            found = {"method": "linear", "prior": self.prior, "slopes": slopes, "offset": self.mapping.offset}
            return {"fusion": {"name": self.name, **found, "fit_n": self.origin.n}}
        origin = {f"fit_{key}": value for key, value in asdict(self.origin).items()}
        return {"calibration": {**self._described, **origin, "fit_sources": list(self.origin.sources)}}

    def _check(self, system: SystemScale, trials: Trials) -> None:
        trials.column("score")
        head = trials.header
        if head.positive != self.positive:
            raise UsageError.of("fitted-otherwise/class", positive=self.positive, positive_2=head.positive)
        if head.score_kind != system.score_kind:
            raise UsageError.of("fitted-otherwise/kind", score_kind=system.score_kind, score_kind_2=head.score_kind)

    def _count_fitted(self, trials: Trials, fit_on: Trials | None) -> int:
        """Return how many trials the model was also fitted on."""
        if fit_on is None:
            return len(trials) if trials.digest == self.origin.digest else 0
        key = ["item", "target", "label", "score"]
        return trials.frame.join(fit_on.frame.select(key).unique(), on=key, how="semi").height

    def _columns(self, given: Mapping[str, Trials]) -> Floats:
        scores = score_matrix({system.name: given[system.name] for system in self.systems})
        return np.column_stack([system.linear(scores[:, i]) for i, system in enumerate(self.systems)])

    def _retitled(self, first: Trials, given: Mapping[str, Trials], llr: pl.Series, n_again: int) -> Trials:
        head = first.header
        notes: dict[str, None] = {}
        for system in self.systems:
            notes |= dict.fromkeys(system.notes(given[system.name]))
        notes |= dict.fromkeys(self._notes(first, n_again))
        sources = dict.fromkeys(s for system in self.systems for s in given[system.name].header.sources)
        changed = replace(
            head,
            score_kind="llr",
            threshold=None,
            scale=ScoreScale(),
            choices=(*head.choices, self.choice),
            sources=tuple(sources),
            notes=(*head.notes, *notes),
            provenance={**head.provenance, **self._provenance},
        )
        return first.put(changed, score=llr)

    def _notes(self, trials: Trials, n_again: int) -> list[str]:
        notes: list[str] = []
        falls = isinstance(self.mapping, AffineCalibrator) and self.mapping.slope < 0
        if falls or (isinstance(self.mapping, PavCalibrator) and self.mapping.llr[0] == self.mapping.llr[-1]):
            notes.append(Remark.of("scores-reversed/fit"))
        if n_again:
            notes.append(Remark.of("chosen-on-same-data/calibration", n_again=n_again, n_trials=len(trials)))
        if trials.header.threshold is not None:
            is_decided = "decision" in trials.frame.columns
            kept = "the decisions stay those at the threshold of the old scores"
            notes.append(
                Remark.of("old-threshold", what=kept if is_decided else "the threshold of the old scores was dropped")
            )
        if missing := self.systems[0].n_missing:
            notes.append(Remark.of("unscored-left-out/fit", n=missing))
        return notes


def fit_calibration(fit_on: Trials, method: str = "affine", *, prior: float = 0.5, name: str = "system") -> ScoreModel:
    """Fit the mapping of one system's scores to log-likelihood ratios (see `calibrate`).

    >>> dev = Trials.of(label=[1, 0, 1, 0, 1, 0], score=[3.0, 1.0, 2.0, 2.5, 4.0, 0.0])
    >>> model = fit_calibration(dev)
    >>> model.apply(Trials.of(label=[1, 0], score=[9.0, -9.0])).header.score_kind
    'llr'
    """
    if method not in METHODS:
        raise UnknownName("calibration method", method, METHODS)
    _check_one_run(fit_on)
    scale = SystemScale.of(name, fit_on, linear=method == "affine")
    answered = fit_on.keep(pl.col("score").is_not_null())
    scores = scale.linear(answered.score)
    mapping: Calibrator = (
        fit_pav(answered.label, scores, answered.weights)
        if method == "pav"
        else fit_affine(answered.label, scores, answered.weights, prior=prior)
    )
    kind: Method = "pav" if method == "pav" else "affine"
    return ScoreModel(kind, (scale,), mapping, fit_on.header.positive, FitOrigin.of(answered), prior)


def fit_fused(fit_on: Mapping[str, Trials], *, prior: float = 0.5, name: str = FUSION) -> ScoreModel:
    """Fit the mapping of several systems' scores to one log-likelihood ratio (see `fuse`)."""
    if not 0 < prior < 1:
        raise UsageError.of("out-of-range/inside", name="prior", low=0, high=1, found=prior)
    if len(fit_on) < 2:
        raise UsageError.of("one-system", n_fit_on=len(fit_on))
    for trials in fit_on.values():
        _check_one_run(trials)
        refuse_sampling(trials, "a fusion")
    known = next(iter(fit_on.values()))
    if unlike := {t.header.positive for t in fit_on.values()} - {known.header.positive}:
        raise UsageError.of("other-class", positive=known.header.positive, unlike=unlike.pop())
    raw = score_matrix(fit_on)
    scales = tuple(SystemScale.of(own, trials, linear=True) for own, trials in fit_on.items())
    scores = np.column_stack([scale.linear(raw[:, i]) for i, scale in enumerate(scales)])
    mapping = fit_fusion(known.label, scores, [*fit_on], prior=prior)
    return ScoreModel(FUSION, scales, mapping, known.header.positive, FitOrigin.of(known), prior, name)


def calibrate(fit_on: TrialsLike, apply_to: TrialsLike, method: str = "affine", *, prior: float = 0.5) -> Trials:
    """Fit a calibration on one set of trials, and turn the scores of another set into natural-log likelihood ratios.

    The header of the result records what was done: the score kind `llr`, the fitted parameters in
    `provenance["calibration"]`, and a choice for the signature. It has a note if some trials were also used for the fit
    (the numbers are then optimistic), or if higher scores mean the wrong class. Decisions are kept as they were made on
    the scores of the file; a new threshold is one of the likelihood ratios. Trials without a score stay without one.

    Scores that are declared probabilities are mapped to log-odds before an affine fit. Probabilities of exactly 0 or 1
    are taken as half as far from 0 or 1 as the nearest other one of the fit set, and a note says how many there are.

    Parameters
    ----------
    fit_on
        The development set, with both classes.
    apply_to
        The trials whose scores are replaced.
    method
        `affine` (see `fit_affine`) or `pav` (see `fit_pav`).
    prior
        For `affine`: the share of positives for which the fit is optimised. 0.5 minimises Cllr; `ASVSPOOF5_PRIOR` is
        the operating point of ASVspoof 5.

    Returns
    -------
    Trials
        The trials of `apply_to` with calibrated scores.

    Raises
    ------
    UsageError
        For an unknown method, a prior outside (0, 1), or sets that do not fit together.
    DataError
        If no fit exists: one class only, infinite scores, or (for `affine`) equal scores or separated classes.

    >>> dev = Trials.of(label=[1, 0, 1, 0, 1, 0], score=[3.0, 1.0, 2.0, 2.5, 4.0, 0.0])
    >>> calibrated = calibrate(dev, Trials.of(label=[1, 0], score=[9.0, -9.0], item=["x", "y"]))
    >>> calibrated.header.score_kind, bool(calibrated.score[0] > 0 > calibrated.score[1])
    ('llr', True)
    """
    fit_on, apply_to = demanded(fit_on, "calibrate"), demanded(apply_to, "calibrate")
    model = fit_calibration(fit_on, method, prior=prior)
    return model.apply(apply_to, fit_on)


def fuse(
    fit_on: Mapping[str, Trials], apply_to: Mapping[str, Trials], *, prior: float = 0.5, name: str = FUSION
) -> Trials:
    """Fit a linear fusion of several systems on one set, and return the fused scores of another set.

    The fused score is offset + Σ slope × score, a natural-log likelihood ratio; slopes and offset are those of logistic
    regression with the classes weighted to `prior`. Trials are paired by item. The header records the slopes in
    `provenance["fusion"]`, and a choice for the signature.

    Parameters
    ----------
    fit_on
        The development trials of each system, by name.
    apply_to
        The trials to fuse, with the same names.
    prior
        The share of positives for which the fit is optimised; 0.5 minimises Cllr.
    name
        What the fused system is called in the header.

    Returns
    -------
    Trials
        The trials of the first system of `apply_to`, with the fused scores.

    Raises
    ------
    UsageError
        For fewer than two systems, names that differ, or a prior outside (0, 1).
    DataError
        If the systems do not have the same trials, a score is missing, or the fit does not exist (one class only, a
        combination that separates the classes, or systems that are copies of each other).

    >>> label, a, b = [1, 1, 1, 1, 0, 0, 0, 0], [3, 1, 0, 2, 1, 0, -1, 2], [0, 3, -1, 1, 1, -1, 2, 0]
    >>> dev = {"a": Trials.of(label, a), "b": Trials.of(label, b)}
    >>> fused = fuse(dev, dev)
    >>> fused.header.score_kind, sorted(fused.header.provenance["fusion"]["slopes"])
    ('llr', ['a', 'b'])
    """
    return fit_fused(fit_on, prior=prior, name=name).apply(apply_to, next(iter(fit_on.values()), None))


def cost_prior(prior: float, miss_cost: float = 1.0, false_alarm_cost: float = 1.0) -> float:
    """Return the prior at which equal costs lead to the same decisions as this prior with these costs.

    >>> round(cost_prior(0.95, 1.0, 10.0), 3)
    0.655
    """
    if not 0 < prior < 1 or not miss_cost > 0 or not false_alarm_cost > 0:
        raise UsageError.of("bad-prior", prior=prior, miss_cost=miss_cost, false_alarm_cost=false_alarm_cost)
    positive = prior * miss_cost
    return positive / (positive + (1.0 - prior) * false_alarm_cost)


def read_model(path: str | Path) -> ScoreModel:
    """Read a model that `ScoreModel.write` wrote; an edited or foreign file is refused."""
    data = artifacts.load(path, KIND)
    stored = artifacts.check(StoredModel, data, KIND)
    if stored.kind != KIND or stored.schema != SCHEMA:
        raise DataError.of("not-score-model", name=Path(path).name)
    return stored.model(Path(path).name)


@dataclass(frozen=True)
class StoredModel:
    """The fields of a stored model; anything else in the file is refused."""

    schema: int
    kind: str
    hitmiss: str
    method: str
    systems: tuple[SystemScale, ...]
    mapping: Mapping[str, object]
    positive: str
    prior: float
    name: str
    fit: FitOrigin
    digest: str

    def model(self, file: str) -> ScoreModel:
        """Return the model; a mapping that does not fit its method is refused."""
        kinds: dict[str, type[AffineCalibrator] | type[PavCalibrator] | type[LinearFusion]] = {
            "affine": AffineCalibrator,
            "pav": PavCalibrator,
            FUSION: LinearFusion,
        }
        if self.method not in kinds:
            raise DataError.of("malformed-score-model", file=file, method=self.method)
        mapping = artifacts.check(kinds[self.method], self.mapping, KIND, ("mapping",))
        n = len(mapping.slopes) if isinstance(mapping, LinearFusion) else 1
        if len(self.systems) != n:
            raise DataError.of("malformed-score-model/slopes", file=file, n=n, n_systems=len(self.systems))
        method: Method = "affine" if self.method == "affine" else "pav" if self.method == "pav" else FUSION
        return ScoreModel(method, self.systems, mapping, self.positive, self.fit, self.prior, self.name)


def _check_one_run(fit_on: Trials) -> None:
    fit_on.column("score")
    for name in ("target", *fit_on.header.runs):
        found = fit_on.column(name).unique().sort().to_list()
        if len(found) > 1:
            raise UsageError.of("mixed-fit-set", n_found=len(found), name=name, found=found[:2])


def _saturated(scores: pl.Series) -> int:
    return int(((scores == 0) | (scores == 1)).sum())


def _like_probabilities(scores: pl.Series) -> bool:
    return bool(scores.is_between(0.0, 1.0).all()) and scores.n_unique() > 2
