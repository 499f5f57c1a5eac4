"""Use any program as a detector: one JSON line in for each clip, one JSON line out.

    in   {"id": 0, "sample_rate": 16000, "dtype": "float32", "shape": [64600], "data": "<base64>"}
        in   {"id": 1, "text": "…"}                       if the item is a text (or a path)
    out  {"id": 0, "output": [-1.2, 3.4]}             one number or a list
    out  {"id": 1, "error": "cannot tell"}

The program is started once and kept running; it may answer in any order and must flush after each line. No shell is
used.
"""

from __future__ import annotations

import base64
import json
import shlex
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import numpy as np

from hitmiss.core.errors import DataError, EnvironmentFault, UsageError
from hitmiss.detection.detector import Base, Batch, Item
from hitmiss.detection.outputs import Outputs
from hitmiss.detection.pinning import file_digest

PATIENCE: Final = 600.0


class ProgramDetector(Base):
    """A program that reads and writes JSON lines."""

    ragged = True  # clips are sent one by one

    def __init__(
        self, command: str | Sequence[str], *, sample_rate: int | None = None, patience: float = PATIENCE
    ) -> None:
        self.words = shlex.split(command) if isinstance(command, str) else list(command)
        if not self.words:
            raise UsageError.of("no-program/command")
        if shutil.which(self.words[0]) is None:
            raise EnvironmentFault.of("no-program", words=self.words[0])
        self.name = f"program:{shlex.join(self.words)}"
        self.sample_rate, self.patience = sample_rate, patience
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the program
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def identity(self) -> Mapping[str, object]:
        """The command, and the digests of the files that it names; other files that it reads are not covered."""
        files = {word: file_digest(word) for word in self.words if Path(word).is_file()}
        return {"name": self.name, "files": files} if files else {"name": self.name}

    def outputs(self, batch: Batch) -> Outputs:
        """Return the answers of the program, one row per clip."""
        process = self._started()
        lines = [self._question(i, clip) for i, clip in enumerate(batch)]
        writer = threading.Thread(target=_write, args=(process.stdin, lines), daemon=True)
        alarm = threading.Timer(self.patience, process.kill)
        writer.start()
        alarm.start()
        try:
            answers = dict([self._answer(process) for _ in lines])  # read all answers, even if one of them is an error
        finally:
            alarm.cancel()
            writer.join(timeout=5)
        wrong = [found for found in answers.values() if isinstance(found, str)]
        if wrong:
            raise DataError.of("program-says", wrong=wrong[0])
        if set(answers) != set(range(len(lines))):
            raise EnvironmentFault.of("program-ids", name=self.name, answers=sorted(answers)[:5], n_lines=len(lines))
        return np.array([answers[i] for i in range(len(lines))], dtype=np.float64)

    def close(self) -> None:
        """Close its input and wait for it to end."""
        if self._process is None:
            return
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):  # the program no longer reads what was still to be written
                    stream.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None
        self._errors.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(self.words, stdin=pipe, stdout=pipe, stderr=self._errors)
        return self._process

    def _question(self, i: int, clip: Item) -> bytes:
        if isinstance(clip, str):
            return json.dumps({"id": i, "text": clip}).encode() + b"\n"
        array = np.ascontiguousarray(clip)
        about = {"id": i, "sample_rate": self.sample_rate, "dtype": str(array.dtype), "shape": list(array.shape)}
        return json.dumps({**about, "data": base64.b64encode(array.tobytes()).decode()}).encode() + b"\n"

    def _answer(self, process: subprocess.Popen[bytes]) -> tuple[int, list[float] | str]:
        assert process.stdout is not None  # stdout was requested as a pipe
        line = process.stdout.readline()
        if not line:
            raise EnvironmentFault.of("program-ended", name=self.name, self_2=self._complaint(process))
        try:
            found = json.loads(line)
            if "error" in found:
                return int(found["id"]), str(found["error"])
            output = found["output"]
            return int(found["id"]), [float(v) for v in (output if isinstance(output, list) else [output])]
        except (ValueError, KeyError, TypeError):
            shown = line[:80].decode("utf-8", "backslashreplace").strip()
            raise EnvironmentFault.of("program-line", name=self.name, shown=shown) from None

    def _complaint(self, process: subprocess.Popen[bytes]) -> str:
        code = process.wait()
        self._errors.seek(0)
        text = self._errors.read()[-400:].decode("utf-8", "backslashreplace").strip()
        return f"exit code {code}{f', it said: {text}' if text else ''}"


def _write(stream: IO[bytes], lines: Sequence[bytes]) -> None:
    try:
        for line in lines:
            stream.write(line)
        stream.flush()
    except (OSError, ValueError):
        return  # the program is gone; the reading side reports it
