"""The dataset: one JSON object per line with an id, a label, and a picture, a sound or a text.

    {"id": "s1", "image": "images/1.jpg", "label": "real", "meta": {"source": "camera"}}
    {"id": "s2", "audio": "clips/2.wav", "label": "fake"}
    {"id": "s3", "text": "what somebody wrote", "label": "fake"}

Files are in one folder (the dataset's, unless another is given). The type of a file is read from its first bytes. The
digest of a dataset covers ids, labels and the bytes of every item.
"""

from __future__ import annotations

import hashlib
import json
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from hitmiss.core.errors import DataError, EnvironmentFault, Fault, UsageError, message_of
from hitmiss.core.finding import Finding, Option
from hitmiss.io.manifest import inside
from hitmiss.io.verdicts import UNCERTAIN
from hitmiss.llm.picture import open_picture
from hitmiss.llm.question import USUAL, Question

PICTURES: Final = ("image", "image_path")
SOUNDS: Final = ("audio", "audio_path")
TEXT: Final = "text"
LABELS: Final = ("label", "ground_truth")
MOST_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True)
class Item:
    """One item: a file or a text, its label, and the hash of its bytes.

    `file` is the path relative to the folder of the files; no other path is ever written.
    """

    id: str
    kind: str
    label: str
    sha256: str
    media_type: str
    path: Path | None = None
    text: str | None = None
    file: str = ""
    data: bytes | None = field(default=None, repr=False)
    meta: Mapping[str, object] = field(default_factory=dict)
    order: str = ""
    """Of a canary: the instruction that every result of a tool carries."""

    def load(self) -> bytes:
        """Return the bytes as they were when the dataset was read; refuse a file that has changed since."""
        if self.text is not None:
            return self.text.encode()
        if self.data is not None:
            return self.data
        assert self.path is not None
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise DataError.of("unreadable-file/item", id=self.id, strerror=error.strerror) from None
        if _sha(data) != self.sha256:
            raise DataError.of("changed-item", id=self.id)
        return data


def read_items(
    path: str | Path,
    *,
    root: str | Path | None = None,
    limit: int | None = None,
    absent: list[str] | None = None,
    shuffle: int | None = None,
    question: Question = USUAL,
) -> list[Item]:
    """Read the items of a dataset file; all faults are reported together, by row.

    `absent`: if a list is given, items whose file is missing are left out and their ids are added to it. `shuffle`: the
    seed of a random order; `limit` then takes items at random, not the first of the file. `question`: the words of
    the labels. A dataset without any label is read as unlabelled items.
    """
    path = Path(path)
    base = Path(root) if root is not None else path.parent
    if limit is not None and limit < 1:
        raise UsageError.of("out-of-range/least", name=Option("limit"), least=1, found=limit)
    faults: list[Fault] = []
    by_row: dict[int, Item] = {}
    rows = list(_records(path, faults))
    has_labels = any(record.get(name) is not None for _, record in rows for name in LABELS)
    if shuffle is not None:
        random.Random(shuffle).shuffle(rows)
    for row, record in rows:
        if limit is not None and len(by_row) + len(faults) >= limit:
            break
        found = _item(record, base, path.name, row, question if has_labels else None)
        if isinstance(found, Fault) and absent is not None and found.kind == "missing-file":
            absent.append(str(record.get("id")))
        elif isinstance(found, Fault):
            faults.append(found)
        else:
            by_row[row] = found
    faults += _repeated(by_row, path.name)
    items = list(by_row.values())
    if faults:
        unusable = Finding("unusable-rows", values={"file": path.name, "n": len(faults)})
        raise DataError.coded(unusable, faults[0].kind).with_faults(faults)
    if not items:
        raise DataError.of("no-items", path_name=path.name)
    return items


def content_digest(items: Sequence[Item]) -> str:
    """Return SHA-256 over id, label and content of every item, independent of order.

    >>> a, b = (Item(i, "text", "fake", "0", "text/plain", text="x") for i in "ab")
    >>> content_digest([a, b]) == content_digest([b, a]) != content_digest([a])
    True
    """
    lines = sorted(json.dumps([item.id, item.label, item.kind, item.sha256]) for item in items)
    return _sha("\n".join(lines).encode())


def _records(path: Path, faults: list[Fault]) -> Iterator[tuple[int, dict[str, object]]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError.of("not-utf8", file=path.name) from None
    for row, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        record = _parsed(line)
        if isinstance(record, dict):
            yield row, record
        else:
            faults.append(Fault("bad-row", "the line is not a JSON object", path.name, row, value=line[:60]))


def _parsed(line: str) -> object:
    """Parse the JSON of a line; None if it is invalid, holds NaN or half a character, or is nested too deeply."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    try:
        found = json.loads(line, parse_constant=refuse)
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return found


def _item(record: Mapping[str, object], root: Path, name: str, row: int, question: Question | None) -> Item | Fault:
    def fault(kind: str, message: str, column: str, value: object = None) -> Fault:
        return Fault(kind, message, name, row, column, None if value is None else str(value)[:80])

    said = next((str(record[c]) for c in LABELS if record.get(c) is not None), "")
    label = "" if question is None else question.read(said)
    if question is not None and (label is None or label == UNCERTAIN):
        return fault("bad-label", f"the label must be {question.negative} or {question.positive}", "label", said)
    assert label is not None
    meta = record.get("meta") or {}
    if not isinstance(meta, dict):
        return fault("bad-meta", "meta must be an object", "meta", meta)
    given = [c for c in (*PICTURES, *SOUNDS, TEXT) if record.get(c) not in (None, "")]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        return fault("no-item", f"an item has one of image, audio or text; this has {found}", "image")
    value = record[given[0]]
    if not isinstance(value, str):
        return fault("no-item", "this must be text", given[0], value)
    own = record.get("id")
    if isinstance(own, bool | list | dict):
        return fault("bad-id", "an id is a text or a number", "id", own)
    stem = "" if given[0] == TEXT else PurePosixPath(value.replace("\\", "/")).stem
    ident = stem if own is None or own == "" else str(own)
    if not ident:
        return fault("no-id", "the item has no id", "id")
    if given[0] == TEXT:
        return Item(ident, TEXT, label, _sha(value.encode()), "text/plain", text=value, meta=meta)
    return _file_item(ident, label, meta, value, given[0], root, fault)


def _file_item(
    ident: str, label: str, meta: Mapping[str, object], value: str, column: str, root: Path, fault: Callable[..., Fault]
) -> Item | Fault:
    if "://" in value or value.startswith("data:"):
        return fault("no-file", "items are local files; an address is never fetched", column, value)
    try:
        path = inside(root, value)
        if path.stat().st_size > MOST_BYTES:
            return fault("large-file", f"the file is larger than {MOST_BYTES >> 20} MiB", column, value)
        data = path.read_bytes()
    except DataError as error:
        return fault("path-outside", error.faults[0].message if error.faults else message_of(error), column, value)
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        why = getattr(error, "strerror", None) or message_of(error)
        return fault("missing-file", f"the file cannot be read: {why}", column, value)
    wanted = "image" if column in PICTURES else "audio"
    media = media_type(data)
    if not media.startswith(f"{wanted}/"):
        known = "PNG, JPEG or WebP" if wanted == "image" else "WAV, MP3, FLAC or Ogg"
        return fault("bad-media", f"the file is not {known}", column, value)
    why = _unusable(data) if wanted == "image" else ""
    if why:
        return fault("bad-media", why, column, value)
    named = path.relative_to(root.resolve()).as_posix()  # an absolute path would reveal details of this machine
    return Item(ident, wanted, label, _sha(data), media, path=path, file=named, meta=meta)


def _unusable(data: bytes) -> str:
    """Return why a picture cannot be used, from its header alone: it is broken, or far too large."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Pillow warns about large pictures before it refuses them
            open_picture(data)
    except DataError as error:
        return message_of(error)
    except EnvironmentFault:  # no Pillow: a user's own function may not need it
        return ""
    return ""


def media_type(data: bytes) -> str:
    """Return the type given by the first bytes; empty for anything else.

    >>> media_type(b"\\x89PNG\\r\\n\\x1a\\n"), media_type(b"<svg/>")
    ('image/png', '')
    """
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], "")
    starts = {
        b"\x89PNG\r\n\x1a\n": "image/png",
        b"\xff\xd8\xff": "image/jpeg",
        b"ID3": "audio/mp3",
        b"fLaC": "audio/flac",
        b"OggS": "audio/ogg",
    }
    found = next((media for start, media in starts.items() if data.startswith(start)), "")
    return "audio/mp3" if not found and len(data) > 1 and data[0] == 0xFF and data[1] & 0xE6 == 0xE2 else found


def _repeated(items: Mapping[int, Item], name: str) -> list[Fault]:
    first: dict[str, int] = {}
    return [
        Fault("repeated-id", f"the id is already in row {first[item.id]}", name, row, "id", item.id)
        for row, item in items.items()
        if first.setdefault(item.id, row) != row
    ]


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
