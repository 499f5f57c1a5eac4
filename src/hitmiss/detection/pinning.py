"""Pin a detector: digests of every file that can change its scores, for the configuration of a run.

A resumed run compares them, so that no run mixes the answers of two models.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from hitmiss.core import artifacts

LOCATION: Final = re.compile(rb"\x0a\x08location\x12")
"""The protobuf entry of an ONNX tensor that names the file with its values: key, then the value's length."""


def file_digest(path: str | Path) -> str:
    """Return the short SHA-256 of a file."""
    return artifacts.file_digest(path)[:16]


def digest_of_files(paths: Iterable[str | Path]) -> str:
    """Return a short SHA-256 over several files, in order; for one file, that of the file."""
    digests = [file_digest(path) for path in paths]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()[:16]


def pinned_precision(precision: str, largest: int) -> dict[str, str]:
    """Return the precision for the identity of a detector; in int8 also how numbers are rounded.

    Without it, a resumed run could mix two roundings: those of two versions, or of two kinds of processors, which take
    weights up to 127 or up to 63 (`largest`).
    """
    rounding = {"rounding": f"a scale per row, weights up to {largest}"} if precision == "int8" else {}
    return {"precision": precision, **rounding}


def source_digest(thing: object) -> str | None:
    """Return a short hash of the code that defines an object and of its local imports; None if there is no code."""
    try:
        file = inspect.getsourcefile(thing if callable(thing) else type(thing))
    except TypeError:
        return None
    return code_digest(file) if file and Path(file).is_file() else None


def code_digest(path: str | Path) -> str:
    """Return a short hash of a code file and of the files in its folder that it imports, directly or indirectly."""
    return digest_of_files(local_code(Path(path)))


def local_code(path: Path) -> list[Path]:
    """Return a code file, and in order the files of its own folder that it imports, anywhere in the code."""
    root, found, waiting = path.resolve().parent, [path.resolve()], [path.resolve()]
    while waiting:
        for file in sorted(_imported(waiting.pop(), root)):
            if file not in found:
                found.append(file)
                waiting.append(file)
    return [found[0], *sorted(found[1:])]


def _imported(file: Path, root: Path) -> set[Path]:
    """Return the files below a folder that one file imports."""
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
    """Return the files that importing a dotted name runs: those of each package on the way, and of the module."""
    found: set[Path] = set()
    place = base
    for part in name.split("."):
        place = place / part
        found |= {path for path in (place / "__init__.py", place.with_suffix(".py")) if path.is_file()}
    return {path.resolve() for path in found}


def external_data(model: Path) -> dict[str, str]:
    """Return name and digest of each file beside an ONNX model that holds tensor values.

    The names are searched in the bytes: a model may have several gigabytes, and this way the package `onnx` is not
    needed to run one.
    """
    data = model.read_bytes()
    names = {_text_at(data, found.end()) for found in LOCATION.finditer(data)}
    paths = {name: model.parent / name for name in names if name}
    return {name: file_digest(path) for name, path in sorted(paths.items()) if path.is_file()}


def _text_at(data: bytes, at: int) -> str:
    """Return the text whose length is at a position, in protobuf encoding."""
    length = shift = 0
    while at < len(data):
        byte = data[at]
        length |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80 or shift > 28:
            break
    return data[at : at + length].decode("utf-8", "replace") if length <= 4096 else ""
