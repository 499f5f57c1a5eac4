"""`hitmiss verify`: check whether published results hold for these files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import CALIBRATE_KEY, JSON
from hitmiss.core.artifacts import sealed
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import MEASURING, READING, WRITING, opt

if TYPE_CHECKING:
    from hitmiss.claims.verify import Verification
    from hitmiss.core.finding import Remark


def verify(
    claim: Annotated[
        str,
        arg(
            "A signature, the JSON of results, a comparison, a ranking, a gate or a board, a run folder, or an attestation."
        ),
    ],
    scores: Annotated[
        list[str] | None, arg("The score file(s) that it was made from; none with --signers alone.")
    ] = None,
    key: Annotated[
        list[str] | None,
        opt("Key or protocol file with the labels; of a comparison once, or once per run.", READING, common=True),
    ] = None,
    calibrate_on: Annotated[
        str | None, opt("Development scores (or rows) that the claim was calibrated on.", MEASURING)
    ] = None,
    calibrate_key: Annotated[str | None, CALIBRATE_KEY] = None,
    signers: Annotated[
        str | None,
        opt("File of trusted SSH keys (allowed_signers); the claim must be signed.", metavar="FILE", common=True),
    ] = None,
    criteria: Annotated[
        str | None,
        opt("Criteria that `hitmiss lock` sealed: say whether they came first, and what changed.", metavar="FILE"),
    ] = None,
    attest: Annotated[
        str | None,
        opt("Write a signed statement that the claim was recomputed (in-toto, DSSE).", WRITING, metavar="FILE"),
    ] = None,
    attest_key: Annotated[
        str | None, opt("Private key of the statement: Ed25519 or ECDSA, of SSH or PEM.", WRITING, metavar="KEY")
    ] = None,
    *,
    reading: Annotated[ReadSpec, fields(without=("settings",))],
    json: Annotated[bool, JSON] = False,
) -> None:
    """Recompute results from their files. Exit code 0 if every choice and number is the same, 1 if not.

    $ hitmiss verify results.json scores.tsv --key key.tsv
    """
    from hitmiss.claims.verify import verify as recompute
    from hitmiss.core.errors import GateFailed, UsageError

    if (attest is None) != (attest_key is None):
        raise UsageError.of("attest-both")
    files = [*(scores or ()), *(key or ()), *(f for f in (calibrate_on, calibrate_key) if f is not None)]
    claim = _checked_claim(claim, signers, files)
    if not scores and not (Path(claim) / "manifest.json").is_file():
        if signers is None:
            raise UsageError.of("no-scores/give")
        return
    checked = recompute(claim, scores, key, reading, calibrate_on=calibrate_on, calibrate_key=calibrate_key)
    remarks = _remarks(criteria, checked, claim, files)
    if json:
        said = {
            "holds": checked.holds,
            "differs": list(checked.differences),
            "not_recomputed": list(checked.not_recomputed),
            **({"criteria": list(map(str, remarks))} if remarks else {}),
        }
        made = {"schema": 1} if checked.recomputed is None else checked.recomputed.to_dict()
        printing.out_json(sealed({**made, **said}))
    elif checked.holds:
        printing.out(f"verified: {checked.n_figures} numbers come out as claimed")
        if checked.recomputed is not None:
            printing.out(checked.recomputed.signature)
        if checked.not_recomputed:
            printing.out(f"not recomputed: {'; '.join(checked.not_recomputed)}")
        for remark in remarks:
            printing.out(str(remark))
    else:
        for line in checked.differences[:20]:
            printing.out(f"differs: {line}")
    if not checked.holds:
        raise GateFailed.of("claim-differs", n_differences=len(checked.differences))
    if attest is not None and attest_key is not None:
        from hitmiss.claims.attestation import attest as write

        write(checked, claim, files, attest, attest_key)
        printing.note(f"wrote {attest}")


def _checked_claim(claim: str, signers: str | None, files: list[str]) -> str:
    """Return the file of a claim after the check of who signed it; an attestation names its file."""
    from hitmiss.claims.attestation import check_attestation, require_signed
    from hitmiss.core.envelope import is_envelope
    from hitmiss.core.errors import UsageError

    if is_envelope(claim):
        if signers is None:
            raise UsageError.of("no-signers-given", attestation=claim)
        who, own = check_attestation(claim, signers, files)
        printing.note(f"attested by {who}: {own.name}")
        return str(own)
    if signers is not None:
        printing.note(f"signed by {require_signed(claim, signers)}")
    return claim


def _remarks(criteria: str | None, checked: Verification, claim: str, files: list[str]) -> list[Remark]:
    from hitmiss.claims.criteria import remarks_on
    from hitmiss.core.criteria import load_criteria
    from hitmiss.core.results import Results

    made = checked.recomputed
    if made is None:
        return []
    results = made if isinstance(made, Results) else Results((), design=made.design)
    return [*remarks_on(results, None if criteria is None else load_criteria(criteria), claim, files)]
