"""What is refused or noted seldom: damaged claims, unlike sources, services and codecs that fail, and data that ask too much."""

from __future__ import annotations

import hashlib
import json
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

import numpy as np
import polars as pl
import pytest
from tests.findings.producing import Case, assert_produces
from tests.robustness.test_versus import campaign, compare_attacks

import hitmiss as hm
from hitmiss.attacks.codec_engines import Engine, _by_av, _run_ffmpeg, ffmpeg_program
from hitmiss.attacks.config import PerturbationConfig
from hitmiss.attacks.model import Classifier
from hitmiss.attacks.perform import Records, perform
from hitmiss.boards.board import make_board
from hitmiss.boards.plan import find_plan
from hitmiss.claims.attestation import PREDICATE, STATEMENT, check_attestation
from hitmiss.claims.replay import Files, replayed
from hitmiss.cluster.ray import Head
from hitmiss.cluster.sending import accepted, attempted
from hitmiss.core.artifacts import sealed
from hitmiss.core.design import Design, TriageRules
from hitmiss.core.envelope import sealed_envelope
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.run_spec import RunSpec
from hitmiss.core.trials import Trials
from hitmiss.derive.calibration import fit_affine
from hitmiss.detection.detector import as_detector
from hitmiss.detection.loop import run_detector
from hitmiss.detection.settings import Settings
from hitmiss.evaluation.protocol import find_protocol, read_trials
from hitmiss.io.manifest import read_manifest
from hitmiss.llm.detectors import Model
from hitmiss.llm.items import read_items
from hitmiss.llm.plan import CallPlan
from hitmiss.llm.run import work_on_calls
from hitmiss.outofcore import stream
from hitmiss.outofcore.stream import evaluate_streamed
from hitmiss.protocols.triage import decided
from hitmiss.reports.pictures import load
from hitmiss.review.answered import Wish
from hitmiss.review.choice import choose
from hitmiss.review.library import Library
from hitmiss.runs.manifest import SCHEMA, Manifest, load_manifest
from hitmiss.runs.manifest import sealed as manifest_sealed
from hitmiss.stats import sketch


def trials() -> Trials:
    """Trials of two classes that overlap."""
    label = [k % 2 for k in range(40)]
    return Trials.of(label, np.random.default_rng(0).normal(size=40) + label, item=[f"i{k}" for k in range(40)])


def verifier() -> object:
    """Read the scores of a verifier whose key says only whether the speaker is the claimed one."""
    Path("cm.csv").write_text("id,label,score\na,bonafide,2\nb,spoof,1\n")
    Path("asv.txt").write_text("S 1 2.0\nS 0 1.0\n")
    return read_trials("cm.csv", None, find_protocol("asvspoof2019-la"), ReadSpec(asv="asv.txt"))


def unknown_curve() -> object:
    """Read results that bring a curve of a kind which does not exist."""
    hm.measure(trials(), "eer", bootstrap=0).save("r.json")
    data = {k: v for k, v in json.loads(Path("r.json").read_text()).items() if k != "digest"}
    data["pictures"] = [{"run": {}, "displays": [{"kind": "wheel"}]}]
    Path("r.json").write_text(json.dumps(sealed(data)))
    return load("r.json")


def without_media() -> object:
    """Choose items to review of which no file is there."""
    Path("said.jsonl").write_text('{"id": "a", "file": "gone.png", "prediction": "uncertain"}\n')
    return choose("said.jsonl", Wish(allow_missing=True), Library(Path()))


def failing_ffmpeg() -> object:
    """Ask the program of this name for a codec that it does not have."""
    Path("ffmpeg").write_text(f"#!{sys.executable}\nimport sys\nsys.stderr.write('Unknown encoder')\nsys.exit(1)\n")
    Path("ffmpeg").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HITMISS_FFMPEG", str(Path("ffmpeg").resolve()))
        ffmpeg_program.cache_clear()
        try:
            return _run_ffmpeg(["-c:a", "none"], b"")
        finally:
            ffmpeg_program.cache_clear()


def silent_head() -> object:
    """Look at a head where nobody listens, without the patience of a real run."""
    with socket.socket() as own, pytest.MonkeyPatch.context() as patch:
        own.bind(("127.0.0.1", 0))
        patch.setattr("hitmiss.cluster.ray.SILENT_SECONDS", 0)
        return Head(*own.getsockname()).look()


def barely_spread() -> object:
    """Calibrate scores that differ by less than any ordinary number."""
    with np.errstate(all="ignore"):
        return fit_affine([0, 1, 0, 1] * 10, [0, 1e-300, 2e-300, 3e-300] * 10)


def failed_claim() -> object:
    """Check a signed statement that says that its claim did not hold."""
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    key = ed25519.Ed25519PrivateKey.generate()
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    Path("key").write_bytes(key.private_bytes(*form))
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    Path("signers").write_text(f"lab@venue {public.decode()}\n")
    Path("r.json").write_text("{}")
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": "r.json", "digest": {"sha256": hashlib.sha256(b"{}").hexdigest()}}],
        "predicateType": PREDICATE,
        "predicate": {"configuration": [], "result": "FAILED"},
    }
    Path("claim.json").write_text(json.dumps(sealed_envelope(json.dumps(statement).encode(), "key")))
    return check_attestation("claim.json", "signers")


def all_fail(kind: str) -> object:
    """A run of which every item fails, told to go on whatever happens."""

    def fails(*_: object) -> NoReturn:
        raise ValueError("cut off")

    if kind == "items":
        rows = pl.DataFrame({"file": ["a.wav", "b.wav"], "label": ["fake", "real"]})
        data = read_manifest(rows, options=ReadSpec(positive="fake"))
        return run_detector(fails, data, Settings(), RunSpec(patience=0), output="run", load=fails)
    Path("d.jsonl").write_text('{"id": "a", "text": "x", "label": "fake"}\n{"id": "b", "text": "y", "label": "real"}\n')
    models = {"m": Model(as_detector(fails))}
    plan = CallPlan(read_items(Path("d.jsonl")), ["m"], detectors={"m": models["m"].identity})
    return work_on_calls(plan, RunSpec(patience=0), output="r.jsonl", models=models)


def attacked(family: str, y: object, **aim: str) -> object:
    """Attack a record of two leads."""
    model = Classifier(
        lambda x: 1 / (1 + np.exp(-x.mean(axis=(1, 2))[:, None] * [1, 2])),
        outputs="multilabel",
        differentiable=lambda x: x,
    )
    signals = np.random.default_rng(0).normal(size=(1, 200, 2))
    records = Records(signals, y, 100.0, model, ("a", "b"))  # type: ignore[arg-type]
    return perform(records, [0], [PerturbationConfig(family, 0.5, 1.0, **aim)], [np.random.default_rng(0)])  # type: ignore[arg-type]


def more_attacks() -> object:
    """Compare a system with one that met one more attack."""
    one, other = campaign(2, 0.1), campaign(3, 0.5)
    more = other.frame.filter(pl.col("attack") == "pgd").with_columns(attack=pl.lit("fgsm"))
    return compare_attacks(one, Trials.from_frame(pl.concat([other.frame, more]), other.header))


def streamed(words: str, *labels: str) -> Callable[[], object]:
    """Stream files of trials with these labels, a file for each."""

    def call() -> object:
        for at, words_of_file in enumerate(labels):
            own = words_of_file.split()
            rows = (f"{at}-{k},{own[k * len(own) // 400]},{k * 7 % 11},{'ab'[at]},{'xy'[at]}\n" for k in range(400))
            Path(f"s{at}.csv").write_text("id,label,score,codec,attack\n" + "".join(rows))
        return hm.run(f"score {' '.join(f's{at}.csv' for at in range(len(labels)))} -m eer --stream {words}".split())

    return call


def renamed_away() -> object:
    """Stream the trials of a codec by the name it had before, of which there are none."""
    streamed("--bootstrap 0", "spoof bonafide")()
    reading = ReadSpec(rename={"codec": {"c": "d"}}, where={"codec": ("c",)})
    return evaluate_streamed(["s0.csv"], metrics=["eer"], reading=reading)


def board_of_speakers() -> object:
    """Rank two systems whose files say differently who speaks, with intervals over speakers."""
    for folder in ("keys", "sub/a", "sub/b"):
        Path(folder).mkdir(parents=True)
    key = "".join(f"i{k},{('spoof', 'bonafide')[k % 2]}\n" for k in range(60))
    Path("keys/d.csv").write_text("item,label\n" + key)
    for name, speakers in (("a", 5), ("b", 6)):
        rows = "".join(f"i{k},{k * 7 % 13},s{k % speakers}\n" for k in range(60))
        Path(f"sub/{name}/d.csv").write_text("item,score,speaker\n" + rows)
    return make_board(find_plan(Path("sub"), Path("keys")), Design.of(["eer"], bootstrap=50, unit="speaker"))


def half_described() -> object:
    """Read a run that names its rows and not how to read them."""
    Path("run").mkdir()
    facts = {"rows": "rows.parquet"}
    manifest = Manifest(SCHEMA, "detect", "0", {}, 0, "0", "complete", "now", facts=facts, files={"rows.parquet": "0"})
    Path("run/manifest.json").write_bytes(manifest_sealed(asdict(manifest)))
    return load_manifest("run")


CASES: Sequence[tuple[str, Case, str]] = [
    ("all-failed", lambda: all_fail("calls"), "all 2 calls"),
    ("all-failed/items", lambda: all_fail("items"), "cut off"),
    ("attested-failure", failed_claim, "claim.json"),
    ("bad-asv-key", verifier, "asv.txt"),
    ("codec-empty", lambda: _by_av(Engine("av", "pcm_s16le", "pcm_s16le"), np.zeros(0, np.int16), 16000, None), "pcm_s16le"),
    ("ffmpeg-failed", failing_ffmpeg, "Unknown encoder"),
    ("key-not-a-table", lambda: replayed(
        Design.of(["eer"]), ReadSpec(), Files(("duckdb:a.db#scores",), ("key.csv",)), ()
    ), "key"),
    ("labels-name-no-class/shards", streamed("--bootstrap 0", "spoof bonafide", "0 1"), ""),
    ("lost-cluster", silent_head, "127.0.0.1"),
    ("malformed-run-facts/names", half_described, ""),
    ("no-bca", "score verdicts.csv -p triage -m aurc --interval bca --bootstrap 50", "BCa"),
    ("no-development/confidences", lambda: decided(trials(), Design(triage=TriageRules(recalibration="pav"))), ""),
    ("no-fit", barely_spread, "pav"),
    ("no-rows/where", renamed_away, "codec=c"),
    ("no-truth", lambda: attacked("pgd", None), "pgd"),
    ("nothing-to-review/shown", without_media, ""),
    ("no-figures", "report verdicts.csv -p fake-image -o r.html", "verdicts"),
    ("only-in-one/attack", more_attacks, "fgsm"),
    ("pictures-refused", unknown_curve, "r.json"),
    ("target-unused/any-bit", lambda: attacked("hop_skip_jump", [[1.0, 0.0]], target_class="a"), "hop_skip_jump"),
    ("unpaired/not", board_of_speakers, "a and b"),
    ("unseen-file", lambda: accepted(attempted(lambda: Path("gone.csv").read_text())), "gone.csv"),
    ("which-class/shards", streamed("--bootstrap 0 --higher dog --positive cat", "cat dog"), ""),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case", "named"), [pytest.param(*case, id=case[0]) for case in CASES])
def test_produced(code: str, case: Case, named: str, tmp_path: Path) -> None:
    rows = "".join(f"i{k},{('real', 'fake')[k % 2]},{('real', 'fake')[k // 3 % 2]},0.{k + 10}\n" for k in range(40))
    (tmp_path / "verdicts.csv").write_text("id,label,decision,confidence\n" + rows)
    assert_produces(code, case, tmp_path, named)


def speakers_of_groups() -> object:
    """Ask trials, of which only intervals over speakers were asked before, for the numbers of single speakers."""
    score = np.random.default_rng(0).normal(size=800).round(3)
    rows = "".join(f"i{k},{('spoof', 'bonafide')[k % 2]},{score[k]},s{k % 7}\n" for k in range(800))
    Path("u.csv").write_text("id,label,score,speaker\n" + rows)
    found = evaluate_streamed(["u.csv"], metrics=["eer"], unit="speaker", bootstrap=20)
    return hm.measure(found.trials, "eer", by="speaker", bootstrap=0)


VERIFIED = Path(__file__).parent.parent / "official_reference" / "tandem" / "asvspoof2019_la" / "01_plain"
BINNED: Sequence[tuple[str, Case, str]] = [
    ("needs-every-trial/asv", (
        f"score {VERIFIED}/cm_scores.txt -p asvspoof2019-la --asv {VERIFIED}/asv_scores.txt -m eer --bootstrap 0 --stream"
    ), ""),
    ("needs-every-trial/some-units", speakers_of_groups, "numbers of some units alone"),
    ("needs-more-memory/trials", lambda: [
        streamed("--bootstrap 0", "spoof bonafide " * 100)(),
        evaluate_streamed(["s0.csv"], metrics=["eer"], bootstrap=0, memory=1),
    ], "trials lie where the numbers are decided"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case", "named"), [pytest.param(*case, id=case[0]) for case in BINNED])
def test_produced_where_scores_are_counted_in_bins(
    code: str, case: Case, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with files of many millions of trials."""
    monkeypatch.setattr(sketch, "LARGE", 4)
    monkeypatch.setattr(stream, "UNIT_BYTES", 10**9)
    assert_produces(code, case, tmp_path, named)
