"""Attacks along the gradient, in batches: `fgsm`, `pgd`, `pgd_l2`, `sap` (Han et al. 2020) and `smooth_adv`.

Every record has its own budget, window and aim; records that have flipped leave the batch (early stop). What is optimised
is a field z; the change of the signal is `shape(z)`: smoothed (sap), spread over the twelve leads (lead-consistent) and put
under the window. z is kept where the change is within budget; the final change is projected once more in float64, so
its norm keeps the budget to rounding.

Records do not touch each other. A model in float32 rounds differently in batches of another size, though, so where a
gradient is nearly 0 its sign, and with it single samples of the change, may differ between batch sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitmiss.attack.channels_last import channels_last
from hitmiss.attack.leads import INDEPENDENT, expansion, need_twelve
from hitmiss.attack.methods import Method, sap_kernel
from hitmiss.attack.model import Classifier
from hitmiss.attack.window import moving_mean
from hitmiss.detect.detector import need

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Problem:
    """What is asked, record by record.

    `reference`: the bits that the untargeted loss climbs away from. `target`: the class aimed at, −1 for none; `value`: what
    its bit is to become. `whole`: descend towards `reference` with that one bit set (the document's form) instead of the
    one bit alone. `succeeded` judges probabilities (rows of the batch, probabilities) for the early stop. `first`: the
    gradients where the attack begins, where an earlier attempt with another budget has found them.
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

    def part(self, rows: slice) -> Problem:
        """Some of the records."""
        judge = self.succeeded
        shifted = None if judge is None else (lambda at, p: judge(at + (rows.start or 0), p))
        names = ("x", "reference", "target", "value", "budget", "window", *(() if self.first is None else ("first",)))
        return replace(self, succeeded=shifted, **{name: getattr(self, name)[rows] for name in names})


@dataclass(frozen=True, eq=False)
class Outcome:
    """The change of each record, how many records went through the model, and whose gradient was nothing at first."""

    delta: Floats
    n_forward: int
    zero_gradient: Mask
    first: NDArray[np.float32]
    """The gradients where the attack began: record × sample × lead (the eight independent ones where leads are derived)."""
    steps: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def solve(model: Classifier, problem: Problem, method: Method, name: str = "pgd", batch: int = 32) -> Outcome:
    """The changes that a method finds, `batch` records at a time."""
    function = model.need_gradient(name)
    parts = [
        _Solver(function, model.device, problem.part(slice(i, i + batch)), method).run()
        for i in range(0, len(problem.x), batch)
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


class _Solver:
    """One batch on its way: tensors are record × lead × sample, in memory with the leads last."""

    def __init__(self, function: Any, device: str, problem: Problem, method: Method) -> None:
        self.torch = need("torch", "torch")
        self.function, self.device, self.problem, self.method = function, device, problem, method
        self.x = self._turned(problem.x)
        self.window = None if (problem.window == 1.0).all() else self._tensor(problem.window[:, None, :])
        self.budget = self._tensor(problem.budget[:, None, None])
        self.reference, self.value = self._tensor(problem.reference), self._tensor(problem.value)
        self.target = self.torch.as_tensor(problem.target, device=device)
        self.kernel = self._tensor(sap_kernel(problem.fs))[None, None] if method.smooth else None
        self.spread = self._spread()

    def _tensor(self, values: Any) -> Any:
        return self.torch.as_tensor(np.ascontiguousarray(values, dtype=np.float32), device=self.device)

    def _turned(self, values: Any) -> Any:
        """Record × sample × lead as record × lead × sample; on a CPU nothing is moved (see `channels_last`)."""
        turned = self._tensor(values).transpose(1, 2)
        return turned if self.device == "cpu" else turned.contiguous()

    def _spread(self) -> Any:
        if not self.problem.lead_consistent:
            return None
        need_twelve(self.problem.x.shape[2])
        return self._tensor(expansion())

    def run(self) -> Outcome:
        """Step until all have flipped or the steps are used up."""
        n, leads, samples = self.x.shape
        rows = np.arange(n)
        z = self._turned(np.zeros((n, samples, len(INDEPENDENT) if self.spread is not None else leads)))
        moments = (self.torch.zeros_like(z), self.torch.zeros_like(z)) if self.method.adam else None
        delta, zero, steps = np.zeros(self.problem.x.shape), np.zeros(n, dtype=bool), np.zeros(n, dtype=np.int64)
        n_forward, first = 0, self.problem.first
        for step in range(self.method.steps):
            if step == 0 and self.problem.first is not None:
                gradient, gone = self._turned(self.problem.first), np.zeros(n, dtype=bool)
            else:
                gradient, p = self._gradient(z)
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

    def _keep(self, mask: Mask) -> Any:
        """Go on with some of the records; their places."""
        kept = self.torch.as_tensor(np.flatnonzero(mask), device=self.device)
        for name in ("x", "window", "budget", "reference", "value", "target"):
            value = getattr(self, name)
            setattr(self, name, None if value is None else value[kept])
        return kept

    def _flipped(self, rows: Ints, p: Any) -> Mask:
        if self.problem.succeeded is None:
            return np.zeros(len(rows), dtype=bool)
        logits = p.detach().double()
        proba = logits.softmax(dim=1) if self.problem.single_label else logits.sigmoid()
        return self.problem.succeeded(rows, proba.cpu().numpy())

    def _gradient(self, z: Any) -> tuple[Any, Any]:
        """The direction in which the loss of each record falls most, and the logits."""
        variable = z.detach().requires_grad_(True)
        delta = self.shape(variable)
        with channels_last(self.device, len(z)):
            logits = self.function(self.x + delta)
        loss = self._loss(logits)
        if self.method.lambda_smooth or self.method.lambda_energy:
            loss = loss + self.method.lambda_smooth * delta.diff(dim=2).square().mean(dim=(1, 2))
            loss = loss + self.method.lambda_energy * delta.square().mean(dim=(1, 2))
        (gradient,) = self.torch.autograd.grad(loss.sum(), variable)
        return gradient, logits

    def _loss(self, logits: Any) -> Any:
        """What is to fall: minus the distance from the reference, or the distance of the target bit from its aim."""
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

    def _loss_of_one(self, logits: Any) -> Any:
        """The same of classes that exclude each other: cross-entropy, or how far the class is ahead of the best other."""
        aimed = self.target >= 0
        place = self.torch.where(aimed, self.target, self.reference.argmax(dim=1))
        if self.problem.loss == "margin":
            own = logits.gather(1, place[:, None])[:, 0]
            others = logits.scatter(1, place[:, None], -self.torch.inf).amax(dim=1)
            ahead = own - others
        else:
            ahead = -self.torch.nn.functional.cross_entropy(logits, place, reduction="none")
        wanted = aimed & (self.value > 0.5)  # a class to be forced; else the class is to fall behind
        return self.torch.where(wanted, -ahead, ahead)

    def shape(self, z: Any) -> Any:
        """The change of the signal that a field stands for."""
        if self.kernel is not None:
            flat = z.reshape(-1, 1, z.shape[2])
            z = self.torch.nn.functional.conv1d(flat, self.kernel, padding=self.kernel.shape[2] // 2).reshape(z.shape)
        if self.spread is not None:
            z = self.torch.einsum("ij,njt->nit", self.spread, z)
        return z if self.window is None else z * self.window

    def _moved(self, z: Any, gradient: Any, moments: Any, step: int) -> Any:
        """One step downhill; what is given is used up."""
        size = self.method.share * self.budget
        if self.method.adam is not None:
            return z - self.method.adam * self._adam(gradient, moments, step)
        if self.method.norm == "linf":
            return z.sub_(gradient.sign().mul_(size))
        length = gradient.flatten(1).norm(dim=1).clamp(min=1e-20)[:, None, None]
        return z - size * gradient / length

    def _adam(self, gradient: Any, moments: Any, step: int) -> Any:
        first, second = moments
        first.mul_(0.9).add_(gradient, alpha=0.1)
        second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        return (first / (1 - 0.9 ** (step + 1))) / ((second / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8)

    def _project(self, z: Any) -> Any:
        """The field moved back to where its change is within budget."""
        budget = self.budget
        if self.method.norm == "l2":
            length = self.shape(z).flatten(1).norm(dim=1)[:, None, None]
            return z * (budget / length.clamp(min=1e-20)).clamp(max=1.0)
        if self.spread is None:
            return z.clamp_(min=-budget, max=budget)
        highest = self.torch.einsum("ij,njt->nit", self.spread, z).abs().amax(dim=1, keepdim=True)
        return z * (budget / highest.clamp(min=1e-20)).clamp(max=1.0)

    def _final(self, z: Any, rows: Ints) -> Floats:
        """The change in float64, within budget to rounding."""
        with self.torch.no_grad():
            shaped = self.shape(z)
        delta = np.ascontiguousarray(shaped.transpose(1, 2).cpu().numpy(), dtype=np.float64)
        return within_budget(delta, self.problem.budget[rows], self.method.norm)


def within_budget(delta: Floats, budget: Floats, norm: str) -> Floats:
    """Changes scaled down, record by record, where they are over budget; scaling keeps the lead equations."""
    flat = np.abs(delta).reshape(len(delta), -1)
    size = flat.max(axis=1, initial=0.0) if norm == "linf" else np.linalg.norm(flat, axis=1)
    return np.asarray(delta * np.minimum(1.0, budget / np.maximum(size, 1e-300))[:, None, None])


def gradient_of(model: Classifier, x: Any, reference: Any, *, batch: int = 32) -> Floats:
    """The gradient of the untargeted loss (mean binary cross-entropy to `reference`) at each signal: record × sample × lead."""
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


def saliency(model: Classifier, x: Any, reference: Any, size: int = 11) -> Floats:
    """Where in time the model looks: the gradient's norm over the leads, smoothed over `size` samples; record × sample."""
    return moving_mean(np.linalg.norm(gradient_of(model, x, reference), axis=2), size)
