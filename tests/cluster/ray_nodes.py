"""A Ray cluster of several nodes, as on several machines: each is a `ray start` of its own, with its own object store and
temporary folder, and can be killed with all its processes."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

TOKEN = secrets.token_hex(32)
START = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats", "--num-cpus=1"]
START += ["--object-store-memory=80000000", "--min-worker-port=0", "--max-worker-port=0"]
OURS = (str(Path(__file__).parent), str(Path(__file__).parent.parent / "detection"))
"""Where the workers find what the tests have them run."""
SECONDS = 150.0


def environment(**more: str) -> dict[str, str]:
    """That of a process which may use the cluster."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "HITMISS_"))}
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "GRPC_VERBOSITY": "ERROR", "RAY_raylet_start_wait_time_s": "120"}
    return {**kept, **token, **quiet, **more}


def descendants(pid: int) -> list[int]:
    """A process and all that it has started."""
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [pid, *(one for child in map(int, found) for one in descendants(child))]


@dataclass
class Node:
    """One node: a process that has started those of Ray."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """SIGKILL for every process of it: the plug is pulled."""
        for pid in descendants(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class Nodes:
    """A head and two further nodes."""

    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="hm-", dir="/tmp")))  # sockets: short
    ip: str = field(default_factory=lambda: socket.gethostbyname(socket.gethostname()))
    port: int = 0
    head: Node | None = None
    others: list[Node] = field(default_factory=list)
    started: int = 0

    @property
    def address(self) -> str:
        return f"{self.ip}:{self.port}"

    def make_whole(self, *before: str) -> Nodes:
        """Start what is not there; `before` are words in front of the command of a node that is added."""
        if self.head is None or not self.head.is_alive:
            self.stop_others()
            with socket.socket() as free:
                free.bind((self.ip, 0))
                self.port = free.getsockname()[1]
            words = ["--head", f"--port={self.port}", f"--node-ip-address={self.ip}", "--include-dashboard=false"]
            self.head = self._start(*words)
            self._until_open()
        self.others = [node for node in self.others if node.is_alive]
        while len(self.others) < 2:
            self.others.append(self._start(f"--address={self.address}", before=before))
        self._until_joined()
        return self

    def _start(self, *words: str, before: tuple[str, ...] = ()) -> Node:
        self.started += 1
        place, log = self.folder / str(self.started), self.folder / f"{self.started}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*before, *START, f"--temp-dir={place}", *words],
                env=environment(),
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return Node(process, log)

    def _until_open(self) -> None:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex((self.ip, self.port)) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError(self.head.log.read_text() if self.head else "")

    def _until_joined(self) -> None:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            told = [b"This command will now block" in node.log.read_bytes() for node in self.others]
            if all(told):
                return
            time.sleep(0.1)
        raise AssertionError("\n".join(node.log.read_text() for node in self.others))

    def stop_others(self) -> None:
        for node in self.others:
            node.kill()
        self.others = []

    def stop(self) -> None:
        self.stop_others()
        if self.head is not None:
            self.head.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
