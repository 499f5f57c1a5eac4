"""The domain probe against the documented snippet and scikit-learn, on data built to fool it, and from files."""

from __future__ import annotations

import contextlib
import io
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.stats.proportion import proportion_confint

from hitmiss.cli.main import run as run_command
from hitmiss.core.artifacts import sealed
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.results import Estimate, Results
from hitmiss.io.embeddings import load_embeddings, read_key
from hitmiss.probes.domain import ProbeResult, accuracy_as_documented, probe, probe_layers
from hitmiss.reports.probe_figure import plot_probe, probe_figure

Data = tuple[np.ndarray, np.ndarray]


def blurred(seed: int = 0, n: int = 150, classes: int = 3, dim: int = 6, dtype: Any = np.float64) -> Data:
    """Classes that overlap: a probe is right about half to three quarters of the time."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    return (rng.normal(size=(n, dim)) + rng.normal(size=(classes, dim))[y] * 0.7).astype(dtype), y


def copies(seed: int = 0, utterances: int = 60, times: int = 4, dim: int = 200) -> tuple[np.ndarray, ...]:
    """Copies of utterances, whose domain is drawn by lot for each utterance: there is nothing to learn about it."""
    rng = np.random.default_rng(seed)
    utterance = np.tile(np.arange(utterances), times)
    domain = np.array(["C01", "C05"])[rng.integers(2, size=utterances)][utterance]
    x = rng.normal(size=(utterances, dim))[utterance] + 0.01 * rng.normal(size=(utterances * times, dim))
    return x, domain, utterance


# --- the documented figure ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_called_as_documented_it_gives_the_documented_figure(seed: int, dtype: Any) -> None:
    x, y = blurred(seed, dtype=dtype)
    documented = cross_val_score(LogisticRegression(max_iter=1000), x, y, cv=5).mean()
    assert accuracy_as_documented(x, y) == documented
    names = np.array(["C01", "-", "C10"])[y]
    assert accuracy_as_documented(x, names) == cross_val_score(LogisticRegression(max_iter=1000), x, names, cv=5).mean()


# --- against scikit-learn -----------------------------------------------------------------------------------------


def scaled() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def test_ungrouped_figures_equal_scikit_learn() -> None:
    x, y = blurred(3, n=200)
    found = probe(x * [1, 1e3, 1e-3, 1, 1, 1], y, shuffles=0)
    folds = StratifiedKFold(5)
    expected = cross_val_score(scaled(), x * [1, 1e3, 1e-3, 1, 1, 1], y, cv=folds)
    answers = cross_val_predict(scaled(), x * [1, 1e3, 1e-3, 1, 1, 1], y, cv=folds)
    assert found.accuracy == pytest.approx(expected.mean(), abs=1e-12)
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(y, answers), abs=1e-12)
    assert found.majority == np.bincount(y).max() / 200
    assert (found.low, found.high) == pytest.approx(proportion_confint(found.accuracy * 200, 200, method="wilson"))
    assert (found.n, found.n_classes, found.n_groups, found.shuffled) == (200, 3, None, None)


def test_grouped_figures_equal_scikit_learn() -> None:
    x, y = blurred(4, n=240)
    group = np.random.default_rng(4).integers(31, size=240)
    found = probe(x, y, groups=group, folds=4, shuffles=0)
    folds = StratifiedGroupKFold(4)
    expected = cross_val_score(scaled(), x, y, groups=group, cv=folds)
    answers = cross_val_predict(scaled(), x, y, groups=group, cv=folds)
    assert found.accuracy == pytest.approx(expected.mean(), abs=1e-12)
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(y, answers), abs=1e-12)
    assert found.n_groups == len(set(group.tolist()))
    assert found.low < accuracy_score(y, answers) < found.high


def test_the_interval_counts_groups_not_copies() -> None:
    """Copies of a group are right or wrong together, so the interval is that of as many items as there are groups."""
    x, y = blurred(5, n=120, classes=2)
    group = np.repeat(np.arange(120), 6)
    found = probe(np.repeat(x, 6, axis=0), np.repeat(y, 6), groups=group, shuffles=0)
    low, high = proportion_confint(found.accuracy * 120, 120, method="wilson")
    assert found.high - found.low == pytest.approx(high - low, rel=0.15)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.02)


def test_an_all_right_probe_is_not_certain() -> None:
    x = np.repeat(np.array([[0.0], [9.0]]), 40, axis=0) + np.linspace(0, 1, 80)[:, None]
    found = probe(x, np.repeat(["a", "b"], 40), groups=np.arange(80) // 2, shuffles=0)
    assert (found.accuracy, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(proportion_confint(40, 40, method="wilson")[0])


# --- leakage and baselines ------------------------------------------------------------------------------------------


def test_groups_stop_the_probe_from_recognising_copies() -> None:
    x, domain, utterance = copies()
    fooled = probe(x, domain, shuffles=0)
    honest = probe(x, domain, groups=utterance, shuffles=0)
    assert fooled.accuracy > 0.95
    assert honest.accuracy < 0.65
    assert honest.low < 0.5 < honest.high


def test_shuffled_labels_are_near_chance_and_real_ones_are_not() -> None:
    x, y = blurred(6, n=300, classes=3)
    found = probe(x, y, shuffles=10)
    assert found.shuffled == pytest.approx(1 / 3, abs=0.06)
    assert found.low > 0.45


def test_shuffling_moves_labels_between_groups() -> None:
    """With one label a group, a shuffle that kept every group's label would score as high as the truth does."""
    rng = np.random.default_rng(7)
    speaker = np.repeat(np.arange(40), 5)
    dialect = (np.arange(40) % 2)[speaker]
    x = rng.normal(size=(200, 4)) + 3 * dialect[:, None]
    found = probe(x, dialect, groups=speaker, shuffles=10)
    assert found.accuracy > 0.95
    assert found.shuffled == pytest.approx(0.5, abs=0.1)


def test_shuffling_mixes_labels_inside_groups() -> None:
    """With every label once in each group, in the same order, moving whole groups would change nothing."""
    rng = np.random.default_rng(8)
    utterance, codec = np.repeat(np.arange(50), 3), np.tile(["a", "b", "c"], 50)
    x = rng.normal(size=(150, 5)) + 4 * np.eye(3, 5)[np.tile([0, 1, 2], 50)]
    found = probe(x, codec, groups=utterance, shuffles=10)
    assert found.accuracy > 0.95
    assert found.shuffled == pytest.approx(1 / 3, abs=0.1)


def test_the_same_seed_gives_the_same_digits_and_another_seed_other_ones() -> None:
    x, y = blurred(9)
    group = np.arange(150) // 3
    first = probe(x, y, groups=group, shuffles=2)
    assert probe(x, y, groups=group, shuffles=2) == first
    other = probe(x, y, groups=group, shuffles=2, seed=1)
    assert (other.accuracy, other.balanced_accuracy) == (first.accuracy, first.balanced_accuracy)
    assert (other.shuffled, other.low) != (first.shuffled, first.low)


def test_exact_copies_without_groups_are_noted() -> None:
    x, y = blurred(10)
    assert "30 items repeat another item exactly" in probe(np.vstack([x, x[:30]]), [*y, *y[:30]], shuffles=0).notes[0]
    assert probe(x, y, shuffles=0).notes == ()


def test_a_probe_that_does_not_settle_is_noted() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 40)) * np.geomspace(1e-3, 1e4, 40)
    found = probe(x, rng.integers(2, size=60), standardise=False, shuffles=0)
    assert found.notes == ("a fold did not converge in 1000 steps",)


def test_too_few_groups_give_no_interval() -> None:
    x, y = blurred(11)
    found = probe(x, y, groups=np.arange(150) % 5, shuffles=0)
    assert np.isnan(found.low) and found.notes == ("no interval: only 5 of unit to draw from",)
    row = found.estimates()[0]
    assert row.low is None and row.method is None and row.units == 5


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"embeddings": [1.0, 2.0]}, "items × dimensions"),
        ({"embeddings": np.zeros((10, 0))}, "items × dimensions"),
        ({"embeddings": np.ones((10, 3))}, "identical"),
        ({"embeddings": np.where(np.eye(10, 3) > 0, math.nan, 1.0)}, "3 of 10 embeddings hold NaN or infinity"),
        ({"embeddings": np.arange(24.0).reshape(8, 3)}, "one embedding, one label and one group"),
        ({"groups": [1, 2]}, "one embedding, one label and one group"),
        ({"labels": ["a"] * 10}, "every label is a"),
        ({"labels": ["a"] * 7 + ["b"] * 3}, r"items as folds \(5\); too few in: b \(3\)"),
        ({"groups": [1, 1, 1, 2, 2, 3, 4, 5, 6, 7]}, r"groups as folds \(5\); too few in: a \(2\)"),
        ({"labels": ["a", None] * 5}, "5 of 10 labels are missing, the first at position 1"),
        ({"labels": [0.0, math.nan] * 5}, "5 of 10 labels are missing"),
        ({"groups": [[1], [2]]}, "groups must be flat"),
    ],
)
def test_what_cannot_be_probed_is_refused(change: dict[str, Any], sentence: str) -> None:
    given = {"embeddings": np.arange(30.0).reshape(10, 3), "labels": ["a"] * 5 + ["b"] * 5, "groups": None, **change}
    with pytest.raises(DataError, match=sentence):
        probe(given.pop("embeddings"), given.pop("labels"), **given)


def test_one_fold_is_no_cross_validation() -> None:
    with pytest.raises(UsageError, match="2 or more"):
        probe(*blurred(), folds=1)


# --- layers and their picture ---------------------------------------------------------------------------------------


def two_layers() -> Results:
    x, y = blurred(12)
    noise = np.random.default_rng(0).normal(size=x.shape)
    return probe_layers({"first": x, "second": noise}, y, shuffles=1, data="abc")


def test_layers_give_a_row_for_each_figure() -> None:
    results, alone = two_layers(), probe(*blurred(12), shuffles=1)
    assert isinstance(alone, ProbeResult)
    row = results.one("probe_accuracy", layer="first")
    assert (row.value, row.low, row.high) == pytest.approx((alone.accuracy, alone.low, alone.high), rel=1e-9)
    assert row.n == 150
    assert results.one("probe_shuffled", layer="first").value == alone.shuffled
    assert results.one("probe_balanced_accuracy", layer="second").value == pytest.approx(1 / 3, abs=0.12)
    assert "seed:0|n:150|data:abc" in results.signature
    assert Results.from_dict(json.loads(results.to_json())).to_dict() == results.to_dict()
    with pytest.raises(DataError, match="no layer"):
        probe_layers({}, [0, 1])


def test_the_picture_shows_the_numbers(tmp_path: Path) -> None:
    results = two_layers()
    axes = probe_figure(results).axes[0]
    drawn = [line for line in axes.get_lines() if len(line.get_ydata())]  # those of the legend hold no points
    lines = {line.get_gid() or line.get_label(): np.asarray(line.get_ydata()) for line in drawn}
    for label, metric in {"accuracy": "probe_accuracy", "shuffled labels": "probe_shuffled"}.items():
        assert lines[label].tolist() == [results.one(metric, layer=name).value for name in ("first", "second")]
    assert lines["largest class"][0] == results.one("probe_majority", layer="first").value
    assert [t.get_text() for t in axes.get_xticklabels()] == ["first", "second"]
    plot_probe(results, tmp_path / "probe.png")
    assert (tmp_path / "probe.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(DataError, match="no probe_accuracy"):
        probe_figure(Results((Estimate("eer", 0.1),)))


# --- files ----------------------------------------------------------------------------------------------------------

NAMES = np.array([f"E_{k:02d}" for k in range(6)])
CUBE = np.arange(36.0).reshape(2, 6, 3)


def test_npz_with_a_cube_of_layers_and_columns(tmp_path: Path) -> None:
    np.savez(tmp_path / "e.npz", embeddings=CUBE, item=NAMES, codec=np.array(["-", "NA", "C01"] * 2), n=np.arange(6))
    found = load_embeddings(tmp_path / "e.npz")
    assert list(found.layers) == ["0", "1"]
    np.testing.assert_array_equal(found.layers["1"], CUBE[1])
    assert found.column("CODEC").tolist() == ["-", "NA", "C01"] * 2
    assert found.column("n").tolist() == ["0", "1", "2", "3", "4", "5"]
    with pytest.raises(UnknownName, match="did you mean 'codec'"):
        found.column("codek")


def test_layers_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    np.savez(tmp_path / "e.npz", **{f"layer_{k}": CUBE[0] for k in (10, 9, 1)})
    assert list(load_embeddings(tmp_path / "e.npz").layers) == ["layer_1", "layer_9", "layer_10"]
    np.savez(tmp_path / "e.npz", wavlm=CUBE[0], beats=CUBE[1])
    assert list(load_embeddings(tmp_path / "e.npz").layers) == ["wavlm", "beats"]


def test_safetensors(tmp_path: Path) -> None:
    save = pytest.importorskip("safetensors.numpy").save_file
    tensors = {"layer_2": CUBE[1].astype(np.float16), "layer_10": CUBE[0], "codec": np.arange(6)}
    save(tensors, tmp_path / "e.safetensors")
    found = load_embeddings(tmp_path / "e.safetensors")
    assert list(found.layers) == ["layer_2", "layer_10"]
    np.testing.assert_array_equal(found.layers["layer_2"], CUBE[1])
    assert found.column("codec")[5] == "5"
    (tmp_path / "e.safetensors").write_bytes(b"not a tensor")
    with pytest.raises(DataError, match="cannot be read"):
        load_embeddings(tmp_path / "e.safetensors")


def test_parquet_with_lists_or_with_float_columns(tmp_path: Path) -> None:
    frame = pl.DataFrame({"item": NAMES, "codec": ["a", None] * 3})
    frame.with_columns(layer_0=pl.Series(CUBE[0].tolist())).write_parquet(tmp_path / "lists.parquet")
    found = load_embeddings(tmp_path / "lists.parquet")
    np.testing.assert_array_equal(found.layers["layer_0"], CUBE[0])
    assert found.column("codec").tolist() == ["a", None] * 3
    columns = {f"d{k}": CUBE[0][:, k] for k in range(3)}
    frame.with_columns(**{k: pl.Series(v) for k, v in columns.items()}).write_parquet(tmp_path / "wide.parquet")
    np.testing.assert_array_equal(load_embeddings(tmp_path / "wide.parquet").layers["embedding"], CUBE[0])
    pl.DataFrame({"x": [[1.0, 2.0], [1.0]]}).write_parquet(tmp_path / "ragged.parquet")
    with pytest.raises(DataError, match="lists of one length"):
        load_embeddings(tmp_path / "ragged.parquet")


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("exploded"),)


def test_bad_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("bomb.npz", x=CUBE[0], label=np.array([Bomb()] * 6, dtype=object))
    with pytest.raises(DataError, match="Python objects"):
        load_embeddings("bomb.npz")
    assert not Path("exploded").exists()
    Path("text.npz").write_text("hello")
    with pytest.raises(DataError) as refused:
        load_embeddings("text.npz")
    assert refused.value.code == "unreadable-file"
    np.savez("uneven.npz", x=CUBE[0], label=np.arange(5))
    with pytest.raises(DataError, match="same items"):
        load_embeddings("uneven.npz")
    np.savez("none.npz", label=np.arange(5))
    with pytest.raises(DataError, match="no embeddings"):
        load_embeddings("none.npz")
    with pytest.raises(UsageError, match="none of"):
        load_embeddings("e.pt")
    with pytest.raises(FileNotFoundError):
        load_embeddings("absent.npz")


def test_a_key_is_joined_by_id_not_by_row(tmp_path: Path) -> None:
    np.savez(tmp_path / "e.npz", x=CUBE[0], item=NAMES)
    rows = [f"S{k} E_{k:02d} F C0{k} 0 U{k} AC1 A01 spoof -" for k in reversed(range(7))]
    (tmp_path / "protocol.tsv").write_text("\n".join(rows) + "\n")
    found = load_embeddings(tmp_path / "e.npz").joined(read_key(tmp_path / "protocol.tsv"))
    assert found.column("codec").tolist() == [f"C0{k}" for k in range(6)]
    assert found.column("speaker").tolist() == [f"S{k}" for k in range(6)]
    (tmp_path / "key.tsv").write_text("filename\tlang\n" + "".join(f"E_{k:02d}\tno\n" for k in range(5)))
    with pytest.raises(DataError, match="1 of 6 items are not in the key, the first is 'E_05'"):
        load_embeddings(tmp_path / "e.npz").joined(read_key(tmp_path / "key.tsv"))
    (tmp_path / "key.csv").write_text("filename,lang\nE_00,no\nE_00,en\n")
    with pytest.raises(DataError, match="more than once, the first is 'E_00'"):
        load_embeddings(tmp_path / "e.npz").joined(read_key(tmp_path / "key.csv"))
    (tmp_path / "other.csv").write_text("name,lang\nE_00,no\n")
    with pytest.raises(DataError, match="no column of item ids"):
        load_embeddings(tmp_path / "e.npz").joined(read_key(tmp_path / "other.csv"))


# --- the verb -------------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    x, domain, utterance = copies(utterances=24, dim=30)
    path = tmp_path / "embeddings.npz"
    np.savez(path, embeddings=np.stack([x, x**2]), codec=domain, utterance=utterance)
    return path


def run(*words: object) -> Any:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_command(["probe", *map(str, words)])
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


def test_the_verb_prints_json_that_equals_the_library(saved: Path) -> None:
    done = run(saved, "--labels", "codec", "--groups", "utterance", "--json", "--shuffles", 1, "--seed", 3)
    assert done.returncode == 0, done.stderr
    loaded = load_embeddings(saved)
    settings = {"groups": loaded.column("utterance"), "shuffles": 1, "seed": 3, "data": loaded.digest}
    expected = probe_layers(loaded.layers, loaded.column("codec"), **settings)
    assert json.loads(done.stdout) == sealed(expected.to_dict())


def test_the_verb_prints_a_table_and_draws(saved: Path, tmp_path: Path) -> None:
    done = run(saved, "--labels", "codec", "--layer", "1", "--shuffles", 0, "--plot", tmp_path / "p.svg")
    assert done.returncode == 0, done.stderr
    title, header, row = done.stdout.splitlines()
    assert title.startswith("probe of codec, 96 items, 5 folds, wilson over items")
    assert header.split()[:2] == ["layer", "accuracy"]
    assert row.split()[0] == "1"
    expected = probe(load_embeddings(saved).layers["1"], load_embeddings(saved).column("codec"), shuffles=0)
    assert row.split()[1] == f"{expected.accuracy:.4f}"
    assert "no --groups" in done.stderr
    assert "<svg" in (tmp_path / "p.svg").read_text()


def test_the_verb_names_what_it_does_not_know(saved: Path) -> None:
    for words, why in (
        (["--labels", "codec", "--plot", "p.doc"], "must end in one of"),
        (["--labels", "codec", "--layer", "7"], "unknown layer '7'"),
        (["--labels", "speaker"], "embeddings or the key 'speaker'"),
    ):
        done = run(saved, *words)
        assert done.returncode == 2 and why in done.stderr


def test_the_key_of_embeddings_is_read_as_every_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    n = 60
    np.savez(tmp_path / "e.npz", layer_0=rng.normal(size=(n, 4)), item=np.array([f"d/{i}.wav" for i in range(n)]))
    rows = [f"{i};{'ab'[i % 2]};{'train' if i < 40 else 'eval'}" for i in range(n)]
    (tmp_path / "key.csv").write_text("\n".join(["name;codec;split", *rows, rows[0]]) + "\n")
    words = ["probe", str(tmp_path / "e.npz"), "--labels", "codec", "--key", str(tmp_path / "key.csv"), "--json"]
    said = ["--column", "item=name", "--separator", ";", "--match", "stem", "--dedupe", "--where", "split=train"]
    assert run_command([*words, *said]) == 0
    assert {e["n"] for e in json.loads(capsys.readouterr().out)["estimates"]} == {40}
    assert run_command([*words, *said, "--score-kind", "llr"]) == 2
    assert run_command([*words, *said[:-1], "split=tarin"]) == 2
    capsys.readouterr()
