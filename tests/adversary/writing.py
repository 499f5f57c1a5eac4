"""Every verb that writes a file, with what it writes: what faults, kills and full disks are tried on."""

from __future__ import annotations

from typing import Final

DETECT: Final = ("detect", "--data", "texts.csv", "--detector", "detector.py:score", "--input", "text")
ATTACK: Final = ("attack", "--detector", "detector.py:leads", "--data", "ecg.npz", "--family", "band_noise")
LLM: Final = ("llm", "--dataset", "questions.jsonl", "--models", "detector.py:look")
REVIEW: Final = ("review", "llm.jsonl", "--verdicts", "all", "--dataset", "questions.jsonl", "--store", "people.db")

WRITING: Final[dict[str, tuple[str, ...]]] = {
    "score": ("score", "table.csv", "-m", "eer", "--bootstrap", "20", "-o", "w.json"),
    "score --stream": ("score", "table.csv", "-m", "eer", "--bootstrap", "20", "--stream", "-o", "w.json"),
    "score --report": ("score", "table.csv", "-m", "eer", "--bootstrap", "0", "--report", "w.html"),
    "toxicity": ("toxicity", "--pred_dir", ".", "--run_tag", "base", "--bootstrap", "0", "-o", "w.csv"),
    "toxicity --results": (
        *("toxicity", "--pred_dir", ".", "--run_tag", "base", "--bootstrap", "0", "-o", "metrics.csv"),
        *("--results", "w.json"),
    ),
    "triage": ("triage", "verdicts.jsonl", "--bootstrap", "5", "-o", "w.json"),
    "triage --metrics-output": ("triage", "verdicts.jsonl", "--bootstrap", "0", "--metrics-output", "w.json"),
    "drift": ("drift", "drift.csv", "--pair-by", "clip", "--bootstrap", "0", "-o", "w.json"),
    "threshold": ("threshold", "base_en.csv", "--test", "w_en.csv", "--write"),
    "calibrate": ("calibrate", "table.csv", "--save", "w.json"),
    "fuse": ("fuse", "table.csv", "other.csv", "--save", "w.json"),
    "annotators": ("annotators", "votes.csv", "--votes", "ann,bob", "--yes", "1", "-o", "w.csv"),
    "audit": ("audit", "sample.csv", "--population", "population.csv", "-o", "w.csv"),
    "compare": ("compare", "table.csv", "other.csv", "-m", "eer", "--bootstrap", "20", "-o", "w.json"),
    "board": ("board", "systems", "--keys", "key.tsv", "-m", "eer", "--bootstrap", "20", "-o", "w.json"),
    "board --site": ("board", "systems", "--keys", "key.tsv", "-m", "eer", "--bootstrap", "20", "--site", "w.site"),
    "replace": ("replace", "base_en.csv", "base_de.csv", "--threshold", "0.5", "--margin", "0.5", "-o", "w.json"),
    "replace --report": (
        *("replace", "base_en.csv", "base_de.csv", "--threshold", "0.5", "--margin", "0.5", "--flips", "flips.csv"),
        *("--report", "w.html"),
    ),
    "lock": ("lock", "eer.high <= 0.2", "--data", "key.tsv", "-o", "w.json"),
    "gate": ("gate", "results.json", "--fail-if", "eer > 0.9", "--junit", "w.xml"),
    "gate --sarif": ("gate", "results.json", "--fail-if", "eer > 0.9", "--sarif", "w.json"),
    "gate --comment": ("gate", "results.json", "--fail-if", "eer > 0.9", "--comment", "w.md"),
    "detect": (*DETECT, "--outputs", "logit", "-o", "w.run"),
    "attack": (*ATTACK, "--strengths", "0.5", "--outputs", "probability", "-o", "w.run"),
    "llm": (*LLM, "-o", "w.jsonl"),
    "review --export": (*REVIEW, "--export", "w.csv"),
    "init": ("init", "table.csv", "--yes", "--force", "-o", "w.toml"),
    "convert": ("convert", "table.csv", "w.tsv"),
    "report": ("report", "results.json", "-o", "w.html"),
    "export csv": ("export", "results.json", "--to", "csv", "-o", "w.csv"),
    "export xlsx": ("export", "results.json", "--to", "xlsx", "-o", "w.xlsx"),
    "export markdown": ("export", "results.json", "--to", "markdown", "-o", "w.md"),
}
"""A command for each way to write; it runs in a folder that `corpus.make` filled."""
RUNS: Final = ("detect", "attack", "llm")
"""What goes on with `--resume`; the others begin again."""
OTHERS: Final = {
    "verify": "an attestation needs a key; tests/verifying/test_attestation.py",
    "demo": "it runs these verbs",
    "prevalence": "it prints",
    "plan": "it prints",
    "probe": "it prints",
    "shortcuts": "it prints",
    "validate": "it prints",
    "sql": "it prints",
    "list": "it prints",
    "show": "it prints",
    "doctor": "it prints",
}
"""Why a verb is not above."""
