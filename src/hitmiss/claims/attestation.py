"""Attest that a claim was recomputed: an in-toto statement with the digests of claim, data, code and environment.

The subject of the statement is the file of the claim; its predicate is that of a test result
(https://in-toto.io/attestation/test-result/v0.1), with what hitmiss adds under `hitmiss`.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Final

import hitmiss
from hitmiss._version import __version__
from hitmiss.claims.verify import Verification
from hitmiss.core import artifacts
from hitmiss.core.envelope import is_envelope, open_envelope, sealed_envelope
from hitmiss.core.errors import DataError, GateFailed, UsageError
from hitmiss.core.results import Results
from hitmiss.core.signing import ENDING, signer
from hitmiss.engine.signature import digest_of
from hitmiss.runs.manifest import MANIFEST, require_complete

STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://in-toto.io/attestation/test-result/v0.1"
SUFFIX: Final = ".intoto.json"


def attest(
    checked: Verification, claim: str | Path, files: Iterable[str | Path], out: str | Path, key: str | Path
) -> None:
    """Write what was recomputed as a signed statement.

    Parameters
    ----------
    checked
        The verification, which must hold.
    claim
        The file of the claim.
    files
        The files that it was recomputed from: scores, keys, development files.
    out
        The envelope to write.
    key
        The private key.

    Raises
    ------
    UsageError
        `attest-file`: a signature alone was verified, which is no file that could be named.
    """
    if not Path(claim).is_file():
        raise UsageError.of("attest-file")
    statement = {
        "_type": STATEMENT,
        "subject": [_resource(Path(claim))],
        "predicateType": PREDICATE,
        "predicate": _predicate(checked, [Path(f) for f in files]),
    }
    text = json.dumps(statement, indent=1, sort_keys=True, allow_nan=False).encode()
    artifacts.write(out, json.dumps(sealed_envelope(text, key), indent=1) + "\n", is_final=False)


def _predicate(checked: Verification, files: list[Path]) -> dict[str, object]:
    made = checked.recomputed
    out = digest_of(made.estimates) if isinstance(made, Results) else ""
    signature = "" if made is None else made.signature
    return {
        "result": "PASSED" if checked.holds else "FAILED",
        "configuration": [_resource(path) for path in _each(files)],
        "passedTests": [signature] if checked.holds else [],
        "failedTests": [] if checked.holds else [signature],
        "hitmiss": {
            "version": __version__,
            "signature": signature,
            "n_numbers": checked.n_figures,
            "numbers": out,
            "not_recomputed": list(checked.not_recomputed),
            "code": {"digest": {"sha256": source_digest()}},
            "environment": _environment(),
            "stated_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        },
    }


def _each(files: Iterable[Path]) -> list[Path]:
    """Return the files, those of folders too, each once."""
    found: dict[Path, None] = {}
    for path in files:
        inside = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        found.update(dict.fromkeys(p for p in inside if p.is_file()))
    return list(found)


def _resource(path: Path) -> dict[str, object]:
    return {"name": path.name, "digest": {"sha256": artifacts.file_digest(path)}}


def source_digest() -> str:
    """Return the digest of the source that computed: every file of the package, with its name."""
    folder, sha = Path(hitmiss.__file__).parent, hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".py", ".toml")):
        sha.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return sha.hexdigest()


def _environment() -> dict[str, object]:
    """Return where it was computed: the versions that matter, and the digest of all that is installed."""
    own = {name: metadata.version(name) for name in ("numpy", "polars", "scipy")}
    known = sorted({f"{d.metadata['Name']}=={d.version}" for d in metadata.distributions()})
    return {
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        **own,
        "packages": {"digest": {"sha256": hashlib.sha256("\n".join(known).encode()).hexdigest()}},
    }


def check_attestation(path: str | Path, signers: str | Path, files: Iterable[str | Path] = ()) -> tuple[str, Path]:
    """Check who signed an attestation, and that it is about the claim beside it and about these files.

    Parameters
    ----------
    path
        The envelope; the file of the claim lies beside it.
    signers
        The known signers.
    files
        The files that are at hand; each must be one that the attestation names.

    Returns
    -------
    tuple
        Who signed, and the file of the claim.

    Raises
    ------
    GateFailed
        If the signature is not that of a signer, or a file is not the one that was attested.
    """
    statement, who = open_envelope(path, signers)
    try:
        subject, predicate = _mapping(_first(statement["subject"])), _mapping(statement["predicate"])
        if statement["_type"] != STATEMENT or statement["predicateType"] != PREDICATE:
            raise ValueError("it is another kind of statement")
        name, digest = str(subject["name"]), str(_mapping(subject["digest"])["sha256"])
        listed = predicate["configuration"]
        known = {str(_mapping(_mapping(r)["digest"])["sha256"]) for r in listed if r}  # type: ignore[attr-defined]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError.of("not-an-envelope", file=Path(path).name, why=str(error)) from None
    claim = Path(path).with_name(Path(name).name)
    if not claim.is_file() or artifacts.file_digest(claim) != digest:
        raise GateFailed.of("not-the-attested", file=claim.name, attestation=Path(path).name)
    for file in _each(Path(f) for f in files):
        if artifacts.file_digest(file) not in known:
            raise GateFailed.of("not-the-attested", file=file.name, attestation=Path(path).name)
    if predicate.get("result") != "PASSED":
        raise GateFailed.of("attested-failure", attestation=Path(path).name)
    return who, claim


def _first(value: object) -> object:
    if not isinstance(value, list) or len(value) != 1:
        raise ValueError("it has not one subject")
    return value[0]


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ValueError("a part of it is not a JSON object")
    return value


def require_signed(path: str | Path, signers: str | Path) -> str:
    """Return who signed a file or a run: by a signature beside it (`.sig`), or by an attestation of it.

    Raises
    ------
    GateFailed
        If there is neither, or it is not that of a known signer, or the file was changed since.
    """
    file = Path(path)
    if file.is_dir():
        if (file / MANIFEST).is_file():
            require_complete(file)  # a sound manifest shows that the files of the run are unchanged
        file = next((file / n for n in (MANIFEST, "results.json") if (file / n).is_file()), file / MANIFEST)
    elif file.suffix == ".json":
        artifacts.load(file, "results")  # its digest must be right, too
    beside = file.with_suffix(SUFFIX)
    if not file.with_name(file.name + ENDING).is_file() and is_envelope(beside):
        who, claim = check_attestation(beside, signers)
        if claim.resolve() != file.resolve():
            raise GateFailed.of("not-the-attested", file=file.name, attestation=beside.name)
        return who
    return signer(file, signers)
