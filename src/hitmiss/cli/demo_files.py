"""The simulated files that the commands of the documentation name, as `hitmiss demo --files` writes them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from hitmiss.cli.demo_steps import SMALL, simulate_pictures, simulate_review, simulate_toxicity, simulate_triage


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


def clip_file(root: Path) -> None:
    """Write `clips.csv`, the table of the README: scores of a detector of fake voices, through three codecs."""
    import numpy as np

    rng, rows = np.random.default_rng(4), ["file,label,score,codec,speaker"]
    for i in range(900):
        is_fake, codec = bool(i % 3 == 0), ("none", "opus", "phone")[i // 3 % 3]
        middle = {"none": 2.2, "opus": 1.8, "phone": 0.9}[codec]
        score = rng.normal(middle if is_fake else -middle, 1.4)
        rows.append(f"clip{i:03d}.wav,{'fake' if is_fake else 'real'},{score:.3f},{codec},S{i // 15:02d}")
    (root / "clips.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def prediction_files(root: Path) -> None:
    """Write predictions of toxicity in four languages, as `output/predictions` and `output/validation`."""
    data = simulate_toxicity(root / "demo/toxicity", 1.0)
    for name in ("output/predictions", "output/validation"):
        shutil.copytree(data / "predictions", root / name, dirs_exist_ok=True)
    shutil.copytree(data / "configs", root / "configs", dirs_exist_ok=True)


def audit_files(root: Path) -> None:
    """Write an audit sample with its strata, and votes of annotators with a classifier's scores, as `audit`."""
    import numpy as np

    rng, folder = np.random.default_rng(7), root / "audit"
    folder.mkdir(parents=True, exist_ok=True)
    strata, sample = ["language,band,flagged,n,expected"], ["id,language,band,flagged,label"]
    for language, band, flagged, n, share, labels in AUDITED:
        strata.append(f"{language},{band},{flagged},{n},{share}")
        for positive in rng.random(labels) < share:
            sample.append(f"a{len(sample)},{language},{band},{flagged},{int(positive)}")
    votes, scores = ["id,annotator,label"], ["id,score"]
    for i in range(400):
        toxic = rng.beta(0.6, 0.9)
        scores.append(f"t{i},{np.clip(toxic + rng.normal(0, 0.2), 0, 1):.4f}")
        votes += [f"t{i},{name},{int(rng.random() < toxic)}" for name in ("ann", "bob", "eve")]
    for name, rows in (("strata", strata), ("sample", sample), ("votes", votes), ("scores", scores)):
        (folder / f"{name}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


AUDITED = (
    ("en", "high", "yes", 5000, 0.9, 150),
    ("en", "middle", "yes", 3000, 0.5, 150),
    ("en", "near", "no", 20000, 0.05, 300),
    ("en", "low", "no", 900000, 0.0005, 2000),
    ("tr", "high", "yes", 400, 0.8, 100),
    ("tr", "low", "no", 60000, 0.002, 1000),
)
"""Language, band of scores, whether flagged, items, share of positives, labels."""


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

    train(write(root / "voices", share=SMALL))


def ecg_files(root: Path) -> None:
    """Write simulated ECGs and a classifier, as `demo/ecg_small`."""
    from hitmiss.simulate.ecg import write
    from hitmiss.simulate.ecg_detector import train

    train(write(root / "demo/ecg_small", share=SMALL))


FILES: dict[str, Callable[[Path], object]] = {
    "clips": clip_file,
    "asvspoof5": score_files,
    "toxicity": prediction_files,
    "audit": audit_files,
    "text": text_files,
    "triage": lambda root: simulate_triage(root / "demo/triage", 1.0),
    "llm": lambda root: simulate_pictures(root / "demo/llm", 1.0),
    "review": lambda root: simulate_review(root / "demo/review", 1.0),
    "ecg": ecg_files,
    "voices": voice_files,
}
"""What `--files` writes by job: the files that the commands of the documentation name."""
