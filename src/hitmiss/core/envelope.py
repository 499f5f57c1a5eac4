"""Envelopes: a text with signatures that other tools check too (DSSE, as in-toto uses it). Keys are files.

The bytes that are signed hold the type and the length of the text, so a signature fits no other text. Private keys are
those of `ssh-keygen` or PEM (Ed25519, ECDSA on P-256); known public keys are a list of SSH signers, or PEM.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, EnvironmentFault, GateFailed, UsageError
from hitmiss.core.packages import need_package

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    PrivateKey = Ed25519PrivateKey | EllipticCurvePrivateKey
    PublicKey = Ed25519PublicKey | EllipticCurvePublicKey

KIND: Final = "application/vnd.in-toto+json"
"""The type of the text of an in-toto statement."""
ALGORITHMS: Final = ("ssh-ed25519", "ecdsa-sha2-nistp256")


def sealed_envelope(text: bytes, key: str | Path) -> dict[str, object]:
    """Return a text in an envelope, signed with a private key.

    Raises
    ------
    UsageError
        `no-key`: there is no such key.
    EnvironmentFault
        `no-cryptography`, or `not-attested` if the key cannot be used.
    """
    private = _private(Path(key))
    signed = signed_bytes(KIND, text)
    signature = {"keyid": fingerprint(private.public_key()), "sig": _b64(_sign(private, signed))}
    return {"payload": _b64(text), "payloadType": KIND, "signatures": [signature]}


def open_envelope(path: str | Path, signers: str | Path) -> tuple[dict[str, object], str]:
    """Return the statement in an envelope and who signed it, among the signers of a list.

    Parameters
    ----------
    path
        The envelope.
    signers
        Lines as in `allowed_signers` (names, then a public key), or a public key alone, as SSH or PEM writes it.

    Raises
    ------
    GateFailed
        `unknown-signer`, or `bad-signature`: the text is not the one that was signed.
    """
    text, signatures = read_envelope(path)
    signed, name = signed_bytes(KIND, text), Path(path).name
    known = [*_signers(Path(signers))]
    for signature in signatures:
        for who, public in known:
            if _is_valid(public, signature, signed):
                return _statement(text, name), who
    keys = {fingerprint(public) for _, public in known}
    if any(s.get("keyid") in keys for s in _listed(path)):
        raise GateFailed.of("bad-signature", file_name=name, names="a known signer", done="the text was changed")
    raise GateFailed.of("unknown-signer", file_name=name, name=Path(signers).name)


def is_envelope(path: str | Path) -> bool:
    """Say whether a file is an envelope with a statement."""
    file = Path(path)
    if file.suffix != ".json" or not file.is_file():
        return False
    try:
        data = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and data.get("payloadType") == KIND


def read_envelope(path: str | Path) -> tuple[bytes, list[bytes]]:
    """Return the text of an envelope and its signatures, which are not checked here."""
    artifacts.note_input(path)
    try:
        data = json.loads(Path(path).read_bytes())
        if data["payloadType"] != KIND:
            raise ValueError(f"it holds {data['payloadType']!r}")
        return base64.b64decode(data["payload"], validate=True), [
            base64.b64decode(s["sig"], validate=True) for s in data["signatures"]
        ]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError.of("not-an-envelope", file=Path(path).name, why=str(error)) from None


def signed_bytes(kind: str, text: bytes) -> bytes:
    """Return the bytes that a signature is over.

    >>> signed_bytes("http://example.com/HelloWorld", b"hello world")
    b'DSSEv1 29 http://example.com/HelloWorld 11 hello world'
    """
    name = kind.encode()
    return b"DSSEv1 %d %s %d %s" % (len(name), name, len(text), text)


def fingerprint(public: PublicKey) -> str:
    """Return the fingerprint of a public key, as `ssh-keygen -l` prints it."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    line = public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    digest = hashlib.sha256(base64.b64decode(line.split()[1])).digest()
    return f"SHA256:{_b64(digest).rstrip('=')}"


def _statement(text: bytes, file: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError.of("not-an-envelope", file=file, why=str(error)) from None
    if not isinstance(found, Mapping):
        raise DataError.of("not-an-envelope", file=file, why="its text is not a JSON object")
    return dict(found)


def _listed(path: str | Path) -> list[Mapping[str, object]]:
    found = json.loads(Path(path).read_bytes())["signatures"]
    return [s for s in found if isinstance(s, Mapping)]


def _require() -> None:
    need_package("cryptography", "an attestation", "hitmiss[attest]")


def _private(key: Path) -> PrivateKey:
    if not key.is_file():
        raise UsageError.of("no-key", key=key)
    artifacts.note_input(key)
    _require()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key

    data = key.read_bytes()
    load = load_ssh_private_key if b"OPENSSH PRIVATE KEY" in data else load_pem_private_key
    try:
        found = load(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:  # TypeError: a passphrase is needed
        raise EnvironmentFault.of("not-attested", key=key.name, why=str(error)) from None
    if isinstance(found, ed25519.Ed25519PrivateKey):
        return found
    if isinstance(found, ec.EllipticCurvePrivateKey) and isinstance(found.curve, ec.SECP256R1):
        return found
    raise EnvironmentFault.of("not-attested", key=key.name, why="use an Ed25519 key, or ECDSA on P-256")


def _signers(path: Path) -> Iterator[tuple[str, PublicKey]]:
    """Yield the names and public keys of a list of signers."""
    if not path.is_file():
        raise UsageError.of("no-signers", signers=path)
    _require()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.serialization import load_pem_public_key, load_ssh_public_key

    artifacts.note_input(path)
    data = path.read_bytes()
    keys = [(path.name, data, load_pem_public_key)] if b"-----BEGIN" in data else []
    for line in data.splitlines() if not keys else ():
        words = line.split()
        at = next((i for i, word in enumerate(words) if word.decode("ascii", "replace") in ALGORITHMS), None)
        if at is not None and not line.startswith(b"#"):
            who = words[0].decode("utf-8", "replace") if at else path.name
            keys.append((who, b" ".join(words[at : at + 2]), load_ssh_public_key))
    for who, text, load in keys:
        try:
            found = load(text)
        except (ValueError, UnsupportedAlgorithm) as error:
            raise DataError.of("bad-signers", file=path.name, why=str(error)) from None
        if isinstance(found, ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey):
            yield who, found


def _sign(private: PrivateKey, data: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.hashes import SHA256

    if isinstance(private, ed25519.Ed25519PrivateKey):
        return private.sign(data)
    return private.sign(data, ec.ECDSA(SHA256()))


def _is_valid(public: PublicKey, signature: bytes, data: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        if isinstance(public, ed25519.Ed25519PublicKey):
            public.verify(signature, data)
        else:
            public.verify(signature, data, ec.ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
