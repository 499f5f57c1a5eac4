"""ReportSpec: what a report shows, beside its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from hitmiss.core.spec import WRITING, Spec, as_names, opt


@dataclass(frozen=True)
class ReportSpec(Spec):
    """What a report is called and which single trials it shows.

    Examples
    --------
    >>> ReportSpec(title="June").samples
    30
    """

    _form, _option = "report", "report option"
    title: Annotated[str, opt("The title of the report.", WRITING, common=True)] = ""
    name: Annotated[tuple[str, ...], opt("A name for each run, in order.", WRITING, read=as_names)] = ()
    static: Annotated[bool, opt("No scripts: numbers as SVG, for mail and archives.", WRITING)] = False
    no_samples: Annotated[bool, opt("Show nothing about single trials: no ids, no texts.", WRITING, common=True)] = (
        False
    )
    redact_text: Annotated[
        bool, opt("Show only the ids of the worst errors: no text, sound, image or signal.", WRITING)
    ] = False
    samples: Annotated[int, opt("Worst errors of each kind and run to show.", WRITING)] = 30
    budget: Annotated[int, opt("Bytes that samples may take in the file.", WRITING, "--samples-budget", "--budget")] = (
        300_000
    )
    media: Annotated[
        tuple[str, ...],
        opt(
            "Where the sounds, images or signals of the trials are: a folder, a manifest, or an .npz; by default where the "
            "run says. May be repeated.",
            WRITING,
            metavar="PLACE",
            read=as_names,
        ),
    ] = ()
    lossless: Annotated[bool, opt("Keep sounds unchanged (FLAC); raise --samples-budget for more.", WRITING)] = False
    human: Annotated[
        str | None, opt("Verdicts of people on the items of a triage (`hitmiss review --export`).", WRITING)
    ] = None
    pdf: Annotated[
        str | None, opt("Print the report here too, with page numbers (needs Chromium).", WRITING, metavar="FILE")
    ] = None
