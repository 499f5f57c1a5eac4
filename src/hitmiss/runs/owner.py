"""Who works on a run: an owner with a heartbeat, and claims on parts of the work that end with their process."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Final

from hitmiss.core.errors import EnvironmentFault

BEAT_SECONDS: Final = 2.0
EXPIRY_SECONDS: Final = 30.0
"""An owner without a heartbeat for this long is considered dead."""
GUARD: Final = 2**40
"""The byte of the claims file that guards short steps: taking the lock, finishing. Parts are far below it."""


class Owner:
    """The one process that owns a run. Other processes are refused with a message that names it, or join it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_held = False

    def take(self) -> None:
        """Become the owner; an owner that no longer runs is replaced."""
        standing = self.standing()
        if standing is not None:
            raise EnvironmentFault.of("run-busy", standing=standing[0], standing_2=standing[1])
        self.path.unlink(missing_ok=True)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        self.is_held = True  # from here on `leave` removes it, also after a fault while it is written
        try:
            os.write(fd, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())
        finally:
            os.close(fd)

    def standing(self) -> tuple[int, str] | None:
        """Return the process id and host of the running owner, or None."""
        try:
            known = json.loads(self.path.read_bytes())
            pid, host = int(known["pid"]), str(known["host"])
            age = time.time() - self.path.stat().st_mtime
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        if age > EXPIRY_SECONDS or (host == socket.gethostname() and not _is_alive(pid)):
            return None
        return pid, host

    def beat(self) -> None:
        """Update the heartbeat, which shows that the owner still runs."""
        if self.is_held:
            with suppress(OSError):
                os.utime(self.path)

    def leave(self) -> None:
        """Give up ownership."""
        if self.is_held:
            self.path.unlink(missing_ok=True)
            self.is_held = False


class Claims:
    """Parts of the work, each a byte of a file that one process locks. The system frees the locks when it ends."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)

    def take(self, part: int) -> bool:
        """Claim a part; return False if another running process holds it."""
        fcntl = _needed_locks()
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, part)
        except OSError:
            return False
        return True

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Enter a section that only one process at a time may run."""
        fcntl = _needed_locks()
        fcntl.lockf(self._fd, fcntl.LOCK_EX, 1, GUARD)
        try:
            yield
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, GUARD)

    def close(self) -> None:
        """Release all claims."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def file_locks() -> ModuleType | None:
    """Return the system's file locks; None if it has none (Windows)."""
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl


def _needed_locks() -> ModuleType:
    found = file_locks()
    if found is None:
        raise EnvironmentFault.of("no-file-locks")
    return found
