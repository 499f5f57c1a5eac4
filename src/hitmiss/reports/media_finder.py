"""Where the files of trials are: next to a score file that names them, in the folder of a run's manifest, in an `.npz`.

A file is looked up by the id of a trial, and shown only if it is inside the folder after following every link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.sorting import Array
from hitmiss.core.trials import Trials
from hitmiss.io.finished import files_of, media_folder, run_behind
from hitmiss.io.manifest import inside, read_manifest
from hitmiss.io.text_rows import read_rows

if TYPE_CHECKING:
    from hitmiss.attacks.recordings import Recordings
from hitmiss.reports.embedded_media import RATE, Media, Refusal, open_media
from hitmiss.reports.remaking import Remaking, remaking_of
from hitmiss.reports.traces import trace_of

COLUMNS: Final = ("file", "path", "filename", "audio", "image", "media")
NAMED: Final = ("image", "image_path", "audio", "audio_path")
ENDINGS: Final = ("", ".flac", ".wav", ".mp3", ".ogg", ".m4a", ".png", ".jpg", ".jpeg", ".webp")
"""Extensions that an id may omit."""
TABLES: Final = (".tsv", ".csv", ".txt", ".jsonl", ".parquet")
TRIED: Final = 20


class MediaFinder(Protocol):
    """Finds the content that belongs to a row of trials."""

    def find(self, row: Mapping[str, object]) -> Media | Refusal | None:
        """Return the sound, image or signal of a row, or a refusal with its reason; None without anything to show."""


@dataclass(frozen=True, eq=False)
class FileFinder:
    """Files in a folder, named by a table, by a column of the trials, or by the ids themselves."""

    root: Path
    files: Mapping[str, str] = field(default_factory=dict)
    column: str | None = None
    remaking: Remaking | None = None
    lossless: bool = False

    def find(self, row: Mapping[str, object]) -> Media | Refusal | None:
        """See `MediaFinder`."""
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
        return _with_remark(found, how) if isinstance(found, Media) else Refusal(shown, found.reason)

    def _name(self, row: Mapping[str, object]) -> str | None:
        item = str(row["item"])
        named = self.files.get(item) or (row.get(self.column) if self.column else None)
        if named or self.files:
            return str(named) if named else None
        return str(row.get("source") or item)

    def holds_any(self, trials: Trials) -> bool:
        """Say whether some of the first files exist."""
        rows = trials.frame.head(TRIED).iter_rows(named=True)
        return any(self._is_there(name) for row in rows if (name := self._name(row)) is not None)

    def _is_there(self, name: str) -> bool:
        try:
            return any(inside(self.root, name + ending).is_file() for ending in ENDINGS)
        except (DataError, OSError, ValueError):
            return False


def change_of(row: Mapping[str, object]) -> str:
    """Describe the change of a clip, as its id records it; empty if it was not changed."""
    source, item = str(row.get("source") or ""), str(row["item"])
    if not source or item == source or not item.startswith(f"{source}@"):
        return ""
    how = item.removeprefix(f"{source}@")
    return "" if how in ("clean", "NONE", "NONE-NONE", "NONE--") else how


def _with_remark(found: Media, how: str) -> Media:
    """Say for a changed clip whether it is shown as the detector received it (made again) or as it was before."""
    told = "" if not how else f", made again: {how[:60]}" if found.is_changed else f", before {how[:60]}"
    return replace(found, about=found.about + told)


@dataclass(frozen=True, eq=False)
class SignalFinder:
    """Recordings in one `.npz`, by their ids; also after an attack, if the run stored its signals."""

    path: Path
    run: Path | None = None

    @cached_property
    def _recordings(self) -> Recordings:
        from hitmiss.attacks.recordings import read_recordings

        return read_recordings(self.path)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {item: i for i, item in enumerate(self._recordings.ids)}

    def find(self, row: Mapping[str, object]) -> Media | Refusal | None:
        """See `MediaFinder`."""
        at = self._places.get(str(row["item"]))
        if at is None:
            return Refusal(str(row["item"])[:120], f"{self.path.name} has no such record")
        after, how = self._attacked(row)
        return trace_of(self._recordings.x[at], self._recordings.fs, after, how)

    def _attacked(self, row: Mapping[str, object]) -> tuple[Array | None, str]:
        """Return the record of a row after the attack that the row names, and that attack in words."""
        from hitmiss.attacks.signals import has_signals, read_signals

        if self.run is None or "attack" not in row or not has_signals(self.run):
            return None, ""
        said = {name: str(row[name]) for name in ("attack", "strength", "aim", "place") if name in row}
        return read_signals(self.run, **said, records=[str(row["item"])])[1][
            0
        ], f"under {said['attack']} {said['strength']}"


@dataclass(frozen=True, eq=False)
class SeveralFinders:
    """Several finders, searched in turn; if none has the content, the answer of the last one counts."""

    finders: tuple[MediaFinder, ...]

    def find(self, row: Mapping[str, object]) -> Media | Refusal | None:
        """See `MediaFinder`."""
        found: Media | Refusal | None = None
        for finder in self.finders:
            found = finder.find(row) or found
            if isinstance(found, Media):
                return found
        return found


@dataclass(frozen=True)
class OutsideFinder:
    """Files outside the folder of their run. The author of a run could have named any place on this machine."""

    def find(self, row: Mapping[str, object]) -> Media | Refusal | None:
        """See `MediaFinder`."""
        reason = "it lies outside the run's folder; name the folder of the files with --media to show it"
        return Refusal(str(row["item"])[:120], reason)


def finder_at(place: str | Path) -> MediaFinder:
    """Open what `--media` names: a folder of files, a manifest that lists the file of each item, or an `.npz`."""
    path = Path(place)
    if path.is_dir():
        return FileFinder(path)
    if not path.is_file():
        raise UsageError.of("missing-file", what="folder or file of media", file=path.name)
    if path.suffix == ".npz":
        return SignalFinder(path)
    if path.suffix.lower() not in TABLES:
        raise UsageError.of("bad-media-source", path_name=path.name, TABLES=tuple(TABLES))
    manifest = read_manifest(str(path), are_labels_read=False)
    return FileFinder(path.parent, dict(zip(manifest.items, manifest.frame["file"].to_list(), strict=True)))


def lossless(finder: MediaFinder | None) -> MediaFinder | None:
    """Return the finder with its sounds as FLAC, sample for sample, instead of MP3."""
    if isinstance(finder, FileFinder):
        return replace(finder, lossless=True)
    if isinstance(finder, SeveralFinders):
        return SeveralFinders(tuple(s for s in map(lossless, finder.finders) if s is not None))
    return finder


def finder_of(source: str | Path, trials: Trials, places: Sequence[str] = ()) -> MediaFinder | None:
    """Return the files of trials: as the user says (`--media`), else as a run or a score file records them."""
    run = run_behind(source)
    own = _of_run(run, places) if run is not None else None
    if own is None and run is None:
        own = finder_beside(source, trials)
    if not places or (run is not None and own is not None and not isinstance(own, OutsideFinder)):
        return own
    named = [finder_at(place) for place in places]
    if len(named) > 1:  # each of several places may belong to another run
        named = [finder for finder in named if not isinstance(finder, FileFinder) or finder.holds_any(trials)]
    if isinstance(own, FileFinder) and own.files:
        named = [own, *named]  # the rows name their files, which are next to them
    return SeveralFinders(tuple(named)) if named else own


def finder_beside(source: str | Path, trials: Trials) -> MediaFinder | None:
    """Return the files that a run or a score file records; None if it records none, or they no longer exist.

    Files of a run are shown only if they are inside its folder, because a run may come from an unknown source.
    """
    path = Path(source)
    run = run_behind(path)
    if run is not None:
        return _of_run(run)
    if not path.is_file():
        return None
    column = next((c for c in COLUMNS if c in trials.header.slices), None)
    files = _named_in(path) if column is None else {}
    finder = FileFinder(path.parent, files, column)
    return finder if (files or column) and finder.holds_any(trials) else None


def _named_in(path: Path) -> dict[str, str]:
    """Return the file of each item if results of a triage name it; such a column is not a property to split by."""
    with path.open("rb") as file:
        first = file.readline(1 << 20)
    if path.suffix.lower() != ".jsonl" or not any(b'"%s"' % name.encode() in first for name in NAMED):
        return {}
    rows = read_rows(path).frame.to_dicts()
    named = [(row.get("id"), next((row[n] for n in NAMED if row.get(n)), None)) for row in rows]
    return {item: file for item, file in named if item and file}


def _of_run(folder: Path, named: Sequence[str] = ()) -> MediaFinder | None:
    """Return the files of a run: inside its folder, or inside a place that the user has named."""
    place = media_folder(folder)
    if place is None or not place.exists():
        return None
    roots = [folder, *map(Path, named)]
    if not any(place.resolve().is_relative_to(root.resolve()) for root in roots):
        return OutsideFinder()
    if place.suffix == ".npz":
        return SignalFinder(place, folder) if place.is_file() else None
    files = files_of(folder)
    return FileFinder(place, files, remaking=remaking_of(folder)) if files and place.is_dir() else None
