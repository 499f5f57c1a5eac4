"""What `review` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "damaged-review": Entry(ERROR, "the review is damaged ({error})", fix="take a copy of it that is whole"),
    "no-verdicts/review": Entry(
        ERROR, "there are no verdicts to go by", fix="give {--thresholds?} LOW HIGH for scores, or {--verdicts all}"
    ),
    "several-questions": Entry(
        ERROR, "{text} asks several questions of an item ({several})", fix="choose one, as {text}[target={several_2}]"
    ),
    "no-id": Entry(ERROR, "{name} has a row without an id; each item needs one ({IDS}, or a file)"),
    "missing-column/score": Entry(ERROR, "{--thresholds?} needs a column `score`"),
    "not-a-number/score": Entry(ERROR, "{n_lacking} rows have no score that is a number"),
    "nothing-to-review/shown": Entry(ERROR, "there is nothing to review: no item was chosen that can be shown"),
    "no-media": Entry(
        ERROR, "no row says what it shows", fix="name its column with {--media?}, or its file with {--dataset?}"
    ),
    "text-too-long": Entry(ERROR, "its text has {n_text:,} letters; at most {LONGEST_TEXT:,} are shown"),
    "too-few-items": Entry(ERROR, "{--sample <sample>}: there are {n_ids} items to draw from"),
    "nothing-to-review/called": Entry(
        ERROR, "no item of {answered_name} was called {kinds}: there is nothing to review"
    ),
    "not-adjudicator": Entry(ERROR, "{who_name} is not an adjudicator", fix="name one with {--adjudicator?}"),
    "bad-ecg": Entry(ERROR, "an ECG is 1 to {MOST_LEADS} leads × samples without NaN; found shape {shape}"),
    "bad-ecg/long": Entry(
        ERROR, "an ECG lasts at most {MOST_SECONDS:g} seconds; {samples} samples at {fs:g} Hz do not"
    ),
    "lead-names/count": Entry(ERROR, "there are {n} leads and {n_leads} names for them"),
    "picture-too-large/shown": Entry(
        ERROR, "{path_name} has {width} × {height} pixels; at most {MOST_PIXELS:,} are shown"
    ),
    "unknown-media": Entry(
        ERROR, "{path_name} is none of PNG, JPEG, WebP, WAV, FLAC, Ogg, MP3, M4A, NumPy .npy or .txt"
    ),
    "media-too-large": Entry(ERROR, "{path_name} is larger than the {MOST_BYTES} MiB that a file of its kind may have"),
    "media-changed": Entry(ERROR, "{path_name} is no longer a picture or a sound"),
    "no-folder/media": Entry(ERROR, "there is no folder to look for media in", fix="say {--root?}"),
    "path-outside/media": Entry(ERROR, "{source!r} is no path of a file below the folder of the media"),
    "not-a-picture/shown": Entry(ERROR, "{path_name} is not a picture that can be shown: {error}"),
    "no-such-record/media": Entry(ERROR, "the recordings have no record {source!r}"),
    "not-plain-array": Entry(ERROR, "{path_name} is not a plain array: {error}"),
    "note-too-long": Entry(ERROR, "a note has at most {LONGEST_NOTE:,} letters; this one has {n_note:,}"),
    "remote-not-allowed": Entry(
        ERROR, "{host} can be reached from other machines; that needs {--allow-remote?}, and a token"
    ),
    "port-taken": Entry(ERROR, "cannot listen on {host} port {port}: {strerror}", fix="try {--port 0}"),
    "bad-token": Entry(ERROR, "{path_name}: a token is one line of at least {SHORTEST_TOKEN} plain letters and digits"),
    "review-unwritten": Entry(ERROR, "the review could not be written or read: {error}"),
    "bad-reviewer-name": Entry(ERROR, "a name has 1 to {LONGEST_NAME} letters that can be seen"),
    "not-adjudicator/judged": Entry(
        ERROR, "{who_name} has given verdicts and cannot adjudicate them", fix="name somebody else"
    ),
    "no-review": Entry(ERROR, "there is no review {path_name}; begin one with `hitmiss review RUN`"),
    "review-schema": Entry(
        ERROR, "{path_name} holds {found}; this version of hitmiss reads reviews of schema {SCHEMA}"
    ),
    "no-folder/review": Entry(ERROR, "there is no folder {parent} to keep the review in"),
    "not-a-review": Entry(ERROR, "{path_name} is not a review: it is not an SQLite file, or it is damaged"),
    "begun-otherwise": Entry(
        ERROR,
        "{path_name} was begun in another way: {differing}",
        fix="give what it was begun with, or another file with {--store?}",
    ),
    "items-not-shown": Entry(
        ERROR, "{n:,} of {total:,} items cannot be shown", fix="fix them, or leave them out with {--allow-missing}"
    ),
    "unknown-item": Entry(ERROR, "{n:,} of the items asked for are not in {file}"),
    "nothing-to-review": Entry(ERROR, "there is nothing to review: no item was chosen"),
}
