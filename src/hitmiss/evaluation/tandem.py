"""Complete the trials of tandem protocols: claimed speakers, columns of one class, and the trials of a speaker verifier.

The trial of a spoofing-robust verifier is a pair: a claimed speaker and an utterance. The reader takes the speaker as
the target of the question; here it becomes a column like any other, so that trials of all speakers are one run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import polars as pl

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.protocol import Protocol
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.trials import Trials
from hitmiss.metrics.asv_trials import AsvTrials
from hitmiss.stats.forms.three_classes import CLASSES

AnyTrials = TypeVar("AnyTrials", bound=Trials)
SPEAKER, UTTERANCE, ASV_LABEL, SASV = "speaker", "utterance", "asv_label", "sasv_score"
FULL_KEY_SPEAKER: Final = "tar_spk_anon"
NO_ONE: Final = "-"
"""What a column of one class holds in trials of the other."""
HELD_FIXED: Final = (
    "the error rates of the ASV come from {n:,} trials of {name}, in every slice anew, and are held fixed in intervals"
)
POOLED_RATES: Final = (
    "the error rates of the ASV come from {n:,} trials of {name}, which have no ids: they are pooled over all slices "
    "and held fixed in intervals; min_t_dcf(asv=own) takes the spoofs of each attack alone"
)
AS_PACKAGE: Final = (
    "min_t_dcf is that of the official package: with the ASV's own trials it puts the share of spoofs that the ASV rejects "
    "where the formula has the share accepted; min_t_dcf(definition=formula) gives that of the formula"
)


def complete(trials: Trials, key: object, protocol: Protocol, said: ReadSpec) -> Trials:
    """Return the trials with what a tandem protocol adds; the same trials for any other protocol."""
    if protocol.claims_speaker:
        trials = with_pairs(trials)
    for column, own in protocol.split.items():
        if column in trials.frame.columns:
            head = replace(trials.header, slices=(*trials.header.slices, *own))
            trials = trials.put(head, **_split(column, own))
    return with_verifier(trials, key, protocol, said)


def with_verifier(trials: AnyTrials, key: object, protocol: Protocol, said: ReadSpec) -> AnyTrials:
    """Return the trials with the error rates of a speaker verifier, if its scores were given."""
    if said.asv is None:
        if said.asv_key is not None:
            raise UsageError.of("no-asv/key")
        return trials
    if not protocol.asv:
        raise UsageError.of("unused-asv", protocol_name=protocol.name or "no protocol")
    return with_asv(trials, said, key, protocol)


def with_speaker_column(spec: ReadSpec, key: object) -> ReadSpec:
    """Return the spec with the claimed speaker of a full key of ASVspoof 5, whose name other evaluations do not use."""
    if not isinstance(key, str | Path) or "target" in spec.key_columns or not Path(key).is_file():
        return spec
    with Path(key).open(encoding="utf-8", errors="replace") as file:
        is_full = FULL_KEY_SPEAKER in file.readline().split()
    return spec.changed(key_columns={**spec.key_columns, "target": FULL_KEY_SPEAKER}) if is_full else spec


def with_pairs(trials: Trials) -> Trials:
    """Return trials whose target (the claimed speaker) is a column, and whose id names speaker and utterance."""
    head, frame = trials.header, trials.frame
    made = frame.with_columns(
        pl.concat_str([pl.col("target"), pl.lit("/"), pl.col("item")]).alias("item"),
        pl.lit(head.positive).alias("target"),
        pl.col("target").alias(SPEAKER),
        pl.col("item").alias(UTTERANCE),
    )
    if ASV_LABEL in made.columns:
        check_classes(made)
    numbers = head.numbers
    if SASV not in made.columns:  # the only score is that of the whole system
        if "score" not in made.columns:
            raise DataError.of("no-score/system")
        made, numbers = made.with_columns(pl.col("score").alias(SASV)), (*numbers, SASV)
    slices = tuple(dict.fromkeys((*head.slices, SPEAKER, UTTERANCE)))
    return Trials.from_frame(made, replace(head, slices=slices, numbers=numbers))


def check_classes(frame: pl.DataFrame) -> None:
    """Refuse classes of trials that contradict their labels, or that are none."""
    words = frame.select(pl.col(ASV_LABEL), pl.col("label"), pl.col("item"))
    wrong = words.filter(~pl.col(ASV_LABEL).is_in(CLASSES) | ((pl.col(ASV_LABEL) == "spoof") == (pl.col("label") == 1)))
    if wrong.height:
        word, label, item = wrong.row(0)
        raise DataError.of(
            "bad-asv-label/trials",
            n=wrong.height,
            item=item,
            word=word,
            label="bonafide" if label == 1 else "spoof",
        )


def _split(column: str, names: tuple[str, str]) -> Mapping[str, pl.Expr]:
    """Return a column that means one thing for positives and another for negatives as a column for each."""
    positive, negative = names
    own = pl.col(column)
    is_positive = pl.col("label") == 1
    return {
        positive: pl.when(is_positive).then(own).otherwise(pl.lit(NO_ONE)),
        negative: pl.when(is_positive).then(pl.lit(NO_ONE)).otherwise(own),
    }


def with_asv(trials: AnyTrials, said: ReadSpec, key: object, protocol: Protocol) -> AnyTrials:
    """Return trials that bring the error rates of a speaker verifier, computed from its own trials."""
    found = read_asv(said, key, protocol)
    kind = found.frame["label_word"] if "label_word" in found.frame.columns else None
    if kind is None or not kind.is_in(CLASSES).all():
        raise DataError.of("bad-asv-key", file=Path(str(said.asv_key or said.asv)).name)
    codes = kind.replace_strict({name: code for code, name in enumerate(CLASSES)}, return_dtype=pl.Int8).to_numpy()
    frame = found.frame.with_columns((pl.col("label_word") != "spoof").cast(pl.Int8).alias("label"))
    for column, own in protocol.split.items():
        frame = frame.with_columns(**_split(column, own)) if column in frame.columns else frame
    shared = [n for n in frame.columns if n in trials.header.slices and n not in (SPEAKER, UTTERANCE, ASV_LABEL)]
    slices = {name: frame[name].to_numpy() for name in shared}
    asv = AsvTrials(codes, np.asarray(found.score, dtype=np.float64), slices, protocol.asv == "sources")
    names = [source.name for source in found.header.sources]
    text = (POOLED_RATES if asv.is_pooled else HELD_FIXED).format(n=len(codes), name=names[0])
    notes = [text]
    if any(settings.get("definition") == "package" for settings in protocol.settings.values()):
        notes.append(AS_PACKAGE)
    head = trials.header
    sources = (*head.sources, *(s for s in found.header.sources if s not in head.sources))
    named = {name: Path(path).name for name in ("asv", "asv_key") if (path := getattr(said, name)) is not None}
    reading = (head.reading or said).changed(**named)  # what is stored names files, never their folders
    return trials.retitle(brought=asv, sources=sources, notes=(*head.notes, *notes), reading=reading)


def read_asv(said: ReadSpec, key: object, protocol: Protocol) -> Trials:
    """Read the scores of a speaker verifier: pairs of ids joined with a key by id, or sources without ids (2019)."""
    from hitmiss.io.reader import read

    spec = said.over(protocol.read)
    rules = ReadSpec(rename=spec.rename, on_nan=spec.on_nan, positive="target")
    if protocol.asv == "sources":
        return read(said.asv, None, replace(rules, columns={"attack": "1", "label": "2", "score": "3"}))
    key = said.asv_key if said.asv_key is not None else key
    columns, keyed = dict(protocol.asv_columns), dict(protocol.asv_key_columns)
    asked = replace(rules, columns=columns, key_columns=keyed, where=spec.where)
    return read(said.asv, key, with_speaker_column(asked, key) if protocol.claims_speaker else asked)
