"""Where the files behind trials lie: beside a score file that names them, in the folder of a run's manifest, in an `.npz`.

A file is looked up by the id of a trial, and shown only if it lies inside the folder after every link is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, Protocol

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.trials import Trials
from hitmiss.io.manifest import inside, read_manifest
from hitmiss.io.reader import files_of, media_folder, read_rows, run_behind
from hitmiss.protocols.toxicity import load_run
from hitmiss.report.media import RATE, Media, Refusal, open_media, trace_of
from hitmiss.report.remaking import Remaking, remaking_of

COLUMNS: Final = ("file", "path", "filename", "audio", "image", "media")
NAMED: Final = ("image", "image_path", "audio", "audio_path")
ENDINGS: Final = ("", ".flac", ".wav", ".mp3", ".ogg", ".m4a", ".png", ".jpg", ".jpeg", ".webp")
"""What an id may lack of a file's name."""
TABLES: Final = (".tsv", ".csv", ".txt", ".jsonl", ".parquet")
TRIED: Final = 20


class Shelf(Protocol):
    """Finds what belongs to a row of trials."""

    def find(self, row: Mapping[str, Any]) -> Media | Refusal | None:
        """The sound, image or signal of a row; a refusal with its reason; None where there is nothing to look for."""


@dataclass(frozen=True, eq=False)
class FileShelf:
    """Files in a folder, named by a table, by a column of the trials, or by the ids themselves."""

    root: Path
    files: Mapping[str, str] = field(default_factory=dict)
    column: str | None = None
    remaking: Remaking | None = None
    lossless: bool = False

    def find(self, row: Mapping[str, Any]) -> Media | Refusal | None:
        """See `Shelf`."""
        name = self._name(row)
        if name is None:
            return None
        shown = Path(name).name[:120]
        try:
            path = next((p for p in (inside(self.root, name + e) for e in ENDINGS) if p.is_file()), None)
        except (DataError, OSError, ValueError):
            return Refusal(shown, "its path leads out of the folder of the files")
        if path is None:
            return Refusal(shown, "there is no such file")
        how, again = change_of(row), self.remaking
        made_again = (lambda clip: again(clip, row)) if how and again is not None else None
        rate = again.rate if again is not None else RATE
        found = open_media(path, made_again, rate, lossless=self.lossless)
        return _said(found, how) if isinstance(found, Media) else Refusal(shown, found.reason)

    def _name(self, row: Mapping[str, Any]) -> str | None:
        item = str(row["item"])
        named = self.files.get(item) or (row.get(self.column) if self.column else None)
        if named or self.files:
            return str(named) if named else None
        return str(row.get("source") or item)

    def holds_any(self, trials: Trials) -> bool:
        """Whether some of the first files are there."""
        rows = trials.frame.head(TRIED).iter_rows(named=True)
        return any(self._is_there(name) for row in rows if (name := self._name(row)) is not None)

    def _is_there(self, name: str) -> bool:
        try:
            return any(inside(self.root, name + ending).is_file() for ending in ENDINGS)
        except (DataError, OSError, ValueError):
            return False


def change_of(row: Mapping[str, Any]) -> str:
    """What was done to a clip on its way to the detector, as its id says it; nothing where it came as it is."""
    source, item = str(row.get("source") or ""), str(row["item"])
    if not source or item == source or not item.startswith(f"{source}@"):
        return ""
    how = item.removeprefix(f"{source}@")
    return "" if how in ("clean", "NONE", "NONE-NONE", "NONE--") else how


def _said(found: Media, how: str) -> Media:
    """A clip that was coded or changed says whether it is shown as the detector had it, made again, or as it was before."""
    told = "" if not how else f", made again: {how[:60]}" if found.is_changed else f", before {how[:60]}"
    return replace(found, about=found.about + told)


@dataclass(frozen=True, eq=False)
class SignalShelf:
    """Recordings in one `.npz`, by their ids; as an attack left them too, where the run kept its signals."""

    path: Path
    run: Path | None = None

    @cached_property
    def _recordings(self) -> Any:
        from hitmiss.attack.campaign import read_recordings

        return read_recordings(self.path)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {item: i for i, item in enumerate(self._recordings.ids)}

    def find(self, row: Mapping[str, Any]) -> Media | Refusal | None:
        """See `Shelf`."""
        at = self._places.get(str(row["item"]))
        if at is None:
            return Refusal(str(row["item"])[:120], f"{self.path.name} has no such record")
        after, how = self._attacked(row)
        return trace_of(self._recordings.x[at], self._recordings.fs, after, how)

    def _attacked(self, row: Mapping[str, Any]) -> tuple[Any, str]:
        """The record of a row as the attack that the row names left it, and that attack in words."""
        from hitmiss.attack.campaign import has_signals, read_signals

        if self.run is None or "attack" not in row or not has_signals(self.run):
            return None, ""
        said = {name: row[name] for name in ("attack", "strength", "aim", "place") if name in row}
        return read_signals(self.run, **said, records=[str(row["item"])])[1][
            0
        ], f"under {said['attack']} {said['strength']}"


@dataclass(frozen=True, eq=False)
class Shelves:
    """Several shelves, looked through in turn; what the last of them says counts where none has it."""

    shelves: tuple[Shelf, ...]

    def find(self, row: Mapping[str, Any]) -> Media | Refusal | None:
        """See `Shelf`."""
        found: Media | Refusal | None = None
        for shelf in self.shelves:
            found = shelf.find(row) or found
            if isinstance(found, Media):
                return found
        return found


@dataclass(frozen=True)
class OutsideShelf:
    """Files outside the folder of their run. Whoever made the run named that place: it may be any on this machine."""

    def find(self, row: Mapping[str, Any]) -> Media | Refusal | None:
        """See `Shelf`."""
        reason = "it lies outside the run's folder; name the folder of the files with --media to show it"
        return Refusal(str(row["item"])[:120], reason)


Texts = Callable[[], Mapping[str, str]]
"""Reads the text of each item, where the trials were read without: once, when the first is wanted."""


def texts_of_predictions(folder: str, tag: str) -> Texts:
    """The texts in prediction files of a run tag, by the ids of the trials."""

    @cache
    def read() -> Mapping[str, str]:
        run = load_run(folder, tag, whole=True)
        raw, frame = run.predictions.raw, run.predictions.frame
        texts = [f["text"].to_list() if "text" in f.columns else None for f in raw]
        places = zip(run.trials.items, frame["file"], frame["row"], strict=True)
        return {item: own[row] for item, file, row in places if (own := texts[file]) is not None}

    return read


@dataclass(frozen=True)
class Remarks:
    """Why a model says what it says: the rationale of each answer in the rows of a triage."""

    texts: Mapping[tuple[str, str, str, str], str]

    def of(self, row: Mapping[str, Any]) -> str:
        """The rationale of the answer in a row of trials; empty where none is known."""
        model, tools, trial = (str(row.get(name) or "") for name in ("model", "tools", "trial"))
        return self.texts.get((str(row["item"]), model, tools, trial), "")


def remarks_beside(source: str | Path) -> Remarks | None:
    """The rationales in a file of answers (JSON lines of the triage document); None where it holds none."""
    path = Path(source)
    if path.suffix.lower() != ".jsonl" or not path.is_file():
        return None
    with path.open("rb") as file:
        if b'"rationale"' not in file.readline(1 << 20):
            return None
    found: dict[tuple[str, str, str, str], str] = {}
    for row in read_rows(path).frame.to_dicts():
        tools = {"true": "tools", "false": "no-tools"}.get(str(row.get("use_tools") or "").lower(), "")
        key = (str(row.get("id") or ""), str(row.get("model") or ""), tools, str(row.get("trial") or ""))
        found[key] = str(row.get("rationale") or "")
    return Remarks(found)


def open_shelf(place: str | Path) -> Shelf:
    """What `--media` names: a folder of files, a manifest that tells the file of each item, or an `.npz` of signals."""
    path = Path(place)
    if path.is_dir():
        return FileShelf(path)
    if not path.is_file():
        raise UsageError(f"there is no {path.name} to take sounds, images or signals from")
    if path.suffix == ".npz":
        return SignalShelf(path)
    if path.suffix.lower() not in TABLES:
        raise UsageError(f"--media {path.name}: give a folder, a manifest ({', '.join(TABLES)}) or an .npz of signals")
    manifest = read_manifest(str(path))
    return FileShelf(path.parent, dict(zip(manifest.items, manifest.frame["file"].to_list(), strict=True)))


def lossless(shelf: Shelf | None) -> Shelf | None:
    """The shelf with its sounds as FLAC, sample for sample, in place of MP3."""
    if isinstance(shelf, FileShelf):
        return replace(shelf, lossless=True)
    if isinstance(shelf, Shelves):
        return Shelves(tuple(s for s in map(lossless, shelf.shelves) if s is not None))
    return shelf


def shelf_of(source: str | Path, trials: Trials, places: Sequence[str] = ()) -> Shelf | None:
    """The files behind trials: as the user says (`--media`), else as a run or a score file tells of itself."""
    run = run_behind(source)
    own = _of_run(run, places) if run is not None else None
    if own is None and run is None:
        own = shelf_beside(source, trials)
    if not places or (run is not None and own is not None and not isinstance(own, OutsideShelf)):
        return own
    named = [open_shelf(place) for place in places]
    if len(named) > 1:  # of several places each may be for another run
        named = [shelf for shelf in named if not isinstance(shelf, FileShelf) or shelf.holds_any(trials)]
    if isinstance(own, FileShelf) and own.files:
        named = [own, *named]  # the rows name their files: what lies beside them is theirs
    return Shelves(tuple(named)) if named else own


def shelf_beside(source: str | Path, trials: Trials) -> Shelf | None:
    """The files that a run or a score file tells of itself; None where it tells of none, or they are not there any more.

    Of a run they are shown where they lie inside its folder: it may come from anybody.
    """
    path = Path(source)
    run = run_behind(path)
    if run is not None:
        return _of_run(run)
    if not path.is_file():
        return None
    column = next((c for c in COLUMNS if c in trials.header.slices), None)
    files = _named_in(path) if column is None else {}
    shelf = FileShelf(path.parent, files, column)
    return shelf if (files or column) and shelf.holds_any(trials) else None


def _named_in(path: Path) -> dict[str, str]:
    """The file of each item, where results of the triage document name it: there it is no property to split by."""
    with path.open("rb") as file:
        first = file.readline(1 << 20)
    if path.suffix.lower() != ".jsonl" or not any(b'"%s"' % name.encode() in first for name in NAMED):
        return {}
    rows = read_rows(path).frame.to_dicts()
    named = [(row.get("id"), next((row[n] for n in NAMED if row.get(n)), None)) for row in rows]
    return {item: file for item, file in named if item and file}


def _of_run(folder: Path, named: Sequence[str] = ()) -> Shelf | None:
    """The files of a run: inside its folder, or inside a place that the user has named."""
    place = media_folder(folder)
    if place is None or not place.exists():
        return None
    roots = [folder, *map(Path, named)]
    if not any(place.resolve().is_relative_to(root.resolve()) for root in roots):
        return OutsideShelf()
    if place.suffix == ".npz":
        return SignalShelf(place, folder) if place.is_file() else None
    files = files_of(folder)
    return FileShelf(place, files, remaking=remaking_of(folder)) if files and place.is_dir() else None
