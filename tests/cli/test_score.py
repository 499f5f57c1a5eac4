"""`hitmiss score` and `hitmiss verify` from files to exit codes."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.artifacts import sealed
from hitmiss.core.results import Results


class Command:
    """Runs the command in-process and keeps what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: object, code: int = 0) -> str:
        got = run([str(w) for w in words])
        self.text, self.errors = self.capsys.readouterr()
        assert got == code, self.errors
        return self.text

    def json(self, *words: object) -> dict:  # type: ignore[type-arg]
        return json.loads(self("score", *words, "--json"))  # type: ignore[no-any-return]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """An official score TSV and a 10-column protocol, two systems and a development set."""
    rng = np.random.default_rng(3)
    for name, n in (("eval", 2400), ("dev", 900)):
        real = rng.random(n) < 0.3
        codec = rng.choice(["-", "C01", "C02"], n) if name == "eval" else np.full(n, "-")
        quality = np.where(codec == "-", "0" if name == "eval" else "-", rng.choice(["1", "2"], n))
        ids = [f"E_{i:010d}" for i in range(n)]
        rows = zip(rng.integers(0, 30, n), ids, codec, quality, rng.choice(["A17", "A18"], n), real, strict=True)
        protocol = [
            f"S_{s:04d} {i} F {c} {q} - {'-' if r else 'AC1'} {'bonafide' if r else a} {'bonafide' if r else 'spoof'} -"
            for s, i, c, q, a, r in rows
        ]
        (tmp_path / f"{name}.tsv").write_text("\n".join(protocol) + "\n")
        for system, strength in (("a", 2.2), ("b", 1.6)):
            score = rng.normal(0, 1, n) + strength * real
            lines = [f"{i}\t{s!r}" for i, s in zip(ids, score.tolist(), strict=True)]
            (tmp_path / f"{name}_{system}.tsv").write_text("filename\tcm-score\n" + "\n".join(lines) + "\n")
    return tmp_path


def official(files: Path, *extra: object) -> list[object]:
    return [files / "eval_a.tsv", "--key", files / "eval.tsv", "-p", "asvspoof5", *extra]


def test_json_has_the_published_shape(command: Command, files: Path) -> None:
    got = command.json(*official(files, "--by", "codec"))
    assert got["schema"] == 1 and got["signature"].startswith("hitmiss:") and isinstance(got["warnings"], list)
    rows = {(e["metric"], e["slice"].get("codec"), e["average"]): e for e in got["estimates"]}
    row = rows["eer", "C01", None]
    wanted = {"metric", "value", "low", "high", "n", "n_positive", "run", "slice", "average", "note"}
    assert wanted <= set(row) and row["run"] == {} and row["slice"] == {"codec": "C01"}
    assert {e["slice"]["codec"] for e in got["estimates"] if e["average"] is None and e["slice"]} == {
        "NONE",
        "C01",
        "C02",
    }


def test_figures_equal_the_functions_on_the_same_files(command: Command, files: Path) -> None:
    got = command.json(*official(files, "--score-kind", "llr"))
    score = pl.read_csv(files / "eval_a.tsv", separator="\t")["cm-score"].to_numpy()
    label = np.array([line.split()[8] == "bonafide" for line in (files / "eval.tsv").read_text().splitlines()])
    for e in got["estimates"]:
        settings = {"ties": "official"} if e["metric"] == "eer" else {}
        assert e["value"] == pytest.approx(getattr(hm.metrics, e["metric"])(label, score, **settings), abs=1e-12)
    assert {e["metric"] for e in got["estimates"]} == {"min_dcf", "eer", "act_dcf", "cllr", "min_cllr", "roc_auc"}


def test_scores_of_unknown_kind_leave_out_what_needs_llrs_and_say_so(command: Command, files: Path) -> None:
    got = command.json(*official(files))
    assert "act_dcf" not in {e["metric"] for e in got["estimates"]}
    assert any("act_dcf and cllr left out" in w for w in got["warnings"])
    command("score", *official(files, "-m", "act_dcf"), code=3)
    assert "act_dcf needs llr scores" in command.errors


def test_the_table_shows_intervals_averages_gap_and_signature(command: Command, files: Path) -> None:
    text = command(
        "score", *official(files, "--by", "codec", "--by", "codec,codec_q", "--bootstrap", "50", "--unit", "speaker")
    )
    for part in (
        "95% interval",
        "by codec",
        "by codec × codec_q",
        "pooled",
        "macro",
        "worst",
        "gap: codec rest − NONE",
        "|out:",
    ):
        assert part in text
    assert "2,400 trials" in text and "\x1b" not in text


def test_python_and_command_give_the_same_results(command: Command, files: Path) -> None:
    got = command.json(*official(files, "--by", "codec", "--bootstrap", "40", "--seed", "5"))
    same = hm.evaluate(files / "eval_a.tsv", files / "eval.tsv", "asvspoof5", by=["codec"], bootstrap=40, seed=5)
    assert got.pop("verdict") == json.loads(json.dumps(same.verdict.to_dict()))
    assert {**got, "digest": ""} == {**json.loads(same.to_json()), "digest": ""}, "the digest covers the verdict too"


def test_matrix_of_attacks_and_codecs(command: Command, files: Path) -> None:
    text = command("score", *official(files, "--matrix", "attack,codec", "-m", "eer", "--bootstrap", "0"))
    line = next(line for line in text.splitlines() if line.startswith("A17") and line.count("0.") == 4)
    assert len(line.split()) == 5
    command("score", *official(files, "--matrix", "attack"), code=2)


def test_probabilities_declared_llr_are_pointed_out(command: Command, files: Path) -> None:
    rows = [line.split("\t") for line in (files / "eval_a.tsv").read_text().splitlines()[1:]]
    squashed = "".join(f"{name}\t{1 / (1 + np.exp(-float(score)))!r}\n" for name, score in rows)
    (files / "p.tsv").write_text("filename\tcm-score\n" + squashed.replace("np.float64(", "").replace(")", ""))
    given = ["--key", files / "eval.tsv", "-p", "asvspoof5", "--score-kind", "llr"]
    assert any("all lie in 0..1" in w for w in command.json(files / "p.tsv", *given)["warnings"])
    assert not any("all lie in 0..1" in w for w in command.json(files / "eval_a.tsv", *given)["warnings"])


def test_one_file_twice_is_not_two_seeds(command: Command, files: Path) -> None:
    head, *rows = (files / "eval_a.tsv").read_text().splitlines()
    (files / "again.tsv").write_text("\n".join([head, *rows[::-1]]) + "\n")
    words = ["--key", files / "eval.tsv", "-p", "asvspoof5", "--seeds"]
    got = command.json(files / "eval_a.tsv", files / "again.tsv", files / "eval_b.tsv", *words)
    assert [w for w in got["warnings"] if "hold the same scores" in w] == [
        "eval_a and again hold the same scores: they are one run, not two"
    ]


def test_a_unit_is_never_ignored_in_silence(command: Command, files: Path) -> None:
    assert any(
        "--bootstrap" in w for w in command.json(*official(files, "--unit", "speaker", "--bootstrap", "0"))["warnings"]
    )
    command("score", *official(files, "--unit", "speeker"), code=2)
    assert "speaker" in command.errors
    command("score", *official(files, "--unit", "speeker", "--bootstrap", "20"), code=2)


def test_seeds_give_mean_sd_min_max(command: Command, files: Path) -> None:
    got = command.json(
        files / "eval_a.tsv", files / "eval_b.tsv", "--key", files / "eval.tsv", "-p", "asvspoof5", "--seeds"
    )
    rows = {
        (e["average"], e["run"].get("seed")): e["value"]
        for e in got["estimates"]
        if e["metric"] == "eer" and not e["slice"]
    }
    a, b = rows[None, "eval_a"], rows[None, "eval_b"]
    assert rows["mean", None] == pytest.approx((a + b) / 2) and rows["sd", None] == pytest.approx(abs(a - b) / 2**0.5)
    assert (rows["min", None], rows["max", None]) == (min(a, b), max(a, b))


def test_several_systems_in_one_file(command: Command, files: Path) -> None:
    label = np.array([line.split()[8] for line in (files / "eval.tsv").read_text().splitlines()])
    systems = {s: pl.read_csv(files / f"eval_{s}.tsv", separator="\t")["cm-score"] for s in "ab"}
    pl.DataFrame({"file": [f"u{i}" for i in range(len(label))], "key": label, **systems}).write_csv(files / "both.csv")
    got = command.json(files / "both.csv", "-p", "asvspoof5", "--score-column", "a", "--score-column", "b", "-m", "eer")
    alone = command.json(*official(files, "-m", "eer"))["estimates"][0]["value"]
    assert [(e["run"], e["value"] == alone) for e in got["estimates"]] == [
        ({"system": "a"}, True),
        ({"system": "b"}, False),
    ]


def test_calibration_on_dev_shows_before_and_after(command: Command, files: Path) -> None:
    dev = ["--calibrate-on", files / "dev_a.tsv", "--calibrate-key", files / "dev.tsv"]
    got = command.json(*official(files, *dev, "--score-kind", "llr"))
    rows = {(e["run"]["calibration"], e["metric"]): e["value"] for e in got["estimates"]}
    assert rows["after affine", "cllr"] < rows["before", "cllr"]
    assert rows["after affine", "act_dcf"] < rows["before", "act_dcf"]
    for same in ("eer", "min_dcf", "min_cllr"):
        assert rows["after affine", same] == pytest.approx(rows["before", same], abs=1e-12)


def test_threshold_makes_decisions(command: Command, files: Path) -> None:
    got = command.json(*official(files, "--threshold", "1.0", "-m", "accuracy", "-m", "f1", "--unit", "none"))
    assert got["estimates"][0]["method"] == "wilson" and "threshold:1.0 (given)" in got["signature"]


@pytest.mark.parametrize("way", ["results", "signature"])
def test_verify_holds_for_the_same_files_and_not_for_others(command: Command, files: Path, way: str) -> None:
    out = files / "results.json"
    command("score", *official(files, "--by", "codec", "--bootstrap", "30", "--unit", "speaker", "-o", out))
    claim = str(out) if way == "results" else Results.load(out).signature
    assert "verified" in command("verify", claim, files / "eval_a.tsv", "--key", files / "eval.tsv")
    command("verify", claim, files / "eval_b.tsv", "--key", files / "eval.tsv", code=1)
    assert "data: claimed" in command.text and "does not hold" in command.errors


def test_verify_finds_an_edited_figure(command: Command, files: Path) -> None:
    out = files / "results.json"
    command("score", *official(files, "-o", out))
    data = json.loads(out.read_text())
    data["estimates"][1]["value"] -= 0.001
    out.write_text(json.dumps(data))
    command("verify", out, files / "eval_a.tsv", "--key", files / "eval.tsv", code=1)
    assert "does not match its own digest" in command.errors
    out.write_text(json.dumps(sealed(data)))
    command("verify", out, files / "eval_a.tsv", "--key", files / "eval.tsv", code=1)
    assert "differs: eer: claimed value" in command.text


def test_reversed_scores_warn_and_fail_under_strict(command: Command, files: Path) -> None:
    table = pl.read_csv(files / "eval_a.tsv", separator="\t").with_columns(-pl.col("cm-score"))
    table.write_csv(files / "turned.tsv", separator="\t")
    words = [files / "turned.tsv", "--key", files / "eval.tsv", "-p", "asvspoof5"]
    assert any("REVERSED" in w for w in command.json(*words)["warnings"])
    command("score", *words, "--strict", code=3)
    assert "REVERSED" in command.errors
    turned_back = command.json(*words, "--higher", "spoof", "-m", "eer")["estimates"][0]["value"]
    assert turned_back == command.json(*official(files, "-m", "eer"))["estimates"][0]["value"]


def test_wrong_questions_end_with_2_and_name_the_nearest(command: Command, files: Path) -> None:
    for words, hint in (
        (["-m", "eeer"], "did you mean 'eer'"),
        (["--by", "codek"], "did you mean 'codec'"),
        (["--gap", "codec"], "write column=in"),
        (["--column", "item"], "write name=value"),
        (["--interval", "bcaa"], "did you mean 'bca'"),
    ):
        command("score", *official(files, *words), code=2)
        assert hint in command.errors and "Traceback" not in command.errors
    command("score", files / "eval_a.tsv", "-p", "asvspof5", code=2)
    assert "did you mean 'asvspoof5'" in command.errors


def test_a_single_domain_split_is_called_trivial(command: Command, files: Path) -> None:
    got = command.json(files / "dev_a.tsv", "--key", files / "dev.tsv", "-p", "asvspoof5", "--by", "codec")
    assert not any(e["slice"] for e in got["estimates"]) and any("trivial" in w for w in got["warnings"])


def test_a_slice_without_an_interval_says_why_under_the_table(command: Command, tmp_path: Path) -> None:
    """A row has no room for the reason, so lines below give it: here every slice but the first has three speakers.

    The worst row is named first, as its slice alone has none; the others go on in the order of the table.
    """
    rng, path = np.random.default_rng(0), tmp_path / "s.csv"
    rows = ["id,label,score,codec,speaker"]
    for codec, trial in itertools.product(range(6), range(90)):
        kind, speaker = ("bonafide", "spoof")[trial >= 30], f"s{trial % (3 if codec else 15)}"
        rows.append(f"{codec}_{trial},{kind},{2 * (trial < 30) + rng.normal()},{codec},{speaker}")
    path.write_text("\n".join(rows) + "\n")
    words = ("score", path, "-m", "eer", "--by", "codec", "--bootstrap", "50", "--unit", "speaker")
    said = [line for line in command(*words).splitlines() if line.startswith("no interval for ")]
    found = [e for e in json.loads(command(*words, "--json"))["estimates"] if e["slice"] and e["low"] is None]
    without = sorted(found, key=lambda e: e["average"] != "worst")
    assert len(without) > 3 and [e["average"] for e in without[:2]] == ["worst", None]
    for line, e in zip(said, without[:3], strict=False):
        place = f"{'worst ' if e['average'] else ''}codec {e['slice']['codec']}"
        assert line == f"no interval for eer, {place}: {e['note'].replace('no interval: ', '')}"
    assert said[3:] == [f"no interval for {len(without) - 3} more (--json says why)"]


@pytest.mark.parametrize("verb", ["score", "triage"])
def test_a_claim_about_a_file_verifies_against_a_copy_with_another_name(
    verb: str, command: Command, tmp_path: Path
) -> None:
    """A warning begins with the name of its file; another name is no difference, another warning is."""
    rows = [
        f"u{i},{'fake' if i % 3 else 'real'},{'fake' if i % 4 else 'real'},{i * 37 % 101},Köln\n" for i in range(60)
    ]
    text = "id,label,verdict,score,place\n" + "".join(rows)
    path, claim = tmp_path / "first.csv", tmp_path / "claim.json"
    path.write_bytes(text.encode("latin-1"))
    command(verb, path, *(("-m", "eer", "--positive", "fake") if verb == "score" else ()), "--output", claim)
    assert [w for w in json.loads(claim.read_text())["warnings"] if w.startswith("first.csv: ")]
    copy = path.rename(tmp_path / "copy.csv")
    assert "verified" in command("verify", claim, copy)
    content = json.loads(claim.read_text())
    content["warnings"] = [w.replace("latin-1", "latin-2") for w in content["warnings"]]
    claim.write_text(json.dumps(sealed(content)))
    assert "latin-2" in command("verify", claim, copy, code=1)
