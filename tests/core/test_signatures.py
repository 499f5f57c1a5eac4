"""Signatures with SSH keys: who wrote a file; a changed file, an unknown key and a missing signature are told apart."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hitmiss.cli.main import run
from hitmiss.core.errors import GateFailed, UsageError
from hitmiss.core.signing import sign, signer

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="there is no ssh-keygen here")


def key(folder: Path, name: str) -> Path:
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A known key, a stranger's, and the list that names the known one."""
    own, other = key(tmp_path, "own"), key(tmp_path, "other")
    public = (tmp_path / "own.pub").read_text().split()
    (tmp_path / "signers").write_text(f"anna@example.org {public[0]} {public[1]}\n")
    return own, other, tmp_path / "signers"


def test_a_signed_file_says_by_whom(tmp_path: Path, keys: tuple[Path, Path, Path]) -> None:
    own, other, signers = keys
    file = tmp_path / "f.json"
    file.write_text("{}")
    with pytest.raises(GateFailed) as refused:
        signer(file, signers)
    assert refused.value.code == "no-signature"
    sign(file, own)
    assert signer(file, signers) == "anna@example.org"
    file.write_text("{ }")
    with pytest.raises(GateFailed) as refused:
        signer(file, signers)
    assert refused.value.code == "bad-signature"
    sign(file, other)
    with pytest.raises(GateFailed) as refused:
        signer(file, signers)
    assert refused.value.code == "unknown-signer"
    with pytest.raises(UsageError) as wrong:
        sign(file, tmp_path / "none")
    assert wrong.value.code == "no-key"


def test_what_a_command_writes_is_signed_and_verified(
    tmp_path: Path, keys: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    own, other, signers = keys
    rows = "".join(f"i{k},{'bonafide' if k % 2 else 'spoof'},{k * 7 % 11}\n" for k in range(20))
    (tmp_path / "t.csv").write_text("item,label,score\n" + rows)
    table, results = str(tmp_path / "t.csv"), tmp_path / "r.json"
    words = ["score", table, "-m", "eer", "-o", str(results), "--report", str(tmp_path / "r.html")]
    assert run(["--sign", str(own), *words]) == 0
    assert (tmp_path / "r.html.sig").is_file()
    capsys.readouterr()
    assert run(["verify", str(results), table, "--signers", str(signers)]) == 0
    assert "signed by anna@example.org" in capsys.readouterr().err
    assert run(["verify", str(results), "--signers", str(signers)]) == 0
    assert run(["verify", str(results)]) == 2
    assert run(["--sign", str(other), *words]) == 0
    assert run(["verify", str(results), table, "--signers", str(signers)]) == 1


def test_a_run_is_signed_by_its_manifest(tmp_path: Path, keys: tuple[Path, Path, Path]) -> None:
    own, _, signers = keys
    (tmp_path / "mine.py").write_text(
        "import numpy as np\ndef score(texts):\n    return np.array([float(len(t)) for t in texts])\n"
    )
    (tmp_path / "t.csv").write_text("item,text,label\na,x,bonafide\nb,yy,spoof\nc,zzz,bonafide\nd,,spoof\n")
    words = ["detect", "--data", str(tmp_path / "t.csv"), "--detector", f"{tmp_path / 'mine.py'}:score"]
    words += ["--input", "text", "--outputs", "logit", "-o", str(tmp_path / "run")]
    assert run(["--sign", str(own), *words]) == 0
    assert [p.name for p in (tmp_path / "run").glob("*.sig")] == ["manifest.json.sig"]
    assert run(["verify", str(tmp_path / "run"), "--signers", str(signers)]) == 0
    segment = next((tmp_path / "run" / "items").iterdir())
    segment.write_bytes(segment.read_bytes().replace(b"1", b"2", 1))
    assert run(["verify", str(tmp_path / "run"), "--signers", str(signers)]) == 3
