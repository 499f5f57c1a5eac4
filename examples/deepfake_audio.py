"""A detector of fake voices over codecs: train, detect, score per codec and attack, and see a frozen threshold drift.

python examples/deepfake_audio.py                          # simulated voices, with a small detector trained on them
python examples/deepfake_audio.py RUN TABLE DETECTOR       # your own: a table with file, label, speaker …, and a model
"""

from __future__ import annotations

import sys
from pathlib import Path

import hitmiss as hm


def main(folder: Path, table: str | None = None, detector: str | None = None, codecs: str = "mp3:2,gsm,ulaw") -> None:
    """Run it all into a folder."""
    if table is None:
        voices = hm.demo_data("voices", folder / "voices", share=0.02)
        graph = voices / "detector.onnx"  # written where onnx is installed
        detector = str(graph) if graph.is_file() else f"{voices}/detector.py:detector"
        table = str(voices / "eval.tsv")

    # Every clip through every codec, and as it is; each cut or extended to four seconds.
    how = {"protocol": "deepfake-audio", "codecs": codecs, "cut_length": 64000, "workers": 2}
    trials = hm.detect(detector, table, folder / "run", **how)

    results = hm.evaluate(trials, protocol="deepfake-audio", by=["codec", "attack"], bootstrap=1000, unit="speaker")
    for estimate in results.where(lambda e: e.metric == "eer"):
        print(estimate)
    print("drift at the threshold of the clean clips")
    for estimate in hm.drift(trials, "codec,codec_q", unit="speaker"):
        print(estimate)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/deepfake"), *sys.argv[2:4])
