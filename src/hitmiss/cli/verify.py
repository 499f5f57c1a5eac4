"""`hitmiss verify`: check whether published results hold for these files."""

from __future__ import annotations

from typing import Annotated

from hitmiss.cli import printing
from hitmiss.cli.options import arg, fields
from hitmiss.cli.shared import CALIBRATE_KEY, JSON
from hitmiss.core.artifacts import sealed
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.spec import MEASURING, READING, opt


def verify(
    claim: Annotated[str, arg("A signature, or the JSON file of results, of a comparison or of a ranking.")],
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
    *,
    reading: Annotated[ReadSpec, fields(without=("settings",))],
    json: Annotated[bool, JSON] = False,
) -> None:
    """Recompute results from their files. Exit code 0 if every choice and figure is the same, 1 if not.

    $ hitmiss verify results.json scores.tsv --key key.tsv
    """
    from hitmiss.claims.verify import verify as recompute
    from hitmiss.core.errors import GateFailed, UsageError

    if signers is not None:
        printing.note(f"signed by {_signer(claim, signers)}")
    if not scores:
        if signers is None:
            raise UsageError.of("no-scores/give")
        return
    checked = recompute(claim, scores, key, reading, calibrate_on=calibrate_on, calibrate_key=calibrate_key)
    if json:
        said = {
            "holds": checked.holds,
            "differences": list(checked.differences),
            "not_recomputed": list(checked.not_recomputed),
        }
        printing.out_json(sealed({**checked.recomputed.to_dict(), **said}))
    elif checked.holds:
        printing.out(f"verified: {checked.n_figures} figures come out as claimed\n{checked.recomputed.signature}")
        if checked.not_recomputed:
            printing.out(f"not recomputed: {'; '.join(checked.not_recomputed)}")
    else:
        for line in checked.differences[:20]:
            printing.out(f"differs: {line}")
    if not checked.holds:
        raise GateFailed.of("claim-differs", n_differences=len(checked.differences))


def _signer(claim: str, signers: str) -> str:
    """Return who signed a file or the manifest of a run; a valid manifest proves that the run is unchanged."""
    from pathlib import Path

    from hitmiss.core import artifacts, signing
    from hitmiss.runs.manifest import MANIFEST, require_complete

    if not Path(claim).is_dir():
        if Path(claim).suffix == ".json":
            artifacts.load(claim, "results")  # check its digest too
        return signing.signer(claim, signers)
    require_complete(claim)
    return signing.signer(Path(claim) / MANIFEST, signers)
