"""Protocols of public benchmarks: RAID, PartialSpoof, ADD and the Speech DF Arena, and ISO/IEC 30107-3 by counting."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import hitmiss as hm
from hitmiss import metrics as m
from hitmiss.cli.main import run

GENERATORS, DOMAINS, ATTACKS = ("chatgpt", "llama-chat", "human"), ("news", "poetry"), ("none", "homoglyph")


def raid(folder: Path) -> list[dict[str, str]]:
    """A small set in RAID's layout: the results of a detector as JSON, the data set as CSV."""
    rng = np.random.default_rng(11)
    rows = []
    for i in range(1200):
        model = GENERATORS[i % 3]
        row = {"id": f"t{i}", "source_id": f"s{i % 90}", "model": model, "domain": DOMAINS[i // 3 % 2]}
        rows.append({**row, "attack": ATTACKS[i // 6 % 2], "score": f"{rng.normal(1.3 * (model != 'human')):.2f}"})
        rows[-1]["score"] = str(float(rows[-1]["score"]) + (row["domain"] == "news"))
    (folder / "r.json").write_text(json.dumps([{"id": r["id"], "score": float(r["score"])} for r in rows]))
    names = ("id", "source_id", "model", "domain", "attack")
    (folder / "train.csv").write_text(
        "\n".join([",".join(names), *(",".join(r[n] for n in names) for r in rows)]) + "\n"
    )
    return rows


def by_hand(rows: list[dict[str, str]], fpr: float, **wanted: str) -> float:
    """The share of machine texts at the lowest threshold of their domain with so many false alarms on human texts."""
    hits = of = 0
    for domain in DOMAINS:
        human = [
            float(r["score"]) for r in rows if r["model"] == "human" and r["domain"] == domain and r["attack"] == "none"
        ]
        scores = sorted({float(r["score"]) for r in rows}, reverse=True)
        allowed = [t for t in scores if sum(s >= t for s in human) / len(human) <= fpr]
        least = allowed[-1] if allowed else float("inf")
        own = [r for r in rows if r["model"] != "human" and r["domain"] == domain]
        own = [r for r in own if all(r[name] == value for name, value in wanted.items())]
        hits, of = hits + sum(float(r["score"]) >= least for r in own), of + len(own)
    return hits / of


def test_raid_by_generator_domain_and_attack(tmp_path: Path) -> None:
    rows = raid(tmp_path)
    found = hm.evaluate(tmp_path / "r.json", tmp_path / "train.csv", "raid", bootstrap=100, settings="none")
    for text, fpr in (("tpr_at_domain_fpr", 0.05), ("tpr_at_domain_fpr(fpr=0.01)", 0.01)):
        whole = found.one(text)
        assert whole.value == pytest.approx(by_hand(rows, fpr), abs=1e-12)
        assert whole.low is not None and whole.high is not None and whole.low < whole.value < whole.high  # type: ignore[operator]
        for ours, theirs, values in (
            ("generator", "model", GENERATORS[:2]),
            ("domain", "domain", DOMAINS),
            ("attack", "attack", ATTACKS),
        ):
            for value in values:
                own = found.one(text, **{ours: value}).value
                assert own == pytest.approx(by_hand(rows, fpr, **{theirs: value}), abs=1e-12), (ours, value)
    label = [int(r["model"] != "human") for r in rows]
    assert found.one("roc_auc").value == pytest.approx(m.roc_auc(label, [float(r["score"]) for r in rows]), abs=1e-12)


def segments(folder: Path) -> tuple[list[str], list[int], list[int], list[float]]:
    rng = np.random.default_rng(5)
    utterance, segment, label, score = [], [], [], []
    for i in range(60):
        n = int(rng.integers(3, 12))
        spoofed = rng.random(n) < (0.4 if i % 2 else 0.0)
        for j in range(n):
            utterance.append(f"u{i}")
            segment.append(j)
            label.append(int(not spoofed[j]))
            score.append(float(np.round(rng.normal(1.5 * label[-1]), 2)))
    rows = zip(utterance, segment, label, score, strict=True)
    body = "".join(f"{u}#{k},{u},{k},{'bonafide' if y else 'spoof'},{s}\n" for u, k, y, s in rows)
    (folder / "segments.csv").write_text("id,utterance,segment,label,score\n" + body)
    return utterance, segment, label, score


@pytest.mark.parametrize("merge", [1, 2, 4, 16])
def test_segments_are_merged_as_partialspoof_does(merge: int, tmp_path: Path) -> None:
    """By pandas, as the published script: the lowest label and score of each window, a shorter one at the end."""
    import pandas as pd

    utterance, segment, label, score = segments(tmp_path)
    table = pd.DataFrame({"u": utterance, "block": np.array(segment) // merge, "y": label, "s": score})
    merged = table.groupby(["u", "block"]).min()
    expected = m.eer(merged["y"], merged["s"], ties="official")
    metric = "segment_eer" if merge == 1 else f"segment_eer(merge={merge})"
    found = hm.evaluate(
        tmp_path / "segments.csv", None, "partialspoof", metrics=[metric], bootstrap=200, settings="none"
    ).one(metric)
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert found.low is not None and found.high is not None and found.low < found.value < found.high  # type: ignore[operator]
    assert "utterance" in str(found.method)


def test_merged_segments_are_not_drawn_one_by_one(tmp_path: Path) -> None:
    segments(tmp_path)
    trials = hm.read(tmp_path / "segments.csv", columns={"item": "id"}, numbers=["segment"], settings="none")
    with pytest.raises(hm.HitmissError) as refused:
        hm.measure(trials, ["segment_eer(merge=2)"], bootstrap=50)
    assert refused.value.code == "segments-torn" and "unit='utterance'" in str(refused.value)
    with pytest.raises(hm.DataError) as twice:
        m.segment_eer([1, 0], [1.0, 0.0], ["a", "a"], [1, 1], merge=2)
    assert twice.value.code == "segment-twice"
    for merge in (0, 1.5):
        with pytest.raises(hm.UsageError) as wrong:
            m.segment_eer([1, 0], [1.0, 0.0], ["a", "a"], [0, 1], merge=merge)  # type: ignore[arg-type]
        assert wrong.value.code == "bad-merge"


@pytest.mark.parametrize("protocol", ["add2022", "add2023", "speech-df-arena"])
def test_files_of_the_arena(protocol: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    label = rng.random(300) < 0.3
    score = np.round(label * 1.5 + rng.normal(size=300), 4)
    names = [f"/data/{protocol}/clip{i}.wav" for i in range(300)]
    key = "".join(f"{n},{'bonafide' if y else 'spoof'}\n" for n, y in zip(names, label, strict=True))
    (tmp_path / "key.csv").write_text("file_name,label\n" + key)
    (tmp_path / "scores.txt").write_text("".join(f"{n} {s}\n" for n, s in zip(names, score, strict=True)))
    found = hm.evaluate(tmp_path / "scores.txt", tmp_path / "key.csv", protocol, bootstrap=100, settings="none")
    assert found.one("eer").value == pytest.approx(m.eer(label, score, ties="official"), abs=1e-12)
    for name, own in (("f1_at_eer", m.f1_at_eer), ("accuracy_at_eer", m.accuracy_at_eer)):
        e = found.one(name)
        assert e.value == pytest.approx(own(label, score, ties="official"), abs=1e-12)
        assert e.low is not None and e.high is not None and e.low <= e.value <= e.high  # type: ignore[operator]


def test_attacks_on_a_whole_system_and_the_rules_for_few_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(1)
    rows, accepted = [], {"print": 0, "mask": 0}
    for i in range(360):
        species = ("none", "print", "mask")[i % 3]
        passes = species == "none" or (species == "print" and i % 30 == 1)
        match = passes and i % 60 != 1
        if species != "none":
            accepted[species] += match
        score = rng.uniform(0.5, 1.0) if passes else rng.uniform(0.0, 0.49)
        kind = "bonafide" if species == "none" else "attack"
        rows.append(f"c{i},{kind},{score:.6f},{species},{int(match) if kind == 'attack' else ''}")
    (tmp_path / "pad.csv").write_text("id,label,score,attack_type,accepted\n" + "\n".join(rows) + "\n")
    words = ["score", str(tmp_path / "pad.csv"), "-p", "iso30107-pad", "--threshold", "0.5", "--json"]
    assert run(words) == 0
    shown = json.loads(capsys.readouterr().out)
    found = {(e["metric"], e["slice"].get("species"), e["average"]): e["value"] for e in shown["estimates"]}
    assert found["iapar", "print", None] == pytest.approx(accepted["print"] / 120)
    assert found["iapar", "mask", None] == 0 and found["worst_iapar", None, None] == found["iapar", "print", None]
    text = " ".join(shown["warnings"])
    assert "rule of 30" in text and "APCER print (12 of 120)" in text
    assert "rule of 3 shows" in text and "APCER mask (0 of 120): below 0.025" in text and "BPCER (0 of 120)" in text
    without = "\n".join(",".join(line.split(",")[:4]) for line in (tmp_path / "pad.csv").read_text().splitlines())
    (tmp_path / "pad.csv").write_text(without + "\n")
    assert run(words) == 0
    assert "iapar" not in {e["metric"] for e in json.loads(capsys.readouterr().out)["estimates"]}
    with pytest.raises(hm.DataError) as refused:
        m.iapar([0, 0], ["1", "maybe"])
    assert refused.value.code == "bad-accepted"
