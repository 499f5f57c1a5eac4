"""A run without a single answer is no run: it leaves nothing behind, and the next try begins afresh."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from hitmiss.errors import HitmissError
from hitmiss.io.locks import Claims, Owner
from hitmiss.io.runs import CLAIMS, ITEMS, MANIFEST, OWNER, load_manifest, segments
from hitmiss.io.segments import SegmentReader

KIND: Final = "llm"
LOGS: Final = "logs"


@contextmanager
def nothing_for_nothing(folder: Path) -> Iterator[None]:
    """Remove what an earlier try left without an answer, and what this one leaves without one when it fails."""
    forget(folder)
    try:
        yield
    except BaseException:
        forget(folder)
        raise


def forget(folder: Path) -> None:
    """Remove a run of language models that nobody works on and that holds no answer; everything else stays."""
    if not (folder / MANIFEST).is_file():
        return
    claims = Claims(folder / CLAIMS)
    try:
        with claims.guard():
            if Owner(folder / OWNER).standing() is None and _is_without_answer(folder):
                _remove(folder)
    finally:
        claims.close()


def _is_without_answer(folder: Path) -> bool:
    """Whether the run was begun and nothing came of it but failures. What cannot be read may be one."""
    try:
        manifest = load_manifest(folder)
        if manifest["kind"] != KIND or manifest["state"] == "complete":
            return False
        return all("error" in record for path in segments(folder) for record in SegmentReader(path).records())
    except HitmissError:
        return False


def _remove(folder: Path) -> None:
    """Take away what a run writes, the manifest last, and then the folder if nothing else is in it."""
    for name in (ITEMS, LOGS):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (OWNER, CLAIMS, MANIFEST):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
