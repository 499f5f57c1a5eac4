"""A detector of fake voices over codecs: train, detect, score per codec and attack, and see a frozen threshold drift.

python examples/deepfake_audio.py                          # simulated voices
python examples/deepfake_audio.py RUN CORPUS               # a folder with flac/ and meta.tsv (split, key, speaker …)
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from hitmiss.attacks.codecs import parse_conditions
from hitmiss.attacks.conditions import CodedRows
from hitmiss.core.question import Design
from hitmiss.detection.baseline import SpectralBaseline
from hitmiss.detection.loader import fit_length, make_loader
from hitmiss.detection.loop import detect
from hitmiss.evaluation.protocol import find_protocol, measure_trials
from hitmiss.io.manifest import Manifest, read_manifest
from hitmiss.reports import tabular
from hitmiss.reports.verb_tables import drift_table
from hitmiss.robustness.manipulation import drift
from hitmiss.simulate.voices import write

PROTOCOL = find_protocol("deepfake-audio")


def manifests(folder: Path, corpus: Path | None) -> tuple[Manifest, Manifest]:
    """What to train on and what to evaluate on."""
    if corpus is None:
        made = write(folder / "voices", share=0.02)
        return read_manifest(made / "train.tsv"), read_manifest(made / "eval.tsv")
    whole = read_manifest(corpus / "meta.tsv", root=corpus / "flac", suffix=".flac", options=PROTOCOL.read)
    return whole.where(split="train"), whole.where(split="eval")


def main(folder: Path, corpus: Path | None = None, codecs: str = "mp3:2,gsm,ulaw") -> None:
    """Run it all into a folder."""
    train, evaluation = manifests(folder, corpus)
    load = make_loader("audio", train, 16000)
    clips = [load(train.row(i)) for i in range(len(train))]
    detector = SpectralBaseline.fit(clips, (train.frame["label"] == train.positive).to_numpy())

    coded = CodedRows(parse_conditions(codecs))  # every clip through every codec, and as it is
    crossed, load = evaluation.crossed(coded.columns), make_loader("audio", evaluation, 16000)
    fit = partial(fit_length, cut_length=64000)
    trials = detect(detector, crossed, output=folder / "run", load=load, transform=coded, fit=fit, workers=2)

    design = Design.of(protocol=PROTOCOL, by=["codec", "attack"], bootstrap=1000, unit="speaker")
    results = measure_trials(trials, design)
    tabular.write(
        [*tabular.tables(results, evaluation.positive), drift_table(drift(trials, "codec,codec_q", unit="speaker"))]
    )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/deepfake"), *map(Path, sys.argv[2:3]), *sys.argv[3:4])
