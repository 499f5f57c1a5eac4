"""A review from results: chosen items, their media, and the file that keeps what people say of them.

store, library = open_review("results.jsonl", per_item=2)
queue = Queue(store)                                # or `serving.serve(store, library)` for the page
"""

from __future__ import annotations

from pathlib import Path

from hitmiss.errors import Fault
from hitmiss.io.finished import media_folder, run_behind
from hitmiss.opening import split_choice
from hitmiss.review.answers import Wish
from hitmiss.review.choosing import choose
from hitmiss.review.media import Library
from hitmiss.review.store import Store
from hitmiss.review.storefile import begin


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
    """Begin a review of a run, or go on with it. What cannot be shown is refused, or put into `left_out`."""
    media = library or Library(folder_of(run, dataset))
    chosen = choose(str(run), wish or Wish(), media, None if dataset is None else str(dataset))
    if left_out is not None:
        left_out += chosen.left_out
    asked = question or f"{chosen.pinned['negative']} or {chosen.pinned['positive']}?".capitalize()
    pinned = {**chosen.pinned, "per_item": per_item, "question": asked}
    return begin(store or beside(run), pinned, chosen.entries), media


def beside(run: str | Path) -> Path:
    """The review's file where none is named: after the results, beside them.

    >>> beside("a/results.jsonl[tools=tools]").as_posix()
    'a/results.review.sqlite'
    """
    path = Path(split_choice(str(run))[0])
    return path.with_name(f"{path.name if path.is_dir() else path.stem}.review.sqlite")


def folder_of(run: str | Path, dataset: str | Path | None = None) -> Path:
    """The folder that paths of media start from: that of the table which names them, or the one the run tells of."""
    if dataset is not None:
        return Path(dataset).parent
    path = Path(split_choice(str(run))[0])
    behind = run_behind(path)
    told = media_folder(behind) if behind is not None else None
    return told if told is not None and told.is_dir() else path.parent
