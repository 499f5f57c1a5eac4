"""Files that are read several times must be the same each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hitmiss.core.errors import DataError
from hitmiss.scale.plan import Shard


@dataclass(frozen=True)
class Stamps:
    """Sizes and times of files, as they were when the work began."""

    noted: dict[str, tuple[int, int] | None]

    @classmethod
    def of(cls, shards: Sequence[Shard]) -> Stamps:
        """As they are now."""
        return cls({shard.path: _stamp(shard.path) for shard in shards})

    def refuse_changes(self) -> None:
        """Refuse where a file was written to since."""
        changed = [path for path, stamp in self.noted.items() if _stamp(path) != stamp]
        if changed:
            raise DataError(f"{changed[0]} changed while it was read; evaluate again when nobody writes to it")


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
