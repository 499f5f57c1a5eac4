"""Command lines: every verb with options drawn at random, most of them sensible, some odd."""

from __future__ import annotations

from random import Random

FILES = (
    *("table.csv", "table.parquet", "table.jsonl", "other.csv", "scores.tsv", "key.tsv", "protocol.txt", "base_en.csv"),
    *("base_de.csv", "verdicts.jsonl", "layers.npz", "texts.csv", "mine.toml", "config.yaml", "results.json"),
    *("comparison.json", "run/manifest.json", "run/trials.parquet", "run/items/000001.jsonl"),
    *(
        "counted.json",
        "triage.json",
        "llm.jsonl",
        "people.csv",
        "people.db",
        "questions.jsonl",
    ),
    *("llm.run/manifest.json", "llm.run/results.jsonl", "llm.run/trials.parquet", "attacked/manifest.json"),
    *("attacked/trials.parquet", "ecg.npz"),
)
METRICS = (
    *(
        "eer",
        "eer(ties=official)",
        "eer(ties=hull)",
        "eer(ties=interpolated)",
        "roc_auc",
        "min_dcf",
        "average_precision",
    ),
    *("min_dcf(p_target=0.5)", "cllr", "min_cllr", "act_dcf", "brier", "log_loss", "accuracy", "f1", "mcc", "fpr"),
    *("balanced_accuracy", "precision", "recall", "tpr_at_fpr(fpr=0.1)", "eer_threshold"),
)
ODD_METRICS = (
    "",
    "eeer",
    "eer(",
    "eer(ties=)",
    "min_dcf(p_target=abc)",
    "min_dcf(p_target=nan)",
    "eer(x=1)",
    "ece",
    "aurc",
)
COLUMNS = ("codec", "attack", "speaker", "codec,attack", "speaker,codec")
ODD_COLUMNS = ("item", "label", "score", "", ",", "codec,codec", "target", "none")
SOURCES = (
    ("table.csv",),
    ("table.parquet",),
    ("table.jsonl",),
    ("scores.tsv", "--key", "key.tsv"),
    ("scores.tsv", "--key", "protocol.txt"),
)


def asked(rng: Random) -> list[str]:
    """The words of one command."""
    verb = rng.choice(tuple(VERBS))
    return [verb, *VERBS[verb](rng)]


def question(rng: Random, is_odd: float = 0.1) -> list[str]:
    """Metrics, groupings, intervals."""
    words: list[str] = []
    if rng.random() < 0.3:
        words += [
            "-p",
            rng.choice(("asvspoof5", "asvspoof5", "deepfake-audio", "mine.toml", "triage", "toxicity", "nope")),
        ]
    for _ in range(rng.choice((0, 1, 1, 2)) if words else rng.choice((1, 1, 2, 3))):
        words += ["-m", rng.choice(ODD_METRICS if rng.random() < is_odd else METRICS)]
    if rng.random() < 0.5:
        words += ["--by", rng.choice(ODD_COLUMNS if rng.random() < is_odd else COLUMNS)]
    if rng.random() < 0.5:
        words += [
            "--bootstrap",
            rng.choice(("0", "7", "20", "40")) if rng.random() > is_odd else rng.choice(("1", "-3", "x")),
        ]
    if rng.random() < 0.2:
        words += ["--unit", rng.choice(ODD_COLUMNS if rng.random() < is_odd else ("speaker", "speaker,attack"))]
    if rng.random() < 0.3:
        words += ["--score-kind", rng.choice(("llr", "raw", "logit", "probability", "x"))]
    if rng.random() < 0.4:
        words += ["--threshold", rng.choice(("0", "0.5", "-1e9", "nan", "inf"))]
    return words


def scoring(rng: Random) -> list[str]:
    """What `score` takes besides: how files are read."""
    words = [*rng.choice(SOURCES), *question(rng)]
    extra = (
        *(["--matrix", "attack,codec"], ["--level", "0.9"], ["--interval", "percentile"], ["--interval", "bca"]),
        *(["--gap", "codec=-"], ["--gap", "codec=-:C01"], ["--gap", "x"], ["--on-nan", "drop"], ["--on-nan", "worst"]),
        *(["--dedupe"], ["--allow-missing"], ["--higher", "spoof"], ["--strict"], ["--seed", "3"], ["--stratify"]),
        *(["--positive", "spoof"], ["--separator", ";"], ["--encoding", "latin-1"], ["--decimal", ","], ["--seeds"]),
        *(["--calibrate-on", "other.csv"], ["--column", "score=score"], ["--column", "item=nope"], ["--level", "2"]),
    )
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        words += rng.choice(extra)
    return words


def score(rng: Random) -> list[str]:
    """`hitmiss score`."""
    words = scoring(rng)
    if rng.random() < 0.3:
        words.append("--stream")
    if rng.random() < 0.3:
        words += ["-o", "out.json"]
    return [*words, *(["--json"] if rng.random() < 0.5 else [])]


def compare(rng: Random) -> list[str]:
    """`hitmiss compare`."""
    files = rng.choice(
        (("table.csv", "other.csv"), ("table.csv", "table.parquet", "other.csv"), ("verdicts.jsonl",) * 2)
    )
    words = question(rng)
    if "--threshold" in words:
        at = words.index("--threshold")
        del words[at : at + 2]
    return [*files, *words, *rng.choice(([], ["-o", "out.json"], ["--json"], ["--correction", "none"], ["--force"]))]


def gate(rng: Random) -> list[str]:
    """`hitmiss gate`."""
    rule = rng.choice(
        ("eer > 0.9", "eer[codec=C01] > 0.1", "worst eer > 0.2", "eer.high > 0.5", "x > 1", "eer >", "eer > x")
    )
    source = rng.choice((["results.json"], ["table.csv"], ["run"], ["comparison.json"]))
    more = rng.choice(
        ([], ["--junit", "out.xml"], ["--baseline", "other.csv", "--max-regression", "eer=0.1"], ["--json"])
    )
    return [*source, "--fail-if", rule, *more]


def report(rng: Random) -> list[str]:
    """`hitmiss report`."""
    source = rng.choice(
        (["results.json"], ["table.csv", *question(rng)], ["run", "-m", "eer"], ["verdicts.jsonl", "-p", "triage"])
    )
    return [*source, "--bootstrap", rng.choice(("0", "10")), *rng.choice(([], ["--static"])), "-o", "out.html"]


def export(rng: Random) -> list[str]:
    """`hitmiss export`."""
    form = rng.choice(("latex", "markdown", "csv", "json", "model-card", "xlsx", "x"))
    more = rng.choice(
        ([], ["--comparison", "comparison.json"], ["-m", "eer"], ["--table", "codec"], ["--percent", "eer"])
    )
    return ["results.json", "--to", form, *more, *(["-o", "out.any"] if rng.random() < 0.6 else [])]


def verify(rng: Random) -> list[str]:
    """`hitmiss verify`."""
    return [rng.choice(("results.json", "comparison.json", "hitmiss:0.1.0|n:1/1", "x")), *rng.choice(SOURCES)]


def toxicity(rng: Random) -> list[str]:
    """`hitmiss toxicity`."""
    words = rng.choice((["--pred_dir", ".", "--run_tag", "base"], ["--config", "config.yaml"], ["--pred_dir", "."]))
    extra = (
        ["--bootstrap", "10"],
        ["--undefined", "null"],
        ["--missing", "drop"],
        ["-o", "out.csv"],
        ["--json"],
        ["--threshold", "0.3"],
    )
    return [*words, "--bootstrap", "5", *rng.choice(extra)]


def triage(rng: Random) -> list[str]:
    """`hitmiss triage`."""
    extra = (
        [],
        ["--json"],
        ["--by", "model"],
        ["--undefined", "zero"],
        ["-m", "accuracy"],
        ["--metrics-output", "out.json"],
    )
    return ["verdicts.jsonl", "--bootstrap", "5", *rng.choice(extra), *rng.choice(extra)]


def others(verb: str, *choices: list[str]) -> tuple[str, object]:
    """A verb with one of some words."""
    return verb, lambda rng: list(rng.choice(choices))


LLM = ("--dataset", "questions.jsonl", "--models", "detector.py:look", "-o", "llm.jsonl")
ATTACK = (
    *("--detector", "detector.py:leads", "--data", "ecg.npz", "--family", "band_noise", "--strengths", "0.5"),
    *("--outputs", "probability", "-o", "attacked"),
)
KEPT: tuple[tuple[str, ...], ...] = (
    ("score", "run", "--stream", "-m", "eer", "--bootstrap", "7"),
    ("score", "run", "--stream", "-m", "roc_auc", "--json"),
    ("verify", "counted.json", "run"),
    ("triage", "llm.jsonl", "--bootstrap", "5"),
    ("triage", "llm.jsonl", "--human", "people.csv", "--bootstrap", "5"),
    ("triage", "llm.run", "--bootstrap", "5", "--json"),
    ("llm", *LLM, "--resume"),
    ("llm", *LLM, "--resume", "--retry"),
    ("report", "llm.jsonl", "-p", "triage", "--bootstrap", "5", "-o", "out.html"),
    ("report", "llm.run", "-p", "triage", "--bootstrap", "5", "-o", "out.html"),
    ("report", "triage.json", "-o", "out.html"),
    ("gate", "triage.json", "--fail-if", "fake_slip_rate > 0.9"),
    ("export", "triage.json", "--to", "markdown"),
    ("verify", "triage.json", "llm.jsonl"),
    ("compare", "llm.jsonl", "llm.run", "-p", "triage", "--bootstrap", "5"),
    ("score", "attacked", "-p", "ecg-attacks", "--bootstrap", "5"),
    ("report", "attacked", "--bootstrap", "5", "-o", "out.html"),
    ("compare", "attacked", "attacked", "-p", "ecg-attacks", "--bootstrap", "5"),
    ("gate", "attacked", "-p", "ecg-attacks", "--bootstrap", "5", "--fail-if", "changed > 0.9"),
    (
        *(
            "gate",
            "attacked",
            "-p",
            "ecg-attacks",
            "--bootstrap",
            "5",
            "--baseline",
            "attacked",
            "--regression-by",
            "bound",
        ),
        *("--max-regression", "macro_auc=0.1"),
    ),
    ("attack", *ATTACK, "--resume"),
    ("review", "llm.jsonl", "--verdicts", "all", "--dataset", "questions.jsonl", "--store", "people.db", "--status"),
    (
        "review",
        "llm.jsonl",
        "--verdicts",
        "all",
        "--dataset",
        "questions.jsonl",
        "--store",
        "people.db",
        "--status",
        "--json",
    ),
    (
        *("review", "llm.jsonl", "--verdicts", "all", "--dataset", "questions.jsonl", "--store", "people.db"),
        *("--export", "out.csv"),
    ),
)
"""What reads the runs of detectors, models, attacks and people."""


def kept(rng: Random) -> list[str]:
    """The words of one command on such a run."""
    return list(rng.choice(KEPT))


VERBS: dict[str, object] = {
    "score": score,
    "compare": compare,
    "gate": gate,
    "report": report,
    "export": export,
    "verify": verify,
    "toxicity": toxicity,
    "triage": triage,
    **dict(
        (
            others(
                "validate",
                ["table.csv"],
                ["scores.tsv", "--key", "key.tsv"],
                ["verdicts.jsonl"],
                ["table.parquet", "--json"],
            ),
            others(
                "threshold",
                ["base_en.csv"],
                ["base_en.csv", "--maximize", "x"],
                ["base_en.csv", "--json"],
                ["table.csv"],
            ),
            others("drift", ["run"], ["table.csv", "--by", "label"], ["table.csv"], ["run", "--json"]),
            others("probe", ["layers.npz", "--labels", "codec"], ["layers.npz", "--labels", "x"], ["layers.npz"]),
            others("list", ["metrics"], ["x"], ["readers", "--json"]),
            others("show", ["eer"], ["x"], ["asvspoof5"]),
            others(
                "detect",
                ["--data", "texts.csv", "--detector", "detector.py:score", "--input", "text", "-o", "run", "--resume"],
                ["--data", "texts.csv", "--detector", "detector.py:score", "--input", "text", "-o", "run2"],
                ["--data", "texts.csv", "--detector", "broken.onnx", "--input", "text", "-o", "run3"],
            ),
            others("sql", ["table"], ["table", "-m", "eer"], ["x y"]),
        )
    ),
}
