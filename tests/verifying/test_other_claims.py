"""Gates and boards are claims too: true ones hold, and what was edited and sealed again is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claims import said, write_files

from hitmiss.core.artifacts import sealed

Edit = Callable[[dict[str, Any]], object]
GATES = {
    "scores": (
        "gate eval_a.tsv --key eval.key -p asvspoof5 --fail-if eer>0.01 --fail-if roc_auc<0.5 --bootstrap 0 --json",
        ["eval_a.tsv", "--key", "eval.key"],
    ),
    "results": ("gate kept.json --fail-if eer>0.9 --require eer<=0.5 --json", ["kept.json"]),
    "baseline": (
        "gate eval_a.tsv --key eval.key -p asvspoof5 --baseline eval_b.tsv --max-regression eer=0.5 --bootstrap 50 --json",
        ["eval_a.tsv", "eval_b.tsv", "--key", "eval.key"],
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("others")
    write_files(place)
    made = "score eval_a.tsv --key eval.key -p asvspoof5 --bootstrap 50 -o kept.json"
    assert said(made.split(), place)[0] == 0
    make_board(place)
    return place


def make_board(folder: Path) -> None:
    """Submissions of three systems, and their board."""
    (folder / "systems").mkdir(exist_ok=True)
    for name in ("eval_a.tsv", "eval_b.tsv", "eval_c.tsv"):
        shutil.copy(folder / name, folder / "systems" / name)
    words = "board systems --keys eval.key -p asvspoof5 -m eer --bootstrap 50 -o board.json"
    code, text = said(words.split(), folder)
    assert code == 0, text


def gate_claim(folder: Path, name: str) -> dict[str, Any]:
    code, text = said(["--quiet", *GATES[name][0].split()], folder)
    assert code in (0, 1), text
    document: dict[str, Any] = json.JSONDecoder().raw_decode(text[text.index("{") :])[0]
    return document


@pytest.mark.parametrize("name", GATES)
def test_the_outcome_of_a_gate_is_judged_again(folder: Path, name: str) -> None:
    document = gate_claim(folder, name)
    (folder / "gate.json").write_text(json.dumps(document), encoding="utf-8")
    code, text = said(["verify", "gate.json", *GATES[name][1]], folder)
    assert code == 0 and "verified" in text, text


@pytest.mark.parametrize(("name", "runs"), [("scores", ["eval_a.tsv", "eval_b.tsv"]), ("baseline", ["eval_a.tsv"])])
def test_a_gate_is_judged_again_with_its_runs_and_no_others(folder: Path, name: str, runs: list[str]) -> None:
    (folder / "gate.json").write_text(json.dumps(gate_claim(folder, name)), encoding="utf-8")
    code, text = said(["verify", "gate.json", *runs, "--key", "eval.key"], folder)
    assert code == 2 and "run" in text, text


GATE_EDITS: dict[str, Edit] = {
    "passed": lambda d: d.update(passed=not d["passed"]),
    "check passed": lambda d: d["checks"][0].update(passed=not d["checks"][0]["passed"]),
    "value": lambda d: d["checks"][0].update(value=0.001),
    "limit": lambda d: d["checks"][0].update(limit=0.5),
    "reason": lambda d: d["checks"][0].update(reason="0.001"),
    "outcome": lambda d: d["checks"][0].update(outcome="edited"),
    "rule": lambda d: d["checks"][0].update(rule="eer > 0.99"),
    "figure": lambda d: d["checks"][0].update(figure="worst eer"),
    "check removed": lambda d: d["checks"].pop(),
    "check added": lambda d: d["checks"].append({**d["checks"][0], "rule": "f1 < 0.1"}),
    "checks turned": lambda d: d["checks"].reverse(),
    "warning added": lambda d: d["warnings"].append("checked by a friend"),
    "headline": lambda d: d["verdict"].update(headline="Everything is fine."),
    "status": lambda d: d["verdict"].update(status="shown, twice"),
    "answer": lambda d: d["verdict"]["answers"].pop(),
    "rules asked": lambda d: d["asked"]["limits"].update(fail_if=["eer > 0.99"]),
    "asked removed": lambda d: d.pop("asked"),
    "field added": lambda d: d.update(approved=True),
    "passed removed": lambda d: d.pop("passed"),
    "field of asked added": lambda d: d["asked"].update(approved=True),
    "run of the verdict": lambda d: d["verdict"]["subject"].update(run="another.tsv"),
    "rules of the protocol": lambda d: d["asked"]["design"]["protocol"].update(title="another"),
}


@pytest.mark.parametrize("edit", GATE_EDITS)
def test_an_edited_gate_is_refused(folder: Path, edit: str) -> None:
    document = gate_claim(folder, "scores")
    before = json.dumps(document)
    GATE_EDITS[edit](document)
    assert json.dumps(document) != before
    (folder / "gate.json").write_text(json.dumps(sealed(document)), encoding="utf-8")
    code, text = said(["verify", "gate.json", *GATES["scores"][1]], folder)
    assert code in (1, 3) and "bug" not in text, text


def test_a_board_is_ranked_again(folder: Path) -> None:
    code, text = said(["verify", "board.json", "systems", "--key", "eval.key"], folder)
    assert code == 0 and "verified: 3" in text, text


BOARD_EDITS: dict[str, Edit] = {
    "rank": lambda d: d["systems"][0].update(rank=2),
    "rank interval": lambda d: d["systems"][0].update(rank_high=1, rank_low=1),
    "tier": lambda d: d["systems"][2].update(tier=1),
    "name": lambda d: d["systems"][0].update(system="ours"),
    "systems turned": lambda d: d["systems"].reverse(),
    "system removed": lambda d: d["systems"].pop(),
    "value": lambda d: d["systems"][0]["number"].update(value=0.001),
    "interval": lambda d: d["systems"][0]["number"].update(low=0.001),
    "average": lambda d: d["systems"][0]["average"].update(value=0.001),
    "details": lambda d: d["systems"][0]["details"].clear(),
    "missing": lambda d: d["systems"][0]["missing"].append("all"),
    "pair": lambda d: d["pairs"][0].update(p_adjusted=1e-9),
    "pair removed": lambda d: d["pairs"].pop(),
    "metric": lambda d: d.update(metric="f1"),
    "best": lambda d: d.update(best="high"),
    "level": lambda d: d.update(level=0.99),
    "draws": lambda d: d.update(draws=10**6),
    "title": lambda d: d.update(title="The official board"),
    "rejected": lambda d: d["rejected"].append({"system": "theirs", "reason": "late"}),
    "unknown files": lambda d: d["unknown_files"].append("x.tsv"),
    "weights": lambda d: d["datasets"][0].update(weight=7.0),
    "design removed": lambda d: d.pop("design"),
    "field added": lambda d: d.update(approved=True),
    "seed removed": lambda d: d.pop("seed"),
    "rules of the protocol": lambda d: d["design"]["protocol"].update(title="another"),
}


def test_what_a_claim_only_states_is_named(folder: Path) -> None:
    """Another version of a board, and a run of a gate by another name than its file's: they hold, and the answer says so."""
    board = json.loads((folder / "board.json").read_text(encoding="utf-8"))
    (folder / "edited.json").write_text(json.dumps(sealed({**board, "hitmiss": "9.9"})), encoding="utf-8")
    code, text = said(["verify", "edited.json", "systems", "--key", "eval.key"], folder)
    assert code == 0 and "claimed hitmiss 9.9" in text
    gate = json.loads(json.dumps(gate_claim(folder, "scores")).replace("eval_a.tsv", "ours.tsv"))
    (folder / "edited.json").write_text(json.dumps(sealed(gate)), encoding="utf-8")
    code, text = said(["verify", "edited.json", *GATES["scores"][1]], folder)
    assert code == 0 and "the name ours.tsv (the file is eval_a.tsv)" in text, text


@pytest.mark.parametrize("edit", BOARD_EDITS)
def test_an_edited_board_is_refused(folder: Path, edit: str) -> None:
    document = json.loads((folder / "board.json").read_text(encoding="utf-8"))
    before = json.dumps(document)
    BOARD_EDITS[edit](document)
    assert json.dumps(document) != before
    (folder / "edited.json").write_text(json.dumps(sealed(document)), encoding="utf-8")
    code, text = said(["verify", "edited.json", "systems", "--key", "eval.key"], folder)
    assert code in (1, 3) and "bug" not in text, text


@pytest.mark.parametrize(
    "words",
    [
        "gate unsealed.json --fail-if eer>0.9", "report unsealed.json -o x.html", "export unsealed.json -o x.csv",
        "verify unsealed.json eval_a.tsv --key eval.key", "plan unsealed.json --width 0.1",
    ],
)  # fmt: skip
def test_every_verb_that_takes_results_refuses_a_missing_digest(folder: Path, words: str) -> None:
    document = json.loads((folder / "kept.json").read_text(encoding="utf-8"))
    document.pop("digest")
    (folder / "unsealed.json").write_text(json.dumps(document), encoding="utf-8")
    code, text = said(words.split(), folder)
    assert code == 3 and "carries no digest" in text, text
