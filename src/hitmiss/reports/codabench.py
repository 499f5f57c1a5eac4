"""A scoring program for Codabench: a zip that needs no network and nothing but Python of the version that made it.

Codabench unpacks the program into `/app/program`, the keys into `/app/input/ref` and a submission into
`/app/input/res`, and runs the command of `metadata.yaml`. The program writes `scores.json` and, as the detailed results,
a page without labels and ids.
"""

from __future__ import annotations

import io
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

from hitmiss.boards.board import Board, make_board
from hitmiss.boards.numbers import BoardNumber
from hitmiss.boards.plan import BoardPlan, files_of_system, find_keys
from hitmiss.core import artifacts
from hitmiss.core.design import Design
from hitmiss.core.errors import DataError, message_of
from hitmiss.core.finding import Finding
from hitmiss.core.read_spec import ReadSpec
from hitmiss.reports.board_site import team_page

__all__ = ["score_submission", "write_bundle"]

SUBMISSION: Final = "submission"
METADATA: Final = "command: python3 $program/score.py $input $output\n"
PROGRAM: Final = '''"""Score a submission with hitmiss: python3 score.py INPUT OUTPUT."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "packages"))

from hitmiss.reports.codabench import main  # noqa: E402

sys.exit(main(Path(__file__).resolve().parent / "question.json", *sys.argv[1:3]))
'''


def write_bundle(path: str | Path, design: Design, reading: ReadSpec, *, packages: bool = True) -> int:
    """Write the scoring program of a board, and return its size in bytes.

    Parameters
    ----------
    path
        The zip to write.
    design, reading
        What is measured, and how files are read; they are stored in the program.
    packages
        Whether hitmiss and what it needs are inside, as they are installed here; without them the image of the
        challenge must have hitmiss.
    """
    question = {"design": design.to_plain(), "reading": reading.to_plain(), "python": list(sys.version_info[:2])}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("metadata.yaml", METADATA)
        bundle.writestr("score.py", PROGRAM)
        bundle.writestr("question.json", json.dumps(question, indent=1))
        for name, file in _installed() if packages else ():
            bundle.write(file, f"packages/{name}")
    artifacts.write(path, buffer.getvalue())
    return len(buffer.getvalue())


def score_submission(reference: str | Path, submission: str | Path, design: Design, reading: ReadSpec) -> Board:
    """Score one submission against the keys of a folder.

    Raises
    ------
    DataError
        If a file of the submission cannot be used, or one is missing; the message lists all of them.
    """
    datasets = find_keys(reference)
    files = files_of_system(submission, datasets)
    plan = BoardPlan(datasets, {SUBMISSION: files})
    missing = [d.name for d in datasets if d.name not in files]
    if missing:
        raise DataError.of("no-submission/file", missing=tuple(missing))
    board = make_board(plan, design, reading)
    if board.rejected:
        texts = tuple(r.text for r in board.rejected)
        raise DataError.coded(Finding("submission-rejected", values={"texts": texts}), board.rejected[0].code)
    return board


def scores_of(board: Board) -> dict[str, float]:
    """Return the numbers of a submission under names for a leaderboard: `eer`, `eer_low`, `eer_high`, `eer_DATASET`."""
    row = board.rows[0]
    found: dict[str, float] = {}

    def put(name: str, number: BoardNumber) -> None:
        for suffix, value in (("", number.value), ("_low", number.low), ("_high", number.high)):
            if value is not None:
                found[f"{name}{suffix}"] = value

    metric = _key(board.metric)
    put(metric, row.number)
    if len(board.datasets) > 1:
        put(f"{metric}_pooled", row.pooled)
        put(f"{metric}_worst", row.worst)
    for dataset, metrics in row.details.items():
        for name, slices in metrics.items():
            if dataset and "" in slices and not (len(board.datasets) == 1 and name == board.metric):
                put(f"{_key(name)}_{_key(dataset)}" if len(board.datasets) > 1 else _key(name), slices[""])
    return found


def main(question: str | Path, source: str, target: str) -> int:
    """Score a submission as the program of a bundle does; return the exit code."""
    from hitmiss.core.errors import HitmissError

    stored = json.loads(Path(question).read_text(encoding="utf-8"))
    if list(sys.version_info[:2]) != stored["python"]:
        print(f"hitmiss: this program was made for Python {'.'.join(map(str, stored['python']))}", file=sys.stderr)
        return 5
    design, reading = Design.from_plain(stored["design"]), ReadSpec.from_plain(stored["reading"])
    try:
        board = score_submission(Path(source) / "ref", Path(source) / "res", design, reading)
    except HitmissError as error:
        print(f"hitmiss: {message_of(error)}", file=sys.stderr)
        return error.exit_code
    Path(target).mkdir(parents=True, exist_ok=True)
    artifacts.write(Path(target, "scores.json"), json.dumps(scores_of(board), allow_nan=False) + "\n")
    artifacts.write(Path(target, "detailed_results.html"), team_page(board, board.rows[0]))
    return 0


def _key(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")


def _installed() -> Iterator[tuple[str, Path]]:
    """Give every file of hitmiss and of what it needs, with its place below `packages`."""
    import hitmiss

    own = Path(hitmiss.__file__).parent
    for file in sorted(own.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield f"hitmiss/{file.relative_to(own).as_posix()}", file
    for name in sorted(_needed("hitmiss")):
        for found in metadata.distribution(name).files or ():
            place = found.as_posix()
            if place.startswith("..") or "__pycache__" in found.parts or "tests" in found.parts:
                continue
            file = Path(str(found.locate()))
            if file.is_file():
                yield place, file


def _needed(name: str) -> set[str]:
    """Return the distributions that one needs, without extras."""
    from packaging.requirements import Requirement

    found: set[str] = set()
    pending = [name]
    while pending:
        for text in metadata.requires(pending.pop()) or ():
            wanted = Requirement(text)
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
                continue
            known = wanted.name.lower()
            if known not in found:
                found.add(known)
                pending.append(wanted.name)
    return found
