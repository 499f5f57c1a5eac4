"""A review from results: chosen items, their media, and the file that stores the verdicts of people.

store, library = open_review("results.jsonl", per_item=2)
queue = Queue(store)                                # or `server.serve(store, library)` for the page
"""

from __future__ import annotations

from pathlib import Path

from hitmiss.claims.open import split_choice
from hitmiss.core.errors import Fault
from hitmiss.io.finished import media_folder, run_behind
from hitmiss.review.answered import Wish
from hitmiss.review.choice import choose
from hitmiss.review.library import Library
from hitmiss.review.store import Store
from hitmiss.review.store_file import begin


def open_review(
    run: str | Path,
    *,
    dataset: str | Path | None = None,
    wish: Wish | None = None,
    library: Library | None = None,
    store: str | Path | None = None,
    per_item: int = 1,
    question: str | None = None,
    left_out: list[Fault] | None = None,
) -> tuple[Store, Library]:
    """Start a review of a run, or continue it. Items that cannot be shown are refused, or listed in `left_out`."""
    media = library or Library(folder_of(run, dataset))
    chosen = choose(str(run), wish or Wish(), media, None if dataset is None else str(dataset))
    if left_out is not None:
        left_out += chosen.left_out
    asked = question or f"{chosen.pinned['negative']} or {chosen.pinned['positive']}?".capitalize()
    pinned = {**chosen.pinned, "per_item": per_item, "question": asked}
    return begin(store or beside(run), pinned, chosen.entries), media


def beside(run: str | Path) -> Path:
    """Return the default path of the review's file: next to the results, with their name.

    >>> beside("a/results.jsonl[tools=tools]").as_posix()
    'a/results.review.sqlite'
    """
    path = Path(split_choice(str(run))[0])
    return path.with_name(f"{path.name if path.is_dir() else path.stem}.review.sqlite")


def folder_of(run: str | Path, dataset: str | Path | None = None) -> Path:
    """Return the folder to which media paths are relative: that of the table naming them, or the run's own."""
    if dataset is not None:
        return Path(dataset).parent
    path = Path(split_choice(str(run))[0])
    behind = run_behind(path)
    recorded = media_folder(behind) if behind is not None else None
    return recorded if recorded is not None and recorded.is_dir() else path.parent
