"""Attacks on models: with the gradient, and by queries only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from hitmiss.attacks.family import INDEPENDENT, expansion, moving_mean, need_twelve
from hitmiss.attacks.model import Classifier, TensorFunction, channels_last
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.detection.detector import need

if TYPE_CHECKING:
    from torch import Tensor

# ----------------------------------------------------------------------
# The step rules of gradient attacks: `fgsm`, `pgd`, `pgd_l2`, `apgd`, `apgd_l2`, `sap` (Han et al. 2020) and
# `smooth_adv`.

Floats = NDArray[np.float64]
SAP_SIZES: Final = (5, 7, 11, 15, 19)
SAP_SIGMAS: Final = (1.0, 3.0, 5.0, 7.0, 10.0)
SAP_RATE: Final = 300.0
"""Kernels of Han et al. 2020: in samples at 300 Hz."""


@dataclass(frozen=True)
class Method:
    """The step rule of a gradient attack. `eps_max` is the budget at strength 1: in mV (L∞) or an L2 norm."""

    norm: Literal["linf", "l2"] = "linf"
    eps_max: float = 0.05
    steps: int = 20
    step: float | None = None
    """The size of a step as a share of the budget; None: 2.5 / steps, and the whole budget for one step."""
    smooth: bool = False
    adam: float | None = None
    """The rate of Adam, which is used instead of plain gradient steps."""
    lambda_smooth: float = 0.0
    lambda_energy: float = 0.0
    restarts: int = 1
    """Attempts: the first from the record itself, the others from random points within the budget; the best counts."""
    adaptive: bool = False
    """Whether steps have momentum and shorten when the loss does not improve (APGD, Croce & Hein 2020)."""

    @property
    def share(self) -> float:
        """The size of a step as a share of the budget."""
        return self.step if self.step is not None else min(1.0, 2.5 / self.steps)


METHODS: Final[dict[str, Method]] = {
    "fgsm": Method(steps=1),
    "pgd": Method(),
    "pgd_l2": Method(norm="l2", eps_max=1.0),
    "apgd": Method(steps=50, adaptive=True),
    "apgd_l2": Method(norm="l2", eps_max=1.0, steps=50, adaptive=True),
    "sap": Method(steps=40, step=0.1, smooth=True),
    "smooth_adv": Method(norm="l2", eps_max=0.5, steps=200, adam=0.01, lambda_smooth=10.0, lambda_energy=0.5),
}
FIXED: Final = ("norm", "smooth", "adaptive")
"""Fields that define a gradient family, and are not settings."""
SETTINGS: Final = {"eps_global_max": "eps_max", "lr": "adam"}
"""Names in the ECG attack evaluation document, and ours."""


def find_method(name: str, **settings: Any) -> Method:
    """Return a method by the name of its family, with the caller's settings.

    >>> find_method("smooth_adv", eps_global_max=0.8, steps=50).eps_max
    0.8
    """
    if name not in METHODS:
        raise UnknownName("gradient family", name, METHODS)
    ours = {SETTINGS.get(key, key): value for key, value in settings.items()}
    known = {f for f in Method.__dataclass_fields__ if f not in FIXED}
    for key in ours:
        if key not in known:
            raise UnknownName(f"setting of {name}", key, {*known, *SETTINGS})
    return replace(METHODS[name], **ours)


def sap_kernel(fs: float) -> Floats:
    """Return the mean of the 25 Gaussian kernels of Han et al., converted from 300 Hz to another rate; its sum is 1.

    >>> round(float(sap_kernel(100.0).sum()), 12), len(sap_kernel(300.0))
    (1.0, 19)
    """
    scale = fs / SAP_RATE
    half = max(round(max(SAP_SIZES) // 2 * scale), 1)
    at, kernel = np.arange(-half, half + 1), np.zeros(2 * half + 1)
    for size in SAP_SIZES:
        for sigma in SAP_SIGMAS:
            bell = np.exp(-0.5 * (at / (sigma * scale)) ** 2) * (np.abs(at) <= max(round(size // 2 * scale), 1))
            kernel += bell / bell.sum() / (len(SAP_SIZES) * len(SAP_SIGMAS))
    return kernel


# ----------------------------------------------------------------------
# When an attack has succeeded: this is defined separately from how the attack works.
#
# A criterion takes the bits predicted for the clean and the changed record (record × class) and the target class (one
# per record, −1 if there is none), and returns for each record whether it counts as a success.

Bits = NDArray[np.int8]
Mask = NDArray[np.bool_]
Rule = Callable[[Bits, Bits, NDArray[np.int64]], ArrayLike]


@dataclass(frozen=True)
class Criterion:
    """A named rule: (clean bits, changed bits, target class) to one yes or no per record."""

    name: str
    rule: Rule

    def __call__(self, clean: ArrayLike, changed: ArrayLike, target: ArrayLike | None = None) -> Mask:
        """Return which records count as successes."""
        before, after = (np.atleast_2d(np.asarray(bits)).astype(np.int8) for bits in (clean, changed))
        aimed = np.full(len(before), -1) if target is None else np.broadcast_to(np.asarray(target), len(before))
        found = np.asarray(self.rule(before, after, aimed.astype(np.int64)), dtype=bool)
        if found.shape != (len(before),):
            raise DataError(f"criterion {self.name} must give one yes or no per record; found the shape {found.shape}")
        return found


def _at(bits: Bits, target: NDArray[np.int64]) -> Bits:
    if (target < 0).any():
        raise DataError("this criterion needs a class that the attack aims at")
    return np.asarray(bits[np.arange(len(bits)), target])


any_bit: Final = Criterion("any_bit", lambda clean, changed, target: (clean != changed).any(axis=1))
"""The documented untargeted success: any bit differs from the clean prediction."""
target_on: Final = Criterion("target_on", lambda clean, changed, target: _at(changed, target) == 1)
"""The documented `force`: the bit of the class is 1 afterwards, whatever it was before."""
target_off: Final = Criterion(
    "target_off", lambda clean, changed, target: (_at(clean, target) == 1) & (_at(changed, target) == 0)
)
"""The documented `suppress`: the bit of the class goes from 1 to 0."""

CRITERIA: Final = {c.name: c for c in (any_bit, target_on, target_off)}


def find_criterion(given: str | Criterion | Rule) -> Criterion:
    """Return a criterion by name, or wrap the caller's own.

    >>> find_criterion("any_bit")([[1, 0]], [[1, 1]]).tolist()
    [True]
    >>> lost_all = find_criterion(lambda clean, changed, target: changed.sum(axis=1) == 0)
    >>> lost_all([[1, 0]], [[0, 0]]).tolist()
    [True]
    """
    if isinstance(given, Criterion):
        return given
    if callable(given):
        return Criterion(getattr(given, "__name__", "custom"), given)
    if given not in CRITERIA:
        raise UnknownName("criterion", given, CRITERIA)
    return CRITERIA[given]


def for_mode(mode: str | None) -> Criterion:
    """Return the criterion of a target mode: force, suppress, or None."""
    return {None: any_bit, "force": target_on, "suppress": target_off}[mode]


# ----------------------------------------------------------------------
# Gradient attacks, in batches: `fgsm`, `pgd`, `apgd` (Croce & Hein 2020), `sap` (Han et al. 2020), `smooth_adv`.
#
# Every record has its own budget, window and target; records that have flipped leave the batch (early stop). The
# optimised variable is a field z; the change of the signal is `shape(z)`: smoothed (sap), expanded to the twelve leads
# (lead-consistent) and multiplied by the window. z is kept where the change is within budget; the final change is
# projected once more in float64, so its norm stays within the budget up to rounding.
#
# Records do not affect each other. However, a model in float32 rounds differently in batches of another size, so where
# a gradient is nearly 0 its sign, and with it single samples of the change, may differ between batch sizes.

Ints = NDArray[np.int64]
ADAPTIVE_SHARE: Final = 0.75
"""For APGD: the share of a step that is new rather than momentum, and the share of steps that must help."""


@dataclass(frozen=True, eq=False)
class Problem:
    """The attack problem, per record.

    `reference`: the bits from which the untargeted loss moves away. `target`: the target class, −1 for none; `value`:
    the wanted value of its bit. `whole`: move towards `reference` with that one bit set (the form of the ECG attack
    document) instead of using only that bit. `succeeded` judges probabilities (rows of the batch, probabilities) for
    the early stop. `first`: the gradients at the start, if an earlier attempt with another budget has computed them.
    """

    x: Floats
    reference: Floats
    target: Ints
    value: Floats
    budget: Floats
    window: Floats
    fs: float = 100.0
    lead_consistent: bool = False
    whole: bool = False
    succeeded: Callable[[Ints, Floats], Mask] | None = None
    first: NDArray[np.float32] | None = None
    single_label: bool = False
    loss: str = "cross_entropy"
    start: Floats | None = None
    """Where each record begins (the field z); None: at the record itself."""

    def part(self, rows: Ints) -> Problem:
        """Return some of the records, by position."""
        judge = self.succeeded
        shifted = None if judge is None else (lambda at, p: judge(rows[at], p))
        names = ["x", "reference", "target", "value", "budget", "window"]
        names += [name for name in ("first", "start") if getattr(self, name) is not None]
        return replace(self, succeeded=shifted, **{name: getattr(self, name)[rows] for name in names})


@dataclass(frozen=True, eq=False)
class Outcome:
    """The change of each record, how many records went through the model, and which had a zero gradient at first."""

    delta: Floats
    n_forward: int
    zero_gradient: Mask
    first: NDArray[np.float32]
    """The gradients at the start: record × sample × lead (the eight independent ones if leads are derived)."""
    steps: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def solve(model: Classifier, problem: Problem, method: Method, name: str = "pgd", batch: int = 32) -> Outcome:
    """Return the changes that a method finds, `batch` records at a time."""
    function = model.need_gradient(name)
    parts = [
        _Solver(function, model.device, problem.part(rows), method).run()
        for rows in np.split(np.arange(len(problem.x)), range(batch, len(problem.x), batch))
    ]
    n_forward = sum(p.n_forward for p in parts)
    model.n_forward += n_forward
    return Outcome(
        np.concatenate([p.delta for p in parts]),
        n_forward,
        np.concatenate([p.zero_gradient for p in parts]),
        np.concatenate([p.first for p in parts]),
        np.concatenate([p.steps for p in parts]),
    )


Moments: TypeAlias = "tuple[Tensor, Tensor]"


class _Adaptive(NamedTuple):
    """The state of each record under APGD; all fields have one row per record."""

    z: Tensor
    gradient: Tensor
    loss: Tensor
    best: Tensor
    best_gradient: Tensor
    best_loss: Tensor
    before: Tensor
    step: Tensor
    n_better: Tensor
    """Steps since the last checkpoint that lowered the loss."""
    checked_loss: Tensor
    """The lowest loss at the last checkpoint."""
    was_halved: Tensor

    def moved(self, torch: ModuleType, z: Tensor, gradient: Tensor, loss: Tensor) -> _Adaptive:
        """Return the state after a step."""
        better = loss < self.best_loss
        wide = better[:, None, None]
        return self._replace(
            z=z, gradient=gradient, loss=loss, before=self.z, n_better=self.n_better + (loss < self.loss),
            best=torch.where(wide, z, self.best), best_gradient=torch.where(wide, gradient, self.best_gradient),
            best_loss=torch.where(better, loss, self.best_loss),
        )  # fmt: skip

    def checked(self, torch: ModuleType, n_steps: int) -> _Adaptive:
        """Halve the step and restart from the best point where too few steps helped or nothing was gained."""
        stuck = ~self.was_halved & (self.best_loss >= self.checked_loss)
        halved = (self.n_better < ADAPTIVE_SHARE * n_steps) | stuck
        wide = halved[:, None, None]
        return self._replace(
            z=torch.where(wide, self.best, self.z), gradient=torch.where(wide, self.best_gradient, self.gradient),
            loss=torch.where(halved, self.best_loss, self.loss), before=torch.where(wide, self.best, self.before),
            step=torch.where(wide, self.step / 2.0, self.step), n_better=torch.zeros_like(self.n_better),
            checked_loss=self.best_loss, was_halved=halved,
        )  # fmt: skip


def checkpoints(steps: int) -> set[int]:
    """Return the steps at which APGD checks its progress: at decreasing distances (Croce & Hein 2020, section 3.2).

    >>> sorted(checkpoints(100))[:5]
    [22, 41, 57, 70, 80]
    """
    found, before, at = set(), 0.0, 0.22
    while at <= 1.0:
        found.add(math.ceil(round(at * steps, 9)))
        before, at = at, at + max(at - before - 0.03, 0.06)
    return found


class _Solver:
    """One batch in progress: tensors are record × lead × sample, in memory with the leads last."""

    def __init__(self, function: TensorFunction, device: str, problem: Problem, method: Method) -> None:
        self.torch = need("torch", "torch")
        self.function, self.device, self.problem, self.method = function, device, problem, method
        self.x = self._turned(problem.x)
        self.window = None if (problem.window == 1.0).all() else self._tensor(problem.window[:, None, :])
        self.budget = self._tensor(problem.budget[:, None, None])
        self.reference, self.value = self._tensor(problem.reference), self._tensor(problem.value)
        self.target = self.torch.as_tensor(problem.target, device=device)
        self.kernel = self._tensor(sap_kernel(problem.fs))[None, None] if method.smooth else None
        self.spread = self._spread()

    def _tensor(self, values: ArrayLike) -> Tensor:
        return self.torch.as_tensor(np.ascontiguousarray(values, dtype=np.float32), device=self.device)

    def _turned(self, values: NDArray[np.floating]) -> Tensor:
        """Turn record × sample × lead into record × lead × sample; on a CPU nothing is copied (see `channels_last`)."""
        turned = self._tensor(values).transpose(1, 2)
        return turned if self.device == "cpu" else turned.contiguous()

    def _spread(self) -> Tensor | None:
        if not self.problem.lead_consistent:
            return None
        need_twelve(self.problem.x.shape[2])
        return self._tensor(expansion())

    def run(self) -> Outcome:
        """Step until all records have flipped or the steps are used up."""
        return self._adaptively() if self.method.adaptive else self._plainly()

    def _beginning(self) -> Tensor:
        n, leads, samples = self.x.shape
        width = len(INDEPENDENT) if self.spread is not None else leads
        if self.problem.start is None:
            return self._turned(np.zeros((n, samples, width)))
        return self._project(self._turned(self.problem.start[:, :, :width]))

    def _plainly(self) -> Outcome:
        n = len(self.x)
        rows, z = np.arange(n), self._beginning()
        moments = (self.torch.zeros_like(z), self.torch.zeros_like(z)) if self.method.adam else None
        delta, zero, steps = np.zeros(self.problem.x.shape), np.zeros(n, dtype=bool), np.zeros(n, dtype=np.int64)
        n_forward, first = 0, self.problem.first
        for step in range(self.method.steps):
            if step == 0 and self.problem.first is not None:
                gradient, gone = self._turned(self.problem.first), np.zeros(n, dtype=bool)
            else:
                gradient, p, _ = self._gradient(z)
                n_forward += len(rows)
                gone = self._flipped(rows, p)
            if step == 0:
                zero = (gradient.abs().amax(dim=(1, 2)) == 0).cpu().numpy()
                first = gradient.transpose(1, 2).cpu().numpy().copy() if first is None else first
            if gone.any():
                delta[rows[gone]] = self._final(z, rows)[gone]
                kept = self._keep(~gone)
                rows, z, gradient = rows[~gone], z[kept], gradient[kept]
                moments = None if moments is None else (moments[0][kept], moments[1][kept])
            if not len(rows):
                break
            steps[rows] += 1
            z = self._project(self._moved(z, gradient, moments, step))
        if len(rows):
            delta[rows] = self._final(z, rows)
        assert first is not None  # a method has at least one step
        return Outcome(delta, n_forward, zero, first, steps)

    def _adaptively(self) -> Outcome:
        """Run APGD: each record has its own step, halved at checkpoints without progress, and goes on from its best."""
        torch, n = self.torch, len(self.x)
        rows, z = np.arange(n), self._beginning()
        delta, steps = np.zeros(self.problem.x.shape), np.zeros(n, dtype=np.int64)
        gradient, logits, loss = self._gradient(z)
        first, n_forward = gradient.transpose(1, 2).cpu().numpy().copy(), n
        zero = (gradient.abs().amax(dim=(1, 2)) == 0).cpu().numpy()
        state = _Adaptive(z, gradient, loss, z, gradient, loss, z, 2.0 * self.budget, torch.zeros_like(loss), loss,
                          torch.zeros_like(loss, dtype=torch.bool))  # fmt: skip
        last, checks = 0, checkpoints(self.method.steps)
        for step in range(self.method.steps + 1):
            gone = self._flipped(rows, logits)
            if gone.any():
                delta[rows[gone]] = self._final(state.z, rows)[gone]
                kept = self._keep(~gone)
                rows, state = rows[~gone], _Adaptive(*(part[kept] for part in state))
            if not len(rows) or step == self.method.steps:
                break
            steps[rows] += 1
            moved = self._project(state.z - state.step * self._direction(state.gradient))
            share = ADAPTIVE_SHARE if step else 1.0
            moved = self._project(state.z + share * (moved - state.z) + (1.0 - share) * (state.z - state.before))
            gradient, logits, loss = self._gradient(moved)
            n_forward += len(rows)
            state = state.moved(torch, moved, gradient, loss)
            if step + 1 in checks:
                state, last = state.checked(torch, step + 1 - last), step + 1
        if len(rows):
            delta[rows] = self._final(state.best, rows)
        return Outcome(delta, n_forward, zero, first, steps)

    def _direction(self, gradient: Tensor) -> Tensor:
        """Return a step of size 1 uphill."""
        if self.method.norm == "linf":
            return gradient.sign()
        return gradient / gradient.flatten(1).norm(dim=1).clamp(min=1e-20)[:, None, None]

    def _keep(self, mask: Mask) -> Tensor:
        """Continue with some of the records; return their positions."""
        kept = self.torch.as_tensor(np.flatnonzero(mask), device=self.device)
        for name in ("x", "window", "budget", "reference", "value", "target"):
            value = getattr(self, name)
            setattr(self, name, None if value is None else value[kept])
        return kept

    def _flipped(self, rows: Ints, p: Tensor) -> Mask:
        if self.problem.succeeded is None:
            return np.zeros(len(rows), dtype=bool)
        logits = p.detach().double()
        proba = logits.softmax(dim=1) if self.problem.single_label else logits.sigmoid()
        return self.problem.succeeded(rows, proba.cpu().numpy())

    def _gradient(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradient of the loss of each record (to be minimised), the logits, and the losses."""
        variable = z.detach().requires_grad_(True)
        delta = self.shape(variable)
        with channels_last(self.device, len(z)):
            logits = self.function(self.x + delta)
        loss = self._loss(logits)
        if self.method.lambda_smooth or self.method.lambda_energy:
            loss = loss + self.method.lambda_smooth * delta.diff(dim=2).square().mean(dim=(1, 2))
            loss = loss + self.method.lambda_energy * delta.square().mean(dim=(1, 2))
        (gradient,) = self.torch.autograd.grad(loss.sum(), variable)
        return gradient, logits, loss.detach()

    def _loss(self, logits: Tensor) -> Tensor:
        """Return the loss to minimise: minus the distance from the reference, or that of the target bit to its aim."""
        if self.problem.single_label:
            return self._loss_of_one(logits)
        entropy = self.torch.nn.functional.binary_cross_entropy_with_logits
        away = -entropy(logits, self.reference, reduction="none").mean(dim=1)
        aimed = self.target >= 0
        if not bool(aimed.any()):
            return away
        place = self.target.clamp(min=0)[:, None]
        if self.problem.whole:
            aim = self.reference.scatter(1, place, self.value[:, None])
            near = entropy(logits, aim, reduction="none").mean(dim=1)
        else:
            near = entropy(logits.gather(1, place)[:, 0], self.value, reduction="none")
        return self.torch.where(aimed, near, away)

    def _loss_of_one(self, logits: Tensor) -> Tensor:
        """Return the loss for exclusive classes: cross-entropy, or the lead of the class over the best other."""
        aimed = self.target >= 0
        place = self.torch.where(aimed, self.target, self.reference.argmax(dim=1))
        if self.problem.loss == "margin":
            own = logits.gather(1, place[:, None])[:, 0]
            others = logits.scatter(1, place[:, None], -self.torch.inf).amax(dim=1)
            ahead = own - others
        else:
            ahead = -self.torch.nn.functional.cross_entropy(logits, place, reduction="none")
        wanted = aimed & (self.value > 0.5)  # a class to be forced; otherwise the class must fall behind
        return self.torch.where(wanted, -ahead, ahead)

    def shape(self, z: Tensor) -> Tensor:
        """Return the change of the signal for a field."""
        if self.kernel is not None:
            flat = z.reshape(-1, 1, z.shape[2])
            z = self.torch.nn.functional.conv1d(flat, self.kernel, padding=self.kernel.shape[2] // 2).reshape(z.shape)
        if self.spread is not None:
            z = self.torch.einsum("ij,njt->nit", self.spread, z)
        return z if self.window is None else z * self.window

    def _moved(self, z: Tensor, gradient: Tensor, moments: Moments | None, step: int) -> Tensor:
        """Make one step downhill; the arguments are overwritten."""
        size = self.method.share * self.budget
        if self.method.adam is not None and moments is not None:
            return z - self.method.adam * self._adam(gradient, moments, step)
        if self.method.norm == "linf":
            return z.sub_(gradient.sign().mul_(size))
        return z - size * self._direction(gradient)

    def _adam(self, gradient: Tensor, moments: Moments, step: int) -> Tensor:
        first, second = moments
        first.mul_(0.9).add_(gradient, alpha=0.1)
        second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        return (first / (1 - 0.9 ** (step + 1))) / ((second / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8)

    def _project(self, z: Tensor) -> Tensor:
        """Project the field back to where its change is within budget."""
        budget = self.budget
        if self.method.norm == "l2":
            length = self.shape(z).flatten(1).norm(dim=1)[:, None, None]
            return z * (budget / length.clamp(min=1e-20)).clamp(max=1.0)
        if self.spread is None:
            return z.clamp_(min=-budget, max=budget)
        highest = self.torch.einsum("ij,njt->nit", self.spread, z).abs().amax(dim=1, keepdim=True)
        return z * (budget / highest.clamp(min=1e-20)).clamp(max=1.0)

    def _final(self, z: Tensor, rows: Ints) -> Floats:
        """Return the change in float64, within budget up to rounding."""
        with self.torch.no_grad():
            shaped = self.shape(z)
        delta = np.ascontiguousarray(shaped.transpose(1, 2).cpu().numpy(), dtype=np.float64)
        return within_budget(delta, self.problem.budget[rows], self.method.norm)


def random_start(rngs: Sequence[Generator], budget: Floats, shape: tuple[int, ...], norm: str) -> Floats:
    """Draw a uniformly random point within the budget of each record."""
    if norm == "linf":
        return np.stack([rng.uniform(-size, size, shape) for rng, size in zip(rngs, budget, strict=True)])
    fields = []
    for rng, size in zip(rngs, budget, strict=True):
        direction = rng.standard_normal(shape)
        length = size * rng.uniform() ** (1.0 / direction.size)
        fields.append(direction * (length / np.linalg.norm(direction)))
    return np.stack(fields)


def within_budget(delta: Floats, budget: Floats, norm: str) -> Floats:
    """Scale down, per record, changes that are over budget; scaling preserves the lead equations."""
    flat = np.abs(delta).reshape(len(delta), -1)
    size = flat.max(axis=1, initial=0.0) if norm == "linf" else np.linalg.norm(flat, axis=1)
    return np.asarray(delta * np.minimum(1.0, budget / np.maximum(size, 1e-300))[:, None, None])


def gradient_of(model: Classifier, x: ArrayLike, reference: ArrayLike, *, batch: int = 32) -> Floats:
    """Return the gradient of the untargeted loss at each signal: record × sample × lead.

    The loss is the mean binary cross-entropy to `reference`.
    """
    torch = need("torch", "torch")
    function = model.need_gradient("a gradient")
    signals, bits = np.asarray(x, dtype=np.float32), np.asarray(reference, dtype=np.float32)
    found = []
    for i in range(0, len(signals), batch):
        part = np.ascontiguousarray(signals[i : i + batch].transpose(0, 2, 1))
        variable = torch.as_tensor(part, device=model.device).requires_grad_(True)
        aim = torch.as_tensor(bits[i : i + batch], device=model.device)
        losses = torch.nn.functional.binary_cross_entropy_with_logits(function(variable), aim, reduction="none")
        (gradient,) = torch.autograd.grad(losses.mean(dim=1).sum(), variable)
        found.append(gradient.double().cpu().numpy().transpose(0, 2, 1))
    model.n_forward += len(signals)
    return np.concatenate(found)


def saliency(model: Classifier, x: ArrayLike, reference: ArrayLike, size: int = 11) -> Floats:
    """Return where in time the model is sensitive: the gradient norm over leads, smoothed over `size` samples.

    The result is record × sample.
    """
    return moving_mean(np.linalg.norm(gradient_of(model, x, reference), axis=2), size)


# ----------------------------------------------------------------------
# Attacks that only query the model: random searches, and the adapter for HopSkipJump (`hop_skip_jump`).

Margin = Callable[[NDArray[np.int64], Floats], Floats]
"""Maps records (by position) and changed signals to the distance of each from success; 0 or less has succeeded."""

BLACKBOX_SETTINGS: Final[dict[str, dict[str, float | int]]] = {
    "random_search": {"eps_max": 0.05, "queries": 200},
    "square": {"eps_max": 0.05, "queries": 500, "share": 0.8},
    "worst_case": {"eps_max": 0.05, "steps": 50, "restarts": 3, "queries": 500},
    "hop_skip_jump": {"eps_max": 1.0, "iterations": 10, "evaluations": 100},
}
MOST_CLASSES: Final = 12


def margins(log_odds: Floats, threshold: Floats, clean: Bits, target: NDArray[np.int64], value: Floats) -> Floats:
    """Return how far records are from success: the bit nearest to its threshold, or the target bit.

    >>> margins(np.array([[2.0, -0.5]]), np.zeros(2), np.array([[1, 0]]), np.array([-1]), np.zeros(1)).tolist()
    [0.5]
    """
    away = log_odds - threshold
    nearest = np.where(clean == 1, away, -away).min(axis=1)
    at = away[np.arange(len(away)), np.maximum(target, 0)]
    return np.where(target < 0, nearest, np.where(value > 0.5, -at, at))


def random_search(
    x: Floats,
    margin: Margin,
    budget: Floats,
    window: Floats,
    rngs: Sequence[Generator],
    *,
    queries: int = 200,
    share: float | None = None,
    shape: Callable[[Floats], Floats] = lambda delta: delta,
) -> tuple[Floats, int]:
    """Find changes within an L∞ budget by random search: set one segment at a time to ±budget, and keep it if it helps.

    With `share` it is the Square attack (Andriushchenko et al. 2020, algorithm 2): a segment covers all leads, each
    with its own sign, starts as that share of the record and shrinks as published. Without `share`, a segment covers
    one lead. Every record draws from its own generator; a record that has succeeded makes no more queries. The second
    result is the number of queries.
    """
    n, samples, leads = x.shape

    def change(rows: NDArray[np.int64], field: Floats) -> Floats:
        return within_budget(shape(field) * window[rows], budget[rows], "linf")  # derived leads may exceed it

    width = max(samples // 20, 1) if share is None else 1
    signs = np.stack([_stripes(rng, samples, leads, width) for rng in rngs])
    field = signs * budget[:, None, None]
    rows = np.arange(n)
    best = margin(rows, x + change(rows, field))
    n_queries = n
    for query in range(queries - 1):
        rows = np.flatnonzero(best > 0)
        if not len(rows):
            break
        tried = field[rows].copy()
        for i, at in enumerate(rows.tolist()):
            if share is None:
                _patch(tried[i], rngs[at], budget[at], query / queries)
            else:
                _square(tried[i], rngs[at], budget[at], share * halved_share(query, queries))
        found = margin(rows, x[rows] + change(rows, tried))
        n_queries += len(rows)
        better = found < best[rows]
        field[rows[better]], best[rows[better]] = tried[better], found[better]
    return change(np.arange(n), field), n_queries


def _stripes(rng: Generator, samples: int, leads: int, size: int) -> Floats:
    """Return a start: segments of random sign in each lead."""
    signs = rng.choice([-1.0, 1.0], (-(-samples // size), leads))
    return np.repeat(signs, size, axis=0)[:samples]


def _patch(field: Floats, rng: Generator, budget: float, progress: float) -> None:
    """Set a segment of one lead to plus or minus the budget; segments shorten as the search goes on."""
    samples, leads = field.shape
    share = 0.3 * (1.0 - progress) ** 2 + 0.01
    size = max(int(share * samples), 1)
    start, lead = int(rng.integers(samples - size + 1)), int(rng.integers(leads))
    field[start : start + size, lead] = budget * rng.choice([-1.0, 1.0])


def _square(field: Floats, rng: Generator, budget: float, share: float) -> None:
    """Set a segment of all leads to plus or minus the budget, with one sign per lead."""
    samples, leads = field.shape
    size = min(max(round(share * samples), 1), samples)
    start = int(rng.integers(samples - size + 1))
    field[start : start + size] = budget * rng.choice([-1.0, 1.0], leads)


def halved_share(query: int, queries: int) -> float:
    """Return the current share of the first segment: halved after 10, 50, 200, … of every 10,000 queries, as published.

    >>> halved_share(0, 10000), halved_share(60, 10000), halved_share(9000, 10000)
    (1.0, 0.25, 0.00390625)
    """
    scaled = query * 10000 // queries
    return 0.5 ** sum(scaled > at for at in (10, 50, 200, 1000, 2000, 4000, 6000, 8000))


def to_pattern(bits: ArrayLike) -> NDArray[np.int64]:
    """Return the pattern number of bits (record × class).

    >>> to_pattern([[1, 0, 1], [0, 0, 0]]).tolist()
    [5, 0]
    """
    rows = np.atleast_2d(np.asarray(bits)).astype(np.int64)
    if rows.shape[1] > MOST_CLASSES:
        raise UsageError(f"the powerset of {rows.shape[1]} classes is too large; at most {MOST_CLASSES}")
    return np.asarray(rows @ (1 << np.arange(rows.shape[1])))


def powerset(bits: ArrayLike) -> Floats:
    """Return bits as one-hot rows over all 2^C patterns: the class probabilities that ART expects."""
    rows = np.atleast_2d(np.asarray(bits))
    return np.eye(1 << rows.shape[1], dtype=np.float64)[to_pattern(rows)]


# ----------------------------------------------------------------------
# HopSkipJump through ART (an extra): the smallest change of a record that flips a bit, found by queries only.
#
# ART's attacks assume one class per record. The label-powerset view makes every pattern of bits a class of its own (2⁵
# = 32 for five diagnoses), so that "another class" is exactly "any bit changed".
#
# ART searches for the smallest flip and has no budget, takes its first guess from a generator that cannot be seeded,
# and stops in the middle of a step. So the first guess is made here, and after each ART step the change is moved back
# along the line to the clean record until it only just flips. The smallest such change is the result if it fits the
# budget. Otherwise it is scaled down to the budget; whether it then still flips is decided by the model afterwards, as
# for every attack.

SIZES: Final = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Sizes of first guesses: white noise with these multiples of the record's own deviation."""
TRIES: Final = 20
"""First guesses of each size."""
HALVINGS: Final = 12
BEYOND: Final = 1.001
"""How far beyond the boundary the result lies, so that rounding in another batch does not undo the flip."""
OVER: Final = (
    "hop_skip_jump: where the smallest flip found is over the budget, it is scaled down to it and judged as that"
)
NO_START: Final = "hop_skip_jump: where no noise flips a record, it is left as it is"


@dataclass(frozen=True, eq=False)
class Aim:
    """One record: its signal, how a field becomes a change, the model's answers, the budget, and its generator."""

    x: Floats
    shape: Callable[[Floats], Floats]
    """Maps a free change (… × sample × lead) to the change of the signal: windowed, leads derived."""
    bits_of: Callable[[Floats], Bits]
    budget: float
    rng: Generator

    def bits(self, free: Floats) -> Bits:
        """Return the model's bits for the record with free changes."""
        return self.bits_of(self.x + self.shape(free))

    def size(self, free: Floats) -> float:
        """Return the L2 norm of the change of the signal."""
        return float(np.linalg.norm(self.shape(free)))


def hop_skip_jump(aim: Aim, *, iterations: int, evaluations: int, early_stop: bool) -> tuple[Floats, str]:
    """Return the change of one record, within its budget, and a remark ("" if the smallest flip found fits).

    Uses ART's HopSkipJump (Chen, Jordan & Wainwright 2020) in its L2 form. `early_stop`: stop once a flip fits the
    budget.
    """
    clean = aim.bits(np.zeros_like(aim.x)[None])[0]

    def flips(free: Floats) -> NDArray[np.bool_]:
        return np.asarray((aim.bits(free) != clean).any(axis=1))

    start = _start(aim, flips)
    if start is None:
        return np.zeros_like(aim.x), NO_START
    best = start
    for found in _steps(aim, start, iterations, evaluations):
        nearest = _nearest(found, flips)
        best = nearest if aim.size(nearest) < aim.size(best) else best
        if early_stop and aim.size(best) * BEYOND <= aim.budget:
            break
    beyond = best * BEYOND
    best = beyond if aim.size(beyond) <= aim.budget and flips(beyond[None])[0] else best
    size = aim.size(best)
    return (aim.shape(best), "") if size <= aim.budget else (aim.shape(best) * (aim.budget / size), OVER)


def _start(aim: Aim, flips: Callable[[Floats], NDArray[np.bool_]]) -> Floats | None:
    """Find noise of the smallest size that flips the record, moved back until it only just does."""
    scale = float(aim.x.std()) or 1.0
    for size in SIZES:
        tried = size * scale * aim.rng.standard_normal((TRIES, *aim.x.shape))
        hit = np.flatnonzero(flips(tried))
        if len(hit):
            return _nearest(tried[hit[0]], flips)
    return None


def _nearest(free: Floats, flips: Callable[[Floats], NDArray[np.bool_]]) -> Floats:
    """Shrink a change that flips until it only just does."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if flips(middle * free[None])[0] else (middle, high)
    return high * free


def _steps(aim: Aim, start: Floats, iterations: int, evaluations: int) -> Iterator[Floats]:
    """Yield ART's results, one of its iterations after another."""
    estimators = need("art.estimators.classification", "art")
    evasion = need("art.attacks.evasion", "art")
    clean, bound = aim.x.astype(np.float32)[None], float(np.abs(aim.x).max()) * 4.0 + 1.0

    def predict(batch: ArrayLike) -> Floats:
        return powerset(aim.bits(np.asarray(batch, dtype=np.float64) - aim.x))

    classes = powerset(aim.bits(np.zeros_like(aim.x)[None])).shape[1]
    wrapped = estimators.BlackBoxClassifier(predict, aim.x.shape, classes, clip_values=(-bound, bound))
    attack = evasion.HopSkipJump(
        wrapped, norm=2, max_iter=1, max_eval=evaluations * 10, init_eval=evaluations, verbose=False
    )
    seed, found = int(aim.rng.integers(2**31)), start
    for step in range(iterations):
        with _seeded((seed + step) % 2**32):
            given = (aim.x + found).astype(np.float32)[None]
            found = attack.generate(clean, x_adv_init=given, resume=step > 0)[0].astype(np.float64) - aim.x
        yield found


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed numpy's global generator, from which ART draws, and restore it afterwards."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
