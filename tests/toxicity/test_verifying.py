"""What `hitmiss toxicity` claims, `hitmiss verify` finds again from the files: by whatever rules it was made."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hitmiss.cli.main import run
from hitmiss.core.artifacts import sealed


def write_rows(
    path: Path, seed: int, *, thresholds: tuple[str, ...] = ("0.4",), blanks: int = 0, one_class: bool = False
) -> None:
    rng = np.random.default_rng(seed)
    label = (rng.random(80) < 0.3) & (not one_class)
    score = np.round(np.clip(0.3 * label + 0.6 * rng.random(80), 0, 1), 6).tolist()
    rows = [
        [f"{i:03}", str(int(y)), repr(s), thresholds[i % len(thresholds)]]
        for i, (y, s) in enumerate(zip(label, score, strict=True))
    ]
    for i in range(blanks):
        rows[7 * i + 3][1 + i % 2] = ""
    path.write_text("id,y_true,y_prob,best_threshold\n" + "".join(",".join(row) + "\n" for row in rows))


def claim(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["toxicity", *words]) == 0
    return capsys.readouterr().out.strip().splitlines()[-1]


CASES = {
    "plain": ({}, [], ""),
    "dropped": ({"blanks": 6}, ["--missing", "drop"], "missing:drop(12)"),
    "first": ({"thresholds": ("0.4", "0.6")}, ["--threshold_rule", "first"], "threshold-rule:first"),
    "per-row": ({"thresholds": ("0.4", "0.6")}, ["--threshold_rule", "per-row"], "threshold-rule:per-row"),
    "undefined": ({"one_class": True}, ["--undefined", "null"], "undefined:null"),
    "given": ({}, ["--threshold", "0.37"], "decisions:given"),
    "raw": ({}, ["--scores", "any"], "kind:raw"),
    "level": ({}, ["--bootstrap", "0", "--level", "0.9"], "level:0.9"),
    "skipped": ({}, ["--missing_language", "skip", "--languages", "en", "es", "fr"], "missing-language:skip(fr)"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_claim_holds_by_the_rules_it_names(tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    shape, options, said = CASES[case]
    for seed, language in enumerate(("en", "es")):
        write_rows(tmp_path / f"run_{language}.csv", seed, **shape)  # type: ignore[arg-type]
    boot = [] if "--bootstrap" in options else ["--bootstrap", "50"]
    signature = claim(["--pred_dir", str(tmp_path), "--run_tag", "run", *options, *boot], capsys)
    assert said in signature
    files = [str(tmp_path / f"run_{language}.csv") for language in ("en", "es")]
    for sources in (files, [f"{tmp_path}:run"]):
        assert run(["verify", signature, *sources]) == 0, capsys.readouterr()
        assert "verified" in capsys.readouterr().out
    if said:  # the same claim without the rule is another claim
        name = said.partition("(")[0]
        other = signature.replace(said + "+", "").replace(f"|{said}", "").replace(f"+{said}", "")
        if other != signature and name not in ("decisions:given", "kind:raw", "missing-language:skip"):
            assert run(["verify", other, *files]) != 0


def test_a_changed_file_does_not_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed, language in enumerate(("en", "es")):
        write_rows(tmp_path / f"run_{language}.csv", seed, blanks=2)
    words = ["--pred_dir", str(tmp_path), "--run_tag", "run", "--missing", "drop", "--bootstrap", "0"]
    signature = claim(words, capsys)
    assert run(["toxicity", *words, "--json"]) == 0
    results = tmp_path / "results.json"
    results.write_text(capsys.readouterr().out)
    path = tmp_path / "run_en.csv"
    text = path.read_text()
    head, first, *others = text.splitlines(keepends=True)
    path.write_text("".join([head, *reversed(others), first]))  # the same rows in another order
    assert run(["verify", str(results), f"{tmp_path}:run"]) == 0
    assert run(["verify", signature, f"{tmp_path}:run"]) == 0
    assert "these files have other bytes" in capsys.readouterr().out
    path.write_text(text.replace("000,", "00x,", 1))  # another row, though no number depends on its name
    assert run(["verify", str(results), f"{tmp_path}:run"]) == 1
    assert "data: claimed rows" in capsys.readouterr().out
    name, label, *rest = first.split(",")
    path.write_text("".join([head, ",".join([name, str(1 - int(label)), *rest]), *others]))
    for given in (str(results), signature):
        assert run(["verify", given, f"{tmp_path}:run", "--json"]) == 1
        answer = json.loads(capsys.readouterr().out)
        assert any(line.startswith("data: claimed") for line in answer["differs"])
        assert not any("files" in line for line in answer["not_recomputed"])


def test_results_as_json_verify_too_and_a_wrong_figure_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed, language in enumerate(("en", "es")):
        write_rows(tmp_path / f"run_{language}.csv", seed, blanks=3)
    words = ["--pred_dir", str(tmp_path), "--run_tag", "run", "--missing", "drop", "--undefined", "null", "--json"]
    assert run(["toxicity", *words, "--bootstrap", "50"]) == 0
    told = json.loads(capsys.readouterr().out)
    results = tmp_path / "results.json"
    results.write_text(json.dumps(told))
    assert run(["verify", str(results), f"{tmp_path}:run"]) == 0
    row = next(e for e in told["estimates"] if e["metric"] == "f1" and e["slice"] == {"language": "es"})
    row["value"] += 1e-6
    results.write_text(json.dumps(sealed(told)))
    capsys.readouterr()
    assert run(["verify", str(results), f"{tmp_path}:run"]) == 1
    assert "f1 [language=es]: claimed value" in capsys.readouterr().out


def test_a_long_file_and_a_choice_of_its_groups_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(5)
    lines = [f"{i},{'abc'[i % 3]},{int(rng.random() < 0.4)},{rng.random():.4f},{rng.random():.2f}" for i in range(120)]
    path = tmp_path / "long.csv"
    path.write_text("id,platform,y_true,y_prob,insult\n" + "\n".join(lines) + "\n")
    for more in ([], ["--languages", "a", "b"], ["--identity", "insult"]):
        words = [str(path), "--group", "platform", "--bootstrap", "50", *more]
        signature = claim(words, capsys)
        assert run(["verify", signature, str(path)]) == 0, capsys.readouterr().out
        capsys.readouterr()


def test_a_config_default_is_part_of_the_claim(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rows(tmp_path / "run_en.csv", 0)
    (tmp_path / "run_es.csv").write_text(
        "id,y_true,y_prob\n" + "".join(f"{i},{i % 2},0.{i:02}\n" for i in range(10, 90))
    )
    (tmp_path / "c.yaml").write_text("evaluation: {default_threshold: 0.3}\n")
    words = ["--pred_dir", str(tmp_path), "--run_tag", "run", "--config", str(tmp_path / "c.yaml"), "--bootstrap", "0"]
    signature = claim(words, capsys)
    assert "default-threshold:0.3" in signature
    assert run(["verify", signature, f"{tmp_path}:run"]) == 0
    assert run(["verify", signature.replace("0.3+", "0.2+"), f"{tmp_path}:run"]) == 1
