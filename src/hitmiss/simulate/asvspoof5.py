"""A simulated ASVspoof 5 Track 1: protocol files of the published size and shape, without any speech behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss._version import __version__
from hitmiss.simulate.asvspoof5_scores import SYSTEMS, scores

CODECS: Mapping[str, int] = {
    "-": 171_602,
    "C01": 47_253,
    "C02": 47_426,
    "C03": 47_987,
    "C04": 47_699,
    "C05": 47_541,
    "C06": 41_554,
    "C07": 47_348,
    "C08": 46_678,
    "C09": 41_599,
    "C10": 47_477,
    "C11": 46_610,
}
"""Trials of the evaluation by codec; `-` is uncoded."""
QUALITIES = {codec: 8 if codec == "C11" else 5 for codec in CODECS if codec != "-"}
"""How many settings (CODEC_Q) each codec has; 1 is the lowest quality."""
ATTACK_SIZES = (33_818, 34_078, 34_003, 34_148, 30_860, 33_928, 34_238, 33_748,
                34_368, 34_038, 34_113, 33_968, 34_414, 34_188, 33_878, 34_298)  # fmt: skip
"""Trials of the evaluation's attacks A17 to A32: the extremes and the sum are the published ones."""
COLUMNS = ("SPEAKER_ID", "FLAC_FILE_NAME", "SPEAKER_GENDER", "CODEC", "CODEC_Q", "CODEC_SEED", "ATTACK_TAG",
           "ATTACK_LABEL", "KEY", "TMP")  # fmt: skip
"""The ten columns of the protocol file, in its order."""


@dataclass(frozen=True)
class Split:
    """One part of the corpus: how many trials of each label and codec, and how many speakers."""

    name: str
    labels: Mapping[str, int]
    codecs: Mapping[str, int]
    speakers: int
    uncoded_quality: str

    @property
    def trials(self) -> int:
        """The number of trials."""
        return sum(self.labels.values())

    def shrunk(self, share: float) -> Split:
        """Return the same split with about that share of the trials and of the speakers.

        >>> EVALUATION.shrunk(0.01).trials
        6808
        """
        total = round(self.trials * share)
        speakers = max(2, round(self.speakers * share**0.5))
        labels, codecs = apportion(total, self.labels), apportion(total, self.codecs)
        return replace(self, labels=labels, codecs=codecs, speakers=speakers)


EVALUATION = Split(
    "eval",
    {"bonafide": 138_688, **{f"A{number}": size for number, size in enumerate(ATTACK_SIZES, start=17)}},
    CODECS,
    speakers=737,
    uncoded_quality="0",
)
DEVELOPMENT = Split(
    "dev",
    {"bonafide": 31_334, **{f"A{number:02}": 13_702 for number in range(9, 17)}},
    {"-": 140_950},
    speakers=785,
    uncoded_quality="-",
)


def apportion(total: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Split a total in proportion to sizes, exactly: the largest remainders get the rest.

    >>> apportion(10, {"a": 1, "b": 1, "c": 1})
    {'a': 4, 'b': 3, 'c': 3}
    """
    exact = np.array(list(sizes.values()), dtype=np.float64) * total / sum(sizes.values())
    parts = np.floor(exact).astype(int)
    order = np.argsort(parts - exact, kind="stable")
    parts[order[: total - parts.sum()]] += 1
    return dict(zip(sizes, parts.tolist(), strict=True))


def protocol(split: Split, rng: np.random.Generator) -> pl.DataFrame:
    """Return the protocol table of a split: originals and coded copies of them, sorted by file name."""
    n_original = split.codecs["-"]
    originals = apportion(n_original, split.labels)
    label = np.repeat(np.arange(len(split.labels)), list(originals.values()))
    copied = _copies(split, originals, rng)
    label = np.concatenate([label, label[copied]])
    seed = np.concatenate([np.full(n_original, -1), copied])
    codec, quality = _codings(split, rng)
    speaker = _speakers(split, n_original, rng)
    tag = rng.choice([1, 2, 3], n_original, p=[0.5, 0.3, 0.2])
    source = np.where(seed < 0, np.arange(split.trials), seed)
    prefix = split.name[0].upper()
    numbers = rng.permutation(9_400_000 + np.cumsum(rng.integers(1, 4, split.trials)))
    names = pl.Series(numbers).cast(pl.String).str.zfill(10)
    labels = pl.Series(list(split.labels)).gather(label)
    is_bonafide = labels == "bonafide"
    speaker_ids = pl.Series(rng.choice(2 * split.speakers, split.speakers, replace=False)).cast(pl.String).str.zfill(4)
    genders = pl.Series(rng.choice(["F", "M"], split.speakers))
    table = pl.DataFrame({
        "SPEAKER_ID": prefix + "_" + speaker_ids.gather(speaker[source]),
        "FLAC_FILE_NAME": prefix + "_" + names,
        "SPEAKER_GENDER": genders.gather(speaker[source]),
        "CODEC": codec,
        "CODEC_Q": quality,
        "CODEC_SEED": prefix + "_" + names.gather(source),
        "ATTACK_TAG": pl.Series(["-", "AC1", "AC2", "AC3"]).gather(np.where(is_bonafide.to_numpy(), 0, tag[source])),
        "ATTACK_LABEL": labels,
        "TMP": pl.repeat("-", split.trials, eager=True),
    })  # fmt: skip
    return (
        table.with_columns(
            CODEC_SEED=pl.when(pl.col("CODEC") == "-").then(pl.lit("-")).otherwise("CODEC_SEED"),
            KEY=pl.when(pl.col("ATTACK_LABEL") == "bonafide").then(pl.lit("bonafide")).otherwise(pl.lit("spoof")),
        )
        .select(COLUMNS)
        .sort("FLAC_FILE_NAME")
    )


def _copies(split: Split, originals: Mapping[str, int], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the original of each coded trial: same label, each original about equally often."""
    chosen, start = [], 0
    for label, size in split.labels.items():
        count = originals[label]
        chosen.append(start + np.arange(size - count) % max(count, 1))
        start += count
    return rng.permutation(np.concatenate(chosen))


def _codings(split: Split, rng: np.random.Generator) -> tuple[pl.Series, pl.Series]:
    """Return CODEC and CODEC_Q of every trial: the uncoded ones, then the coded ones in random order."""
    cells = [("-", split.uncoded_quality, split.codecs["-"])]
    for codec, size in split.codecs.items():
        if codec != "-":
            parts = apportion(size, {str(q): 1 for q in range(1, QUALITIES[codec] + 1)})
            cells += [(codec, quality, count) for quality, count in parts.items()]
    cell = np.repeat(np.arange(len(cells)), [count for *_, count in cells])
    cell[split.codecs["-"] :] = rng.permutation(cell[split.codecs["-"] :])
    return pl.Series([codec for codec, *_ in cells]).gather(cell), pl.Series([q for _, q, _ in cells]).gather(cell)


def _speakers(split: Split, n_original: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the speaker of each original; some speak more than others, and each at least once."""
    share = rng.lognormal(sigma=0.3, size=split.speakers)
    speaker = rng.choice(split.speakers, n_original, p=share / share.sum())
    speaker[rng.choice(n_original, split.speakers, replace=False)] = np.arange(split.speakers)
    return speaker


def write(folder: str | Path, *, share: float = 1.0, seed: int = 5) -> Path:
    """Write both splits with the scores of both systems into a folder, unless it already holds exactly this data."""
    folder = Path(folder)
    readme, text = folder / "README.txt", about(share, seed)
    if is_complete(folder, text):
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    readme.unlink(missing_ok=True)  # it is written last: if it is there, the data is complete
    for split, rng in zip((EVALUATION, DEVELOPMENT), np.random.default_rng(seed).spawn(2), strict=True):
        _write_split(folder, split if share == 1 else split.shrunk(share), rng)
    readme.write_text(text, encoding="utf-8")
    return folder


def is_complete(folder: Path, text: str) -> bool:
    """Return whether a folder holds every file and the README of exactly the wanted data."""
    readme = folder / "README.txt"
    is_wanted = readme.is_file() and readme.read_text(encoding="utf-8") == text
    return is_wanted and all((folder / name).is_file() for name in FILES)


def _write_split(folder: Path, split: Split, rng: np.random.Generator) -> None:
    table = protocol(split, rng)
    table.write_csv(folder / protocol_file(split), separator=" ", include_header=False, quote_style="never")
    for system, values in scores(table, rng).items():
        answers = pl.DataFrame({"filename": table["FLAC_FILE_NAME"], "cm-score": values})
        answers.write_csv(folder / score_file(split, system), separator="\t", float_precision=6)


def protocol_file(split: Split) -> str:
    """Return the name of a split's protocol file.

    >>> protocol_file(EVALUATION)
    'ASVspoof5.eval.track_1.tsv'
    """
    return f"ASVspoof5.{split.name}.track_1.tsv"


def score_file(split: Split, system: str) -> str:
    """Return the name of a system's score file.

    >>> score_file(EVALUATION, "a"), score_file(DEVELOPMENT, "a")
    ('scores_a.tsv', 'dev_scores_a.tsv')
    """
    prefix = "" if split.name == EVALUATION.name else f"{split.name}_"
    return f"{prefix}scores_{system}.tsv"


FILES = tuple(
    name
    for split in (EVALUATION, DEVELOPMENT)
    for name in (protocol_file(split), *(score_file(split, system) for system in SYSTEMS))
)
"""Every file that `write` makes, except the README."""


def about(share: float, seed: int) -> str:
    """Return the text of README.txt: what this data is, and what it is not."""
    return f"""This data is SIMULATED.

hitmiss {__version__} made it with its own code (hitmiss.simulate.asvspoof5, seed {seed}, share {share:g}). There is no
speech behind it, no person and no detector: names, labels and scores come from a random number generator. It has the
shape and, at share 1, the size of the ASVspoof 5 Track 1 evaluation (680,774 trials) and development set (140,950
trials), so that the commands can be tried on files like the real ones. Numbers computed from it say nothing about any
real system.

ASVspoof5.eval.track_1.tsv  protocol: {", ".join(COLUMNS)}
ASVspoof5.dev.track_1.tsv   the same for the development set, all uncoded
scores_a.tsv                system a: scores that are nearly natural-log likelihood ratios (filename, cm-score)
scores_b.tsv                system b: weaker, raw scores between -1 and 1, only their order means anything
dev_scores_*.tsv            the same systems on the development set, for calibration
"""
