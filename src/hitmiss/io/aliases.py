"""Names of columns: which of them are ours, and what a name says about its values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hitmiss.core.classes import is_word
from hitmiss.core.columns import SCORES, SYNONYMS, user_name
from hitmiss.core.kinds import ScoreKind
from hitmiss.io.layouts import PROTOCOL
from hitmiss.io.source import Row

SYSTEM_PREFIX: Final = SCORES
SASV_SCORES: Final = ("sasv_score", "cm_score", "asv_score")
SASV_LABELS: Final = ("cm_label", "asv_label")
ALIASES: Final[Mapping[str, Row]] = {
    "item": (
        *("item", "id", "item_id", "filename", "file_name", "file", "utt", "utt_id", "utterance", "utterance_id"),
        *("flac_file_name", "trial_anon", "sample_id"),
    ),
    "target": (),
    "label": ("label", "key", "y_true", *SASV_LABELS),
    "score": ("score", "llr", "logit", "log_odds", "y_score", "y_prob", "prob", "probability", *SASV_SCORES),
    "decision": ("decision", "y_pred", "verdict"),
    "confidence": ("confidence", "confidence_percent", "confidence_pct"),
    "error": ("error",),
}
TRUTHS: Final = ("ground_truth", "groundtruth", "truth", "gold", "gold_label", "label_gold", "true_label")
"""Names that mean the label whatever words are used for the classes."""
PUBLISHED: Final[Mapping[str, Row]] = {
    "item": (
        *("question_id", "comment_id", "text_id", "image_id", "audio_id", "video_id", "trial_id", "case_id", "uuid"),
        *("id_code", "row_id", "uid", "guid", "image_name", "clip", "clip_id", "text_hash"),
        *("flac_file", "image_path", "audio_path", "video_path", "file_path", "filepath", "path", "image", "img"),
    ),
    "label": (*TRUTHS, "y", "target", "class", "toxic"),
    "score": (),
}
"""Further names that published files use. They apply if no column has one of the usual names, and its values fit."""
PREDICTED: Final[Mapping[str, Row]] = {
    "item": ("id", "item", "item_id", "comment_id"),
    "group": ("language", "lang"),
    "label": ("y_true", "label"),
    "score": ("y_prob", "prob", "probability", "prediction", "pred_score", "pred", "score", "y_score"),
    "decision": ("y_pred", "pred_label", "prediction_binary", "decision"),
    "threshold": ("best_threshold", "threshold"),
}
"""The same for prediction files; the first name is the documented one and wins over the others."""
DECIDED: Final = ("pred", "prediction", "predicted", "y_hat", "flagged")
"""Further names of a column of decisions, if it is binary and another column has the score."""
EXTRAS: Final[Mapping[str, str]] = {
    **{name: name for name in (*PROTOCOL, *SASV_LABELS, *SASV_SCORES) if name not in ALIASES},
    **SYNONYMS,
}
OURS: Final = {"verdict": "decision", "prediction": "decision", "confidence_percent": "confidence", "id": "item"}
"""Further words that a caller may use for our columns."""
KIND_OF_SCORE: Final[Mapping[str, ScoreKind]] = {"logit": "logit", "log_odds": "logit"}
"""The kind of scores that a column name implies if the caller declares none; `write_scores` uses these names."""
WEIGHTS: Final = ("weight", "weights", "sample_weight", "sampling_weight", "sample_weights")
"""Names of columns that look like weights; they are used only if they are declared."""
ANSWERED_BY: Final = (
    *("detector", "detector_id", "detector_name", "classifier", "run", "run_id", "run_name"),
    *("experiment", "experiment_id", "experiment_name", "submission", "submission_id"),
)
"""Columns that say who answered: their values are runs."""
MADE_BY: Final = ("model", "model_id", "model_name", "system", "system_id", "system_name", "method", "checkpoint")
"""Columns that say who answered, or how the item was made: their values are runs if items occur under several."""
REPETITIONS: Final = ("trial", "seed", "repeat", "repetition", "epoch")
"""Columns that number repetitions: runs if items occur under several of their values."""
KNOWN: Final = {
    *(name for names in ALIASES.values() for name in names),
    *(name for names in PUBLISHED.values() for name in names if not is_word(name)),  # `target` may be a label
    *EXTRAS,
}
OF_A_CLASS: Final = re.compile(
    r"(?P<first>.+?)_(?:probability|probabilities|prob|proba|score|llr|logit)|(?:p|prob|proba|probability|score)_(?P<last>.+)"
)
"""Names of columns with the score of one class, as `fake_probability` and `prob_fake`."""


def class_of_score(name: str) -> str | None:
    """Return the class that a higher score means by the name of its column; None if the name does not say.

    >>> class_of_score("fake_probability"), class_of_score("Prob-Spoof"), class_of_score("cm_score")
    ('fake', 'spoof', None)
    """
    found = OF_A_CLASS.fullmatch(plain(name))
    word = (found["first"] or found["last"]) if found else None
    return word if word is not None and is_word(word) else None


OF_PROBABILITIES: Final = re.compile(r"(.+_)?prob(a|s|ability|abilities)?(_.+)?")


def says_probability(column: str, kind: ScoreKind | None = None) -> bool:
    """Return whether scores must lie in 0..1: they are declared as probabilities, or only their column is named so.

    >>> says_probability("y_prob"), says_probability("Fake-Probability"), says_probability("y_prob", "raw")
    (True, True, False)
    >>> says_probability("score"), says_probability("score", "probability"), says_probability("problem_score")
    (False, True, False)
    """
    return kind == "probability" or (kind is None and OF_PROBABILITIES.fullmatch(plain(column)) is not None)


def plain(name: str) -> str:
    """Return a column name in the form used for comparison.

    >>> plain("CM-Label "), plain("y true")
    ('cm_label', 'y_true')
    """
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def is_known(name: str) -> bool:
    """Return whether a column of this name would be recognised as one of ours.

    >>> is_known("y_true"), is_known("codec")
    (True, False)
    """
    return any(plain(name) in aliases for aliases in ALIASES.values())


CONDITIONS: Final = (
    *("prompt_hash", "prompt_id", "prompt_name", "prompt_version", "system_prompt"),
    *("temperature", "top_p", "max_iterations", "reasoning_effort", "model_version"),
)
"""Columns that say under which condition an answer was given: of several in one run, this is said."""


def is_condition(name: str) -> bool:
    """Return whether a column or a setting says under which condition an answer was given.

    >>> is_condition("prompt_hashes.vision"), is_condition("Temperature"), is_condition("workers")
    (True, True, False)
    """
    group, dot, _ = name.partition(".")
    return group in ("models", "prompt_hashes") if dot else plain(user_name(name)) in CONDITIONS


def may_name_runs(name: str) -> bool:
    """Return whether a column of this name may say which run a row belongs to.

    >>> may_name_runs("Model-Name"), may_name_runs("user:system"), may_name_runs("codec")
    (True, True, False)
    """
    return numbers_repetitions(name) or plain(user_name(name)) in (*ANSWERED_BY, *MADE_BY)


def numbers_repetitions(name: str) -> bool:
    """Return whether a column of this name may number the repetitions of a run."""
    return plain(user_name(name)) in REPETITIONS
