"""The commands whose figures are frozen: every verb that computes, every protocol, the reading options.

Each has a name, the words after `hitmiss`, and perhaps commands that must have run before it (`after`). A command that
writes its figures into a file names it in `reads`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Golden:
    """One frozen command."""

    name: str
    words: str
    after: tuple[str, ...] = ()
    reads: str | None = None
    computed: bool = False
    """Its scores are computed from sound or signals: their last bits, and so the hash of its rows, differ by processor."""


EVAL = "eval_a.tsv --key eval.key -p asvspoof5"
LLR = f"score {EVAL} --score-kind llr"
TABLE = "table.csv --column item=id --column label=kind --score-column p --positive fake"
TOX = "toxicity --pred_dir predictions --run_tag base --languages en es it"

SCORE = (
    Golden("score", f"score {EVAL} --json"),
    Golden("score-llr", f"{LLR} --json"),
    Golden("score-by", f"{LLR} --by codec --by codec_q --by codec,codec_q --json"),
    Golden("score-trials", f"{LLR} --by codec --bootstrap 200 --json"),
    Golden("score-speakers", f"{LLR} --by codec --bootstrap 200 --unit speaker --json"),
    Golden("score-two-way", f"{LLR} --bootstrap 100 --unit speaker,attack --json"),
    Golden("score-seed", f"{LLR} --bootstrap 100 --seed 7 --level 0.9 --json"),
    Golden("score-percentile", f"{LLR} --bootstrap 100 --interval percentile --json"),
    Golden("score-bca", f"{LLR} --bootstrap 100 --interval bca --json"),
    Golden("score-matrix", f"score {EVAL} --matrix attack,codec --json"),
    Golden("score-attacks", f"score {EVAL} --by attack --json"),
    Golden("score-gap", f"{LLR} --by codec --gap codec=NONE:C02 --bootstrap 100 --unit speaker --json"),
    Golden("score-no-gap", f"{LLR} --by codec --gap none --json"),
    Golden("score-seeds", "score eval_a.tsv eval_b.tsv eval_c.tsv --key eval.key -p asvspoof5 --seeds --json"),
    Golden("score-affine", f"score {EVAL} --calibrate-on dev_a.tsv --calibrate-key dev.key --json"),
    Golden("score-pav", f"score {EVAL} --calibrate-on dev_a.tsv --calibrate-key dev.key --calibration pav --json"),
    Golden("score-stream", f"{LLR} --by codec --bootstrap 100 --stream --json"),
    Golden("score-stream-units", f"{LLR} --by codec --bootstrap 100 --unit speaker --stream --json"),
    Golden("score-table", f"score {TABLE} -m eer -m roc_auc -m average_precision --by source --json"),
    Golden("score-negative", f"score {TABLE} -m eer -m min_dcf --higher fake --negative real --json"),
    Golden("score-probability", f"score {TABLE} --score-kind probability -m brier -m log_loss --bootstrap 100 --json"),
    Golden("score-threshold", f"score {TABLE} --threshold 0.4 -m accuracy -m f1 -m mcc -m fpr -m fnr --by lang --json"),
    Golden(
        "score-threshold-units",
        f"score {TABLE} --threshold 0.4 -m accuracy -m recall --bootstrap 100 --unit person --json",
    ),
    Golden("score-rates", f"score {TABLE} -m tpr_at_fpr -m eer(ties=hull) -m eer(ties=interpolated) --json"),
    Golden(
        "score-systems",
        "score table.csv --column item=id --column label=kind --score-column p --score-column q --positive fake -m eer -m roc_auc --json",
    ),
    Golden(
        "score-comma",
        "score comma.csv --column item=id --column label=kind --score-column p --positive fake --decimal , -m eer --json",
    ),
    Golden(
        "score-jsonl",
        "score table.jsonl --column item=id --column label=kind --score-column p --positive fake -m eer --by lang --json",
    ),
    Golden(
        "score-costs", f"{LLR} -m min_dcf(c_fa=1,c_miss=1,p_target=0.5) -m act_dcf(c_fa=1,c_miss=1,p_target=0.5) --json"
    ),
    Golden("score-deepfake", "score conditions.csv -p deepfake-audio --by manipulation --json"),
)

TOXICITY = (
    Golden("toxicity", f"{TOX} --bootstrap 100 --json"),
    Golden("toxicity-plain", f"{TOX} --bootstrap 0 --json"),
    Golden("toxicity-null", f"{TOX} --bootstrap 0 --undefined null --json"),
    Golden("toxicity-threshold", f"{TOX} --bootstrap 0 --threshold 0.7 --json"),
    Golden("toxicity-bias", f"{TOX} --identity muslim --bootstrap 0 --json"),
    Golden("toxicity-files", "toxicity predictions/other_en.csv predictions/other_es.csv --bootstrap 100 --json"),
    Golden("threshold", "threshold predictions:base --test predictions:other --json"),
    Golden("threshold-grid", "threshold predictions:base --search grid --maximize mcc --json"),
)

TRIAGE = (
    Golden("triage", "triage triage.jsonl --bootstrap 100 --json"),
    Golden("triage-one", "triage triage_one.jsonl --bootstrap 100 --by source --json"),
    Golden("triage-zero", "triage triage_one.jsonl --bootstrap 0 --undefined zero --json"),
    Golden("triage-reliability", "triage triage_one.jsonl --bootstrap 100 --reliability --bins 5 --json"),
    Golden(
        "triage-bands", "triage triage_scores.csv --thresholds 0.3 0.7 --score-kind probability --bootstrap 100 --json"
    ),
    Golden(
        "triage-guarantee",
        "triage triage_scores.csv --choose guarantee --max-slip 0.2 --max-false-flag 0.2 --score-kind probability --bootstrap 0 --json",
    ),
    Golden(
        "triage-cost",
        "triage triage_scores.csv --choose cost --costs 10 2 1 --score-kind probability --bootstrap 0 --json",
    ),
    Golden(
        "triage-budget",
        "triage triage_scores.csv --choose budget --looks 20/100 --score-kind probability --bootstrap 0 --json",
    ),
    Golden("triage-rates", "triage triage_scores.csv --choose rates --score-kind probability --bootstrap 0 --json"),
    Golden(
        "triage-sweep",
        "triage triage_scores.csv --sweep --thresholds 0.3 0.7 --score-kind probability --bootstrap 0 --json",
    ),
)

COMPARE = (
    Golden("compare", "compare eval_a.tsv eval_b.tsv --key eval.key -p asvspoof5 --bootstrap 200 --json"),
    Golden("compare-by", "compare eval_a.tsv eval_b.tsv --key eval.key -p asvspoof5 --by codec --bootstrap 200 --json"),
    Golden(
        "compare-units",
        "compare eval_a.tsv eval_b.tsv --key eval.key -p asvspoof5 --unit speaker --bootstrap 200 --json",
    ),
    Golden("compare-auc", "compare eval_a.tsv eval_b.tsv --key eval.key -m roc_auc --positive bonafide --json"),
    Golden(
        "compare-permutation",
        "compare eval_a.tsv eval_b.tsv --key eval.key -m eer --positive bonafide --test permutation --bootstrap 200 --json",
    ),
    Golden(
        "compare-decisions",
        "compare eval_a.tsv eval_b.tsv --key eval.key -m accuracy --positive bonafide --threshold 0 --json",
    ),
    Golden(
        "compare-bh",
        "compare eval_a.tsv eval_c.tsv --key eval.key -p asvspoof5 -m eer --by codec --correction bh --bootstrap 200 --json",
    ),
    Golden("compare-three", "compare eval_a.tsv eval_b.tsv eval_c.tsv --key eval.key -p asvspoof5 -m roc_auc --json"),
    Golden(
        "compare-columns",
        "compare table.csv --column item=id --column label=kind --score-column p --score-column q --positive fake -m roc_auc --json",
    ),
    Golden("compare-toxicity", "compare predictions:base predictions:other -p toxicity --bootstrap 100 --json"),
    Golden("compare-triage", "compare triage.jsonl[model=m1] triage.jsonl[model=m2] -p triage --bootstrap 100 --json"),
    Golden(
        "compare-attacks",
        "compare attacked attacked2 -p ecg-attacks --bootstrap 100 --json",
        ("attack", "attack-other"),
    ),
)

GATE = (
    Golden("gate-files", f"gate {EVAL} --fail-if eer>0.9 --json"),
    Golden(
        "gate-results", "gate results.json --fail-if eer>0.9 --fail-if eer[codec=C02]>0.95 --json", ("write-results",)
    ),
    Golden(
        "gate-baseline",
        "gate results.json --baseline results_b.json --max-regression eer=0.5 --json",
        ("write-results", "write-results-b"),
    ),
    Golden("write-results", f"{LLR} --by codec --bootstrap 100 --unit speaker -o results.json --json"),
    Golden(
        "write-results-b",
        "score eval_b.tsv --key eval.key -p asvspoof5 --score-kind llr --by codec --bootstrap 100 --unit speaker -o results_b.json --json",
    ),
    Golden("export-csv", "export results.json --to csv -o figures.csv", ("write-results",), "figures.csv"),
    Golden("verify", "verify results.json eval_a.tsv --key eval.key --json", ("write-results",)),
    Golden("validate", "validate eval_a.tsv --key eval.key -p asvspoof5 --json"),
    Golden("sql", "sql trials --by codec --item utt"),
)

RUNS = (
    Golden(
        "detect-text",
        "detect --detector detector.py:words --data texts.csv --input text --positive toxic --negative non-toxic --outputs logit -o texts.run --json",
    ),
    Golden(
        "detect-text-scored", "score texts.run -m eer -m roc_auc --by topic --json", ("detect-text",), computed=True
    ),
    Golden(
        "detect-sound",
        "detect --detector detector.py:level --data clips/manifest.csv -p deepfake-audio --outputs logit --sample-rate 8000 --manipulate gain(db=-6) -o clips.run --json",
    ),
    Golden("detect-sound-drift", "drift clips.run --bootstrap 100 --json", ("detect-sound",), computed=True),
    Golden(
        "detect-sound-scored",
        "score clips.run -p deepfake-audio --by manipulation --json",
        ("detect-sound",),
        computed=True,
    ),
    Golden("drift", "drift conditions.csv -p deepfake-audio --bootstrap 100 --json"),
    Golden("drift-units", "drift conditions.csv -p deepfake-audio --unit speaker --bootstrap 100 --json"),
    Golden("drift-threshold", "drift conditions.csv -p deepfake-audio --threshold 0.5 --bootstrap 0 --json"),
    Golden(
        "attack",
        "attack --detector detector.py:leads --data ecg.npz --family band_noise --family baseline_wander --strengths 0.5 1.0 --outputs probability -o attacked --json",
    ),
    Golden(
        "attack-other",
        "attack --detector detector.py:leads --data ecg.npz --family band_noise --family baseline_wander --strengths 0.5 1.0 --outputs probability --threshold 0.4 -o attacked2 --json",
    ),
    Golden("attack-scored", "score attacked -p ecg-attacks --bootstrap 100 --json", ("attack",), computed=True),
    Golden(
        "attack-units",
        "score attacked -p ecg-attacks --bootstrap 100 --unit patient --json",
        ("attack",),
        computed=True,
    ),
    Golden("probe", "probe embeddings.npz --labels codec --groups speaker --json"),
    Golden("shortcuts", "shortcuts clips/manifest.csv --root clips --positive real --json", computed=True),
)

COMMANDS = (*SCORE, *TOXICITY, *TRIAGE, *COMPARE, *GATE, *RUNS)
