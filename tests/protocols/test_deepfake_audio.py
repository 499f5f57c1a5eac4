"""The names of the BEATs document: conventions, edge cases and score files, without torch."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from hitmiss.core.errors import DataError, UsageError
from hitmiss.io import read
from hitmiss.protocols.deepfake_audio import (
    compute_all_metrics,
    compute_eer,
    compute_far_frr,
    evaluate_beats_model,
    evaluate_from_file,
    extract_scores_from_beats_output,
    save_score_file,
)

KEYS = ["EER", "EER_threshold", "FAR", "FRR", "threshold", "AUC", "F1_score", "balanced_accuracy"]
AUDIO = np.random.default_rng(0).standard_normal((6, 400)).astype(np.float32)
LABELS = [1, 0, 1, 0, 1, 0]


def two_columns(batch: Any) -> Any:
    """A model: its logits are sums over the clip, so that they tell what it was given."""
    total = np.asarray(batch).sum(axis=-1)
    return np.stack([-total, total], axis=1) / 20


def documented_eer(real: np.ndarray[Any, Any], fake: np.ndarray[Any, Any]) -> float:
    """The document's steps, literally: every threshold, FAR and FRR, the nearest pair, their mean."""
    scores = np.concatenate([real, fake])
    best = (np.inf, 0.0)
    for t in [scores.min() - 1, *np.sort(scores)]:
        far, frr = np.mean(fake > t), np.mean(real <= t)
        if abs(far - frr) < best[0] - 1e-12:
            best = (abs(far - frr), (far + frr) / 2)
    return best[1]


scores = st.lists(st.floats(-5, 5).map(lambda x: round(x, 1)), min_size=1, max_size=25)


@given(scores, scores)
def test_the_eer_is_the_documented_procedure(real: list[float], fake: list[float]) -> None:
    a, b = np.array(real), np.array(fake)
    rate, threshold = compute_eer(a, b)
    far, frr = np.mean(b > threshold), np.mean(a <= threshold)
    assert rate == pytest.approx(documented_eer(a, b), abs=1e-9) or abs(far - frr) == pytest.approx(gap(a, b), abs=1e-9)
    assert (far + frr) / 2 == pytest.approx(rate, abs=1e-12)


def gap(real: np.ndarray[Any, Any], fake: np.ndarray[Any, Any]) -> float:
    """The smallest |FAR − FRR| there is: two thresholds can be equally near."""
    everything = np.concatenate([real, fake])
    thresholds = [everything.min() - 1, *everything]
    return float(min(abs(np.mean(fake > t) - np.mean(real <= t)) for t in thresholds))


@given(st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1)), min_size=4, max_size=40), st.floats(0, 1))
def test_figures_agree_with_scikit_learn(rows: list[tuple[int, float]], threshold: float) -> None:
    labels, values = np.array([y for y, _ in rows]), np.array([s for _, s in rows])
    if labels.min() == labels.max():
        return
    found = compute_all_metrics(labels, values, threshold)
    said = (values > threshold).astype(int)
    tn, fp, fn, tp = sk.confusion_matrix(labels, said, labels=[0, 1]).ravel()
    assert list(found) == KEYS
    assert found["FAR"] == pytest.approx(fp / (fp + tn)) and found["FRR"] == pytest.approx(fn / (fn + tp))
    assert found["AUC"] == pytest.approx(sk.roc_auc_score(labels, values))
    assert found["F1_score"] == pytest.approx(sk.f1_score(labels, said, zero_division=0))
    assert found["balanced_accuracy"] == pytest.approx(sk.balanced_accuracy_score(labels, said))
    assert found["threshold"] == threshold


def test_the_rule_is_strictly_above() -> None:
    assert compute_far_frr([1, 0], [0.5, 0.5], 0.5) == (0.0, 1.0)
    assert compute_far_frr([1, 0], [0.5, 0.5], 0.49) == (1.0, 0.0)


def test_the_threshold_tells_where_it_comes_from() -> None:
    own = compute_all_metrics(LABELS, np.linspace(1, 0, 6))
    given_one = compute_all_metrics(LABELS, np.linspace(1, 0, 6), threshold=0.5)
    assert own["threshold"] == own["EER_threshold"] and "optimistic" in str(own)
    assert "given" in str(given_one) and "score > threshold" in str(given_one)


@pytest.mark.parametrize(
    ("labels", "values", "says"),
    [
        ([1, 0], [0.5], "equally long"),
        ([1, 2], [0.5, 0.1], "1 .real. or 0 .fake."),
        ([1, 1], [0.5, 0.1], "both classes"),
        ([1, 0], [0.5, float("nan")], "NaN, the first at position 1"),
        ([], [], "no scores"),
        (["real", "fake"], [0.5, 0.1], "1 .real. or 0 .fake."),
    ],
)
def test_what_cannot_be_scored_is_refused(labels: list[Any], values: list[float], says: str) -> None:
    with pytest.raises(DataError, match=says):
        compute_all_metrics(labels, values)


def test_extraction() -> None:
    assert extract_scores_from_beats_output(np.array([[0.0, 2.0]])) == pytest.approx(1 / (1 + np.exp(-2)))
    assert extract_scores_from_beats_output(np.array([[-3.0], [3.0]])).shape == (2,)
    assert extract_scores_from_beats_output(np.array([-3.0])).shape == (1,)
    assert extract_scores_from_beats_output(np.array([[0.2, 0.8]])) == pytest.approx(0.8)  # not squashed twice
    assert extract_scores_from_beats_output({"logits": np.array([[0.0, 2.0]])}).shape == (1,)
    with pytest.raises(UsageError, match="3 output columns"):
        extract_scores_from_beats_output(np.array([[1.0, 2.0, 3.0]]))
    assert extract_scores_from_beats_output(np.array([[9.0, 0.0, 9.0]]), positive_index=2) == pytest.approx(
        0.5, abs=1e-3
    )
    with pytest.raises(DataError, match="say which"):
        extract_scores_from_beats_output(np.array([0.2, 0.8]))
    assert extract_scores_from_beats_output(np.array([0.2]), outputs="logit") == pytest.approx(1 / (1 + np.exp(-0.2)))


def loader(size: int, third: bool = False) -> list[Any]:
    cut = [slice(i, i + size) for i in range(0, 6, size)]
    return [(AUDIO[c], ["s"] * len(LABELS[c]), LABELS[c]) if third else (AUDIO[c], LABELS[c]) for c in cut]


def test_any_batching_gives_the_same() -> None:
    labels, whole = evaluate_beats_model(two_columns, loader(6))
    assert labels.tolist() == LABELS and whole.shape == (6,) and ((whole > 0) & (whole < 1)).all()
    for size in (1, 2, 4):
        for third in (False, True):
            assert evaluate_beats_model(two_columns, loader(size, third))[1] == pytest.approx(whole)


def test_empty_batches_are_passed_over() -> None:
    empty = (AUDIO[:0], [])
    _, found = evaluate_beats_model(two_columns, [empty, *loader(3), empty])
    assert found == pytest.approx(evaluate_beats_model(two_columns, loader(6))[1])
    with pytest.raises(DataError, match="no clips"):
        evaluate_beats_model(two_columns, [empty])


def test_log_odds_do_not_saturate(capsys: pytest.CaptureFixture[str]) -> None:
    def sure(batch: Any) -> Any:
        return -100 * two_columns(batch)

    _, probability = evaluate_beats_model(sure, loader(6))
    assert "tie; scores='log-odds'" in capsys.readouterr().err
    _, kept = evaluate_beats_model(sure, loader(6), scores="log-odds")
    assert len(set(probability.tolist())) < len(set(kept.tolist())) == 6


def test_length_is_settled_clip_by_clip() -> None:
    clips = [AUDIO[0], AUDIO[1][:100], AUDIO[2][:250]]
    seen: list[Any] = []

    def looking(batch: Any) -> Any:
        seen.append(np.array(batch))
        return two_columns(batch)

    evaluate_beats_model(looking, [(clips, [1, 0, 1])], cut_length=300)
    batch = seen[0]
    assert batch.shape == (3, 300)
    assert np.array_equal(batch[0], AUDIO[0][:300]) and np.array_equal(batch[1], np.tile(AUDIO[1][:100], 3))
    assert np.array_equal(batch[2], np.concatenate([AUDIO[2][:250], AUDIO[2][:50]]))
    with pytest.raises(DataError, match="cut_length"):
        evaluate_beats_model(two_columns, [(clips, [1, 0, 1])])


def test_padding_that_would_be_tiled_is_mentioned(capsys: pytest.CaptureFixture[str]) -> None:
    padded = AUDIO.copy()
    padded[2, 200:] = 0
    evaluate_beats_model(two_columns, [(padded, LABELS)], device="cpu", cut_length=1000)
    assert "1 of 6 clips of a batch end in zeros" in capsys.readouterr().err
    evaluate_beats_model(two_columns, [(padded, LABELS)], device="cpu", cut_length=300)  # nothing is tiled
    assert "end in zeros" not in capsys.readouterr().err


@pytest.mark.parametrize("augmentation", [lambda x: x * 2, "gain(db=6)", lambda x: x[:, :200]])
def test_fakes_only_leaves_reals_alone(augmentation: Any) -> None:
    labels, clean = evaluate_beats_model(two_columns, loader(3), scores="log-odds")
    _, fakes = evaluate_beats_model(
        two_columns, loader(3), augmentations=augmentation, manipulation_on_real=False, scores="log-odds"
    )
    _, both = evaluate_beats_model(two_columns, loader(3), augmentations=augmentation, scores="log-odds")
    assert fakes[labels == 1] == pytest.approx(clean[labels == 1])
    assert (fakes[labels == 0] != clean[labels == 0]).all() and (both != clean).all()
    assert fakes[labels == 0] == pytest.approx(both[labels == 0], rel=1e-4)


def test_the_order_of_steps_on_the_cpu_and_after() -> None:
    def add_one(batch: Any) -> Any:
        return batch + 1

    def double(batch: Any) -> Any:
        return batch * 2

    _, found = evaluate_beats_model(
        two_columns, loader(6), augmentations=double, augmentations_on_cpu=add_one, scores="log-odds"
    )
    assert found == pytest.approx(((AUDIO + 1) * 2).sum(axis=1) / 10, rel=1e-4)


def test_scores_that_are_not_finite_are_refused() -> None:
    def broken(batch: Any) -> Any:
        out = two_columns(batch)
        out[1] = np.nan
        return out

    with pytest.raises(DataError, match="NaN or infinite, the first for clip 1"):
        evaluate_beats_model(broken, loader(6))


@pytest.mark.parametrize(
    "batch", [(AUDIO,), (AUDIO, LABELS, LABELS, LABELS), AUDIO, (AUDIO, LABELS[:3]), (AUDIO, [3] * 6)]
)
def test_batches_of_another_form_are_refused(batch: Any) -> None:
    with pytest.raises(DataError):
        evaluate_beats_model(two_columns, [batch])


@given(st.lists(st.tuples(st.integers(0, 1), st.floats(-1e3, 1e3)), min_size=1, max_size=20), st.booleans())
def test_score_files_come_back_to_the_last_bit(rows: list[tuple[int, float]], with_ids: bool) -> None:
    labels, values = [y for y, _ in rows], [s for _, s in rows]
    ids = [f"clip {i}" for i in range(len(rows))] if with_ids else None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.txt"
        save_score_file(path, labels, values, ids)
        back = read(str(path), positive="real", negative="fake")
    assert back.label.tolist() == labels and back.score.tolist() == values
    assert back.items == (ids or [str(i + 1) for i in range(len(rows))])


def test_the_documented_file(tmp_path: Path) -> None:
    path = tmp_path / "scores.txt"
    path.write_text("- - real 0.85\n- - fake 0.23\n- - real 0.92\n- - fake 0.15\n")
    found = evaluate_from_file(path)
    assert (found["EER"], found["EER_threshold"], found["AUC"]) == (0.0, 0.23, 1.0)
    assert any("unpaired" in note for note in found.notes)
    assert not list(tmp_path.glob("*_plots"))
    save_score_file(tmp_path / "again.txt", [1, 0, 1, 0], [0.85, 0.23, 0.92, 0.15])
    assert (tmp_path / "again.txt").read_text() == path.read_text()


def test_words_that_are_not_known_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores.txt"
    path.write_text("- - real 0.85\n- - fake 0.23\n- - bonafide 0.92\n- - faked 0.15\n")
    with pytest.raises(DataError, match="faked"):
        evaluate_from_file(path)


def test_pictures_are_drawn_where_they_are_wanted(tmp_path: Path) -> None:
    path = tmp_path / "scores.txt"
    save_score_file(path, LABELS * 5, np.random.default_rng(0).standard_normal(30))
    found = evaluate_from_file(path, plot_results=True)
    assert sorted(p.name for p in (tmp_path / "scores_plots").iterdir()) == ["det.png", "histogram.png", "roc.png"]
    assert any("drawn" in note for note in found.notes)
    evaluate_from_file(path, threshold=0.1, save_plots=tmp_path / "here")
    for drawn in (tmp_path / "here").iterdir():
        assert drawn.read_bytes().startswith(b"\x89PNG") and drawn.stat().st_size > 5000


def test_an_id_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line end"):
        save_score_file(tmp_path / "a.tsv", [1], [0.5], ["a\nb"])


def test_a_report_prints() -> None:
    lines = str(compute_all_metrics(LABELS, np.linspace(1, 0, 6))).splitlines()
    assert lines[0].split() == ["EER", "0.3333"] and [line.split()[0] for line in lines[:8]] == KEYS


def level(batch: Any) -> Any:
    return np.asarray(batch).std(axis=-1)


def test_the_documented_softmax_is_the_declaration(capsys: pytest.CaptureFixture[str]) -> None:
    """Two columns in 0..1 that do not sum to 1 are logits; rows that sum to 1 are probabilities already."""

    def small(batch: Any) -> Any:
        return np.stack([0.2 + 0 * level(batch), np.clip(0.3 * level(batch), 0, 1)], axis=1)

    loader = [(AUDIO, LABELS)]
    _, found = evaluate_beats_model(small, loader, device="cpu")
    z = small(AUDIO)
    assert found == pytest.approx(np.exp(z[:, 1]) / np.exp(z).sum(axis=1))
    assert "taken for: logits (as documented), 2 exclusive classes, 1 = real" in capsys.readouterr().err

    def shares(batch: Any) -> Any:
        p = np.clip(0.3 * level(batch), 0, 1)
        return np.stack([1 - p, p], axis=1)

    _, found = evaluate_beats_model(shares, loader, device="cpu")
    assert found == pytest.approx(shares(AUDIO)[:, 1])
    assert "taken for: probabilities (its values)" in capsys.readouterr().err


def test_a_model_that_answers_by_chance_or_by_its_batch_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    evaluate_beats_model(lambda b: rng.normal(size=(len(b), 2)), [(AUDIO, LABELS)], device="cpu")
    assert "the model is randomised" in capsys.readouterr().err

    def over_the_batch(batch: Any) -> Any:
        e = np.exp(np.stack([level(batch), -level(batch)], axis=1))
        return e / e.sum(axis=0)

    with pytest.raises(UsageError, match="alone and in a batch"):
        evaluate_beats_model(over_the_batch, [(AUDIO, LABELS)], device="cpu")


@pytest.mark.extras
def test_a_softmax_by_hand_is_not_squashed_again() -> None:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.head = torch.nn.Linear(1, 2)

        def forward(self, x: Any) -> Any:
            return torch.log_softmax(self.head(x.std(dim=1, keepdim=True)), 1).exp()

    torch.manual_seed(0)
    net, audio = Net().eval(), torch.from_numpy(AUDIO)
    _, found = evaluate_beats_model(net, [(audio, torch.tensor(LABELS))], device="cpu")
    with torch.no_grad():
        assert found == pytest.approx(net(audio)[:, 1].numpy(), abs=1e-6)
