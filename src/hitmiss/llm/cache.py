"""Results of tools on disk, found by the item's hash, the tool and its parameters.

One file per result, put in place by a rename: a reader sees all of it or nothing, even if a process is killed. Each
file holds its own key and a digest; a damaged one counts as absent and is made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


class ToolCache:
    """A folder of results. Several processes and threads may share it."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def get(self, data: bytes, tool: str, identity: Mapping[str, object]) -> dict[str, object] | None:
        """Return the result, or None if it is missing or damaged."""
        key = _key(data, tool, identity)
        try:
            stored = json.loads(self._path(key).read_bytes())
            result = stored["result"]
            is_whole = stored["key"] == key and stored["digest"] == _digest(result)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return dict(result) if is_whole else None

    def put(self, data: bytes, tool: str, identity: Mapping[str, object], result: Mapping[str, object]) -> None:
        """Keep a result. A full disk disables the cache, but does not stop the run."""
        key = _key(data, tool, identity)
        path = self._path(key)
        beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
        stored = {"key": key, "digest": _digest(result), "result": result}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(json.dumps(stored, allow_nan=False).encode())
            beside.replace(path)
        except OSError:
            with suppress(OSError):
                beside.unlink()

    def _path(self, key: Mapping[str, object]) -> Path:
        name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        return self.folder / str(key["tool"]) / name[:2] / f"{name}.json"


def default_folder() -> Path:
    """Return the default folder for results: the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hitmiss" / "tools"


def _key(data: bytes, tool: str, identity: Mapping[str, object]) -> dict[str, object]:
    return {"sha256": hashlib.sha256(data).hexdigest(), "tool": tool, "identity": dict(identity)}


def _digest(result: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()
