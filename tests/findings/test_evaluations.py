"""What commands and functions over files refuse or note: one small case for each code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.findings.producing import Case, assert_produces

import hitmiss as hm
from hitmiss.boards.plan import plan_of, read_plan
from hitmiss.claims.open import split_choice
from hitmiss.claims.verify import verify
from hitmiss.core.design import Design
from hitmiss.core.header import Header
from hitmiss.core.trials import Trials, stack
from hitmiss.engine.rank import compare_runs
from hitmiss.evaluation.gate import gate
from hitmiss.evaluation.given import reading_of
from hitmiss.evaluation.protocol import load_protocol
from hitmiss.io.embeddings import load_embeddings
from hitmiss.io.languages import find_run
from hitmiss.io.write import write_scores
from hitmiss.protocols.deepfake_audio import extract_scores_from_beats_output
from hitmiss.protocols.toxicity import load_files
from hitmiss.robustness.attacks import measure_attacks
from hitmiss.runs.manifest import load_manifest
from hitmiss.verdicts.stability import measure_repeated

N = 12


def trials(shift: float = 0.0, **header: object) -> Trials:
    """Twelve trials of two classes."""
    head = Header(**{"positive": "bonafide", "negative": "spoof", "score_kind": "raw", **header})  # type: ignore[arg-type]
    made = Trials.of([1, 0] * 6, [(k * 5 % 12) + shift for k in range(N)], item=[f"i{k}" for k in range(N)])
    return Trials(made.frame, head)


def negatives() -> Trials:
    """Trials of one class, which have no equal error rate."""
    return Trials(trials().frame.filter(pl.col("label") == 0), trials().header)


def files(folder: Path) -> None:
    """Write what the commands read."""
    rows = [f"i{k},{'bonafide' if k % 2 else 'spoof'},{k * 5 % 12},c{k // 6},s{k}" for k in range(N)]
    for name in ("a", "b"):
        (folder / f"{name}.csv").write_text("\n".join(["id,label,score,codec,speaker", *rows]))
    (folder / "verdicts.csv").write_text(
        "id,label,verdict,confidence,model\n"
        + "\n".join(f"i{k},{('real', 'fake')[k % 2]},{('real', 'fake')[k % 2]},0.8,{'mn'[k // 6]}" for k in range(N))
    )
    (folder / "counts.csv").write_text("group,flagged,n\nall,30,100\n")
    (folder / "half.csv").write_text("group,flagged,n,flagged_labelled\nall,30,100,5\n")
    (folder / "bare.csv").write_text("group,flagged\nall,30\n")
    (folder / "en.csv").write_text("id,y_true,y_prob\n" + "\n".join(f"{k},{k % 2},0.{k % 9 + 1}" for k in range(N)))
    (folder / "lines.jsonl").write_text(
        '{"id": "a", "label": 1, "score": 2, "codec": "x"}\n{"id": "b", "label": 0, "score": 1}\n'
    )
    (folder / "board.toml").write_text('[datasets.main]\nkey = "a.csv"\n')
    (folder / "words.toml").write_text("datasets = 3\n")
    (folder / "path.toml").write_text("submissions = 3\nkeys = 'keys'\n")
    (folder / "broken.toml").write_text("= 3")
    (folder / "full.csv").write_text(
        "group,flagged,n,flagged_positive,flagged_labelled,passed_positive,passed_labelled\nall,30,100,5,10,1,10\n"
    )
    hm.measure(trials(), "eer", bootstrap=0).save(folder / "results.json")
    (folder / "subs").mkdir()
    (folder / "keys").mkdir()
    for name in ("one", "two"):
        (folder / "keys" / f"{name}.csv").write_text("id,label\ni0,spoof\ni1,bonafide\n")
    (folder / "subs" / "system.csv").write_text("id,score\ni0,1\ni1,2\n")
    (folder / "empty").mkdir()
    (folder / "one_class.csv").write_text("id,label,score\n" + "\n".join(f"n{k},spoof,{k}" for k in range(8)))
    (folder / "no_ids.csv").write_text("label,verdict\nreal,fake\n")
    (folder / "silent.csv").write_text(
        "id,label,prediction,confidence\n" + "\n".join(f"n{k},{('real', 'fake')[k % 2]},uncertain," for k in range(8))
    )
    whole = "\n".join(
        ["id,label,score,codec", *(f"i{k},{('spoof', 'bonafide')[k % 2]},{k * 5 % 12},c" for k in range(N))]
    )
    (folder / "alike.csv").write_text(whole)
    (folder / "wide.csv").write_bytes(whole.encode("utf-16-le"))
    (folder / "latin.csv").write_bytes(whole.replace("i0", "é0").encode("latin-1"))
    (folder / "lacking.csv").write_text(f"{whole}\nx,spoof,,c\n")
    (folder / "numbered.csv").write_text(
        "y_true,y_prob,language\n" + "\n".join(f"{k % 2},0.{k % 9 + 1},en" for k in range(N))
    )
    (folder / "manifest.csv").write_text("file\na.csv\n")
    (folder / "weight.toml").write_text(
        '[datasets.main]\nkey = "keys/one.csv"\nweight = "x"\n[systems.s]\nmain = "subs/system.csv"\n'
    )


def verified_with_one_run() -> object:
    hm.run(["compare", "a.csv", "b.csv", "-m", "eer", "--bootstrap", "20", "-o", "both.json"])
    return hm.run(["verify", "both.json", "a.csv"])


def pair(a: Trials, b: Trials) -> Callable[[], object]:
    return lambda: hm.compare(a, b, "eer", bootstrap=20)


def embeddings(**arrays: object) -> Callable[[], object]:
    def read() -> object:
        np.savez("e.npz", **arrays)  # type: ignore[arg-type]
        return load_embeddings("e.npz")

    return read


IDS = np.array(["a", "b"])

CASES: Sequence[tuple[str, Case]] = [
    # files
    ("lines-lack-names", "score lines.jsonl -m eer"),
    ("not-embeddings", embeddings(ids=IDS)),
    ("not-embeddings/sizes", embeddings(ids=IDS, layer=np.zeros((3, 2)))),
    ("not-embeddings/array", embeddings(ids=IDS, layer=np.zeros((2, 2, 2, 2)))),
    ("holds-objects", embeddings(ids=np.array(["a", 3], dtype=object), layer=np.zeros((2, 2)))),
    ("bad-run-tag", lambda: find_run(".", "../base")),
    ("unread-option/predictions", lambda: hm.read("a.csv", threshold_rule="first")),
    ("unwritable-value", lambda: write_scores(
        Trials(trials().frame.with_columns(item=pl.lit('a"b') + pl.col("item")), trials().header), "out.tsv"
    )),
    ("read-already", lambda: hm.measure(trials(), "eer", positive="fake")),
    ("table-for-labels", lambda: hm.Trials.of(pl.DataFrame({"label": [1, 0], "score": [2, 3]}))),
    ("report-order", lambda: hm.report("report.html", hm.evaluate([1, 0], [2, 3]))),
    ("report-kind", lambda: hm.evaluate([1, 0], [2, 3]).report("report.pdf")),
    ("swapped-arrays", lambda: hm.evaluate([0.1, 0.2, 0.3], [1, 0, 1])),
    ("array-for-name", lambda: hm.evaluate(pl.DataFrame({"label": [1, 0], "score": [2, 3]}), by=np.array(["a", "b"]))),
    ("columns-by-keyword", lambda: hm.evaluate(pl.DataFrame({"truth": [1, 0], "score": [2, 3]}), "truth")),
    ("unequal-columns", lambda: hm.evaluate({"label": [1, 0], "score": [2]})),
    # comparing
    ("one-run", lambda: compare_runs({"a": trials()}, Design.of(["eer"]))),
    ("other-classes", pair(trials(), trials(positive="real"))),
    ("other-score-kind", pair(trials(), trials(score_kind="llr"))),
    ("same-name/runs", lambda: hm.rank(["x/a.csv", "y/a.csv"], "eer")),
    ("undefined/every-run", lambda: hm.over_repeats(
        hm.measure(stack({"1": negatives(), "2": negatives()}, "trial"), "eer", bootstrap=0), "trial"
    )),
    ("incomparable/baseline", lambda: gate(
        hm.measure(trials(), "eer", bootstrap=0),
        max_regression=["eer=0.1"],
        baseline=hm.measure(trials(positive="real"), "eer", bootstrap=0),
    )),
    ("incomparable/other-items", lambda: gate(
        trials(), max_regression=["eer=0.1"], baseline=Trials.of([1, 0] * N, range(2 * N))
    )),
    ("no-pull-request", "gate a.csv --fail-if eer>0.9 --post gitlab"),
    ("missing-gate-file", "gate a.csv --rules nowhere.toml"),
    ("bad-gate-file", "gate a.csv --rules broken.toml"),
    # evaluating
    ("missing-file", lambda: load_protocol("nowhere.toml")),
    ("nothing-to-read", lambda: reading_of(None, {})),
    ("bad-columns", lambda: hm.evaluate("a.csv", metrics="eer", score="score", columns=3)),  # type: ignore[arg-type]
    ("bad-costs", "calibrate a.csv --apply b.csv --costs much"),
    ("missing-column/counts", "prevalence bare.csv"),
    ("missing-column/labels", "prevalence half.csv"),
    ("raw-outputs", lambda: extract_scores_from_beats_output(np.zeros((2, 2)), outputs="raw")),
    ("repeated-language", lambda: load_files(["x_en.csv", "y_en.csv"])),
    ("nothing-repeated", lambda: measure_repeated(trials(), Design.of(["eer"]), "trial")),
    # commands
    ("fitted-already", "fuse a.csv b.csv --model m.json --save n.json"),
    ("stdin-twice", "init -"),
    ("no-key/say-where", "board subs -m eer"),
    ("keys-twice", "board board.toml --keys keys -m eer"),
    ("no-data-set", "board subs --keys keys -m eer"),
    ("bad-board", lambda: read_plan("board.toml")),
    ("bad-board/table", lambda: read_plan("words.toml")),
    ("bad-board/path", lambda: read_plan("path.toml")),
    ("bad-board/form", lambda: read_plan("broken.toml")),
    ("no-data-set/file", lambda: plan_of({"s": "subs/system.csv"}, {"one": "keys/one.csv", "two": "keys/two.csv"})),
    ("several-runs/thresholds", "triage verdicts.csv --sweep"),
    ("least-confidences", "triage verdicts.csv --least-confidence 0.1 0.2 0.3"),
    ("group-of-files/about", "toxicity en.csv --missing_language skip"),
    ("key-of-run", "toxicity --pred_dir . --run_tag base --key a.csv"),
    ("unread-option", "gate results.json --fail-if eer>0.1 --weight w --weight-kind frequency"),
    ("bad-where", "prevalence counts.csv --detector results.json --where ="),
    ("rates-twice", "prevalence counts.csv --detector results.json --sensitivity 9/10 --specificity 9/10"),
    ("no-rates/option", "prevalence full.csv --rates rates.csv"),
    ("more-checks", "gate a.csv " + " ".join(f"--fail-if eer>0.{k}" for k in range(9)) + " --fail-if roc_auc<0.9"),
    # claims, runs
    ("bad-choice", lambda: split_choice("a.csv[model=]")),
    ("comparison-signature", lambda: verify("hitmiss:1|compare:a,b|metrics:eer|n:5/3", "a.csv")),
    ("not-a-run", lambda: load_manifest(".")),
    # what is asked of files that are there
    ("calibration-open", "score verdicts.csv -m accuracy -m ece --positive fake"),
    ("nothing-answered", "triage silent.csv"),
    ("confidences-undefined", "triage silent.csv"),
    ("new-scores-reversed", "replace a.csv b.csv --threshold 3 --higher spoof"),
    ("bad-weight/number", "board weight.toml -m eer"),
    ("several-tables", "score duckdb:x.db#t duckdb:x.db#u -m eer"),
    ("other-engine", "score duckdb:x.db#t --engine polars -m eer"),
    ("key-not-a-table/same", "score duckdb:x.db#t --key keys/one.csv -m eer"),
    ("table-address", "compare duckdb:x.db#t duckdb:x.db#u -m eer"),
    ("bad-address", "score duckdb:x.db -m eer"),
    ("no-labels/manifest", lambda: hm.detect(len, "manifest.csv", "out")),
    ("no-run-column/attack", lambda: measure_attacks(trials())),
    ("no-match", "score nothing-*.csv -m eer"),
    ("bad-level", "prevalence counts.csv --sensitivity 90/100 --specificity 90/100 --level 2"),
    ("option-count", "compare a.csv b.csv -m eer --key keys/one.csv --key keys/one.csv --key keys/two.csv"),
    ("several-keys", "verify results.json a.csv --key keys/one.csv --key keys/two.csv"),
    ("other-runs", verified_with_one_run),
    ("requirement-not-shown", "score a.csv -m eer --require eer<=0.4 --bootstrap 50"),
    ("requirement-undefined", "score one_class.csv -m eer --require eer<=0.4 --bootstrap 50 --positive bonafide"),
    ("gate-not-shown", "gate a.csv --require eer<=0.4 --bootstrap 50"),
    ("group-of-files", "toxicity --pred_dir . --run_tag base --group country"),
    ("no-predictions/say", "toxicity"),
    ("several-scores", "score counts.csv --counts --score-column x --score-column y -m eer"),
    ("unread-option/weight", "score counts.csv --counts -m eer --weight w --weight-kind frequency"),
    ("key-of-counts", "score counts.csv --counts --key keys/one.csv -m eer"),
    ("needs-every-trial/bands", "score a.csv --stream --by score:0,5 -m eer"),
    ("no-key/say", lambda: hm.board({"a": "subs/system.csv"}, None, metrics="eer")),
    ("no-key/holds", lambda: hm.board("subs", "empty", metrics="eer")),
    ("no-folder/keys", lambda: hm.board("subs", "nowhere", metrics="eer")),
    ("no-submission", lambda: hm.board("empty", "keys", metrics="eer")),
    ("bare-pilot", "plan a.csv --width 0.02 -m min_cllr --bootstrap 0"),
    ("no-id", "review no_ids.csv --store s.sqlite"),
    ("missing-column/score", "review verdicts.csv --thresholds 0.2 0.8 --store s.sqlite"),
    ("no-media", "review verdicts.csv --verdicts all --store s.sqlite"),
    ("nothing-to-review/called", "review verdicts.csv --verdicts uncertain --store s.sqlite"),
    ("unused-human", "report results.json --human verdicts.csv -o r.html"),
    ("no-trials-behind", lambda: hm.Results.load("results.json").plot.det()),
    ("no-metric/protocol", "compare verdicts.csv verdicts.csv -p asvspoof5"),
    ("ambiguous-column", "score a.csv -m eer --weight score --weight-kind frequency"),
    # notes of the reader
    ("encoding-guessed", "score wide.csv -m eer"),
    ("encoding-guessed/latin", "score latin.csv -m eer"),
    ("one-slice", "score alike.csv -m eer --by codec"),
    ("rows-dropped", "score lacking.csv -m eer --missing drop"),
    ("rows-numbered", "toxicity numbered.csv"),
    ("no-slice-column", lambda: hm.read("a.csv", slices=["nope"])),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case"), CASES, ids=[case[0] for case in CASES])
def test_produced(code: str, case: Case, tmp_path: Path) -> None:
    files(tmp_path)
    assert_produces(code, case, tmp_path)


def test_a_manifest_that_is_not_json(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    (tmp_path / "manifest.json").write_text("{")
    assert_produces("damaged-run/json", lambda: load_manifest(tmp_path), tmp_path)
