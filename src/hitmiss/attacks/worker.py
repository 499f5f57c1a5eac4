"""Recordings under a plan: every configuration on every record, in batches, each attack with its control.

Each (record, configuration) has its own random generator, seeded from both, so the changes are the same for any batch
size and order. A control is random signs under the same window, with the same L2 norm, to compare the attack with the
effect of a mere disturbance of that size.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypedDict, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from hitmiss.attacks.arrays import Floats
from hitmiss.attacks.batched import pick
from hitmiss.attacks.config import PerturbationConfig
from hitmiss.attacks.leads import LEADS, lead_name
from hitmiss.attacks.model import SMALLEST, Classifier
from hitmiss.attacks.perform import Performed, Records, least_strengths, perform
from hitmiss.attacks.plan import MINIMAL, AttackPlan
from hitmiss.attacks.recordings import Recordings, not_finite
from hitmiss.attacks.result import describe
from hitmiss.attacks.windows import hann_windows
from hitmiss.core.errors import DataError, UsageError, message_of
from hitmiss.core.results import finite
from hitmiss.detection.classifier_contract import agree, classifier_contract, exclusive_classes
from hitmiss.detection.contract import TOGETHER, Contract, Probe, Term, probe
from hitmiss.detection.detector import need
from hitmiss.runs.worker import Result, Results
from hitmiss.stats.random import noise_generator


class Facts(TypedDict, total=False):
    """What the run store holds about a record under one step; numbers that are not finite are texts."""

    error: str
    log_odds: list[float | str | None]
    notes: list[str]
    signals: list[str | int]
    """The file of the changed signal, and its row there."""
    control: Facts
    minimal_strength: float | str | None
    delta_l2: float | str | None
    delta_linf: float | str | None
    snr_db: float | str | None
    smoothness: float | str | None
    zero_gradient: float | str | None
    budget: float | str | None
    budget_used: float | str | None


Keep = Callable[[str, Sequence[int], Floats], str]
"""Takes the name of a step, recordings by position, and their changed signals; returns the name of the file written."""


@dataclass(eq=False)
class PlannedAttacks:
    """Recordings under a plan: makes the record of any step and any recording, one batch at a time.

    `keep`, if given, stores the changed signals of some recordings at a step, and returns the name of their file.
    """

    recordings: Recordings
    model: Classifier
    plan: AttackPlan
    threshold: ArrayLike = 0.5
    peaks: Sequence[ArrayLike | None] | None = None
    batch: int = 32
    together: int = 64
    """Records that are processed together; it changes no result."""
    keep: Keep | None = None
    truth: ArrayLike | None = None
    """The labels of all records of the data, of which some may be attacked; they show whether classes exclude each other."""
    records: Records = field(init=False)
    contract: Contract = field(init=False)
    """What the model is taken for."""

    def __post_init__(self) -> None:
        given = self.recordings
        failures = not_finite(given.x)
        rows = [at for at in range(len(given.x)) if at not in failures]
        leads = agree_on_leads(self.model, given)
        found = _probe(self.model, given, rows)
        answers, unanswered = _answered(self.model, given.x, rows)
        failures |= unanswered
        data = self.recordings = given.without(failures)
        raw = np.stack([answers[at] for at in sorted(answers)])
        self.contract = self._contract(raw, found, leads)
        if self.peaks is not None:
            self.peaks = [own for at, own in enumerate(self.peaks) if at not in failures]
        self.records = Records(
            data.x, data.y.astype(np.float64), data.fs, self.model, data.classes, self.threshold, self.peaks, self.batch, self.model.from_raw(raw),
        )  # fmt: skip
        for _, config in self.plan.steps:
            if config is not None:
                self.records.target_of(config)
                self.model.need_gradient(config.family) if config.needs_gradient else None
        width = self.records.clean.shape[1]
        if width != len(data.classes):
            raise DataError.of("output-count", name=self.model.name, n=width, n_classes=len(data.classes))

    def _contract(self, raw: Floats, found: Probe | None, leads: Term) -> Contract:
        """Settle what the outputs of the model are, and whether its classes exclude each other."""
        model, data = self.model, self.recordings
        model.settle(raw)
        truth = data.y if self.truth is None else self.truth
        ending = model.ending or ("softmax" if model.single_label and model.says_single is None else None)
        exclusive = exclusive_classes(model.says_single, ending, model.outputs, raw, truth, model.name)
        model.single_label = exclusive[0]
        further = [leads, Term("sample_rate", data.fs, f"{data.fs:g} Hz", "the data"), Term("units", "mV", "mV")]
        further += found.terms() if found is not None else []
        steps = [config for _, config in self.plan.steps if config is not None]
        if any(config.needs_gradient for config in steps) and model.differentiable is not None:
            apart = _gradient_network(model, data.x[:PROBED_RECORDS], raw[:PROBED_RECORDS])
            further.append(Term("gradients", apart, "gradients of the same network"))
        return classifier_contract(model.outputs, model.kind_from, data.classes, exclusive, further)

    def rng(self, row: int, *names: object) -> Generator:
        """Return the generator of one record and one random quantity."""
        return noise_generator(self.plan.seed, "attack", self.recordings.ids[row], *names)

    def step(self, at: int, rows: Sequence[int]) -> list[Facts]:
        """Return the results of one step for some records, in the form of the run store."""
        name, config = self.plan.steps[at]
        if config is None:
            clean = self.records.clean[list(rows)]
            return [{"log_odds": _stored(row)} for row in clean]
        is_search = name.startswith(f"{MINIMAL} ")
        try:
            return self._search(config, rows) if is_search else self._attack([config] * len(rows), rows, name)
        except DataError as error:  # a fault of one record: the others continue without it
            if len(rows) == 1:
                return [{"error": message_of(error)}]
            half = len(rows) // 2
            made = [*self.step(at, rows[:half]), *self.step(at, rows[half:])]
            if all("error" in record for record in made):
                raise
            return made

    def _attack(self, configs: Sequence[PerturbationConfig], rows: Sequence[int], name: str) -> list[Facts]:
        done = perform(self.records, rows, configs, [self.rng(row, name) for row in rows])
        return self._described(configs, rows, done, name)

    def _described(
        self, configs: Sequence[PerturbationConfig], rows: Sequence[int], done: Performed, name: str
    ) -> list[Facts]:
        """Return what was done in the form of the run store, with the control."""
        log_odds = self.model.log_odds(done.x)
        made = self._facts(rows, done)
        for i, facts in enumerate(made):
            facts["log_odds"], facts["notes"] = _stored(log_odds[i]), list(done.notes[i])
        if self.keep is not None:
            file = self.keep(name, rows, done.x)
            for i, facts in enumerate(made):
                facts["signals"] = [file, i]
        if self.plan.control:
            self._beside(made, configs, rows, done.x, name)
        return made

    def _facts(self, rows: Sequence[int], done: Performed) -> list[Facts]:
        """Return norms, signal-to-noise ratio, smoothness and budget of each change."""
        own = list(rows)
        numbers = describe(pick(self.records.x, own), done.x, self.records.power[own])
        used = np.array([numbers[f"delta_{n}"][i] if n else np.nan for i, n in enumerate(done.norm)])
        columns = {**numbers, "budget": done.budget, "budget_used": used, "zero_gradient": done.zero_gradient}
        return [_facts(columns, i) for i in range(len(own))]

    def _beside(
        self,
        made: list[Facts],
        configs: Sequence[PerturbationConfig],
        rows: Sequence[int],
        x: Floats,
        name: str,
    ) -> None:
        """Add the control to each attack."""
        noisy = self.recordings.x[list(rows)].copy()
        windows = hann_windows(
            noisy.shape[1], self.recordings.fs, [c.center_time for c in configs], [c.window_seconds for c in configs]
        )
        for i, row in enumerate(rows):
            size = float(np.linalg.norm(x[i] - noisy[i]))
            noisy[i] += same_norm_noise(noisy[i].shape, windows[i], size, self.rng(row, name, "control"))
        log_odds = self.model.log_odds(noisy)
        numbers = describe(self.recordings.x[list(rows)], noisy, self.records.power[list(rows)])
        for i, facts in enumerate(made):
            facts["control"] = _facts(numbers, i)
            facts["control"]["log_odds"] = _stored(log_odds[i])

    def _search(self, config: PerturbationConfig, rows: Sequence[int]) -> list[Facts]:
        """Return the minimum strength of each record, and the change that flipped it (strength 1 if it never flips)."""
        least, done = self.search(config, rows)
        made = self._described([config] * len(rows), rows, done, f"{MINIMAL} {config}")
        for record, strength in zip(made, least.tolist(), strict=True):
            record["minimal_strength"] = _number(strength)
        return made

    def search(self, config: PerturbationConfig, rows: Sequence[int]) -> tuple[Floats, Performed]:
        """Return the minimum strength of each record, and what flipped it: see `least_strengths`."""
        name = f"{MINIMAL} {config}"
        return least_strengths(self.records, config, rows, lambda row: self.rng(row, name), rounds=self.plan.rounds)


PROBED_RECORDS: Final = 8
"""Records on which the network that gives gradients is compared with the model."""


def agree_on_leads(model: Classifier, data: Recordings) -> Term:
    """Bring the leads of the data into the order that the model takes, by their names; ask if this is not known."""
    n = data.x.shape[2]
    if model.sample_rate is not None and data.fs > 0 and model.sample_rate != data.fs:
        raise DataError.of("other-rate", model_name=model.name, sample_rate=model.sample_rate, fs=data.fs)
    if model.leads is None:
        if data.stored_leads is not None:
            raise UsageError.of(
                "leads-unknown", model_name=model.name, LEADS=tuple(LEADS), stored_leads=",".join(data.stored_leads)
            )
        words = f"{n} leads as in the data" if data.leads is not None else f"{n} leads without names"
        return Term("leads", list(data.leads or ()), words, "assumed")
    wanted = tuple(map(lead_name, LEADS if [x.lower() for x in model.leads] == ["standard"] else model.leads))
    if data.leads is None:
        if len(wanted) != n:
            raise DataError.of(
                "leads-missing/takes", model_name=model.name, n_wanted=len(wanted), wanted=tuple(wanted), n=n
            )
        return Term(
            "leads", list(wanted), f"{n} leads, in the data without names and taken to be in its order", "assumed"
        )
    missing = [lead for lead in wanted if lead not in data.leads]
    if missing:
        raise DataError.of("leads-missing", model_name=model.name, missing=missing[0], leads=tuple(data.leads))
    order = tuple(data.leads.index(lead) for lead in wanted)
    model.order = None if order == tuple(range(n)) else order
    return Term("leads", list(wanted), f"{len(wanted)} leads by their names", "declared")


def _probe(model: Classifier, data: Recordings, rows: Sequence[int]) -> Probe | None:
    """Score the first record twice and in a batch; an attack on one draw, or on a batch, would mean nothing."""
    before, chosen = model.n_forward, list(rows[:TOGETHER])
    try:
        found = probe(
            lambda at: model.raw(data.x[[chosen[i] for i in at]]),
            [data.ids[at] for at in chosen],
            batch=1 if model.fixed is not None else TOGETHER,
        )
    except (DataError, IndexError):  # a record without an answer; the records are tried one by one
        return None
    finally:
        model.n_forward = before
    if found.is_random:
        raise UsageError.of("randomised-model", found=found.random_words(model.name))
    found.refuse_batch(model.name, "wrap it in a function that answers one record at a time")
    return found


def _gradient_network(model: Classifier, x: Floats, raw: Floats) -> float:
    """Compare the network that gives gradients with the model itself; return how far they are apart."""
    torch = need("torch", "torch")
    given = torch.as_tensor(np.ascontiguousarray(x.transpose(0, 2, 1)), dtype=torch.float32, device=model.device)
    with torch.no_grad():
        converted = np.asarray(model.need_gradient("a gradient")(given).double().cpu())
    if not model.single_label:
        return agree(converted, model.from_raw(raw), model.name)
    own = np.log(np.maximum(raw, SMALLEST)) if model.outputs == "probability" else raw
    return agree(_log_softmax(converted), _log_softmax(own), model.name)


def _log_softmax(values: Floats) -> Floats:
    return np.asarray(values - np.logaddexp.reduce(values, axis=1, keepdims=True))


def _answered(model: Classifier, x: Floats, rows: Sequence[int]) -> tuple[dict[int, Floats], dict[int, str]]:
    """Return the model's answers by position, and the records without one; if there is no answer at all, raise."""
    try:
        return dict(zip(rows, model.raw(x[list(rows)]), strict=True)), {}
    except DataError as error:
        if len(rows) < 2:
            return {}, {at: message_of(error) for at in rows}
        half = len(rows) // 2
        (some, bad), (others, worse) = _answered(model, x, rows[:half]), _answered(model, x, rows[half:])
        if not some and not others:
            raise
        return some | others, bad | worse


def same_norm_noise(shape: tuple[int, ...], window: Floats, size: float, rng: Generator) -> Floats:
    """Return random signs under a window, with a given L2 norm.

    >>> noise = same_norm_noise((50, 2), np.ones(50), 0.3, np.random.default_rng(0))
    >>> round(float(np.linalg.norm(noise)), 12), len(np.unique(np.abs(noise).round(12)))
    (0.3, 1)
    """
    signs = rng.choice([-1.0, 1.0], size=shape) * window[:, None]
    length = float(np.linalg.norm(signs))
    return signs * (size / length) if length > 0 else signs


def _facts(columns: Mapping[str, Floats], at: int) -> Facts:
    """Return the numbers of one record."""
    return cast("Facts", {name: finite(float(values[at])) for name, values in columns.items()})


def _number(value: float) -> float | str | None:
    return cast("float | str | None", finite(value))


def _stored(log_odds: Floats) -> list[float | str | None]:
    return [_number(float(v)) for v in log_odds]


class StepWorker:
    """The work of a campaign: positions are step by step, record by record; those of one step go together."""

    kind = "attack"
    grows: Collection[str] = ()

    def __init__(self, planned: PlannedAttacks, save_signals: bool = False) -> None:
        self.planned, self.save_signals = planned, save_signals
        ids = planned.recordings.ids
        self.items = [f"{name} / {record}" for name, _ in planned.plan.steps for record in ids]

    @property
    def config(self) -> dict[str, object]:
        """Everything that could change a result."""
        data, model = self.planned.recordings, self.planned.model
        about: dict[str, object] = {
            "data": data.digest,
            "classes": list(data.classes),
            "fs": data.fs,
            "layout": model.layout,
        }
        about |= {"single_label": True} if model.single_label else {}
        about |= {"leads": [data.leads[at] for at in model.order]} if model.order is not None and data.leads else {}
        return {
            **self.planned.plan.pinned,
            **about,
            "model": {"name": model.name, **model.identity},
            "outputs": model.outputs,
            "threshold": np.asarray(self.planned.threshold, dtype=np.float64).tolist(),
            **({"signals": "float32"} if self.save_signals else {}),
        }

    def work(self, todo: Iterator[int]) -> Results:
        """Process positions in batches that belong to one step; the size of a batch changes no result."""
        n = len(self.planned.recordings.ids)
        waiting: list[int] = []
        for at in todo:
            if waiting and (at // n != waiting[0] // n or len(waiting) >= self.planned.together):
                yield from self._step(waiting, n)
                waiting = []
            waiting.append(at)
        if waiting:
            yield from self._step(waiting, n)

    def _step(self, positions: Sequence[int], n: int) -> Iterator[Result]:
        made = self.planned.step(positions[0] // n, [at % n for at in positions])
        yield from (Result(at, cast("Mapping[str, object]", facts)) for at, facts in zip(positions, made, strict=True))

    def leftovers(self) -> list[Result]:
        """Return nothing: the results of a step are made together."""
        return []

    def changed_inputs(self, records: Iterator[tuple[int, dict[str, object]]]) -> list[str]:
        """Return nothing: the digest of the data is part of the configuration."""
        del records
        return []

    def details(self) -> str:
        """Return nothing."""
        return ""
