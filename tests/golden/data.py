"""The small files that the golden commands read, made the same on every machine.

Numbers come from the standard library's generator and are rounded before they are written, so that no last bit of a
processor's arithmetic reaches a file.
"""

from __future__ import annotations

import json
import math
import struct
import wave
from pathlib import Path
from random import Random

CODECS = ("-", "C01", "C02", "C03")
ATTACKS = ("A17", "A18", "A19")


def write_all(folder: Path) -> None:
    """Write every file that the commands of `commands.py` name."""
    _spoofing(folder)
    _tables(folder)
    _toxicity(folder)
    _triage(folder)
    _conditions(folder)
    _embeddings(folder)
    _detectors(folder)
    _clips(folder)


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _spoofing(folder: Path) -> None:
    """An ASVspoof 5 key of 240 trials, three systems, one of them with another seed, and a development set."""
    for name, seed, n in (("eval", 1, 240), ("dev", 2, 160)):
        draw = Random(seed)
        key: list[str] = []
        scores: dict[str, list[str]] = {s: ["filename\tcm-score"] for s in ("a", "b", "c")}
        for i in range(n):
            genuine = i % 3 == 0
            codec = CODECS[(i // 6) % len(CODECS)]
            attack = "bonafide" if genuine else ATTACKS[i % len(ATTACKS)]
            quality = "0" if codec == "-" else str(1 + i % 2)
            utterance = f"E_{name}_{i:04d}"
            speaker, sex = f"S{(i // 5) % 12:02d}", "FM"[i % 2]
            seed_column = "-" if codec == "-" else f"seed{i % 7}"
            key.append(
                f"{speaker} {utterance} {sex} {codec} {quality} {seed_column} AC1 {attack} {'bonafide' if genuine else 'spoof'} -"
            )
            ease = draw.gauss(2.2 if genuine else -2.2, 2.0) - 0.4 * CODECS.index(codec)
            for system, noise in (("a", 0.3), ("b", 1.5), ("c", 4.0)):
                scores[system].append(f"{utterance}\t{round(ease + draw.gauss(0, noise), 3)}")
        _write(folder / f"{name}.key", key)
        for system, lines in scores.items():
            _write(folder / f"{name}_{system}.tsv", lines)


def _tables(folder: Path) -> None:
    """One table with label, three systems and slices, as CSV, with a semicolon, and as JSON lines."""
    draw = Random(3)
    rows = []
    for i in range(180):
        fake = i % 4 == 0
        logit = draw.gauss(1.2 if fake else -1.2, 1.3)
        rows.append(
            {
                "id": f"v{i:03d}",
                "kind": "fake" if fake else "real",
                "p": round(1 / (1 + math.exp(-logit)), 4),
                "q": round(1 / (1 + math.exp(-logit - draw.gauss(0, 1))), 4),
                "source": ("phone", "camera", "scan")[i % 3],
                "lang": ("de", "fr")[i % 2],
                "person": f"P{i % 15:02d}",
            }
        )
    names = list(rows[0])
    _write(folder / "table.csv", [",".join(names), *(",".join(str(r[n]) for n in names) for r in rows)])
    decimal = [";".join(str(r[n]).replace(".", ",") for n in names) for r in rows]
    _write(folder / "comma.csv", [";".join(names), *decimal])
    _write(folder / "table.jsonl", [json.dumps(r) for r in rows])


def _toxicity(folder: Path) -> None:
    for run, seed, noise in (("base", 4, 0.9), ("other", 5, 1.6)):
        for language, n, rate in (("en", 160, 0.25), ("es", 120, 0.4), ("it", 80, 0.15)):
            truth, draw = Random(f"truth-{language}"), Random(f"{seed}-{language}")
            lines = ["id,text,y_true,y_prob,best_threshold,muslim"]
            for i in range(n):
                toxic = truth.random() < rate
                hard = truth.gauss(0, 0.8)
                probability = 1 / (1 + math.exp(-(1.4 if toxic else -1.4) - hard - draw.gauss(0, noise)))
                lines.append(
                    f"{language}{i},word {i},{int(toxic)},{round(probability, 4)},0.45,{int(truth.random() < 0.3)}"
                )
            _write(folder / "predictions" / f"{run}_{language}.csv", lines)


def _triage(folder: Path) -> None:
    rows = []
    for model, skill in (("m1", 1.6), ("m2", 1.1)):
        draw = Random(f"triage-{model}")
        for i in range(90):
            fake = i % 2 == 0
            for trial in range(3):
                x = draw.gauss(skill if fake else -skill, 1.6)
                verdict = "uncertain" if abs(x) < 0.5 else ("fake" if x > 0 else "real")
                rows.append(
                    {
                        "id": f"i{i:02d}",
                        "label": "fake" if fake else "real",
                        "verdict": verdict,
                        "confidence": round(0.5 + 0.5 * math.tanh(abs(x) / 2), 3),
                        "model": model,
                        "use_tools": False,
                        "trial": trial,
                        "latency_seconds": round(0.5 + draw.random() * 2, 3),
                        "meta": {"source": ("web", "phone")[i % 3 == 0]},
                    }
                )
    _write(folder / "triage.jsonl", [json.dumps(r) for r in rows])
    _write(folder / "triage_one.jsonl", [json.dumps(r) for r in rows if r["model"] == "m1" and r["trial"] == 0])
    draw = Random(6)
    scored = ["id,label,score,source"]
    for i in range(200):
        fake = i % 2 == 0
        score = 1 / (1 + math.exp(-draw.gauss(1.5 if fake else -1.5, 1.2)))
        scored.append(f"s{i},{'fake' if fake else 'real'},{round(score, 4)},{('web', 'phone')[i % 3 == 0]}")
    _write(folder / "triage_scores.csv", scored)


def _conditions(folder: Path) -> None:
    """Clean and changed copies of 40 clips, for drift."""
    draw = Random(7)
    lines = ["item,source,label,manipulation,speaker,score"]
    for i in range(40):
        real = i % 2 == 0
        clean = draw.gauss(1.5 if real else -1.5, 1.2)
        for name, shift in (("clean", 0.0), ("noise", -0.7), ("gain", 0.2)):
            score = round(clean + shift + (draw.gauss(0, 0.3) if shift else 0.0), 3)
            lines.append(f"c{i}-{name},c{i},{'real' if real else 'fake'},{name},S{i % 8},{score}")
    _write(folder / "conditions.csv", lines)


def _embeddings(folder: Path) -> None:
    import numpy as np

    draw = Random(8)
    n = 90
    domain = [("x", "y", "z")[i % 3] for i in range(n)]
    vectors = [[round(draw.gauss(0.6 * (i % 3) * (j < 2), 1), 3) for j in range(4)] for i in range(n)]
    np.savez(
        folder / "embeddings.npz",
        layer1=np.array(vectors),
        codec=np.array(domain),
        speaker=np.array([f"S{i // 6}" for i in range(n)]),
    )


def _detectors(folder: Path) -> None:
    """A text detector, a sound detector and a classifier of recordings: plain functions that round what they give."""
    _write(
        folder / "detector.py",
        [
            "import numpy as np",
            "",
            "def words(texts):",
            "    return [round(len(t) / 10 - t.count('a') / 3, 3) for t in texts]",
            "",
            "def level(clips):",
            "    return np.round([float(np.abs(c).mean()) * 20 - 3 for c in np.asarray(clips)], 2)",
            "",
            "def leads(x):",
            "    x = np.asarray(x, dtype=np.float64)",
            "    strength = np.stack([np.abs(x).mean((1, 2)), np.abs(np.diff(x, axis=1)).mean((1, 2))], axis=1)",
            "    return np.round(1 / (1 + np.exp(-(strength * [8.0, 40.0] - [2.0, 1.5]))), 4)",
        ],
    )
    lines = ["id,text,label,topic"]
    draw = Random(9)
    for i in range(60):
        toxic = i % 3 == 0
        lines.append(
            f"t{i},{'b' * draw.randrange(5, 30)}{'a' * draw.randrange(0, 12)},{'toxic' if toxic else 'non-toxic'},{'xy'[i % 2]}"
        )
    _write(folder / "texts.csv", lines)
    import numpy as np

    records, n = 24, 200
    x = np.array(
        [[[round(draw.gauss(0, 0.15 + 0.15 * (r % 2)), 3) for _ in range(2)] for _ in range(n)] for r in range(records)]
    )
    y = np.array([[r % 2, (r // 2) % 2] for r in range(records)])
    np.savez(
        folder / "ecg.npz",
        x=x,
        y=y,
        classes=np.array(["MI", "STTC"]),
        fs=np.array(100.0),
        record=np.array([f"r{r}" for r in range(records)]),
        patient=np.array([f"p{r // 2}" for r in range(records)]),
    )


def _clips(folder: Path) -> None:
    """24 short clips of 8 kHz, 16 bit."""
    draw = Random(10)
    lines = ["file,label,speaker"]
    for i in range(24):
        real = i % 2 == 0
        loud = 6000 + 3000 * real + draw.randrange(2000)
        samples = [draw.randrange(-loud, loud) for _ in range(1600)]
        path = folder / "clips" / f"k{i}.wav"
        path.parent.mkdir(exist_ok=True)
        with wave.open(str(path), "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(8000)
            sound.writeframes(struct.pack(f"<{len(samples)}h", *samples))
        lines.append(f"k{i}.wav,{'real' if real else 'fake'},S{i % 6}")
    _write(folder / "clips" / "manifest.csv", lines)
