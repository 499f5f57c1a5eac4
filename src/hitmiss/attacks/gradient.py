"""Gradient attacks, in batches: `fgsm`, `pgd`, `apgd` (Croce & Hein 2020), `sap` (Han et al. 2020), `smooth_adv`.

Every record has its own budget, window and target; records that have flipped leave the batch (early stop). The
optimised variable is a field z; the change of the signal is `shape(z)`: smoothed (sap), expanded to the twelve leads
(lead-consistent) and multiplied by the window. z is kept where the change is within budget; the final change is
projected once more in float64, so its norm stays within the budget up to rounding.

Records do not affect each other. However, a model in float32 rounds differently in batches of another size, so where
a gradient is nearly 0 its sign, and with it single samples of the change, may differ between batch sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from hitmiss.attacks.channels_last import channels_last
from hitmiss.attacks.keras import TensorFunction
from hitmiss.attacks.leads import INDEPENDENT, expansion, need_twelve
from hitmiss.attacks.model import Classifier
from hitmiss.detection.detector import need

if TYPE_CHECKING:
    from torch import Tensor
from hitmiss.attacks.criteria import Mask
from hitmiss.attacks.methods import Floats, Method, sap_kernel

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
