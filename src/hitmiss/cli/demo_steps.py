"""The jobs of the demo: what each simulates, and the commands that are run on it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from hitmiss.cli import printing

SMALL = 0.02
"""Share of the trials that `--small` simulates."""


@dataclass(frozen=True)
class Step:
    """One part of the demo: a folder of simulated data and the commands that are run on it."""

    name: str
    about: str
    simulate: Callable[[Path, float], Path]
    commands: Callable[[Path], list[list[str]]]
    needs: tuple[str, ...] = ()
    extra: str = ""
    """The extra that installs the packages it needs."""
    reports: str = ""
    server: Callable[[], AbstractContextManager[str]] = lambda: nullcontext("")
    """A server that runs while the commands run; its address replaces {server} in them."""
    brief: Callable[[Path], list[list[str]]] | None = None
    """The shorter commands of `--small`; a step without them runs with `--small` only if `--only` names it."""

    @property
    def lacks(self) -> list[str]:
        """Return the packages that the step needs and that are not installed."""
        return [name for name in self.needs if find_spec(name) is None]

    @property
    def advice(self) -> str:
        """Say which packages it lacks and how to install them."""
        return f"it needs {', '.join(self.lacks)}: pip install 'hitmiss[{self.extra}]'"


def simulate_asvspoof5(folder: Path, share: float) -> Path:
    """Write the simulated ASVspoof 5 files."""
    from hitmiss.simulate.asvspoof5 import write

    return write(folder, share=share)


def score_asvspoof5(data: Path) -> list[list[str]]:
    """Score the evaluation per codec and quality, with intervals over speakers."""
    files = [str(data / "scores_a.tsv"), "--key", str(data / "ASVspoof5.eval.track_1.tsv")]
    slices = ["--by", "codec", "--by", "codec_q", "--by", "codec,codec_q"]
    intervals = ["--bootstrap", "1000", "--unit", "speaker"]
    kept = ["-o", str(data / "results.json")]
    return [["score", *files, "-p", "asvspoof5", "--score-kind", "llr", *slices, *intervals, *kept]]


def score_asvspoof5_briefly(data: Path) -> list[list[str]]:
    """Measure two numbers per codec, with intervals over speakers."""
    files = [str(data / "scores_a.tsv"), "--key", str(data / "ASVspoof5.eval.track_1.tsv"), "-p", "asvspoof5"]
    asked = ["-m", "min_dcf", "-m", "eer", "--by", "codec", "--bootstrap", "200", "--unit", "speaker"]
    return [["score", *files, *asked, "-o", str(data / "results.json"), "--quiet"]]


def simulate_voices(folder: Path, share: float) -> Path:
    """Simulate a small corpus of voices, spoof half of it, and train a detector."""
    from hitmiss.simulate.voice_detector import train
    from hitmiss.simulate.voices import write

    shutil.rmtree(folder / "run", ignore_errors=True)  # left by an earlier demo with other data
    train(write(folder, share=share))
    return folder


def detect_voices(data: Path) -> list[list[str]]:
    """Run the detector through codecs, score per codec and attack, and show the drift at a fixed threshold."""
    from hitmiss.simulate.saved_detectors import trained

    run, each = str(data / "run"), ["--bootstrap", "1000", "--unit", "speaker"]
    kept = ["-o", str(data / "results.json")]
    files = ["--data", str(data / "eval.tsv"), "--codecs", str(data / "codecs.tsv")]
    way = ["--cut-length", "48000", "--workers", "2", "-o", run]
    return [
        ["detect", "--detector", trained(data), *files, "-p", "deepfake-audio", *way],
        ["score", run, "-p", "deepfake-audio", "--by", "codec", "--by", "attack", *each, *kept],
        ["drift", run, "--by", "codec", *each],
    ]


def simulate_toxicity(folder: Path, share: float) -> Path:
    """Write predictions that give the table of the toxicity evaluation document."""
    from hitmiss.simulate.toxicity import write

    return write(folder, share=share)


def score_toxicity(data: Path) -> list[list[str]]:
    """Run the command of the toxicity evaluation document, then print its table in the documented form."""
    where = ["--config", str(data / "configs" / "detoxify_multilingual.yaml"), "--pred_dir", str(data / "predictions")]
    run = [*where, "--run_tag", "baseline", "--languages", "en", "es", "it", "tr"]
    return [["toxicity", *run, "--output", str(data / "baseline_metrics.csv")], ["toxicity", *run, "--documented"]]


def score_toxicity_briefly(data: Path) -> list[list[str]]:
    """Print the table of the toxicity evaluation document in the documented form."""
    return score_toxicity(data)[1:]


def simulate_triage(folder: Path, share: float) -> Path:
    """Write results of one agent with and without tools, three trials each."""
    from hitmiss.simulate.triage import write

    return write(folder, share=share)


def score_triage(data: Path) -> list[list[str]]:
    """Measure every number of the triage evaluation document, compare both configurations, choose thresholds."""
    results = str(data / "results.jsonl")
    runs = [f"{results}[tools={tools}]" for tools in ("no-tools", "tools")]
    chosen = ["--choose", "guarantee", "--choose-on", str(data / "dev_scores.csv")]
    return [
        ["triage", results, "--by", "source", "--reliability", "--human", str(data / "people.jsonl")],
        ["compare", *runs, "-p", "triage"],
        ["triage", str(data / "scores.csv"), *chosen],
    ]


def simulate_pictures(folder: Path, share: float) -> Path:
    """Write pictures with the noise of a sensor and pictures enlarged from fewer pixels."""
    from hitmiss.simulate.pictures import write

    shutil.rmtree(folder / "run", ignore_errors=True)
    (folder / "answers.jsonl").unlink(missing_ok=True)
    return write(folder, share=share)


def ask_standin(data: Path) -> list[list[str]]:
    """Ask a stand-in for a model about the pictures: over its server if inspect_ai is installed, else directly."""
    files = [
        "--dataset",
        str(data / "dataset.jsonl"),
        "--output",
        str(data / "answers.jsonl"),
        "--run",
        str(data / "run"),
    ]
    asked = ["--models", "hitmiss.llm.standin:look"]
    if has_inspect():
        asked = ["--models", "stand-in", "hitmiss.llm.standin:look", "--tools", "both", "--base-url", "{server}"]
        asked += ["--temperature", "0.7", "--trials", "2", "--tool-cache-dir", str(data / "run" / "tools")]
    asked += ["--canaries", "8", "--metrics-output", str(data / "metrics.json")]
    return [["llm", *files, *asked], ["triage", str(data / "answers.jsonl"), "--by", "source"]]


def has_inspect() -> bool:
    """Say whether language models can be asked on this machine."""
    return find_spec("inspect_ai") is not None and find_spec("openai") is not None


@contextmanager
def serve_standin() -> Iterator[str]:
    """Start the server of the stand-in if it is needed; otherwise print one line about what is left out."""
    from hitmiss.llm.standin import NOTE, StandIn

    printing.note(f"The model is {NOTE}.")
    if not has_inspect():
        printing.note("Skipped: asking it over the OpenAI protocol, with tools and retries: pip install 'hitmiss[llm]'")
        yield ""
        return
    with StandIn() as server:
        yield server.url


def simulate_ecg(folder: Path, share: float) -> Path:
    """Simulate 12-lead ECGs with five diagnoses and train a small classifier on them."""
    from hitmiss.simulate.ecg import write
    from hitmiss.simulate.ecg_detector import train

    shutil.rmtree(folder / "run", ignore_errors=True)
    train(write(folder, share=share))
    return folder


def attack_ecg(data: Path) -> list[list[str]]:
    """Apply noise, morphology and a black-box search, and gradients if torch is installed, with controls."""
    from hitmiss.simulate.saved_detectors import trained

    run, has_torch = str(data / "run"), find_spec("torch") is not None
    families = [
        "band_noise(beta=0.5)",
        "morph_amp",
        "random_search(queries=100)",
        *(["pgd", "smooth_adv"] if has_torch else []),
    ]
    chosen = [word for family in families for word in ("--family", family)]
    files = ["--detector", trained(data), "--data", str(data / "test.npz")]
    return [
        ["attack", *files, *chosen, "--strengths", "0.2", "0.5", "1", "--output", run],
        ["score", run, "-p", "ecg-attacks", "--bootstrap", "1000", "-o", str(data / "results.json")],
    ]


def simulate_review(folder: Path, share: float) -> Path:
    """Simulate a detector that is often unsure, two people who judge what it left open, and a third who settles it."""
    import json

    import numpy as np

    from hitmiss.review.disputes import decide, disputes
    from hitmiss.review.opening import open_review
    from hitmiss.review.queue import Queue
    from hitmiss.review.verdict_rows import write_verdicts
    from hitmiss.simulate.pictures import write

    shutil.rmtree(folder, ignore_errors=True)  # the store of an earlier review would be continued
    rng = np.random.default_rng(5)
    rows = [json.loads(line) for line in (write(folder, share=share) / "dataset.jsonl").read_text().splitlines()]
    words = {"real": ("real", "fake", "uncertain"), "fake": ("fake", "real", "uncertain")}
    said = [
        {**row, "model": "agent", "prediction": str(rng.choice(words[row["label"]], p=[0.6, 0.1, 0.3]))} for row in rows
    ]
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in said))
    truth = {row["id"]: "positive" if row["label"] == "fake" else "negative" for row in rows}
    store, _ = open_review(folder / "results.jsonl", per_item=2)
    now = 1_750_000_000.0
    queue = Queue(store, clock=lambda: now)
    for name, skill in (("Ann", 0.9), ("Bob", 0.8)):
        who = store.sign_in(name, now)
        while (item := queue.take(who)) is not None:
            now += float(rng.lognormal(1.5, 0.5))
            wrong = "negative" if truth[item.item] == "positive" else "positive"
            verdict = str(rng.choice([truth[item.item], wrong, "uncertain"], p=[skill, 0.95 - skill, 0.05]))
            queue.judge(who, item.key, verdict)
    store.appoint("Zoe", now)
    for dispute in disputes(store)[:-1]:  # one is left open, to show how it is reported
        decide(store, store.sign_in("Zoe", now), dispute.item.key, truth[dispute.item.item], now=now)
    write_verdicts(store, folder / "verdicts.jsonl")
    store.close()
    return folder


def judge_review(data: Path) -> list[list[str]]:
    """Show how far the review is, and how good system and people are together."""
    results = str(data / "results.jsonl")
    return [["review", results, "--status"], ["triage", results, "--human", str(data / "verdicts.jsonl")]]


STEPS = (
    Step(
        "asvspoof5",
        "ASVspoof 5 Track 1, per codec and quality",
        simulate_asvspoof5,
        score_asvspoof5,
        reports="{data}/results.json",
        brief=score_asvspoof5_briefly,
    ),
    Step(
        "voices",
        "Deepfake audio: a detector over codecs, from sound to tables",
        simulate_voices,
        detect_voices,
        ("soundfile", "soxr", "av"),
        "audio",
        reports="deepfake-audio={data}/run",
    ),
    Step(
        "toxicity",
        "Toxicity in four languages: the published table, reproduced",
        simulate_toxicity,
        score_toxicity,
        reports="toxicity={data}/predictions:baseline",
        brief=score_toxicity_briefly,
    ),
    Step(
        "triage",
        "Triage: an agent with and without tools",
        simulate_triage,
        score_triage,
        reports="triage={data}/results.jsonl",
    ),
    Step(
        "llm",
        "Pictures shown to a model: verdicts, tools, canaries, triage",
        simulate_pictures,
        ask_standin,
        ("PIL",),
        "image",
        reports="triage={data}/answers.jsonl",
        server=serve_standin,
    ),
    Step(
        "ecg",
        "ECGs: perturbations and attacks on a classifier of five diagnoses",
        simulate_ecg,
        attack_ecg,
        reports="ecg-attacks={data}/run",
    ),
    Step(
        "review",
        "People judge what a detector was not sure of",
        simulate_review,
        judge_review,
        ("PIL",),
        "image",
        reports="triage={data}/results.jsonl",
    ),
)
"""The steps of the demo, in order."""
WITH_FILES = ("voices", "llm", "ecg")
"""The steps whose worst errors can be heard or seen in the report."""
