"""Attestations and locked criteria: signed statements, checked with the key alone; criteria that came before the results."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest
from claims import said, write_files

pytest.importorskip("cryptography", reason="attestations need cryptography")

from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from hitmiss.core.artifacts import sealed

FILES = ("eval_a.tsv", "--key", "eval.key")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("attested")
    write_files(place)
    keys = {"one": ed25519.Ed25519PrivateKey.generate(), "two": ec.generate_private_key(ec.SECP256R1())}
    for name, key in keys.items():
        (place / name).write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
        line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
        (place / f"{name}.signers").write_text(f"{name}@venue {line}\n", encoding="utf-8")
        pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (place / f"{name}.pem").write_bytes(pem)
    made = "score eval_a.tsv --key eval.key -p asvspoof5 --bootstrap 100 --unit speaker -o r.json"
    assert said(made.split(), place)[0] == 0
    for name in keys:
        code, text = said(["verify", "r.json", *FILES, "--attest", f"{name}.intoto.json", "--attest-key", name], place)
        assert code == 0, text
    return place


@pytest.mark.parametrize("name", ["one", "two"])
def test_the_envelope_is_what_the_standard_says(folder: Path, name: str) -> None:
    """The signature is checked here by the primitives alone, over the bytes that DSSE defines."""
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    envelope = json.loads((folder / f"{name}.intoto.json").read_bytes())
    body, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"]
    signed = b"DSSEv1 " + f"{len(kind)} {kind} {len(body)} ".encode() + body
    signature = base64.b64decode(envelope["signatures"][0]["sig"])
    public = load_pem_public_key((folder / f"{name}.pem").read_bytes())
    if isinstance(public, ed25519.Ed25519PublicKey):
        public.verify(signature, signed)
    else:
        assert isinstance(public, ec.EllipticCurvePublicKey)
        public.verify(signature, signed, ec.ECDSA(SHA256()))
    statement = json.loads(body)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"][0]["name"] == "r.json" and statement["predicate"]["result"] == "PASSED"
    assert {r["name"] for r in statement["predicate"]["configuration"]} == {"eval_a.tsv", "eval.key"}
    assert {"code", "environment", "signature", "numbers"} <= {*statement["predicate"]["hitmiss"]}


@pytest.mark.parametrize("signers", ["one.signers", "one.pem"])
def test_an_attestation_is_checked_with_the_claim_and_the_files(folder: Path, signers: str) -> None:
    code, text = said(["verify", "one.intoto.json", *FILES, "--signers", signers], folder)
    assert code == 0 and "attested by" in text and "verified" in text, text
    assert said(["verify", "one.intoto.json", "--signers", signers], folder)[0] == 0
    assert said(["verify", "one.intoto.json", *FILES], folder)[0] == 2
    code, text = said(["verify", "one.intoto.json", *FILES, "--signers", "two.signers"], folder)
    assert code == 1 and "not signed by anybody" in text
    code, text = said(["verify", "one.intoto.json", "eval_b.tsv", "--key", "eval.key", "--signers", signers], folder)
    assert code == 1 and "eval_b.tsv is not the file" in text


def test_a_changed_text_claim_or_envelope_is_refused(folder: Path) -> None:
    envelope = json.loads((folder / "one.intoto.json").read_bytes())
    body = base64.b64decode(envelope["payload"]).replace(b"r.json", b"q.json")
    (folder / "changed.json").write_text(json.dumps({**envelope, "payload": base64.b64encode(body).decode()}))
    code, text = said(["verify", "changed.json", "--signers", "one.signers"], folder)
    assert code == 1 and "was changed" in text
    for broken in (
        {"payloadType": "application/vnd.in-toto+json"},
        {**envelope, "payload": "%"},
        {**envelope, "signatures": 3},
    ):
        (folder / "broken.json").write_text(json.dumps(broken))
        assert said(["verify", "broken.json", "--signers", "one.signers"], folder)[0] == 3
    (folder / "other").mkdir(exist_ok=True)
    (folder / "other" / "r.intoto.json").write_bytes((folder / "one.intoto.json").read_bytes())
    (folder / "other" / "r.json").write_text((folder / "r.json").read_text().replace("0.1", "0.2"))
    code, text = said(["verify", "other/r.intoto.json", "--signers", "one.signers"], folder)
    assert code == 1 and "r.json is not the file" in text


def test_no_attestation_of_a_claim_that_does_not_hold(folder: Path) -> None:
    words = ["verify", "r.json", "eval_b.tsv", "--key", "eval.key", "--attest", "no.intoto.json", "--attest-key", "one"]
    assert said(words, folder)[0] == 1 and not (folder / "no.intoto.json").exists()
    assert said(["verify", "r.json", *FILES, "--attest", "no.intoto.json"], folder)[0] == 2
    signature = json.loads((folder / "r.json").read_text())["signature"]
    code, text = said(["verify", signature, *FILES, "--attest", "no.intoto.json", "--attest-key", "one"], folder)
    assert code == 2 and "file of a claim" in text
    for key, code in (("nokey", 2), ("eval.key", 5)):
        assert said(["verify", "r.json", *FILES, "--attest", "no.intoto.json", "--attest-key", key], folder)[0] == code
    before = (folder / "one").read_bytes()
    assert said(["verify", "r.json", *FILES, "--attest", "one", "--attest-key", "one"], folder)[0] == 2
    assert (folder / "one").read_bytes() == before
    assert said(["verify", "one.intoto.json", "--signers", "nobody.signers"], folder)[0] == 2
    (folder / "bad.signers").write_text("x ssh-ed25519 AAAA\n")
    assert said(["verify", "one.intoto.json", "--signers", "bad.signers"], folder)[0] == 3


def test_a_gate_can_ask_for_a_signature(folder: Path) -> None:
    (folder / "r.intoto.json").write_bytes((folder / "one.intoto.json").read_bytes())
    words = ["gate", "r.json", "--fail-if", "eer > 0.9", "--require-signed"]
    code, text = said([*words, "one.signers"], folder)
    assert code == 0 and "signed by one@venue" in text, text
    assert said([*words, "two.signers"], folder)[0] == 1
    (folder / "r.intoto.json").unlink()
    code, text = said([*words, "one.signers"], folder)
    assert code == 1 and "is not signed" in text


@pytest.fixture
def locked(folder: Path) -> Path:
    (folder / "req.toml").write_text('require = ["eer.high <= 0.4"]\n')
    code, text = said(
        ["lock", "req.toml", "--data", "eval.key", "--unit", "speaker", "--bootstrap", "100", "-o", "crit.json"], folder
    )
    assert code == 0 and "stated, not proved" in text, text
    return folder


def test_results_name_the_criteria_that_came_first(locked: Path) -> None:
    made = (
        "score eval_a.tsv --key eval.key -p asvspoof5 --bootstrap 100 --unit speaker --require crit.json -o named.json"
    )
    assert said(made.split(), locked)[0] == 0
    code, text = said(["verify", "named.json", *FILES], locked)
    assert code == 0 and "came before these results" in text and "changed since" not in text, text
    code, text = said(["gate", "named.json", "--require", "crit.json"], locked)
    assert code == 0 and "came before these results" in text, text
    assert said(["report", "named.json", "-o", "named.html"], locked)[0] == 0
    assert "came before these results" in (locked / "named.html").read_text(encoding="utf-8")
    other = made.replace("--unit speaker", "--level 0.9 --seed 3").replace("named.json", "other.json")
    assert said(other.split(), locked)[0] == 0
    code, text = said(["verify", "other.json", *FILES], locked)
    assert code == 0 and "level: 0.95 then, 0.9 now" in text and "seed: 0 then, 3 now" in text, text


def test_criteria_after_the_results_are_said_to_be_so(locked: Path) -> None:
    os.utime(locked / "r.json", (10**9, 10**9))
    code, text = said(["verify", "r.json", *FILES, "--criteria", "crit.json"], locked)
    assert code == 0 and "did not come before the results" in text, text
    os.utime(locked / "r.json", (4 * 10**9, 4 * 10**9))
    code, text = said(["verify", "r.json", *FILES, "--criteria", "crit.json"], locked)
    assert code == 0 and "both times are stated, not proved" in text, text


def test_edited_criteria_are_refused(locked: Path) -> None:
    document = json.loads((locked / "crit.json").read_text())
    for name, made in (
        ("unsealed", {k: v for k, v in document.items() if k != "digest"}),
        ("edited", {**document, "require": ["eer.high <= 0.9"]}),
        ("other kind", sealed({**document, "kind": "results"})),
        ("no list", sealed({**document, "require": 3})),
    ):
        (locked / "edited.json").write_text(json.dumps(made))
        code, text = said(["gate", "r.json", "--require", "edited.json"], locked)
        assert code == 3 and "bug" not in text, (name, text)
    code, text = said(["gate", "r.json", "--require", "crit.json", "--require", "crit.json"], locked)
    assert code == 2 and "only one file" in text
