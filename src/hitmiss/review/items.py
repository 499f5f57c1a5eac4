"""From results to the items that people judge, and the content that each item shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from hitmiss.claims.open import split_choice
from hitmiss.core.classes import same_class
from hitmiss.core.design import Bands
from hitmiss.core.errors import DataError, EnvironmentFault, Fault, UnknownName, UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.io.columns import UNCERTAIN, verdict
from hitmiss.io.manifest import inside
from hitmiss.io.reader import files_of, media_folder, read_rows, run_behind
from hitmiss.io.triage import flatten
from hitmiss.review.store import Entry, Store, begin
from hitmiss.runs.manifest import MANIFEST, TABLE, items_digest, require_complete, run_facts
from hitmiss.stats.random import generator

if TYPE_CHECKING:
    from hitmiss.attacks.recordings import Recordings
    from hitmiss.review.drawing import Ecg


# ----------------------------------------------------------------------
# Results as a review reads them: the id of each row and the system's answer. Labels are not needed.

IDS: Final = ("id", "item", "utt_id", "utt", "comment_id")
PICTURES: Final = ("image", "image_path")
FILES: Final = (*PICTURES, "audio", "audio_path", "ecg", "file", "filename", "path", "media")
UNPARSED, ERROR, ALL = "unparsed", "error", "all"
SAID: Final = ("prediction", "verdict", "analysis_verdict", "parsed_verdict")


@dataclass(frozen=True)
class Wish:
    """What is to be reviewed.

    verdicts   which verdicts of the system: uncertain, unparsed, error, a class, all
    items      these ids instead
    sample     how many of them, drawn with `seed`, which also determines the order
    thresholds two numbers that turn scores into verdicts
    """

    verdicts: tuple[str, ...] = (UNCERTAIN, UNPARSED)
    items: tuple[str, ...] = ()
    sample: int | None = None
    seed: int = 0
    thresholds: tuple[float, float] | None = None
    positive: str | None = None
    negative: str | None = None
    media: str | None = None
    suffix: str = ""
    blind: bool = True
    allow_missing: bool = False


@dataclass(frozen=True, eq=False)
class Answered:
    """Rows of results: the id, the system's answer (a category), and the row itself as text."""

    frame: pl.DataFrame
    rows: list[dict[str, str]]
    name: str
    sha256: str
    folder: Path
    positive: str
    negative: str


def read_answered(run: str, wish: Wish) -> Answered:
    """Read the rows of a results file or a finished run, with a category each: a class, uncertain, unparsed, error."""
    path, cells = split_choice(run)
    place, facts = Path(path), None
    if (place / MANIFEST).is_file():
        facts = run_facts(require_complete(place))
        table = place / (facts.rows or TABLE)  # a run of `hitmiss llm` keeps its rows next to its table
    else:
        table = place
    texts = read_rows(table)
    positive = wish.positive or (facts and facts.positive) or "fake"
    negative = wish.negative or (facts and facts.negative) or "real"
    frame = _chosen_rows(texts.frame, cells, run)
    rows = frame.to_dicts()
    said = pl.DataFrame({"item": ids_of(rows, texts.name), "said": _categories(frame, wish, positive, negative)})
    name = place.name if facts else texts.name
    return Answered(said, rows, name, texts.sha256, place.parent, positive, negative)


def _chosen_rows(frame: pl.DataFrame, cells: Mapping[str, str], text: str) -> pl.DataFrame:
    """Return the rows that `results.jsonl[model=m,tools=yes]` selects, with `tools` as documented for triage."""
    for name, value in cells.items():
        column, wanted = name, value
        if name == "tools" and "use_tools" in frame.columns:
            column, wanted = "use_tools", {"tools": "true", "no-tools": "false"}.get(value, value)
        if column not in frame.columns:
            raise UnknownName(f"column in {text!r}", name, frame.columns)
        frame = frame.filter(pl.col(column) == wanted)
    if not frame.height:
        raise DataError(f"{text}: no row has {', '.join(f'{k}={v}' for k, v in cells.items())}")
    if "target" in frame.columns and frame["target"].n_unique() > 1:
        several = ", ".join(sorted(frame["target"].unique())[:5])
        raise UsageError(
            f"{text} asks several questions of an item ({several}); choose one, as {text}[target={several.split(',')[0]}]"
        )
    return frame


def ids_of(rows: Sequence[Mapping[str, str]], name: str) -> list[str]:
    found = [item_id(row) for row in rows]
    if not all(found):
        raise DataError(f"{name} has a row without an id; each item needs one ({', '.join(IDS)}, or a file)")
    return found


def item_id(row: Mapping[str, str]) -> str:
    """Return the id of a row: its own, the stem of its picture, or its file.

    >>> item_id({"image": "a/b.jpg"}), item_id({"file": "a/b.wav"}), item_id({"id": "7", "image": "x.png"})
    ('b', 'a/b.wav', '7')
    """
    own = next((row[name] for name in IDS if row.get(name)), "")
    picture = next((row[name] for name in PICTURES if row.get(name)), "")
    other = next((row[name] for name in FILES if row.get(name)), "")
    return own or (PurePosixPath(picture.replace("\\", "/")).stem if picture else other)


def _categories(frame: pl.DataFrame, wish: Wish, positive: str, negative: str) -> list[str]:
    """Return the system's answer for each row; empty where there is no answer and none is needed."""
    if wish.thresholds is not None:
        return _by_scores(frame, Bands(*wish.thresholds), positive, negative)
    if any(name in frame.columns for name in SAID):
        flat = flatten(frame, ReadSpec()).frame
        errors, said, unparsed = flat["error"], flat["decision"], flat["unparsed"]
        return [
            ERROR if e else UNPARSED if u else _class(d, positive, negative)
            for e, d, u in zip(errors, said, unparsed, strict=True)
        ]
    if "decision" in frame.columns:
        return [_class(text, positive, negative) for text in frame["decision"]]
    if wish.items or ALL in wish.verdicts:
        return [""] * frame.height
    raise DataError("there are no verdicts to go by; give --thresholds LOW HIGH for scores, or --verdicts all")


def _class(text: str, positive: str, negative: str) -> str:
    words = {"1": positive, "0": negative, "-1": UNCERTAIN, "": ERROR}
    if text in words:
        return words[text]
    said = verdict(text) or text
    return next((name for name in (positive, negative, UNCERTAIN) if said == name or same_class(said, name)), UNPARSED)


def _by_scores(frame: pl.DataFrame, bands: Bands, positive: str, negative: str) -> list[str]:
    if "score" not in frame.columns:
        raise UsageError("--thresholds needs a column `score`")
    scores = frame["score"].cast(pl.Float64, strict=False)
    lacking = scores.fill_null(float("nan")).is_nan()
    if lacking.any():
        raise DataError(f"{len(lacking.arg_true())} rows have no score that is a number")
    return [negative if s < bands.low else positive if s >= bands.high else UNCERTAIN for s in scores]


# ----------------------------------------------------------------------
# The content of an item: a picture, a sound, a text or an ECG. The type is recognised by the first bytes of a file.
#
# Only these are ever sent to a browser: PNG, JPEG, WebP; WAV, FLAC, Ogg, MP3, M4A. SVG and HTML are refused, whatever
# their names are. Texts and ECGs go into the page itself, as text and as lines.

IMAGE, AUDIO, TEXT, ECG = "image", "audio", "text", "ecg"
MOST_BYTES: Final = {IMAGE: 64 * 2**20, AUDIO: 512 * 2**20, TEXT: 2**20, ECG: 256 * 2**20}
MOST_PIXELS: Final = 100_000_000
HEAD: Final = 16
NUMPY: Final = b"\x93NUMPY"


@dataclass(frozen=True)
class File:
    """A file that may be sent to a browser, and its media type."""

    path: Path
    kind: str
    mime: str


def told(head: bytes) -> tuple[str, str] | None:
    """Recognise a file by its first 16 bytes: return kind and media type; None for everything not on the list.

    >>> told(b"\\x89PNG\\r\\n\\x1a\\n0000"), told(b"RIFF....WAVEfmt "), told(b"<svg xmlns=...")
    (('image', 'image/png'), ('audio', 'audio/wav'), None)
    """
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return IMAGE, "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return IMAGE, "image/jpeg"
    if head[:4] == b"RIFF":
        return {b"WEBP": (IMAGE, "image/webp"), b"WAVE": (AUDIO, "audio/wav")}.get(head[8:12])
    if head.startswith(b"fLaC"):
        return AUDIO, "audio/flac"
    if head.startswith(b"OggS"):
        return AUDIO, "audio/ogg"
    if head[:3] == b"ID3" or (head[:1] == b"\xff" and len(head) > 1 and head[1] & 0xE6 == 0xE2):
        return AUDIO, "audio/mpeg"
    if head[4:12] in (b"ftypM4A ", b"ftypmp42", b"ftypisom"):
        return AUDIO, "audio/mp4"
    return None


@dataclass(frozen=True, eq=False)
class Library:
    """Where the media are: a folder that no path may leave, and recordings in one file."""

    root: Path | None = None
    recordings: Recordings | None = None
    fs: float | None = None

    def kind_of(self, source: str) -> str:
        """Return the kind of a file, after all checks that need no decoding."""
        path = self._path(source)
        head = _head(path)
        found = told(head)
        kind = found[0] if found else ECG if head.startswith(NUMPY) else TEXT if path.suffix.lower() == ".txt" else None
        if kind is None:
            raise DataError(f"{path.name} is none of PNG, JPEG, WebP, WAV, FLAC, Ogg, MP3, M4A, NumPy .npy or .txt")
        if path.stat().st_size > MOST_BYTES[kind]:
            raise DataError(
                f"{path.name} is larger than the {MOST_BYTES[kind] >> 20} MiB that a file of its kind may have"
            )
        if kind == IMAGE:
            _check_picture(path)
        elif kind == ECG:
            self.ecg(source)
        elif kind == TEXT:
            self.text(source)
        return kind

    def file(self, source: str) -> File:
        """Return a picture or a sound, checked again because it may have changed since the review began."""
        path = self._path(source)
        found = told(_head(path))
        if found is None or path.stat().st_size > MOST_BYTES[found[0]]:
            raise DataError(f"{path.name} is no longer a picture or a sound")
        return File(path, *found)

    def text(self, source: str) -> str:
        """Return the text of a `.txt` file."""
        path = self._path(source)
        try:
            return path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise DataError(f"{path.name} is not UTF-8 text") from None

    def ecg(self, source: str) -> Ecg:
        """Return an ECG from a `.npy` file, or a record of the recordings."""
        from hitmiss.review.drawing import Ecg

        if self.recordings is not None:
            if source not in self.recordings.ids:
                raise DataError(f"the recordings have no record {source!r}")
            return Ecg.of(self.recordings.x[self.recordings.ids.index(source)], self.recordings.fs)
        if self.fs is None:
            raise UsageError("a .npy file does not say its sample rate; say --fs")
        path = self._path(source)
        try:
            array = np.load(path, allow_pickle=False)
        except Exception as error:  # numpy parses the header as Python code: errors of any kind
            raise DataError(f"{path.name} is not a plain array: {error}") from None
        if array.dtype.kind not in "iuf":
            raise DataError(f"{path.name} holds {array.dtype}, not numbers")
        return Ecg.of(array, self.fs)

    def _path(self, source: str) -> Path:
        if self.root is None:
            raise UsageError("there is no folder to look for media in; say --root")
        if "\0" in source or "://" in source or source.lower().startswith("file:"):
            raise DataError(f"{source!r} is no path of a file below the folder of the media")
        path = inside(self.root, source)
        if not path.is_file():
            raise DataError(f"there is no file {source}")
        return path


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD)


def _check_picture(path: Path) -> None:
    """Check that the header can be read and that there are not too many pixels; nothing is decoded."""
    image = _need_pillow()
    try:
        with image.open(path, formats=("PNG", "JPEG", "WEBP")) as picture:
            width, height = picture.size
    except (image.DecompressionBombError, image.UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise DataError(f"{path.name} is not a picture that can be shown: {' '.join(str(error).split())}") from None
    if width * height > MOST_PIXELS:
        raise DataError(f"{path.name} has {width} × {height} pixels; at most {MOST_PIXELS:,} are shown")


def _need_pillow() -> ModuleType:
    try:
        return import_module("PIL.Image")
    except ImportError:
        raise EnvironmentFault("pictures need the package 'pillow': pip install 'hitmiss[review]'") from None


# ----------------------------------------------------------------------
# From results to the items to judge: those of which the system was not sure, or those that were asked for.

TEXTS: Final = ("text", "comment_text", "comment")
LABELS: Final = ("label", "ground_truth")
LONGEST_TEXT: Final = 200_000


@dataclass(frozen=True, eq=False)
class Chosen:
    """The entries in the order of asking, the settings that identify them, and what cannot be shown."""

    entries: list[Entry]
    pinned: dict[str, object]
    left_out: list[Fault] = field(default_factory=list)


def choose(run: str, wish: Wish, library: Library, dataset: str | None = None) -> Chosen:
    """Choose the items of a run to be judged. Media are looked up in the dataset's rows, then in the run's own."""
    answered = read_answered(run, wish)
    ids = _wanted(answered, wish)
    rows = _media_rows(answered, run, dataset)
    entries, faults = _entries(ids, rows, wish, library)
    if faults and not wish.allow_missing:
        raise DataError(
            f"{len(faults)} of {len(ids)} items cannot be shown; fix them, or leave them out with --allow-missing",
            faults,
        )
    if not entries:
        raise DataError("there is nothing to review: no item was chosen that can be shown")
    order = generator(wish.seed, "review").permutation(len(entries)).tolist()
    entries = [entries[i] for i in order]
    pinned = {
        "run": answered.name,
        "sha256": answered.sha256[:16],
        "items": items_digest([e.item for e in entries]),
        "n_items": len(entries),
        "positive": answered.positive,
        "negative": answered.negative,
        "blind": wish.blind,
    }
    return Chosen(entries, pinned, faults)


def _wanted(answered: Answered, wish: Wish) -> list[str]:
    """Return the ids to be judged, each once, in the order of the file."""
    every = answered.frame["item"].unique(maintain_order=True).to_list()
    if wish.items:
        strange = [i for i in wish.items if i not in set(every)]
        if strange:
            faults = [Fault("unknown-item", "the results have no such item", value=i) for i in strange]
            raise DataError(f"{len(strange)} of the items asked for are not in {answered.name}", faults)
        ids = list(dict.fromkeys(wish.items))
    elif ALL in wish.verdicts:
        ids = every
    else:
        kinds = [_kind(word, answered) for word in wish.verdicts]
        ids = answered.frame.filter(pl.col("said").is_in(kinds))["item"].unique(maintain_order=True).to_list()
        if not ids:
            raise DataError(f"no item of {answered.name} was called {' or '.join(kinds)}: there is nothing to review")
    if wish.sample is not None:
        if not 1 <= wish.sample <= len(ids):
            raise UsageError(f"--sample {wish.sample}: there are {len(ids)} items to draw from")
        drawn = generator(wish.seed, "review-sample").choice(len(ids), size=wish.sample, replace=False)
        ids = [ids[i] for i in sorted(drawn.tolist())]
    return ids


def _kind(word: str, answered: Answered) -> str:
    known = (UNCERTAIN, UNPARSED, ERROR, answered.positive, answered.negative)
    found = next((k for k in known if word == k or same_class(word, k)), None)
    if found is None:
        raise UnknownName("verdict to review", word, (*known, ALL))
    return found


def _media_rows(answered: Answered, run: str, dataset: str | None) -> dict[str, list[dict[str, str]]]:
    """Return the rows that may name an item's content: of the dataset, of the results, and of the run's files."""
    found: dict[str, list[dict[str, str]]] = {}
    if dataset is not None:
        texts = read_rows(dataset)
        rows = texts.frame.to_dicts()
        for item, row in zip(ids_of(rows, texts.name), rows, strict=True):
            found.setdefault(item, []).append(row)
    for item, row in zip(answered.frame["item"], answered.rows, strict=True):
        found.setdefault(item, []).append(row)
    behind = run_behind(split_choice(run)[0])
    files = files_of(behind) if behind is not None and dataset is None else {}
    for item in found.keys() & files.keys():
        found[item].append({"file": files[item]})
    return found


def _entries(
    ids: Sequence[str], rows: Mapping[str, list[dict[str, str]]], wish: Wish, library: Library
) -> tuple[list[Entry], list[Fault]]:
    entries, faults = [], []
    for item in ids:
        try:
            kind, source = _source(item, rows[item], wish, library)
            entries.append(Entry(item, kind, source, {} if wish.blind else _told(rows[item])))
        except DataError as error:
            faults.append(Fault("cannot-be-shown", str(error), value=item))
    return entries, faults


def _source(item: str, rows: Sequence[Mapping[str, str]], wish: Wish, library: Library) -> tuple[str, str]:
    """Return what an item is and where: a record of the recordings, a file, or a text."""
    if library.recordings is not None:
        library.ecg(item)
        return ECG, item
    for row in rows:
        file = next((row[n] for n in ((wish.media,) if wish.media else FILES) if row.get(n)), None)
        if file is not None and wish.media not in TEXTS:
            source = file + wish.suffix
            kind = library.kind_of(source)
            return kind, library.text(source) if kind == TEXT else source
    text = next((row[n] for row in rows for n in ((wish.media,) if wish.media else TEXTS) if row.get(n)), None)
    if text is None:
        raise DataError("no row says what it shows; name its column with --media, or its file with --dataset")
    if len(text) > LONGEST_TEXT:
        raise DataError(f"its text has {len(text):,} letters; at most {LONGEST_TEXT:,} are shown")
    return TEXT, text


def _told(rows: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the answer of each run and the label, for a review that is not blind."""
    found = {}
    for row in rows:
        run = " · ".join(row[name] for name in ("model", "use_tools", "trial") if row.get(name))
        said = next((row[name] for name in (*SAID, "decision") if row.get(name)), "")
        if said:
            sure = row.get("confidence")
            found[run or "system"] = f"{said}, confidence {sure}" if sure else said
    label = next((row[n] for row in rows for n in LABELS if row.get(n)), None)
    return {**found, **({"label": label} if label else {})}


# ----------------------------------------------------------------------
# A review from results: chosen items, their media, and the file that stores the verdicts of people.
#
# store, library = open_review("results.jsonl", per_item=2)
# queue = Queue(store)                                # or `serving.serve(store, library)` for the page


def open_review(
    run: str | Path,
    *,
    dataset: str | Path | None = None,
    wish: Wish | None = None,
    library: Library | None = None,
    store: str | Path | None = None,
    per_item: int = 1,
    question: str | None = None,
    left_out: list[Fault] | None = None,
) -> tuple[Store, Library]:
    """Start a review of a run, or continue it. Items that cannot be shown are refused, or listed in `left_out`."""
    media = library or Library(folder_of(run, dataset))
    chosen = choose(str(run), wish or Wish(), media, None if dataset is None else str(dataset))
    if left_out is not None:
        left_out += chosen.left_out
    asked = question or f"{chosen.pinned['negative']} or {chosen.pinned['positive']}?".capitalize()
    pinned = {**chosen.pinned, "per_item": per_item, "question": asked}
    return begin(store or beside(run), pinned, chosen.entries), media


def beside(run: str | Path) -> Path:
    """Return the default path of the review's file: next to the results, with their name.

    >>> beside("a/results.jsonl[tools=tools]").as_posix()
    'a/results.review.sqlite'
    """
    path = Path(split_choice(str(run))[0])
    return path.with_name(f"{path.name if path.is_dir() else path.stem}.review.sqlite")


def folder_of(run: str | Path, dataset: str | Path | None = None) -> Path:
    """Return the folder to which media paths are relative: that of the table naming them, or the run's own."""
    if dataset is not None:
        return Path(dataset).parent
    path = Path(split_choice(str(run))[0])
    behind = run_behind(path)
    told = media_folder(behind) if behind is not None else None
    return told if told is not None and told.is_dir() else path.parent
