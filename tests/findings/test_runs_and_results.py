"""What commands, runs and results are refused for, or what is noted of them: one small case for each code."""

from __future__ import annotations

import socket
import wave
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.findings.producing import Case, assert_produces

import hitmiss as hm
from hitmiss.boards.board import make_board
from hitmiss.boards.plan import find_plan
from hitmiss.bridges.pull_request import post_comment
from hitmiss.claims.criteria import lock_criteria, remarks_on
from hitmiss.cli.demo import STEPS, _missing
from hitmiss.cli.probe import _one_unit
from hitmiss.conclude.attacks import conclude_attack_runs
from hitmiss.core.design import Design
from hitmiss.core.finding import Finding, Place
from hitmiss.core.header import Header
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.results import Estimate, Results
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.io.diagnostics import FaultGroup
from hitmiss.llm.sound import read_sound
from hitmiss.outofcore.stream import refuse_what_needs_trials
from hitmiss.outofcore.warehouse import _by_a_view
from hitmiss.probes.shortcuts import _out_of_fold
from hitmiss.protocols.asvspoof5 import compute_eer
from hitmiss.protocols.toxicity import load_files
from hitmiss.reports.displays.histogram import _edges
from hitmiss.reports.error_dumps import errors_of
from hitmiss.reports.media_finder import finder_at
from hitmiss.reports.sheets import workbook
from hitmiss.review.answered import _chosen_rows
from hitmiss.robustness.campaign import Campaign
from hitmiss.robustness.manipulation import drift

N = 40
RNG = np.random.default_rng(3)


def trials(**columns: object) -> Trials:
    """Forty trials of two classes."""
    label = [k % 2 for k in range(N)]
    score = np.array(label) + np.random.default_rng(0).normal(size=N)
    head = Header("bonafide", "spoof", "raw", slices=tuple(columns))
    made = Trials.of(label, score, item=[f"i{k}" for k in range(N)], **columns)  # type: ignore[arg-type]
    return Trials(made.frame, head)


def predictions(*, whole: bool = True, texts: bool = False) -> Callable[[], object]:
    """The mistakes of a file of predictions."""

    def call() -> object:
        rows = [f"{k},{k % 2},0.{(k * 7) % 9 + 1}" for k in range(20)]
        Path("en.csv").write_text("id,y_true,y_prob\n" + "\n".join(rows))
        run = load_files(["en.csv"], whole=whole)
        own = pl.DataFrame({"item": ["0", "0"], "text": ["a", "b"], "group": ["en", "en"]})
        return errors_of(run, "en", own if texts else None)

    return call


def attacked(*attacks: str, classes: int = 1, short: str = "") -> Callable[[], object]:
    """A campaign with these attacks; one of them may lack a record."""

    def call() -> object:
        rows = [
            {"item": f"r{k}", "target": f"t{t}", "attack": a, "strength": "0.1", "label": k % 2, "score": 0.1 * k}
            for a in attacks for k in range(4 - (a == short)) for t in range(classes)
        ]  # fmt: skip
        frame = pl.DataFrame(rows).with_columns(pl.col("label").cast(pl.Int8))
        return Campaign.of(Trials(frame, Header("yes", "no", "raw", runs=("attack", "strength"))))

    return call


def robust(run: str, attack: str) -> Estimate:
    return Estimate("robust_accuracy", 0.5, 0.4, 0.6, run={"run": run, "attack": attack, "strength": "0.1"}, n=100)


def closed_port() -> str:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{own.getsockname()[1]}"


GITLAB = {"CI_PROJECT_ID": "1", "CI_MERGE_REQUEST_IID": "2", "GITLAB_TOKEN": "secret"}


def board(*submitted: str, metrics: tuple[str, ...] = ("eer",)) -> Callable[[], object]:
    """A board of one system that submitted for some of two data sets."""

    def call() -> object:
        for name in ("one", "two"):
            Path("keys").mkdir(exist_ok=True)
            Path(f"keys/{name}.csv").write_text(
                "id,label\n" + "\n".join(f"i{k},{('spoof', 'bonafide')[k % 2]}" for k in range(20))
            )
        for name in submitted:
            Path("subs/own").mkdir(parents=True, exist_ok=True)
            Path(f"subs/own/{name}.csv").write_text("id,score\n" + "\n".join(f"i{k},{k * 7 % 20}" for k in range(20)))
        return make_board(find_plan("subs", "keys"), Design(metrics=metrics, bootstrap=0))

    return call


def empty_wave() -> object:
    with wave.open("empty.wav", "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
    return read_sound(Path("empty.wav").read_bytes(), 16000)


def drifting(label: list[int], codec: object) -> Callable[[], object]:
    """A drift table of clips with and without a codec, linked by a source."""

    def call() -> object:
        made = Trials.of(
            label, np.linspace(0, 1, len(label)), item=[f"i{k}" for k in range(len(label))],
            source=[f"s{k % (len(label) // 2)}" for k in range(len(label))], codec=codec,
        )  # type: ignore[arg-type]  # fmt: skip
        return drift(made, by="codec", pair_by="source", clean="none")

    return call


HALVES = ["none"] * 4 + ["mp3"] * 4


def speakers_that_overturn() -> object:
    """Six speakers of one class each, whose differences lie together: sure over trials, open over speakers."""
    rng = np.random.default_rng(5)
    speaker = np.repeat(np.arange(12), 50)
    label = speaker % 2
    base = label + rng.normal(size=600)
    shift = np.where(label == 1, 1.0, -1.0) * rng.normal(0.35, 1.2, size=12)[speaker]
    names = [f"s{k}" for k in speaker]
    a, b = (
        Trials.of(label, score, item=[f"i{k}" for k in range(600)], speaker=names) for score in (base, base + shift)
    )
    made = hm.compare(a, b, "roc_auc", names=("a", "b"), bootstrap=200)
    return made.verdict


def two_sheets() -> object:
    """A workbook of a table and the facts about it, each on a sheet."""
    table = pl.DataFrame({"id": ["a", "b"], "label": ["spoof", "bonafide"], "score": ["1", "2"]})
    Path("two.xlsx").write_bytes(workbook(table, [("what", "simulated"), ("by", "nobody")]))
    return hm.read("two.xlsx")


def counted(**options: object) -> Callable[[], object]:
    """Asking counts for what only the rows say."""
    return lambda: refuse_what_needs_trials(Design.of(["eer"]), ["eer"], [], ReadSpec(**options))  # type: ignore[arg-type]


CASES: Sequence[tuple[str, Case]] = [
    ("bad-bonafide/word", lambda: compute_eer([0.1, 0.9], [1, 0], bonafide=5)),  # type: ignore[arg-type]
    ("bad-media-source", lambda: (Path("a.pdf").write_text("x"), finder_at("a.pdf"))),
    ("bad-unit/probe", lambda: _one_unit(Design.of(["eer"], unit=("a", "b")))),
    ("duplicate-id/texts", predictions(texts=True)),
    ("run-not-whole", predictions(whole=False)),
    ("no-clean/records", attacked("pgd")),
    ("other-records", attacked("clean", "pgd", short="pgd")),
    ("no-shared-attack", lambda: conclude_attack_runs(
        Results((robust("a", "clean"), robust("b", "clean"), robust("a", "pgd"), robust("b", "fgsm"))), ("a", "b")
    )),
    ("comment-not-posted", lambda: post_comment("text", "mark", "gitlab", {**GITLAB, "CI_API_V4_URL": closed_port()})),
    ("criteria-undated", lambda: list(remarks_on(
        hm.measure(trials(), "eer", bootstrap=0), lock_criteria(["eer <= 0.1"], Design.of(["eer"]))
    ))),
    ("data-sets-missing", board("one")),
    ("no-metric/board", board("one", "two", metrics=())),
    ("empty-sound", empty_wave),
    ("not-a-slice/condition", lambda: drift(trials(), by="score")),
    ("partners-disagree", drifting([0, 1, 0, 1, 1, 1, 0, 1], HALVES)),
    ("difference-unit-overturns", speakers_that_overturn),
    ("job-cannot-run", lambda: (_ for _ in ()).throw(_missing(STEPS[0]))),
    ("too-few-speakers", lambda: _out_of_fold(
        np.ones((4, 1)), np.array([True, True, False, False]), np.array(["a", "a", "b", "b"])
    )),
    ("nothing-to-draw/scores", lambda: _edges(Tally.of([1, 0], [np.inf, -np.inf]), 10)),
    ("several-questions", lambda: _chosen_rows(pl.DataFrame({"target": ["a", "b"]}), {}, "results.jsonl")),
    ("unread-option/match", counted(match="stem")),
    ("unread-option/match-where", counted(match="stem", where={"codec": ("c0",)})),
    ("needs-every-trial/option", counted(label_cut=0.5)),
    ("mixed-runs/comparison", lambda: hm.report(
        [hm.measure(trials(), "eer", bootstrap=0), hm.compare(trials(), trials(), "eer", bootstrap=20)], "r.html"
    )),
    ("quotes-as-text", "score quotes.tsv -m eer"),
    ("no-address", lambda: (board("one", "two")(), hm.run(["board", "subs", "--keys", "keys", "-m", "eer", "--arena", "out"]))),
    ("devices-cluster", "detect --data m.csv --detector f.py:f --device cpu,cpu --cluster 127.0.0.1:1 --output run"),
    ("not-a-language-model", "llm --dataset items.jsonl --models f.py:f --vision-model f.py:f --output run"),
    ("blank-mentions", "toxicity mentions.csv --identity women --bootstrap 20"),
    ("rows-dropped/groups", "toxicity lacking.csv --missing drop --bootstrap 20"),
    ("other-sheets", two_sheets),
    ("would-match/view", lambda: _by_a_view(FaultGroup(
        "no-common-id", {"hint": Finding("would-match/stem", values={"n": 1, "how": "without their folder"})}, (Place("t"),)
    ))),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case"), [pytest.param(*case, id=case[0]) for case in CASES])
def test_commands_runs_and_results(code: str, case: Case, tmp_path: Path) -> None:
    files(tmp_path)
    assert_produces(code, case, tmp_path)


def files(folder: Path) -> None:
    """Write what the commands read."""
    rows = [f"i{k},{('spoof', 'bonafide')[k % 2]},{k * 7 % 20},c{k % 2}" for k in range(20)]
    (folder / "a.csv").write_text("\n".join(["id,label,score,codec", *rows]))
    (folder / "k.csv").write_text("id,label\n" + "\n".join(f"i{k},{('spoof', 'bonafide')[k % 2]}" for k in range(20)))
    (folder / "quotes.tsv").write_text(
        "\n".join(["id\tlabel\tscore", *(r.replace(",", "\t", 2).rpartition(",")[0] for r in rows), '"x\tspoof\t1'])
    )
    (folder / "f.py").write_text("def f(x):\n    return 0.5\n")
    (folder / "items.jsonl").write_text('{"id": "a", "text": "b", "label": "fake"}\n')
    (folder / "mentions.csv").write_text(
        "id,language,y_true,y_prob,women\n"
        + "\n".join(f"{k},en,{k % 2},0.{k % 9 + 1},{k % 3 % 2 if k else ''}" for k in range(40))
    )
    (folder / "lacking.csv").write_text(
        "id,language,y_true,y_prob\n" + "\n".join(f"{k},en,{k % 2},{f'0.{k % 9 + 1}' if k else ''}" for k in range(40))
    )
    (folder / "v.csv").write_text("id,label,verdict,source,codec\na,real,real,web,wav\nb,fake,fake,tv,mp3\n")
    (folder / "m.csv").write_text("file,label\na.wav,real\n")
