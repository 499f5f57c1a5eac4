"""What pins a detector: digests of every file that can change its scores, for the configuration of a run.

A resumed run compares them, so that no run holds the answers of two models.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

LOCATION: Final = re.compile(rb"\x0a\x08location\x12")
"""The entry of an ONNX tensor that names the file with its values, as protobuf writes it: key, then the value's length."""


def file_digest(path: str | Path) -> str:
    """Short SHA-256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def digest_of_files(paths: Iterable[str | Path]) -> str:
    """Short SHA-256 over several files, in order; of one file that of the file."""
    digests = [file_digest(path) for path in paths]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()[:16]


def source_digest(thing: Any) -> str | None:
    """Short hash of the code in which an object is written, with what it imports from beside it; None where there is none."""
    try:
        file = inspect.getsourcefile(thing if callable(thing) else type(thing))
    except TypeError:
        return None
    return code_digest(file) if file and Path(file).is_file() else None


def code_digest(path: str | Path) -> str:
    """Short hash of a file of code and of the files in its folder that it imports, directly or not."""
    return digest_of_files(local_code(Path(path)))


def local_code(path: Path) -> list[Path]:
    """A file of code, and in order those of its own folder that its imports name, wherever in it they are written."""
    root, found, waiting = path.resolve().parent, [path.resolve()], [path.resolve()]
    while waiting:
        for file in sorted(_imported(waiting.pop(), root)):
            if file not in found:
                found.append(file)
                waiting.append(file)
    return [found[0], *sorted(found[1:])]


def _imported(file: Path, root: Path) -> set[Path]:
    """The files below a folder that one file's imports stand for."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return set()
    names: set[tuple[Path, str]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {(root, alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = root if not node.level else file.parents[min(node.level, len(file.parents)) - 1]
            own = node.module or ""
            names |= {(base, own), *((base, f"{own}.{alias.name}".strip(".")) for alias in node.names)}
    return {found for base, name in names if name for found in _files_of(base, name)}


def _files_of(base: Path, name: str) -> set[Path]:
    """The files that importing a dotted name runs: of each package on the way, and of the module."""
    found: set[Path] = set()
    place = base
    for part in name.split("."):
        place = place / part
        found |= {path for path in (place / "__init__.py", place.with_suffix(".py")) if path.is_file()}
    return {path.resolve() for path in found}


def external_data(model: Path) -> dict[str, str]:
    """Name and digest of each file beside an ONNX model that holds values of its tensors.

    The names are looked for in the bytes: a model may be of several gigabytes, and the package `onnx` is not needed to
    run one.
    """
    data = model.read_bytes()
    names = {_text_at(data, found.end()) for found in LOCATION.finditer(data)}
    paths = {name: model.parent / name for name in names if name}
    return {name: file_digest(path) for name, path in sorted(paths.items()) if path.is_file()}


def _text_at(data: bytes, at: int) -> str:
    """The text whose length, as protobuf writes numbers, stands at a place."""
    length = shift = 0
    while at < len(data):
        byte = data[at]
        length |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80 or shift > 28:
            break
    return data[at : at + length].decode("utf-8", "replace") if length <= 4096 else ""
