"""`--unit` in every verb that prints intervals: units are drawn as wholes, counted, stored and replayed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hitmiss.cli.main import run

Capture = pytest.CaptureFixture[str]
FEW = ["--bootstrap", "200"]


def said(capsys: Capture, *words: str, code: int = 0) -> str:
    assert run([*words]) == code, capsys.readouterr().err
    return capsys.readouterr().out


def verdicts(path: Path, seed: int, speakers: int = 60, each: int = 20) -> Path:
    """Speakers of whom some are nearly always judged wrongly, so that their rows say much the same."""
    rng, lines = np.random.default_rng(seed), []
    for s in range(speakers):
        hard = rng.random() < 0.25
        for i in range(each):
            fake, sure = bool(rng.random() < 0.5), round(float(rng.beta(4, 2)), 3)
            right = rng.random() < (0.45 if hard else 0.97)
            answer = ("fake" if fake == right else "real") if rng.random() > 0.05 else "uncertain"
            row = {"id": f"{s}-{i}", "label": "fake" if fake else "real", "prediction": answer, "confidence": sure}
            lines.append(json.dumps({**row, "meta": {"speaker": f"s{s}"}}))
    path.write_text("\n".join(lines) + "\n")
    return path


def predictions(path: Path, seed: int, authors: int = 50, each: int = 12) -> Path:
    rng, lines = np.random.default_rng(seed), ["id,language,author,y_true,y_prob"]
    for a in range(authors):
        level = 0.9 * rng.normal()
        for i in range(each):
            toxic = int(rng.random() < 0.4)
            p = 1.0 / (1.0 + np.exp(-(2.0 * toxic - 1.0 + level + 0.5 * rng.normal())))
            lines.append(f"{a}-{i},{'en' if a % 2 else 'es'},a{a},{toxic},{p:.6f}")
    path.write_text("\n".join(lines) + "\n")
    return path


def widths(document: dict, metric: str) -> list[float]:
    rows = [e for e in document["estimates"] if e["metric"] == metric and e["average"] is None and e["low"] is not None]
    return [e["high"] - e["low"] for e in rows]


def test_triage_draws_units_and_the_claim_can_be_replayed(tmp_path: Path, capsys: Capture) -> None:
    data, kept = str(verdicts(tmp_path / "r.jsonl", 0)), str(tmp_path / "t.json")
    rows = json.loads(said(capsys, "triage", data, "--json", "--unit", "none", *FEW))
    whole = json.loads(said(capsys, "triage", data, "--json", "-o", kept, *FEW))  # the protocol names speakers
    assert (
        whole["estimates"] == json.loads(said(capsys, "triage", data, "--json", "--unit", "speaker", *FEW))["estimates"]
    )
    assert widths(whole, "accuracy")[0] > 1.5 * widths(rows, "accuracy")[0]
    (accuracy,) = [e for e in whole["estimates"] if e["metric"] == "accuracy"]
    assert accuracy["units"] == 60 and whole["design"]["unit"] == ["speaker"]
    assert "unit=speaker" in whole["signature"] and "|units:60" in whole["signature"]
    assert "verified" in said(capsys, "verify", kept, data)
    assert "verified" in said(capsys, "verify", whole["signature"], data)


def test_least_confidences_with_a_guarantee_over_units(tmp_path: Path, capsys: Capture) -> None:
    data, other = str(verdicts(tmp_path / "r.jsonl", 1)), str(verdicts(tmp_path / "dev.jsonl", 2, speakers=200))
    words = [
        "triage",
        data,
        "--choose",
        "guarantee",
        "--choose-on",
        other,
        "--max-slip",
        "0.2",
        "--max-false-flag",
        "0.2",
    ]
    rows = json.loads(said(capsys, *words, "--json", *FEW))["design"]["triage"]["sureness"]
    whole = json.loads(said(capsys, *words, "--unit", "speaker", "--json", *FEW))
    limits = whole["design"]["triage"]["sureness"]
    assert limits["negative"] > rows["negative"] and limits["positive"] > rows["positive"]
    assert "units" in limits["origin"] and whole["choice"]["slip"] <= 0.2
    answered = [json.loads(line) for line in Path(data).read_text().splitlines()]
    slips = [
        r
        for r in answered
        if r["label"] == "fake" and r["prediction"] == "real" and r["confidence"] >= limits["negative"]
    ]
    fakes = sum(r["label"] == "fake" for r in answered)
    (slip,) = [e["value"] for e in whole["estimates"] if e["metric"] == "fake_slip_rate"]
    assert slip == pytest.approx(len(slips) / fakes)


def test_a_least_confidence_can_be_given_and_verified(tmp_path: Path, capsys: Capture) -> None:
    data, kept = str(verdicts(tmp_path / "r.jsonl", 3)), str(tmp_path / "t.json")
    words = ["--least-confidence", "0.7", "0.8"]
    found = json.loads(said(capsys, "triage", data, *words, "-o", kept, "--json", *FEW))
    rows = [json.loads(line) for line in Path(data).read_text().splitlines()]
    least = {"real": 0.7, "fake": 0.8}
    kept_rows = [r for r in rows if r["prediction"] in least and r["confidence"] >= least[r["prediction"]]]
    (coverage,) = [e["value"] for e in found["estimates"] if e["metric"] == "coverage"]
    assert coverage == pytest.approx(len(kept_rows) / len(rows))
    assert "verified" in said(capsys, "verify", kept, data)
    assert "verified" in said(capsys, "verify", found["signature"], data)
    assert "least confidences on this data" in said(capsys, "triage", data, "--sweep", *FEW)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--least-confidence", "0.5", "--thresholds", "0.2", "0.8"], "several-rules"),
        (["--choose", "budget", "--looks", "5/100"], "unknown-way-to-choose-least"),
        (["--choose", "guarantee", "--max-slip", "0.0001", "--max-false-flag", "0.5"], "no-least-confidence"),
        (["--choose", "guarantee", "--unit", "speaker,source"], "guarantee-units"),
    ],
)
def test_rules_that_make_no_sense_are_refused(words: list[str], code: str, tmp_path: Path, capsys: Capture) -> None:
    data = str(verdicts(tmp_path / "r.jsonl", 4))
    assert run(["triage", data, *words, "--json", *FEW]) in (2, 3)
    assert json.loads(capsys.readouterr().out)["error"]["code"].startswith(code)


def test_toxicity_draws_units_and_the_claim_can_be_replayed(tmp_path: Path, capsys: Capture) -> None:
    data, kept = str(predictions(tmp_path / "p.csv", 0)), str(tmp_path / "t.json")
    rows = json.loads(said(capsys, "toxicity", data, "--json", *FEW))
    whole = json.loads(said(capsys, "toxicity", data, "--json", "--unit", "author", "--results", kept, *FEW))
    assert [e["value"] for e in rows["estimates"]] == [e["value"] for e in whole["estimates"]]
    assert max(widths(whole, "fpr")) > 1.3 * max(widths(rows, "fpr"))
    assert {e["units"] for e in whole["estimates"] if e["metric"] == "f1" and not e["slice"]} == {50}
    assert whole["design"]["unit"] == ["author"] and "|units:50" in whole["signature"]
    assert "verified" in said(capsys, "verify", kept, data)


def test_a_text_without_an_author_is_no_author(tmp_path: Path, capsys: Capture) -> None:
    data = predictions(tmp_path / "p.csv", 1)
    data.write_text(data.read_text().replace(",a3,", ",,"))
    assert run(["toxicity", str(data), "--unit", "author", "--json", *FEW]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "blank-unit" and "12 trials have no author" in error["message"]


def test_thresholds_are_judged_with_intervals_over_units(tmp_path: Path, capsys: Capture) -> None:
    dev, test = (str(predictions(tmp_path / f"{name}.csv", k)) for k, name in enumerate(("dev", "test")))
    words = ["threshold", dev, "--test", test, "--json", *FEW]
    rows = json.loads(said(capsys, *words))["thresholds"]
    whole = json.loads(said(capsys, *words, "--unit", "author"))["thresholds"]
    for one, other in zip(rows, whole, strict=True):
        assert one["test"] == other["test"] and one["test_low"] < one["test"] < one["test_high"]
        assert other["units"] == 25 and other["gain_low"] <= other["gain"] <= other["gain_high"]
        assert other["test_high"] - other["test_low"] > one["test_high"] - one["test_low"]


def test_a_probe_draws_units(tmp_path: Path, capsys: Capture) -> None:
    rng, n = np.random.default_rng(0), 400
    speaker = np.repeat(np.arange(20), 20)
    codec = np.where(rng.random(n) < 0.5, "a", "b")
    level = np.where(np.arange(20) % 5 < 2, -0.5, 2.0)[speaker]
    x = np.stack([level * (codec == "a") + 0.4 * rng.normal(size=n), rng.normal(size=n)], axis=1)
    np.savez(tmp_path / "e.npz", embeddings=x, codec=codec, speaker=np.char.add("s", speaker.astype(str)))
    words = ["probe", str(tmp_path / "e.npz"), "--labels", "codec", "--shuffles", "0", "--json"]
    items, units = (json.loads(said(capsys, *words, *more)) for more in ([], ["--unit", "speaker"]))
    assert items["estimates"][0]["value"] == units["estimates"][0]["value"] and units["estimates"][0]["units"] == 20
    assert widths(units, "probe_accuracy")[0] > 1.5 * widths(items, "probe_accuracy")[0]
    assert "unit:speaker(20)" in units["signature"]


def test_drift_counts_its_units(tmp_path: Path, capsys: Capture) -> None:
    rng, lines = np.random.default_rng(0), ["id,label,score,manipulation,source,speaker"]
    for i in range(240):
        real, level = i % 2, 2.0 * (i % 2) + rng.normal()
        for k, shift in enumerate((0.0, -0.5)):
            name = ("clean", "mp3")[k]
            row = f"{i}-{k},{'bonafide' if real else 'spoof'},{level + shift + 0.2 * rng.normal():.4f},{name},c{i},s{i // 10}"
            lines.append(row)
    path = tmp_path / "d.csv"
    path.write_text("\n".join(lines) + "\n")
    kept = str(tmp_path / "d.json")
    found = json.loads(said(capsys, "drift", str(path), "--unit", "speaker", "--json", "-o", kept, *FEW))
    assert {e["units"] for e in found["estimates"]} == {24} and "unit=speaker" in found["signature"]
    assert "|units:24" in found["signature"] and "verified" in said(capsys, "verify", kept, str(path))


def scored(path: Path, speakers: int = 30) -> Path:
    rng, n = np.random.default_rng(5), 900
    speaker = rng.integers(0, speakers, n)
    label = rng.random(n) < 0.4
    score = 1.2 * rng.normal(size=speakers)[speaker] + rng.normal(size=n) + 2.0 * label
    rows = [
        f"t{i},{'real' if y else 'fake'},{s:.5f},s{k}"
        for i, (y, s, k) in enumerate(zip(label, score, speaker, strict=True))
    ]
    path.write_text("id,label,score,speaker\n" + "\n".join(rows) + "\n")
    return path


def test_a_unit_that_was_not_used_is_said_with_what_it_would_change(tmp_path: Path, capsys: Capture) -> None:
    """The factor is that of the two intervals, to within what 100 replicates can tell."""
    data, kept = str(scored(tmp_path / "s.csv")), str(tmp_path / "r.json")
    words = ["score", data, "--positive", "real", "-m", "roc_auc", *FEW, "--json"]
    alone = json.loads(said(capsys, *words, "-o", kept))
    (code,) = [c for c in alone["warning_codes"] if c]
    (text,) = [w for w, c in zip(alone["warnings"], alone["warning_codes"], strict=True) if c == code]
    assert code == "unit-not-used" and "--unit speaker" in text
    whole = json.loads(said(capsys, *words, "--unit", "speaker"))
    assert not any(whole["warning_codes"])
    told = float(text.rsplit(" ", 1)[1])
    assert told == pytest.approx(widths(whole, "roc_auc")[0] / widths(alone, "roc_auc")[0], rel=0.3) and told > 1.5
    assert "verified" in said(capsys, "verify", kept, data)
    shown = said(capsys, "score", data, "--positive", "real", "-m", "roc_auc", *FEW)
    assert "not independent" in shown and "independence" in shown


def test_streams_comparisons_and_rankings_say_it_too(tmp_path: Path, capsys: Capture) -> None:
    """The factor of a comparison is that of its own two intervals, to within what 100 replicates can tell."""
    files = [scored(tmp_path / f"{name}.csv") for name in "abc"]
    for k, path in enumerate(files[1:], 1):
        rng, lines = np.random.default_rng(k), path.read_text().splitlines()
        level = {f"s{i}": 0.8 * float(rng.normal()) for i in range(30)}
        rows = [line.split(",") for line in lines[1:]]
        moved = [f"{i},{y},{float(x) + level[s] + 0.3 * rng.normal():.5f},{s}" for i, y, x, s in rows]
        path.write_text("\n".join([lines[0], *moved]) + "\n")
    a, b, c = map(str, files)
    plain = ["--positive", "real", "-m", "roc_auc", *FEW, "--json"]

    def codes(*words: str) -> list[str]:
        found = json.loads(said(capsys, *words, *plain))
        return [w for w, code in zip(found["warnings"], found["warning_codes"], strict=True) if code == "unit-not-used"]

    assert any("--unit speaker" in text for text in codes("score", a, "--stream"))
    assert not codes("score", a, "--stream", "--unit", "speaker")
    (text,) = codes("compare", a, b)
    trials, whole = (json.loads(said(capsys, "compare", a, b, *plain, *unit)) for unit in ([], ["--unit", "speaker"]))
    wide = [d["differences"][0]["high"] - d["differences"][0]["low"] for d in (trials, whole)]
    told = float(text.rsplit(" ", 1)[1])
    assert told == pytest.approx(wide[1] / wide[0], rel=0.3) and told > 1.3
    (text,) = codes("compare", a, b, c)
    assert "--unit speaker" in text and not codes("compare", a, b, c, "--unit", "speaker")


def test_data_without_units_get_no_such_word(tmp_path: Path, capsys: Capture) -> None:
    data = scored(tmp_path / "s.csv", 900)
    data.write_text(data.read_text().replace("speaker", "shade"))
    found = json.loads(said(capsys, "score", str(data), "--positive", "real", "-m", "eer", *FEW, "--json"))
    assert not any(found["warning_codes"])


def spoofs(folder: Path, speakers: int = 24, attacks: int = 8, each: int = 3) -> tuple[str, str]:
    """Scores and a key in the layout of ASVspoof 5, whose protocol names speakers × attacks, then speakers."""
    rng = np.random.default_rng(11)
    scores, key = ["filename\tcm-score"], []
    hard = rng.normal(size=attacks)
    for s in range(speakers):
        level = rng.normal()
        for a in range(-1, attacks):
            for i in range(each * (attacks if a < 0 else 1)):
                name, label = f"E_{s:03d}_{a + 1:02d}_{i}", "bonafide" if a < 0 else "spoof"
                scores.append(f"{name}\t{(3.0 if a < 0 else hard[a]) + level + rng.normal():.5f}")
                key.append(f"E_{s:03d} {name} M C{s % 2:02d} 1 - AC1 {'bonafide' if a < 0 else f'A{a:02d}'} {label} -")
    for name, lines in (("s.tsv", scores), ("k.tsv", key)):
        (folder / name).write_text("\n".join(lines) + "\n")
    return str(folder / "s.tsv"), str(folder / "k.tsv")


def ends(document: dict) -> list[tuple[object, ...]]:
    return [(e["metric"], e["slice"], e["average"], e["value"], e["low"], e["high"]) for e in document["estimates"]]


def test_the_natural_units_of_a_protocol_are_the_default(tmp_path: Path, capsys: Capture) -> None:
    scores, key = spoofs(tmp_path)
    words = ["score", scores, "--key", key, "-p", "asvspoof5", *FEW]
    natural = json.loads(said(capsys, *words, "-o", str(tmp_path / "n.json"), "--json"))
    assert ends(natural) == ends(json.loads(said(capsys, *words, "--unit", "speaker,attack", "--json")))
    assert ends(natural) == ends(json.loads(said(capsys, *words, "--stream", "--json")))
    single = json.loads(said(capsys, *words, "--unit", "none", "-o", str(tmp_path / "s.json"), "--json"))
    assert "boot:200,trials" in single["signature"] and "unit=speaker*attack" in natural["signature"]
    assert [e[:4] for e in ends(natural)] == [e[:4] for e in ends(single)]
    assert widths(natural, "eer")[0] > 1.2 * widths(single, "eer")[0]
    assert "intervals over speaker × attack" in said(capsys, *words).split("all trials")[0]
    assert "intervals over" not in said(capsys, *words, "--unit", "none").split("all trials")[0]
    for name in ("n.json", "s.json"):
        assert "verified" in said(capsys, "verify", str(tmp_path / name), scores, "--key", key)
    for document in (natural, single):
        assert "verified" in said(capsys, "verify", document["signature"], scores, "--key", key)


def test_python_draws_the_natural_units_of_a_protocol_too(tmp_path: Path) -> None:
    import hitmiss as hm

    scores, key = spoofs(tmp_path)
    asked = {"metrics": "eer", "bootstrap": 100}
    natural = hm.evaluate(scores, key, "asvspoof5", **asked)
    single = hm.evaluate(scores, key, "asvspoof5", unit="none", **asked)
    named = hm.evaluate(scores, key, "asvspoof5", unit="speaker,attack", **asked)
    assert (natural[0].low, natural[0].high) == (named[0].low, named[0].high)
    assert natural[0].units == 24 and single[0].units is None
    trials = hm.read(scores, key)
    asked = {"metrics": ["eer"], "bootstrap": 100}
    assert hm.measure(trials, unit="none", **asked)[0] == hm.measure(trials, **asked)[0]  # no protocol names a unit


def test_too_few_natural_units_leave_trials_and_a_failed_check(tmp_path: Path, capsys: Capture) -> None:
    scores, key = spoofs(tmp_path, speakers=4, attacks=3, each=12)
    found = json.loads(said(capsys, "score", scores, "--key", key, "-p", "asvspoof5", *FEW, "--json"))
    assert "boot:200,trials" in found["signature"] and widths(found, "eer")
    assert any(code and code.startswith("unit-not-used") for code in found["warning_codes"])


def test_a_table_by_units_gives_them_and_draws_the_others(tmp_path: Path, capsys: Capture) -> None:
    scores, key = spoofs(tmp_path)
    words = ["score", scores, "--key", key, "-p", "asvspoof5", "--by", "attack", *FEW, "--json"]
    crossed, speakers = (json.loads(said(capsys, *words, *more)) for more in ([], ["--unit", "speaker"]))
    table, same = ([e for e in ends(document) if e[1]] for document in (crossed, speakers))
    assert table == same
    assert all(e[4] is not None for e in table if e[2] == "macro" and e[0] == "eer")
