"""What `review` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "damaged-review": Entry(ERROR, "the review is damaged ({error})", fix="take a copy of it that is whole"),
    "no-verdicts-go": Entry(
        ERROR, "there are no verdicts to go by", fix="give {--thresholds?} LOW HIGH for scores, or {--verdicts all}"
    ),
    "asks-several-questions-item": Entry(
        ERROR, "{text} asks several questions of an item ({several})", fix="choose one, as {text}[target={several_2}]"
    ),
    "row-without-id-item": Entry(ERROR, "{name} has a row without an id; each item needs one ({IDS}, or a file)"),
    "needs-column-score": Entry(ERROR, "{--thresholds?} needs a column `score`"),
    "rows-no-score-number": Entry(ERROR, "{n_lacking} rows have no score that is a number"),
    "nothing-review-no-item": Entry(ERROR, "there is nothing to review: no item was chosen that can be shown"),
    "no-row-says-shows": Entry(
        ERROR, "no row says what it shows", fix="name its column with {--media?}, or its file with {--dataset?}"
    ),
    "text-letters-most-shown": Entry(ERROR, "its text has {n_text:,} letters; at most {LONGEST_TEXT:,} are shown"),
    "items-draw": Entry(ERROR, "{--sample <sample>}: there are {n_ids} items to draw from"),
    "no-item-called-nothing": Entry(ERROR, "no item of {answered_name} was called {kinds}: there is nothing to review"),
    "not-adjudicator": Entry(ERROR, "{who_name} is not an adjudicator", fix="name one with {--adjudicator?}"),
    "ecg-leads-samples-without": Entry(
        ERROR, "an ECG is 1 to {MOST_LEADS} leads × samples without NaN; found shape {shape}"
    ),
    "ecg-lasts-most-seconds": Entry(
        ERROR, "an ECG lasts at most {MOST_SECONDS:g} seconds; {samples} samples at {fs:g} Hz do not"
    ),
    "leads-names": Entry(ERROR, "there are {n} leads and {n_leads} names for them"),
    "pixels-most-shown": Entry(ERROR, "{path_name} has {width} × {height} pixels; at most {MOST_PIXELS:,} are shown"),
    "none-png-jpeg-webp": Entry(
        ERROR, "{path_name} is none of PNG, JPEG, WebP, WAV, FLAC, Ogg, MP3, M4A, NumPy .npy or .txt"
    ),
    "larger-mib-file-kind": Entry(
        ERROR, "{path_name} is larger than the {MOST_BYTES} MiB that a file of its kind may have"
    ),
    "no-longer-picture-sound": Entry(ERROR, "{path_name} is no longer a picture or a sound"),
    "npy-file-not-say": Entry(ERROR, "a .npy file does not say its sample rate", fix="say {--fs?}"),
    "holds-not-numbers": Entry(ERROR, "{path_name} holds {dtype}, not numbers"),
    "no-folder-look-media": Entry(ERROR, "there is no folder to look for media in", fix="say {--root?}"),
    "no-path-file-below": Entry(ERROR, "{source!r} is no path of a file below the folder of the media"),
    "no-file-3": Entry(ERROR, "there is no file {source}"),
    "not-picture-shown": Entry(ERROR, "{path_name} is not a picture that can be shown: {error}"),
    "pictures-need-package-pillow": Entry(ERROR, "pictures need the package 'pillow': pip install 'hitmiss[review]'"),
    "not-utf-text": Entry(ERROR, "{path_name} is not UTF-8 text"),
    "recordings-no-record": Entry(ERROR, "the recordings have no record {source!r}"),
    "not-plain-array": Entry(ERROR, "{path_name} is not a plain array: {error}"),
    "note-most-letters": Entry(ERROR, "a note has at most {LONGEST_NOTE:,} letters; this one has {n_note:,}"),
    "reached-other-machines-needs": Entry(
        ERROR, "{host} can be reached from other machines; that needs {--allow-remote?}, and a token"
    ),
    "cannot-listen-port": Entry(ERROR, "cannot listen on {host} port {port}: {strerror}", fix="try {--port 0}"),
    "page-needs-package-pip": Entry(ERROR, "the page needs the package {package!r}: pip install 'hitmiss[review]'"),
    "token-line-least-plain": Entry(
        ERROR, "{path_name}: a token is one line of at least {SHORTEST_TOKEN} plain letters and digits"
    ),
    "review-not-written-read": Entry(ERROR, "the review could not be written or read: {error}"),
    "name-letters-seen": Entry(ERROR, "a name has 1 to {LONGEST_NAME} letters that can be seen"),
    "given-verdicts-cannot-adjudicate": Entry(
        ERROR, "{who_name} has given verdicts and cannot adjudicate them", fix="name somebody else"
    ),
    "no-review-begin-hitmiss": Entry(ERROR, "there is no review {path_name}; begin one with `hitmiss review RUN`"),
    "holds-version-hitmiss-reads": Entry(
        ERROR, "{path_name} holds {found}; this version of hitmiss reads reviews of schema {SCHEMA}"
    ),
    "nothing-review-no-item-2": Entry(ERROR, "there is nothing to review: no item was chosen"),
    "no-folder-keep-review": Entry(ERROR, "there is no folder {parent} to keep the review in"),
    "not-review-not-sqlite": Entry(ERROR, "{path_name} is not a review: it is not an SQLite file, or it is damaged"),
    "begun-another-way": Entry(
        ERROR,
        "{path_name} was begun in another way: {differing}",
        fix="give what it was begun with, or another file with {--store?}",
    ),
    "items-not-shown": Entry(
        ERROR, "{n:,} of {total:,} items cannot be shown", fix="fix them, or leave them out with {--allow-missing}"
    ),
    "unknown-item": Entry(ERROR, "{n:,} of the items asked for are not in {file}"),
}
