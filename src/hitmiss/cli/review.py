"""`hitmiss review`: a web page on which people judge the items that a detector was not sure of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hitmiss.cli import printing
from hitmiss.cli.options import arg
from hitmiss.cli.shared import JSON, field_option
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.run_spec import ROOT, SUFFIX
from hitmiss.core.spec import CERTAINTY, MEASURING, READING, opt

if TYPE_CHECKING:
    from hitmiss.core.errors import Fault
    from hitmiss.review.library import Library
    from hitmiss.review.store import Store
    from hitmiss.review.summary import Summary
    from hitmiss.verdicts.agreement import Agreement

RUN = "Results (JSON lines, CSV …), one run of them as results.jsonl[tools=tools], or a folder of `hitmiss detect`."
VERDICTS = "Verdicts of the system to review: uncertain, unparsed, error, a class, all."
SHOWN_FAULTS = 5


def review(
    run: Annotated[str, arg(RUN)],
    dataset: Annotated[str | None, opt("A table that names the media.", READING, "--dataset", "--data")] = None,
    root: Annotated[Path | None, ROOT] = None,
    media: Annotated[str | None, opt("Column with the file or the text of an item.", READING)] = None,
    suffix: Annotated[str, SUFFIX] = "",
    ecg: Annotated[str | None, opt("Recordings (.npz) with a record for each item.")] = None,
    fs: Annotated[float | None, opt("Samples per second of .npy files with ECGs.")] = None,
    verdicts: Annotated[list[str] | None, opt(VERDICTS)] = None,
    items: Annotated[
        list[str] | None, opt("These ids instead, or a file with one id per line.", takes_words=True, common=True)
    ] = None,
    sample: Annotated[int | None, opt("A random sample of this many items.")] = None,
    seed: Annotated[int, opt("Seed of the sample and of the order.", CERTAINTY)] = 0,
    thresholds: Annotated[
        list[float] | None, opt("For scores: uncertain between these two.", MEASURING, takes_words=True)
    ] = None,
    per_item: Annotated[int, opt("Number of verdicts per item, from different people.")] = 1,
    question: Annotated[str | None, opt("What is asked (default: `Real or fake?`).")] = None,
    positive: Annotated[str | None, field_option(ReadSpec, "positive")] = None,
    negative: Annotated[str | None, field_option(ReadSpec, "negative")] = None,
    higher: Annotated[str | None, opt("With --thresholds: the class that a higher score means.", READING)] = None,
    not_blind: Annotated[bool, opt("Show the label and the system's answer.")] = False,
    allow_missing: Annotated[bool, opt("Leave out items that cannot be shown.", READING)] = False,
    adjudicator: Annotated[list[str] | None, opt("Person who decides where others disagree.")] = None,
    store: Annotated[Path | None, opt("The review's file (default: beside RUN).", common=True)] = None,
    host: Annotated[str, opt("Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, opt("Port to listen on; 0 for any that is free.", common=True)] = 8765,
    allow_remote: Annotated[bool, opt("Accept other machines; they need the token.")] = False,
    allow_host: Annotated[list[str] | None, opt("Another host name of this server.")] = None,
    token_file: Annotated[Path | None, opt("File with the token; created if missing.")] = None,
    lease: Annotated[float, opt("Minutes that an item is reserved for the person who has it open.")] = 15.0,
    export: Annotated[Path | None, opt("Write the verdicts (.jsonl, .csv, .parquet) and stop.", common=True)] = None,
    status: Annotated[bool, opt("Print the progress and stop.")] = False,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Let people judge items on a web page: blind, by keyboard, several people at once, exactly k verdicts per item.

    $ hitmiss review dataset.jsonl --store verdicts.db
    """
    from hitmiss.core.errors import UsageError
    from hitmiss.review.answered import Wish
    from hitmiss.review.opening import beside, open_review
    from hitmiss.review.server import serve
    from hitmiss.review.store_file import open_store

    path = store or beside(run)
    if export is not None or status:
        _report(open_store(path), export, json)
        return
    if per_item < 1 or lease <= 0:
        raise UsageError.of("bad-lease")
    library = _library(run, dataset, root, ecg, fs)
    wish = Wish(
        items=_items(items),
        sample=sample,
        seed=seed,
        thresholds=_pair(thresholds),
        positive=positive,
        negative=negative,
        higher=higher,
        media=media,
        suffix=suffix,
        blind=not not_blind,
        allow_missing=allow_missing,
    )
    left_out: list[Fault] = []
    opened, _ = open_review(
        run,
        dataset=dataset,
        wish=replace(wish, verdicts=_words(verdicts)) if verdicts else wish,
        library=library,
        store=path,
        per_item=per_item,
        question=question,
        left_out=left_out,
    )
    _begin(opened, adjudicator or [], left_out)
    names = tuple(allow_host or ())
    token = token_file or opened.path.with_suffix(".token") if allow_remote or token_file or names else None
    try:
        serve(
            opened,
            library,
            host=host,
            port=port,
            allow_remote=allow_remote,
            names=names,
            token_file=token_file,
            lease_seconds=60 * lease,
            ready=lambda address: _tell(opened, address, token),
        )
    except KeyboardInterrupt:
        printing.note("stopped")
    finally:
        opened.close()


def _library(run: str, dataset: str | None, root: Path | None, ecg: str | None, fs: float | None) -> Library:
    from hitmiss.review.library import Library
    from hitmiss.review.opening import folder_of

    recordings = None
    if ecg is not None:
        from hitmiss.attacks.recordings import read_recordings

        recordings = read_recordings(ecg, fs=fs)
    return Library(root or folder_of(run, dataset), recordings, fs)


def _items(given: list[str] | None) -> tuple[str, ...]:
    """Return the ids as they are, or the lines of a file."""
    if given and len(given) == 1 and Path(given[0]).is_file():
        lines = Path(given[0]).read_text(encoding="utf-8-sig").splitlines()
        return tuple(line.strip() for line in lines if line.strip())
    return tuple(given or ())


def _words(given: list[str]) -> tuple[str, ...]:
    return tuple(word.strip() for text in given for word in text.split(",") if word.strip())


def _pair(given: list[float] | None) -> tuple[float, float] | None:
    if given is None:
        return None
    if len(given) != 2:
        from hitmiss.core.errors import UsageError

        raise UsageError.of("two-thresholds", n=len(given))
    return given[0], given[1]


def _begin(opened: Store, adjudicators: list[str], left_out: list[Fault]) -> None:
    import time

    for fault in left_out[:SHOWN_FAULTS]:
        printing.note(f"left out: {fault}")
    if len(left_out) > SHOWN_FAULTS:
        printing.note(f"left out: {len(left_out) - SHOWN_FAULTS:,} more")
    for name in adjudicators:
        opened.appoint(name, time.time())


def _tell(opened: Store, address: str, token: Path | None) -> None:
    import sys

    each = "a verdict" if opened.per_item == 1 else f"{opened.per_item} verdicts"
    printing.out(f"{opened.n_items:,} items to judge, {each} each: {address}")
    if token is not None:
        printing.out(f"the token is in {token.name}; others sign in with it")
    printing.out("stop with Ctrl-C; every verdict is kept, and the same command goes on")
    sys.stdout.flush()


def _report(opened: Store, export: Path | None, json: bool) -> None:
    from hitmiss.review.summary import summarise
    from hitmiss.review.verdict_rows import write_verdicts

    summary = summarise(opened)
    if export is not None:
        n = write_verdicts(opened, export)
        printing.note(f"wrote {n:,} verdicts to {export}")
        if not summary.is_done:
            printing.note(f"the review is not finished: {summary.done:,} of {summary.items:,} items have all verdicts")
    if json:
        printing.out_json({"schema": 1, **printing.plain_object(summary)})
    elif export is None:
        _show(summary, opened.config)
    opened.close()


def _show(summary: Summary, config: dict[str, object]) -> None:
    said = {**summary.said}
    words = {"negative": config["negative"], "positive": config["positive"], "uncertain": "cannot tell"}
    counts = ", ".join(f"{n:,} {words[name]}" for name, n in said.items())
    printing.out(f"{summary.done:,} of {summary.items:,} items have all verdicts ({summary.per_item} each)")
    printing.out(f"{summary.verdicts:,} of {summary.wanted:,} verdicts: {counts}")
    if summary.per_item > 1:
        printing.out(f"people disagree on {summary.disputed:,} items, {summary.decided:,} of them decided")
        printing.out(f"Krippendorff's alpha: {_alpha(summary.agreement)}")
        printing.out(f'… leaving out "cannot tell": {_alpha(summary.decided_agreement)}')
    if summary.reviewers:
        rows = [
            [p.name, p.role, f"{p.n:,}", "-" if p.seconds is None else f"{p.seconds:.1f} s"] for p in summary.reviewers
        ]
        printing.out()
        printing.out_table(["name", "role", "verdicts", "median time"], rows)


def _alpha(a: Agreement) -> str:
    if a.alpha is None:
        return f"undefined ({a.note})"
    ends = f"[{a.low:.4f}, {a.high:.4f}]" if a.low is not None and a.high is not None else f"no interval: {a.note}"
    return f"{a.alpha:.4f} {ends} over {a.n_items:,} items"
