"""Boards: numbers against the metric itself, ranks of known systems, bad submissions, and the cache."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.boards.conftest import Challenge

import hitmiss as hm
from hitmiss.boards import system as system_module
from hitmiss.boards.board import Board, make_board
from hitmiss.boards.plan import find_plan
from hitmiss.core.design import Design
from hitmiss.core.errors import DataError, UnknownName, UsageError

DESIGN = Design.of(["eer"], bootstrap=200)


def made(challenge: Challenge, **options: object) -> Board:
    """The board of a challenge."""
    return make_board(find_plan(challenge.submissions, challenge.keys), DESIGN, **options)  # type: ignore[arg-type]


def test_numbers_are_those_of_the_metric(challenge: Challenge) -> None:
    """Each cell is the metric of the arrays, the average their mean, and pooled the metric of all trials together."""
    board = made(challenge)
    for system in ("good", "fair", "twin"):
        row = board[system]
        own = {d: hm.metrics.eer(challenge.label[d], challenge.score[system, d]) for d in ("studio", "wild")}
        assert {d: b.value for d, b in row.cells.items()} == pytest.approx(own, abs=1e-15)
        assert row.average.value == pytest.approx(sum(own.values()) / 2, abs=1e-15)
        together = (
            np.concatenate([challenge.label[d] for d in own]),
            np.concatenate([challenge.score[system, d] for d in own]),
        )
        assert row.pooled.value == pytest.approx(hm.metrics.eer(*together), abs=1e-15)
        assert row.worst.value == max(own.values()) and row.worst.dataset == max(own, key=lambda d: own[d])
        for number in (*row.cells.values(), row.average, row.pooled, row.worst):
            assert number.low < number.value < number.high  # type: ignore[operator]


def test_intervals_of_cells_are_those_of_score(challenge: Challenge) -> None:
    """A cell has the interval that measuring its files alone gives."""
    board = made(challenge)
    alone = hm.evaluate(
        challenge.submissions / "fair" / "wild.tsv", challenge.keys / "wild.tsv", metrics=["eer"], bootstrap=200
    )
    (e,) = [e for e in alone if not e.slice]
    cell = board["fair"].cells["wild"]
    assert (cell.value, cell.low, cell.high) == (e.value, e.low, e.high)


def test_weights_count(challenge: Challenge) -> None:
    """A weighted average is that of the weights, and its interval lies around it."""
    plan = find_plan(challenge.submissions, challenge.keys)
    heavy = tuple(replace(d, weight=3.0 if d.name == "wild" else 1.0) for d in plan.datasets)
    row = make_board(replace(plan, datasets=heavy), DESIGN)["fair"]
    wild, studio = row.cells["wild"].value, row.cells["studio"].value
    assert row.average.value == pytest.approx((3 * wild + studio) / 4, abs=1e-15)  # type: ignore[operator]
    assert row.average.low < row.average.value < row.average.high  # type: ignore[operator]


def test_known_systems_are_ranked_as_they_are(challenge: Challenge) -> None:
    """The better system leads alone; two systems that hardly differ share a tier and their ranks."""
    board = made(challenge)
    assert board.rank_by == "average"
    assert board.rows[0].system == "good"
    assert (board["good"].rank_low, board["good"].rank_high, board["good"].tier) == (1, 1, 1)
    assert board["fair"].tier == board["twin"].tier == 2
    assert {board["fair"].rank_low, board["twin"].rank_low} == {2}
    assert {board["fair"].rank_high, board["twin"].rank_high} == {3}


@pytest.mark.parametrize("rank_by", ["pooled", "wild"])
def test_the_order_can_be_chosen(challenge: Challenge, rank_by: str) -> None:
    """A board ranks by all trials together or by one data set, too."""
    board = made(challenge, rank_by=rank_by)
    row = board["good"]
    assert row.number == (row.pooled if rank_by == "pooled" else row.cells["wild"])
    assert row.rank == 1 and row.tier == 1
    with pytest.raises(UnknownName, match="order of a board"):
        made(challenge, rank_by="nothing")


BAD = {
    "nan": ("item\tscore\nwild-0\tnan\n", "nan-score"),
    "few": ("item\tscore\nwild-0\t1.0\n", "only-in-key"),
    "other": ("hello\nworld\n", "missing-column"),
    "empty": ("", "empty-file"),
}


@pytest.mark.parametrize("kind", [*BAD, "extra", "twice", "reversed", "constant"])
def test_a_bad_submission_is_listed_and_changes_nobody_else(challenge: Challenge, kind: str) -> None:
    """Whatever is wrong with one submission, it is listed under its name, and no other number changes in any bit."""
    before = {row.system: row for row in made(challenge).rows}
    good = challenge.score["good", "wild"]
    rows = [f"wild-{i}\t{one!r}" for i, one in enumerate(good.tolist())]
    code = BAD[kind][1] if kind in BAD else ""
    if kind in BAD:
        challenge.add_text("bad", "wild", BAD[kind][0])
    elif kind == "reversed":
        challenge.add("bad", "wild", -good)
        code = "scores-reversed"
    elif kind == "constant":
        challenge.add("bad", "wild", np.zeros(len(good)))
        code = "scores-constant"
    else:
        more = "wild-9999\t0.5" if kind == "extra" else "wild-0\t0.5"
        challenge.add_text("bad", "wild", "\n".join(["item\tscore", *rows, more, ""]))
        code = "only-in-scores" if kind == "extra" else "conflicting-id"
    challenge.add("bad", "studio", challenge.score["fair", "studio"])
    board = made(challenge)
    (rejected,) = board.rejected
    assert (rejected.system, rejected.dataset) == ("bad", "wild")
    assert rejected.code == code, rejected.text
    assert "\n" not in rejected.text.splitlines()[0] and rejected.text
    assert board["bad"].missing == ("wild",) and board["bad"].average.value is None and board["bad"].rank is None
    assert board["bad"].cells["studio"].value == board["fair"].cells["studio"].value
    for system, row in before.items():
        assert board[system] == row


def test_hostile_names_are_names(challenge: Challenge) -> None:
    """Names with markup, line ends and escape bytes are carried as they are, and cannot leave their cell."""
    name = '<script>alert(1)</script\n\x1b[31m"&'.replace("/", "")
    for dataset in ("wild", "studio"):
        challenge.add(name, dataset, challenge.score["fair", dataset])
    from hitmiss.reports.board_site import write_site

    board = made(challenge)
    assert board[name].rank is not None
    write_site(board, challenge.root / "site")
    for page in (challenge.root / "site").glob("system-*.html"):
        assert f'href="{page.name}"' in (challenge.root / "site" / "index.html").read_text()
    for page in (challenge.root / "site").glob("*.html"):
        text = page.read_text()
        assert "<script>alert" not in text and "\x1b" not in text


def test_the_site_holds_no_label_and_no_id(challenge: Challenge) -> None:
    """What can be published says nothing about single trials."""
    from hitmiss.reports.board_site import write_site

    rows = [f"wild-{i}\t{one!r}" for i, one in enumerate(challenge.score["good", "wild"].tolist())]
    for name, lines in (("nan", ["wild-0\tnan"]), ("few", rows[:5]), ("more", [*rows, "wild-9999\t1"])):
        challenge.add_text(name, "wild", "\n".join(["item\tscore", *lines, ""]))
    challenge.add_text("twice", "wild", "\n".join(["item\tscore", *rows, "wild-0\t0.5", ""]))
    size = write_site(made(challenge), challenge.root / "site")
    files = [*(challenge.root / "site").iterdir()]
    assert len(files) == 2 + 3 + 4 and size < 600_000
    for file in files:
        text = file.read_text()
        assert "wild-" not in text and "bonafide" not in text, file


def test_the_cache_saves_reading_and_changes_nothing(challenge: Challenge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second board reads only the files of the new system; every number is the same as without a cache."""
    cache = challenge.root / "cache"
    made(challenge, cache=cache)
    for dataset in ("wild", "studio"):
        challenge.add("new", dataset, challenge.score["fair", dataset] + 0.3 * challenge.label[dataset])
    read: list[str] = []
    real = system_module.read_trials

    def counted(path: str, *others: object) -> object:
        read.append(Path(path).parent.name)
        return real(path, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(system_module, "read_trials", counted)
    found = made(challenge, cache=cache)
    assert read == ["new", "new"]
    assert found.to_dict() == made(challenge).to_dict()


def test_a_changed_score_or_an_edited_cache_is_measured_anew(challenge: Challenge) -> None:
    """What was kept is used only for the bytes it was made from."""
    cache = challenge.root / "cache"
    first = made(challenge, cache=cache)
    for entry in cache.glob("*.json"):
        stored = json.loads(entry.read_text())
        for metrics in stored["numbers"].values():
            metrics["eer"][""]["value"] = 0.001
        entry.write_text(json.dumps(stored))
    assert made(challenge, cache=cache).to_dict() == first.to_dict()
    challenge.add("fair", "wild", challenge.score["good", "wild"])
    assert made(challenge, cache=cache)["fair"].cells["wild"].value == first["good"].cells["wild"].value


def test_one_data_set_needs_no_folders(challenge: Challenge, tmp_path: Path) -> None:
    """With a single key the submissions are plain files."""
    flat = tmp_path / "flat"
    flat.mkdir()
    for system in ("good", "fair"):
        (flat / f"{system}.v1.tsv").write_text((challenge.submissions / system / "wild.tsv").read_text())
    board = make_board(find_plan(flat, challenge.keys / "wild.tsv"), DESIGN)
    assert [row.system for row in board.rows] == ["good.v1", "fair.v1"]
    assert board.rows[0].rank == 1


def test_folders_of_data_sets_are_understood(challenge: Challenge, tmp_path: Path) -> None:
    """DATASET/SYSTEM gives the board of SYSTEM/DATASET; a mixture is refused."""
    other = tmp_path / "turned"
    for (system, dataset), _ in challenge.score.items():
        (other / dataset).mkdir(parents=True, exist_ok=True)
        (other / dataset / f"{system}.tsv").write_text((challenge.submissions / system / f"{dataset}.tsv").read_text())
    assert make_board(find_plan(other, challenge.keys), DESIGN).to_dict() == made(challenge).to_dict()
    (other / "someone").mkdir()
    (other / "someone" / "wild.tsv").write_text("item\tscore\n")
    with pytest.raises(UsageError, match="named like a data set"):
        find_plan(other, challenge.keys)


def test_nothing_usable_is_one_error(challenge: Challenge, tmp_path: Path) -> None:
    """If no submission can be scored, all reasons are in one message."""
    bad = tmp_path / "bad"
    for system in ("a", "b"):
        (bad / system).mkdir(parents=True)
        (bad / system / "wild.tsv").write_text("item\tscore\nwild-0\tnan\n")
    with pytest.raises(DataError, match="no submission can be scored") as error:
        make_board(find_plan(bad, challenge.keys), DESIGN)
    assert "a:" in str(error.value) and "b:" in str(error.value)
