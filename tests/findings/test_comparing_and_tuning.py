"""What measuring, comparing, tuning, replacing and the protocols refuse or note, each with the value that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.findings.producing import Case, assert_produces

import hitmiss as hm
from hitmiss.core import registry
from hitmiss.core.design import Design
from hitmiss.core.header import Header
from hitmiss.core.protocol import Protocol
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.registry import find_metric
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials, stack
from hitmiss.derive.operating_points import guaranteed_threshold
from hitmiss.engine.at_prevalence import at_prevalence
from hitmiss.engine.prepare import prepare_metric
from hitmiss.engine.tuning import Bench, Guarantee, tune
from hitmiss.engine.weighted import weighted_plan
from hitmiss.evaluation.detecting import detect
from hitmiss.evaluation.given import table_of
from hitmiss.evaluation.protocol import find_protocol, read_runs, read_trials, with_frozen_threshold
from hitmiss.evaluation.replacing import replace_classifier
from hitmiss.metrics.operating_points import parse_points
from hitmiss.probes.domain import probe_layers
from hitmiss.protocols.deepfake_audio import compute_far_frr, evaluate_beats_model
from hitmiss.protocols.deepfake_batches import _one_row_a_clip, _rows
from hitmiss.protocols.toxicity import load_any, load_table
from hitmiss.protocols.tuning import tune_files, write_thresholds
from hitmiss.stats import planning, prevalence
from hitmiss.stats.forms import Whole
from hitmiss.stats.forms.three_classes import OrderedTrials, class_codes

N = 12
HEAD = Header("bonafide", "spoof", "raw")


def trials(shift: float = 0.0, **columns: object) -> Trials:
    """Twelve trials of two classes."""
    made = Trials.of([1, 0] * 6, [(k * 5 % 12) + shift for k in range(N)], item=[f"i{k}" for k in range(N)], **columns)  # type: ignore[arg-type]
    return Trials(made.frame, Header(**{**HEAD.__dict__, "slices": made.header.slices}))


def several(**columns: object) -> Callable[[], object]:
    return lambda: replace_classifier(trials(), trials(1.0), 3.0, **columns)  # type: ignore[arg-type]


def rows(trials: Trials, keep: list[int]) -> Trials:
    return Trials(trials.frame[keep], trials.header)


def relabelled() -> Trials:
    made = trials()
    return Trials(made.frame.with_columns(label=1 - pl.col("label")), made.header)


def unscored() -> Trials:
    made = trials()
    score = pl.Series([None, *made.frame["score"][1:]])
    return Trials(made.frame.with_columns(score=score, error=pl.lit("gone")), made.header)


def repeated() -> Trials:
    made = trials()
    return Trials(pl.concat([made.frame, made.frame]), made.header)


def written(name: str, content: str, call: Callable[[], object]) -> Callable[[], object]:
    """Write a file and call something that reads it."""

    def made() -> object:
        Path(name).write_text(content)
        return call()

    return made


LANGUAGES = "id,lang,y_true,y_prob\n" + "".join(f"{k},en,{k % 2},0.{k % 9 + 1}\n" for k in range(N))
GROUPED = Trials.of([1, 0, 1, 0], [0.8, 0.3, 0.6, 0.7], language=["en", "en", "es", "es"])


def tuned(path: str, content: str, **more: object) -> Callable[[], object]:
    """Tune on a file, and write the thresholds to another one."""

    def made() -> object:
        Path("val.csv").write_text(LANGUAGES)
        Path(path).write_text(content)
        return write_thresholds(tune_files(["val.csv"], [path], **more), Path("out"))  # type: ignore[arg-type]

    return made


def runs(*sides: str) -> Callable[[], object]:
    """Read files as seeds; each holds the ids of a text."""

    def made() -> object:
        for at, side in enumerate(sides):
            body = "".join(f"{item},{('spoof', 'bonafide')[k % 2]},{k}\n" for k, item in enumerate(side))
            Path(f"s{at}.csv").write_text("id,label,score\n" + body)
        paths = [f"s{at}.csv" for at in range(len(sides))]
        return read_runs(paths, None, None, ReadSpec(allow_missing=True))

    return made


def verifier(**said: object) -> Callable[[], object]:
    """Read the scores of a spoofing detector beside those of a speaker verifier."""

    def made() -> object:
        Path("cm.csv").write_text("id,label,score\na,bonafide,2\nb,spoof,1\n")
        Path("asv.csv").write_text("id,label,score\na,bonafide,2\nb,spoof,1\n")
        return read_trials("cm.csv", None, find_protocol("asvspoof2019-la"), ReadSpec(**said))  # type: ignore[arg-type]

    return made


def rates(metrics: list[str], **columns: object) -> Callable[[], object]:
    """Estimate a prevalence by the rates in a file of results."""

    def made() -> object:
        Path("counts.csv").write_text("group,flagged,n\nall,30,100\n")
        own = trials(decision=[1, 0] * 6, **columns)
        hm.measure(own, metrics, bootstrap=0).save("results.json")
        return hm.run(["prevalence", "counts.csv", "--detector", "results.json"])

    return made


def both_seeds() -> object:
    Path("counts.csv").write_text("group,flagged,n\nall,30,100\n")
    own = trials(decision=[1, 0] * 6)
    hm.measure(stack({"1": own, "2": own}, "seed"), ["recall", "fpr"], bootstrap=0).save("results.json")
    return hm.run(["prevalence", "counts.csv", "--detector", "results.json"])


def listened(**options: object) -> Callable[[], object]:
    """Run a detector of sound over four clips."""
    table = pl.DataFrame({"file": list("abcd"), "label": ["real", "fake"] * 2})

    class Model:
        name, sample_rate = "own", 8000

        def outputs(self, batch: list[object]) -> object:
            return np.zeros(len(batch))

    return lambda: detect(Model(), table, "run", load=lambda row: np.zeros(100), positive="real", **options)  # type: ignore[arg-type]


class Splits(dict[str, object]):
    """A dataset of two parts, as Hugging Face hands it over."""

    __module__ = "datasets.dataset_dict"


def infinite() -> object:
    cells = Trials.of([1, 0] * 6, [float("inf"), 0.0] * 6, item=[f"i{k}" for k in range(N)])

    @hm.metric(best="low")
    def far_off(label, score, weight=None):  # type: ignore[no-untyped-def]  # noqa: ARG001
        """Return infinity."""
        return float("inf")

    try:
        return hm.compare(cells, cells, "far_off", bootstrap=20)
    finally:
        registry.forget("far_off", "metric")


def odd_form() -> object:
    @hm.metric(best="low", form=lambda: 3)  # type: ignore[arg-type,return-value]
    def strange(label, score, weight=None):  # type: ignore[no-untyped-def]  # noqa: ARG001
        """Return zero."""
        return 0.0

    try:
        return prepare_metric("strange", trials(), Protocol())
    finally:
        registry.forget("strange", "metric")


def blind(positive: float) -> hm.Estimate:
    return hm.Estimate("recall", positive, None, None, 10)


BATCHES = [(np.zeros((2, 50)), [0, 1])]

CASES: Sequence[tuple[str, Case, str]] = [
    # replacing a classifier
    ("bad-share", several(share=1.5), "1.5"),
    ("no-texts-left", lambda: replace_classifier(rows(trials(), [0]), rows(trials(), [0]), 3.0, share=0.999999), "all 1 "),
    ("repeated-texts", lambda: replace_classifier(repeated(), trials(), 3.0), "one row for each text"),
    ("labels-differ", lambda: replace_classifier(trials(), relabelled(), 3.0), "'i0'"),
    ("scores-missing", lambda: replace_classifier(trials(), unscored(), 3.0), "1 text"),
    # measuring and comparing
    ("repeated-questions", lambda: hm.compare(repeated(), repeated(), "eer"), "i0"),
    ("wrong-positive", lambda: hm.measure(trials(decision=[1, 0] * 6), "fake_slip_rate"), "fake_slip_rate"),
    ("bad-metric-form", odd_form, "int"),
    ("too-many-draws", lambda: weighted_plan(trials(), SamplingPlan(bootstrap=10**9)), "12 rows"),
    ("undefined/both-infinite", infinite, ""),
    ("undefined/no-positive-calls", lambda: at_prevalence(find_metric("precision"), 0.1, blind(0.0), blind(0.0)), ""),
    ("no-test/biased",
        lambda: hm.rank({n: trials(i, decision=[1, 0] * 6, confidence=[0.5] * N) for i, n in enumerate("abc")}, "ece"),
        "ece",
    ),
    ("no-interval/unit-alone",
        lambda: probe_layers({"a": np.random.default_rng(0).normal(size=(8, 2))}, list("aaaabbbb"), folds=2, unit=["u"] * 8),
        "one unit",
    ),
    # tuning
    ("no-test-rows", lambda: tune(GROUPED, "language", ["en"], test=GROUPED.where(language="es")), "en"),
    ("group-refused", lambda: tune(GROUPED, "language", ["en"], by=Bench(guarantee=Guarantee("fpr", 0.01))), "en: "),
    ("bad-guarantee", lambda: Guarantee.parse("fpr >= 1%"), "fpr >= 1%"),
    ("no-guarantee", lambda: guaranteed_threshold(Tally.of([1, 0], [1.0, 0.0]), "fpr", 0.01), "fpr at 0.01"),
    ("no-guarantee/ties",
        lambda: guaranteed_threshold(Tally.of([1] * 99 + [0] * 99, [0.0] * 99 + [1.0] * 99), "fpr", 0.05),
        "fpr at 0.05",
    ),
    ("threshold-twice", lambda: with_frozen_threshold(Design.of(["eer"], threshold=1.0), trials(), None), "a threshold"),
    ("not-csv", tuned("test.tsv", LANGUAGES.replace(",", "\t")), "test.tsv"),
    ("lossy-write",
        tuned("test.csv", LANGUAGES + "x,en,,0.5\n", spec=ReadSpec(missing="drop")), "test.csv",
    ),
    ("unknown-language", written("t.csv", LANGUAGES, lambda: load_table(["t.csv"], languages=["xx"])), "xx"),
    ("no-predictions", lambda: load_any([]), "no file"),
    # runs and files
    ("same-name/files", lambda: read_runs(["x/a.csv", "y/a.csv"], None, None), "'a'"),
    ("no-common-item", runs("ab", "cd"), "seed"),
    ("no-asv/key", verifier(asv_key="key.csv"), "--asv-key"),
    ("no-rates", rates(["recall"]), "results.json"),
    ("several-runs", both_seeds, "results.json"),
    ("several-splits", lambda: table_of(Splits(train=1, test=2)), "train"),
    ("two-transforms", listened(transform=lambda *_: None, manipulate=["noise(snr=15)"]), "transform"),
    ("option-unused/picture", listened(picture="resize=4"), "--picture"),
    ("other-rate/asked", listened(sample_rate=16000), "8000 Hz"),
    # protocols
    ("bad-score-form",
        lambda: evaluate_beats_model(lambda x: np.zeros((len(x), 2)), BATCHES, "cpu", scores="odds"),  # type: ignore[arg-type]
        "'odds'",
    ),
    ("output-shape", lambda: _one_row_a_clip(np.zeros((3, 2)), 2), "(3, 2)"),
    ("wrong-shape", lambda: _rows([np.zeros((2, 5))]), "(2, 5)"),
    # numbers
    ("bad-plan/unreachable", lambda: planning.needed(planning.Error(1e9, 1), 1e-9), "1e-09"),
    ("impossible-counts/positive",
        lambda: prevalence.labelled_prevalence(
            5, 10, flagged_positive=4, flagged_labelled=3, passed_positive=1, passed_labelled=3
        ),
        "4 positive of 3",
    ),
    ("bad-asv-label/word", lambda: class_codes(np.array(["target", "teapot"], dtype=object)), "'teapot'"),
    ("nan-score",
        lambda: OrderedTrials.of(np.array([0, 1]), np.array([1.0, float("nan")])), "1 of 2",
    ),
    ("bad-operating-points", lambda: parse_points("0.1:2"), "'0.1:2'"),
    ("tally-too-large", lambda: Whole(np.mean).passing(1, 1), ""),  # type: ignore[arg-type]
    ("nan-threshold", lambda: compute_far_frr([1, 0], [1.0, 0.0], float("nan")), "NaN"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case", "named"), CASES, ids=[case[0] for case in CASES])
def test_produced(code: str, case: Case, named: str, tmp_path: Path) -> None:
    assert_produces(code, case, tmp_path, named)
