"""`hitmiss llm` in a process of its own, forked from one that has imported everything already."""

from __future__ import annotations

import contextlib
import gzip
import os
import sys
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.llm.faulty import StandIn

from hitmiss.cli.main import run


def command(dataset: Path, server: StandIn, out: Path, *more: str) -> list[str]:
    words = ["llm", "--dataset", str(dataset), "--models", "judge-1", "--base-url", server.url, "-o", str(out)]
    return [*words, "--api-key-env", "CANARY_API_KEY", *more]


def in_fork(words: list[str], folder: str, environment: dict[str, str], place: str | None) -> None:
    """What a forked process does: the command, its output into files."""
    os.environ.clear()
    os.environ.update(environment)  # that of the fork server is older
    for number, name in ((1, "out"), (2, "err")):
        with (Path(folder) / name).open("wb") as file:
            os.dup2(file.fileno(), number)
    with contextlib.chdir(place or "."):
        code = run(words)
    sys.stdout.flush()
    os._exit(code)


def fork(words: list[str], folder: Path, place: Path | None = None) -> Any:
    """The command in a process of its own, forked from one that has imported everything already."""
    context = get_context("forkserver")
    late = ["inspect_ai.agent._acp.server", "inspect_ai.model._providers.openai_compatible", "polars", "scipy.ndimage"]
    context.set_forkserver_preload(["hitmiss.cli.main", "hitmiss.llm.run", "inspect_ai", "openai", *late, __name__])
    about = (words, str(folder), dict(os.environ), str(place) if place else None)
    process = context.Process(target=in_fork, args=about)
    process.start()
    return process


def done(words: list[str], folder: Path, place: Path | None = None) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command that ran to its end."""
    process = fork(words, folder, place)
    process.join()
    return process.exitcode, (folder / "out").read_text(), (folder / "err").read_text()


def every(path: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file under a folder, unpacked as far as it is packed."""
    from inspect_ai.log import read_eval_log

    for file in path.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            if file.suffix == ".gz":
                data = gzip.decompress(data)
            if file.suffix == ".eval":
                data = read_eval_log(str(file), resolve_attachments=True).model_dump_json().encode()
            yield file, data
