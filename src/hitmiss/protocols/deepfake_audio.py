"""Deepfake audio detection, with the function names of the deepfake audio evaluation document (BEATs).

Conventions
-----------
real = 1, fake = 0; a higher score means real; a clip is accepted as real if `score > threshold`, strictly.
FAR is the share of fakes accepted, FRR the share of reals rejected. Scores are the documented probabilities of "real";
`evaluate_beats_model(…, scores="log-odds")` returns log-odds, which do not saturate.

EER. As documented: FAR and FRR at every threshold, and their mean where they are nearest. Equal scores are one point
of the curve, so FAR and FRR at `EER_threshold` average to `EER`, ties or not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.sorting import Array, Floats
from hitmiss.detection.contract import Origin, Probe, detector_contract
from hitmiss.detection.detect_spec import OutputKind
from hitmiss.detection.outputs import Extraction, are_distributions, pick_output, to_log_odds, to_probability
from hitmiss.io import read
from hitmiss.metrics.counts import Counts, balanced_accuracy, f1, fnr, fpr
from hitmiss.metrics.ranking import roc_auc
from hitmiss.protocols.deepfake_batches import Augmentation, Batches, ScoreForm
from hitmiss.robustness.manipulation import equal_error

WORDS: Final = {1: "real", 0: "fake"}


class Report(dict[str, float]):
    """The documented numbers as a dictionary that also records where its threshold came from.

    >>> print(Report({"EER": 0.25, "threshold": 0.5}, origin="given"))
    EER        0.2500
    threshold  0.5000
    labels: 1 = real (positive), 0 = fake
    decisions: score > threshold; the threshold was given
    """

    def __init__(self, figures: dict[str, float], *, origin: str, notes: Sequence[str] = ()) -> None:
        super().__init__(figures)
        self.origin = origin
        self.notes = tuple(notes)

    def __str__(self) -> str:
        width = max(map(len, self))
        lines = [f"{name:<{width}}  {value:.4f}" for name, value in self.items()]
        decisions = f"decisions: score > threshold; the threshold was {self.origin}"
        return "\n".join([*lines, "labels: 1 = real (positive), 0 = fake", decisions, *self.notes])


def evaluate_beats_model(
    model: Callable[..., object],
    dataloader: Iterable[object],
    device: str = "cuda",
    augmentations: Augmentation | None = None,
    manipulation_on_real: bool = True,
    cut_length: int | None = None,
    *,
    augmentations_on_cpu: Augmentation | None = None,
    save_scores: str | Path | None = None,
    positive_index: int | None = None,
    outputs: OutputKind = "auto",
    scores: ScoreForm = "probability",
    sample_rate: int = 16000,
    seed: int = 0,
) -> tuple[NDArray[np.int64], Floats]:
    """Return labels and scores of every clip of a loader: `labels, scores = evaluate_beats_model(model, loader)`.

    Batches are `(audio, labels)` or `(audio, speaker, labels)`; audio is clip × sample, or a list of clips of several
    lengths, which `cut_length` brings to one (each by itself: padding is never repeated as sound). An augmentation is a
    function of the batch as documented, a text such as `noise(snr=15)` or an audiomentations transform; with
    `manipulation_on_real=False` only fakes are changed. If the device is missing, a message says so and the CPU is
    used. The model runs in evaluation mode without gradients, and its mode is restored afterwards.

    Two columns are logits for the documented softmax, one is a logit for the documented sigmoid; outputs that already are
    probabilities (a module that ends in a softmax or sigmoid, rows that sum to 1) are not squashed again. A line on stderr
    says what the outputs were taken for.
    """
    batches = Batches(
        device=device,
        on_device=augmentations,
        on_cpu=augmentations_on_cpu,
        changes_reals=manipulation_on_real,
        cut_length=cut_length,
        sample_rate=sample_rate,
        seed=seed,
    )
    labels, raw, traced = batches.run(model, dataloader, outputs)
    kind = traced if outputs != "auto" else _documented(raw, traced)
    found = _extracted(raw, positive_index, kind, scores)
    origin: Origin = "its values" if kind == "probability" else "as documented"
    origin = "declared" if outputs != "auto" else "its last step" if traced == kind != "auto" else origin
    _say(raw, kind, origin, positive_index, batches.probe)
    _refuse_strange(found)
    if save_scores is not None:
        save_score_file(save_scores, labels, found)
    return labels, found


def extract_scores_from_beats_output(
    output: object, *, positive_index: int | None = None, outputs: OutputKind = "auto"
) -> Floats:
    """Return the probability of "real" for each clip: softmax column 1 of two columns, or the sigmoid of a single one.

    More columns need `positive_index`. From a tuple, a mapping or an object the logits are found by rule
    (`detect.extract`). Probabilities are not transformed again: rows that sum to 1 are recognised; a single column in
    0..1 could be either, so it is refused until `outputs="logit"` or `outputs="probability"` is given.

    >>> extract_scores_from_beats_output(np.array([[0.0, 0.0], [1.0, 3.0]])).round(4).tolist()
    [0.5, 0.8808]
    >>> extract_scores_from_beats_output(np.array([[-2.0], [2.0]])).round(4).tolist()
    [0.1192, 0.8808]
    """
    raw = pick_output(output)
    kind = _documented(raw, outputs) if outputs == "auto" and np.size(raw) else outputs
    return _extracted(raw, positive_index, kind, "probability")


def _documented(raw: Array, traced: OutputKind) -> OutputKind:
    """Return what outputs are, where the documented softmax is the declaration: rows that sum to 1 are probabilities."""
    if traced not in ("auto", "logit") or raw.ndim < 2 or raw.shape[1] < 2:
        return traced
    return "probability" if are_distributions(np.asarray(raw, dtype=np.float64)) else "logit"


def _say(raw: Array, kind: OutputKind, origin: Origin, positive_index: int | None, found: Probe | None) -> None:
    """Say in one line what the outputs of a model were taken for."""
    rule = Extraction(positive_index, "logit" if kind == "auto" else kind)
    declares = (positive_index is not None, True)
    columns = np.asarray(raw, dtype=np.float64).reshape(len(raw), -1)
    named = None if positive_index is not None else ("fake", "real")
    said = detector_contract(rule, origin, columns, ("real", "fake"), named, declares, (None, ""), found)
    sys.stderr.write(f"hitmiss: {said}\n")


def _extracted(raw: Array, positive_index: int | None, outputs: OutputKind, form: ScoreForm) -> Floats:
    if outputs == "raw":
        raise UsageError.of("raw-outputs")
    if form not in ("probability", "log-odds"):
        raise UsageError.of("bad-score-form", form=form)
    if not np.size(raw):
        return np.zeros(0)
    found = to_log_odds(raw, positive_index=positive_index, kind=outputs)
    return to_probability(found) if form == "probability" else found


def compute_eer(real_scores: ArrayLike, fake_scores: ArrayLike) -> tuple[float, float]:
    """Compute the equal error rate and its threshold (accept if score > threshold, reject at it and below).

    >>> compute_eer([0.9, 0.6], [0.4, 0.1])
    (0.0, 0.4)
    """
    real, fake = (np.asarray(s, dtype=np.float64).reshape(-1) for s in (real_scores, fake_scores))
    if not len(real) or not len(fake):
        raise DataError.of("one-class/eer", n_real=len(real), n_fake=len(fake))
    return equal_error(np.repeat([1, 0], [len(real), len(fake)]), np.concatenate([real, fake]))


def compute_far_frr(labels: ArrayLike, scores: ArrayLike, threshold: float) -> tuple[float, float]:
    """Return (FAR, FRR) at a threshold: fakes with score > threshold, and reals without. NaN for a missing class.

    >>> compute_far_frr([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1], 0.4)
    (0.5, 0.5)
    """
    counts = _counts(*_trials(labels, scores), threshold)
    return float(fpr.of(counts)), float(fnr.of(counts))


def compute_all_metrics(labels: ArrayLike, scores: ArrayLike, threshold: float | None = None) -> Report:
    """Compute EER, EER_threshold, FAR, FRR, threshold, AUC, F1_score (of real) and balanced_accuracy.

    Without a threshold, that of the EER is used, which was chosen on the same data: the report says so.

    >>> compute_all_metrics([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1], threshold=0.5)["FAR"]
    0.5
    """
    label, score = _trials(labels, scores)
    rate, own = compute_eer(score[label == 1], score[label == 0])
    used = own if threshold is None else float(threshold)
    counts = _counts(label, score, used)
    figures = {
        "EER": rate,
        "EER_threshold": own,
        "FAR": float(fpr.of(counts)),
        "FRR": float(fnr.of(counts)),
        "threshold": used,
        "AUC": float(roc_auc(label, score)),
        "F1_score": float(f1.of(counts)),
        "balanced_accuracy": float(balanced_accuracy.of(counts)),
    }
    origin = "chosen on this data (its EER), so numbers at it are optimistic" if threshold is None else "given"
    return Report(figures, origin=origin)


def evaluate_from_file(
    path: str | Path,
    threshold: float | None = None,
    plot_results: bool = False,
    save_plots: str | Path | None = None,
) -> Report:
    """Compute the numbers of a score file: `- - real 0.85`, or any other layout with labels that `hitmiss score` reads.

    With `plot_results` the histogram, the ROC and the DET curve are drawn into the folder `save_plots`, by default
    `<file>_plots` beside the file; the report's notes say where.
    """
    trials = read(str(path), positive="real", negative="fake", positive_value="1")
    report = compute_all_metrics(trials.label, trials.score, threshold)
    notes = list(trials.header.notes)
    if plot_results or save_plots is not None:
        figures = import_module("hitmiss.reports.figures")  # upwards: documented functions draw

        folder = Path(save_plots) if save_plots is not None else Path(path).with_name(f"{Path(path).stem}_plots")
        drawn = figures.save_figures(folder, trials, report["threshold"])
        notes.append(f"drawn: {', '.join(p.name for p in drawn)} in {folder.name}")
    return Report(report, origin=report.origin, notes=notes)


def save_score_file(path: str | Path, labels: ArrayLike, scores: ArrayLike, items: Sequence[str] | None = None) -> None:
    """Write scores without rounding: with ids a table (item, label, score), without ids the documented `- - real 0.85`.

    The documented form has no ids, so its rows cannot be joined with other files later.
    """
    label, score = _trials(labels, scores)
    words = [WORDS[v] for v in label.tolist()]
    if items is None:
        lines = [f"- - {word} {value!r}" for word, value in zip(words, score.tolist(), strict=True)]
    else:
        rows = zip(items, words, score.tolist(), strict=True)
        lines = ["item\tlabel\tscore", *(f"{_plain(item)}\t{word}\t{value!r}" for item, word, value in rows)]
    artifacts.write(path, "\n".join(lines) + "\n")


def _plain(item: str) -> str:
    if any(c in item for c in '\t\n\r"'):
        raise DataError.of("unwritable-id", first=repr(item), n=1)
    return item


def _trials(labels: ArrayLike, scores: ArrayLike) -> tuple[NDArray[np.int64], Floats]:
    label, score = np.asarray(labels).reshape(-1), np.asarray(scores, dtype=np.float64).reshape(-1)
    if len(label) != len(score):
        raise DataError.of("unequal-length", names=("labels", "scores"), sizes=(len(label), len(score)))
    if not len(label):
        raise DataError.of("no-scores")
    wrong = ~np.isin(label, (0, 1))
    if label.dtype.kind not in "iubf" or wrong.any():
        found = label[wrong][0] if wrong.any() else label.dtype
        raise DataError.of("not-real-or-fake", found=found)
    if np.isnan(score).any():
        raise DataError.of(
            "nan-score/at", n=int(np.isnan(score).sum()), total=len(score), first=int(np.argmax(np.isnan(score)))
        )
    return label.astype(np.int64), score


def _counts(label: NDArray[np.int64], score: Floats, threshold: float) -> Counts[float]:
    if threshold != threshold:
        raise UsageError.of("nan-threshold")
    return Counts.of(label, (score > threshold).astype(np.int64))


def _refuse_strange(scores: Floats) -> None:
    wrong = ~np.isfinite(scores)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise DataError.of("not-finite/scores", wrong=int(wrong.sum()), first=first)
    at_ends = float(np.mean((scores == 0) | (scores == 1))) if len(scores) else 0.0
    if at_ends > 0.01:
        sys.stderr.write(
            f"hitmiss: {at_ends:.1%} of the probabilities are exactly 0 or 1 and tie; scores='log-odds' keeps them apart\n"
        )
