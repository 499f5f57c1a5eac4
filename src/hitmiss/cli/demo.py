"""`hitmiss demo`: simulate data, then run the same commands that a user would type on real data."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import click

from hitmiss.cli import common
from hitmiss.core.errors import EnvironmentFault, UnknownName
from hitmiss.core.spec import WRITING, opt

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
    """Measure two figures per codec, with intervals over speakers."""
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
    """Measure every figure of the triage evaluation document, compare both configurations, choose thresholds."""
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

    common.note(f"The model is {NOTE}.")
    if not has_inspect():
        common.note("Skipped: asking it over the OpenAI protocol, with tools and retries: pip install 'hitmiss[llm]'")
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


def score_files(root: Path) -> None:
    """Write score files, keys and tables of the small ASVspoof 5 simulation under short names."""
    import numpy as np
    import polars as pl

    from hitmiss.io import read
    from hitmiss.simulate.asvspoof5 import write

    data = write(root / "demo/asvspoof5_small", share=SMALL)
    key = data / "ASVspoof5.eval.track_1.tsv"
    copies = {
        "scores.tsv": "scores_a",
        "run_seed1.tsv": "scores_a",
        "run_seed2.tsv": "scores_b",
        "dev.tsv": "dev_scores_a",
    }
    for name, source in copies.items():
        shutil.copy(data / f"{source}.tsv", root / name)
    for name in ("key.tsv", "protocol.tsv", key.name):
        shutil.copy(key, root / name)
    shutil.copy(data / "ASVspoof5.dev.track_1.tsv", root / "dev_key.tsv")
    a, b = (read(data / f"scores_{name}.tsv", key) for name in "ab")
    words = pl.when(pl.col("label") == 1).then(pl.lit("bonafide")).otherwise(pl.lit("spoof"))
    table = a.frame.select("item", "codec", words.alias("label"), "score")
    table.select(id="item", key="label", a="score").with_columns(b=pl.Series(b.score)).write_csv(root / "table.csv")
    (root / "scores").mkdir(exist_ok=True)
    for k in range(3):  # shards with their labels, and the same counted by score
        table[k::3].write_parquet(root / f"scores/part_{k}.parquet")
    table.group_by("codec", "label", "score").agg(n=pl.len()).sort("codec", "label", "score").write_parquet(
        root / "counts.parquet"
    )
    (root / "submissions").mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for k, name in enumerate(("alpha", "beta", "gamma", "delta")):  # a challenge: ever noisier copies of one system
        noisy = a.score + rng.normal(0.0, 1.5 * k, len(a))
        pl.DataFrame({"filename": a.items, "cm-score": noisy}).write_csv(
            root / f"submissions/{name}.tsv", separator="\t"
        )
    first, second = rng.normal(size=(2, 120, 4))
    people = np.tile(np.arange(20).astype(str), 6)
    codec = np.repeat(["C01", "C02"], 60)
    np.savez(root / "embeddings.npz", layer_0=first, layer_1=second, codec=codec, speaker=people)
    n, kinds = 400, np.array(["none", "print", "replay", "mask"])
    species = kinds[np.arange(n) % 4]
    score = np.clip(rng.normal(0.3, 0.2, n) + 0.4 * (species == "none"), 0.0, 1.0)
    label = np.where(species == "none", "bonafide", "attack")
    columns = {"id": [f"c{i}" for i in range(n)], "label": label, "score": score, "attack_type": species}
    pl.DataFrame({**columns, "subject": [f"p{i % 50}" for i in range(n)]}).write_csv(root / "pad.csv")


def prediction_files(root: Path) -> None:
    """Write predictions of toxicity in four languages, as `output/predictions` and `output/validation`."""
    data = simulate_toxicity(root / "demo/toxicity", 1.0)
    for name in ("output/predictions", "output/validation"):
        shutil.copytree(data / "predictions", root / name, dirs_exist_ok=True)
    shutil.copytree(data / "configs", root / "configs", dirs_exist_ok=True)


def text_files(root: Path) -> None:
    """Write comments with labels, and a small detector that counts exclamation marks."""
    import numpy as np

    rng, rows = np.random.default_rng(0), ["id\ttext\tlabel\tlanguage"]
    for i in range(400):
        toxic = rng.random() < 0.4
        marks = rng.poisson(2.2 if toxic else 0.6)
        words, language = "well " * rng.integers(1, 9), rng.choice(["en", "no"])
        rows.append(f"c{i:03d}\t{words}{'!' * marks}\t{'toxic' if toxic else 'non-toxic'}\t{language}")
    (root / "comments.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (root / "scorer.py").write_text(SCORER, encoding="utf-8")


SCORER = """import numpy as np


def logits(texts):
    marks = np.array([text.count("!") for text in texts])
    length = np.array([len(text) for text in texts])
    toxic = 1.3 * marks - 1.5 - 0.01 * length
    return np.stack([-toxic, toxic], axis=1)
"""


def voice_files(root: Path) -> None:
    """Write simulated voices and a detector, as `voices`."""
    from hitmiss.simulate.voice_detector import train
    from hitmiss.simulate.voices import write

    train(write(root / "voices", share=SMALL), as_onnx=False)


def ecg_files(root: Path) -> None:
    """Write simulated ECGs and a classifier, as `demo/ecg_small`."""
    from hitmiss.simulate.ecg import write
    from hitmiss.simulate.ecg_detector import train

    train(write(root / "demo/ecg_small", share=SMALL), as_onnx=False)


FILES: dict[str, Callable[[Path], object]] = {
    "asvspoof5": score_files,
    "toxicity": prediction_files,
    "text": text_files,
    "triage": lambda root: simulate_triage(root / "demo/triage", 1.0),
    "llm": lambda root: simulate_pictures(root / "demo/llm", 1.0),
    "review": lambda root: simulate_review(root / "demo/review", 1.0),
    "ecg": ecg_files,
    "voices": voice_files,
}
"""What `--files` writes by job: the files that the commands of the documentation name."""


def demo(
    output: Annotated[Path, opt("Where it goes.", WRITING, "--output", "-o", metavar="FOLDER", common=True)] = Path(
        "demo"
    ),
    small: Annotated[
        bool, opt("A fiftieth of the data, two short jobs, seconds instead of minutes.", common=True)
    ] = False,
    only: Annotated[
        list[str] | None,
        opt(f"Only this job, in full ({', '.join(s.name for s in STEPS)}). Repeatable.", metavar="JOB", common=True),
    ] = None,
    files: Annotated[
        bool,
        opt("Write the files that the documentation uses into the current folder, and stop.", common=True),
    ] = False,
) -> None:
    """Simulate evaluations, score them and write a report, showing each command before it runs.

    $ hitmiss demo --small
    """
    if files:
        _write_files(Path() if output == Path("demo") else output, only)
        return
    unknown = [name for name in only or () if name not in {step.name for step in STEPS}]
    if unknown:
        raise UnknownName("job of the demo", unknown[0], [step.name for step in STEPS])
    short = small and not only
    reported: list[str] = []
    media: list[str] = []
    for step in STEPS:
        if step.name not in only if only else short and step.brief is None:
            continue
        if step.lacks:
            common.note(f"\n{step.about}: left out, {step.advice}")
            continue
        common.note(f"\n{step.about} (simulated data, see README.txt beside it)")
        data = step.simulate(output / (f"{step.name}_small" if small else step.name), SMALL if small else 1.0)
        with step.server() as address:
            for words in (step.brief if short and step.brief else step.commands)(data):
                _run_as_typed([word.replace("{server}", address) for word in words])
        if not short:
            common.note(f"\nThe data is in {data}; change the command and run it again.")
        reported += [step.reports.format(data=data)] if step.reports else []
        media += ["--media", str(data)] if step.name in WITH_FILES else []
        media += ["--human", str(data / "people.jsonl")] if step.name == "triage" else []
    report = output / ("report_small.html" if small else "report.html")
    few = ["--samples", "3", "--samples-budget", "80000"]
    _run_as_typed(
        ["report", *reported, *media, *few, "--title", "hitmiss demo: simulated evaluations", "-o", str(report)]
    )
    common.note(f"\nThe report is {report}; open it in a browser.")
    if short:
        rest = ", ".join(step.name for step in STEPS if step.brief is None)
        common.note(f"More jobs: hitmiss demo --small --only JOB ({rest}); everything at full size: hitmiss demo")


def _write_files(root: Path, only: list[str] | None) -> None:
    """Write the files of the documentation: those of some jobs, or of all that need no training."""
    if unknown := [name for name in only or () if name not in FILES]:
        raise UnknownName("job of the demo", unknown[0], FILES)
    root.mkdir(parents=True, exist_ok=True)
    lacking = {step.name: step for step in STEPS if step.lacks}
    for name in only or [name for name in FILES if name not in ("ecg", "voices")]:
        if name not in lacking:
            FILES[name](root)
        elif only:
            raise _missing(lacking[name])
        else:
            common.note(f"! the files of {name} are left out: {lacking[name].advice}")
    common.note("wrote simulated files; README.txt beside them says what they are")


def demo_data(job: str, folder: str | Path, *, share: float = SMALL) -> Path:
    """Write the simulated data of one job of the demo into a folder, with a README that says what it is.

    Parameters
    ----------
    job
        `asvspoof5`, `voices`, `toxicity`, `triage`, `llm`, `ecg` or `review`.
    folder
        Where to write; existing data of the same kind is kept.
    share
        The share of the full size.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    UnknownName
        For an unknown job.
    EnvironmentFault
        If the job needs a package that is not installed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(path.name for path in demo_data("asvspoof5", folder, share=0.001).glob("scores*"))
    ['scores_a.tsv', 'scores_b.tsv']
    """
    found = {step.name: step for step in STEPS}
    if job not in found:
        raise UnknownName("job of the demo", job, found)
    if found[job].lacks:
        raise _missing(found[job])
    return found[job].simulate(Path(folder), share)


def _missing(step: Step) -> EnvironmentFault:
    return EnvironmentFault(f"the job {step.name} cannot run here: {step.advice}", code="missing-package")


def _run_as_typed(words: list[str]) -> None:
    """Show the command, run it, and stop the demo with its exit code if it fails."""
    from hitmiss.cli.main import run

    common.note(f"\n$ {shlex.join(['hitmiss', *words])}\n")
    code = run(words)
    if code != 0:
        raise click.exceptions.Exit(code)
