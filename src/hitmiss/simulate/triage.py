"""A simulated triage evaluation: two configurations of one agent, with and without tools, three trials each.

Every image has an evidence value that both configurations see, with noise added by each run; near zero they answer
`uncertain`. Confidence is stated in steps, as by language models, and too high. Some calls fail, some replies cannot be
understood, later trials are partly served from a cache. No real image or model is used.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import numpy as np

from hitmiss._version import __version__

ITEMS: Final = 600
LEAST: Final = 200
TRIALS: Final = 3
SOURCES: Final = {
    "camera": ("real", 1.6),
    "phone": ("real", 1.2),
    "diffusion": ("fake", 1.5),
    "gan": ("fake", 1.9),
    "faceswap": ("fake", 0.9),
}
"""The source of an image: its label, and how strongly it shows."""
STEPS: Final = (0.55, 0.65, 0.75, 0.85, 0.92, 0.98)
FILES: Final = ("dataset.jsonl", "results.jsonl", "dev_scores.csv", "scores.csv", "people.jsonl")
REVIEWERS: Final = ("ann", "bob", "cleo")
PER_ITEM: Final = 2
START: Final = datetime(2025, 1, 6, 9, tzinfo=UTC)
PROMPTS: Final = {
    "system": "You examine images. Prefer uncertain over guessing.",
    "user": "Is this image real or fake?",
}


@dataclass(frozen=True)
class Configuration:
    """How an agent works: what it sees of the evidence, when it abstains, how it fails, how long it takes."""

    name: str
    use_tools: bool
    sight: float
    noise: float
    doubt: float
    failures: float
    seconds: float


CONFIGURATIONS: Final = (
    Configuration("no-tools", False, sight=0.8, noise=0.45, doubt=0.55, failures=0.005, seconds=4.0),
    Configuration("tools", True, sight=1.15, noise=0.4, doubt=0.45, failures=0.02, seconds=11.0),
)


@dataclass(frozen=True)
class Image:
    """One item: its id, its label, its source, and the evidence for fake."""

    id: str
    label: str
    source: str
    evidence: float

    @property
    def row(self) -> dict[str, object]:
        """Return its line in the dataset."""
        return {"id": self.id, "image": f"images/{self.id}.jpg", "label": self.label, "meta": {"source": self.source}}


def images(n: int, rng: np.random.Generator, prefix: str = "sample") -> list[Image]:
    """Return items of every source, about as many real as fake."""
    names = list(SOURCES)
    chosen = rng.choice(len(names), size=n, p=[0.25, 0.25, 0.2, 0.15, 0.15])
    found = []
    for i, k in enumerate(chosen.tolist()):
        label, strength = SOURCES[names[k]]
        sign = 1.0 if label == "fake" else -1.0
        found.append(Image(f"{prefix}-{i + 1:04d}", label, names[k], float(sign * strength + rng.normal())))
    return found


def results(items: list[Image], rng: np.random.Generator) -> Iterator[dict[str, object]]:
    """Yield the result rows of both configurations, trial by trial."""
    for configuration in CONFIGURATIONS:
        for trial in range(TRIALS):
            for number, image in enumerate(items):
                yield _result(image, configuration, trial, number, rng)


def _result(image: Image, how: Configuration, trial: int, number: int, rng: np.random.Generator) -> dict[str, object]:
    seen = how.sight * image.evidence + how.noise * rng.normal()
    hit = trial > 0 and rng.random() < 0.6
    row = {
        "id": image.id,
        "model": "agent-1",
        "use_tools": how.use_tools,
        "trial": trial,
        "label": image.label,
        "image": f"images/{image.id}.jpg",
        "meta": {"source": image.source},
        "run_config": {"temperature": 0.0, "max_iterations": 15, "reasoning_effort": None},
        **_answer(seen, how, rng),
        "models": {"agent": "agent-1", "vision": "vision-1", "structuring": "parser-1"},
        "prompt_hashes": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in PROMPTS.items()},
        "cache_state": "on",
        "cache_hit": hit,
        "timestamp": (START + timedelta(seconds=20 * number, days=trial)).isoformat(),
        **_times(how, hit, rng),
    }
    if rng.random() < how.failures:
        kind = str(rng.choice(["exception", "cancelled"]))
        return {**row, "prediction": "uncertain", "confidence": 0.0, "error": "the call failed", "error_type": kind}
    return row


def _answer(seen: float, how: Configuration, rng: np.random.Generator) -> dict[str, object]:
    if rng.random() < 0.008:
        return {"prediction": "hard to put in a word", "parsed_verdict": None, "confidence": 0.0}
    said = "uncertain" if abs(seen) < how.doubt else "fake" if seen > 0 else "real"
    sureness = 1 / (1 + math.exp(-1.9 * abs(seen)))
    step = min(STEPS, key=lambda s: abs(s - min(0.98, sureness + 0.05)))
    confidence = round(float(rng.uniform(0.3, 0.5)), 2) if said == "uncertain" else step
    return {"prediction": said, "parsed_verdict": said, "confidence": confidence}


def _times(how: Configuration, hit: bool, rng: np.random.Generator) -> dict[str, object]:
    vision = float(rng.uniform(0.02, 0.2)) if hit else float(rng.lognormal(math.log(3.0), 0.35))
    agent = float(rng.lognormal(math.log(how.seconds), 0.4))
    calls = [{"tool": t, "seconds": round(float(rng.exponential(0.6)), 4)} for t in ("ela", "metadata")] * how.use_tools
    timings = {"vision_llm_seconds": vision, "agent_graph_seconds": agent, "total_seconds": vision + agent}
    return {
        "tool_usage": [call["tool"] for call in calls],
        "tool_details": calls,
        "timings": {name: round(value, 4) for name, value in timings.items()},
        "latency_seconds": round(vision + agent + float(rng.exponential(0.3)), 4),
    }


def scores(items: list[Image], rng: np.random.Generator) -> Iterator[str]:
    """Yield a plain detector's probabilities of fake, as a table with id, label, source and score."""
    yield "id,label,source,score"
    for image in items:
        p = 1 / (1 + math.exp(-(1.1 * image.evidence + 0.5 * rng.normal())))
        yield f"{image.id},{image.label},{image.source},{p:.6f}"


def verdicts(
    items: list[Image], rows: list[dict[str, object]], rng: np.random.Generator
) -> Iterator[dict[str, object]]:
    """Yield people's verdicts on the items that the agent with tools left open in trial one, except every eighth."""
    wanted = {(True, 0)}
    left = {r["id"] for r in rows if (r["use_tools"], r["trial"]) in wanted and r["prediction"] not in ("real", "fake")}
    asked = [image for image in items if image.id in left]
    for number, image in enumerate(asked):
        if number % 8 == 7:
            continue
        for at in range(PER_ITEM):
            seen = 1.6 * image.evidence + 0.8 * rng.normal()
            word = "cannot determine" if abs(seen) < 0.25 else "fake" if seen > 0 else "real"
            who, seconds = REVIEWERS[(number + at) % len(REVIEWERS)], round(float(rng.lognormal(math.log(9.0), 0.4)), 2)
            told = {"id": image.id, "model": "human", "trial": who, "prediction": word}
            yield {**told, "latency_seconds": seconds, "per_item": PER_ITEM}


def write(folder: str | Path, *, share: float = 1.0, seed: int = 4) -> Path:
    """Write the dataset, the results and the score files into a folder, unless it already holds exactly this data."""
    folder, text = Path(folder), about(share, seed)
    readme = folder / "README.txt"
    if readme.is_file() and readme.read_text(encoding="utf-8") == text and all((folder / f).is_file() for f in FILES):
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    readme.unlink(missing_ok=True)  # it is written last: if it is there, the data is complete
    n = max(LEAST, round(ITEMS * share))
    rngs = np.random.default_rng(seed).spawn(4)
    items = images(n, rngs[0])
    _write(folder / "dataset.jsonl", (json.dumps(image.row) for image in items))
    rows = list(results(items, rngs[1]))
    _write(folder / "results.jsonl", map(json.dumps, rows))
    _write(folder / "people.jsonl", map(json.dumps, verdicts(items, rows, np.random.default_rng([seed, 5]))))
    _write(folder / "scores.csv", scores(items, rngs[2]))
    _write(folder / "dev_scores.csv", scores(images(n, rngs[3], "dev"), rngs[3]))
    readme.write_text(text, encoding="utf-8")
    return folder


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def about(share: float, seed: int) -> str:
    """Return the text of README.txt: what this data is, and what it is not."""
    return f"""This data is SIMULATED.

hitmiss {__version__} made it with its own code (hitmiss.simulate.triage, seed {seed}, share {share:g}). There is no image
behind it, no person and no model: ids, labels, verdicts, confidences and times come from a random number generator.
Numbers computed from it say nothing about any real system.

dataset.jsonl   the items: id, image, label, meta.source
results.jsonl   verdicts of one agent without and with tools, {TRIALS} trials each, in the form of the triage document
people.jsonl    what two of three people said of items that the agent with tools left open, as `hitmiss review --export`
scores.csv      a plain detector's probability of fake for the same items; dev_scores.csv: for other items
"""
