"""Signatures with a key show who wrote a file; a digest shows only that it was not changed since."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from hitmiss.core.artifacts import note_input, write
from hitmiss.core.errors import EnvironmentFault, GateFailed, UsageError

NAMESPACE: Final = "hitmiss"
ENDING: Final = ".sig"
PROGRAM: Final = "ssh-keygen"


def sign(path: str | Path, key: str | Path) -> Path:
    """Sign a file with an SSH key; the signature is written next to it.

    Parameters
    ----------
    path
        The file.
    key
        A private key, or a public key whose private part an agent holds.

    Returns
    -------
    Path
        The signature: the file's name with `.sig`.

    Raises
    ------
    UsageError
        `no-key`: there is no such key.
    EnvironmentFault
        `no-ssh-keygen`, or `not-signed` if the key cannot be used.
    """
    require_key(key)
    file = Path(path)
    done = _ssh("sign", "-f", str(key), "-n", NAMESPACE, given=file.read_bytes())
    if done.returncode:
        raise EnvironmentFault.of("not-signed", file_name=file.name, done=_reason(done))
    beside = file.with_name(file.name + ENDING)
    write(beside, done.stdout, is_state=True, is_final=False)
    return beside


def require_key(key: str | Path) -> None:
    """Refuse a key that does not exist, before the work that it would sign."""
    if not Path(key).is_file():
        raise UsageError.of("no-key", key=key)
    note_input(key)
    _program()


def signer(path: str | Path, signers: str | Path) -> str:
    """Return who signed a file, among the signers of a list (see ALLOWED SIGNERS in `man ssh-keygen`).

    Raises
    ------
    GateFailed
        `no-signature`, `unknown-signer`, or `bad-signature`: the file is not the one that was signed.
    """
    file = Path(path)
    beside = file.with_name(file.name + ENDING)
    if not Path(signers).is_file():
        raise UsageError.of("no-signers", signers=signers)
    if not beside.is_file():
        raise GateFailed.of("no-signature", file_name=file.name, beside_name=beside.name)
    known = ("-f", str(signers), "-s", str(beside))
    found = _ssh("find-principals", *known)
    names = found.stdout.decode("utf-8", "replace").split("\n")
    if found.returncode or not names[0]:
        raise GateFailed.of("unknown-signer", file_name=file.name, name=Path(signers).name)
    done = _ssh("verify", *known, "-I", names[0], "-n", NAMESPACE, given=file.read_bytes())
    if done.returncode:
        raise GateFailed.of("bad-signature", file_name=file.name, names=names[0], done=_reason(done))
    return names[0]


def _ssh(action: str, *words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([_program(), "-Y", action, *words], input=given, capture_output=True, check=False)


def _program() -> str:
    found = shutil.which(PROGRAM)
    if found is None:
        raise EnvironmentFault.of("no-ssh-keygen", PROGRAM=PROGRAM)
    return found


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    said = (done.stderr or done.stdout).decode("utf-8", "replace").split("\n")
    return said[0].strip() or f"{PROGRAM} ended with {done.returncode}"
