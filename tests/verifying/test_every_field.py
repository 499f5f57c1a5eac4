"""Every field of a claim, edited and sealed again: what a reader would see differently is refused."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from claims import claim, said, verify_words, write_files
from test_other_claims import GATES, gate_claim, make_board

from hitmiss.core.artifacts import sealed

Place = tuple[str | int, ...]
REPLAYED = ("design", "reading", "asked")
"""How the claim is recomputed: an edit of these shows in the numbers, or changes nothing that is shown."""
N = 20
"""Edits of each claim, drawn from all; `make nightly` takes every one."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("fields")
    write_files(place)
    return place


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Every place of a JSON value."""
    if at:
        yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in inside:
        yield from places(inner, (*at, name))


def shape(at: Place) -> str:
    return ".".join("*" if isinstance(step, int) else step for step in at)


def edited(document: dict[str, Any], at: Place, how: str) -> dict[str, Any]:
    """The document with one place removed, or changed to another value of its kind."""
    made = copy.deepcopy(document)
    parent: Any = made
    for step in at[:-1]:
        parent = parent[step]
    old = parent[at[-1]]
    if how == "removed":
        parent.pop(at[-1])
    elif isinstance(old, bool):
        parent[at[-1]] = not old
    elif isinstance(old, int | float):
        parent[at[-1]] = old * 1.01 + 1 if isinstance(old, float) else old + 1
    elif isinstance(old, str):
        parent[at[-1]] = f"{old} edited"
    elif isinstance(old, list):
        parent[at[-1]] = [*old, copy.deepcopy(old[0])] if old else ["edited"]
    elif isinstance(old, dict):
        parent[at[-1]] = {**old, "edited": "edited"}
    else:
        parent[at[-1]] = "edited"
    return made


DEFAULTS = {"best": "low", "n_failed": 0}
"""What a row has that does not say it."""


def seen(document: Any) -> Any:
    """What a reader sees: nothing that is empty, and nothing of how the claim is replayed."""
    if isinstance(document, dict):
        return {
            k: v
            for k, v in ((k, seen(v)) for k, v in document.items() if k not in (*REPLAYED, "content", "questions"))
            if v not in (None, {}, [], "")
            and not (isinstance(v, list) and {*map(type, v)} == {type(None)})
            and v != DEFAULTS.get(k, ...)
        }
    return [seen(v) for v in document] if isinstance(document, list) else document


NAMED = {"board": ("hitmiss",), "score-warned": ("pictures",), "triage-one": ("pictures",), "toxicity": ("pictures",)}
"""What is not found, as docs/verify.md says: curves taken out, and the version of a board, which the answer names."""
CLAIMED = (
    *("score-warned", "score-stream", "compare", "compare-three", "triage-one", "toxicity", "drift"),
    *(*(f"gate {name}" for name in GATES), "board"),
)


def document_of(folder: Path, name: str) -> tuple[dict[str, Any], list[str]]:
    """A claim in JSON form without its digest, and the words that verify it."""
    if name == "board":
        make_board(folder)
        document, words = (
            json.loads((folder / "board.json").read_text(encoding="utf-8")),
            ["systems", "--key", "eval.key"],
        )
    elif name.startswith("gate "):
        if not (folder / "kept.json").exists():
            said(
                ["score", "eval_a.tsv", "--key", "eval.key", "-p", "asvspoof5", "--bootstrap", "50", "-o", "kept.json"],
                folder,
            )
        document, words = gate_claim(folder, name[5:]), GATES[name[5:]][1]
    else:
        document, words = json.loads(claim(name, folder).read_text(encoding="utf-8")), verify_words(name)
    document.pop("digest", None)
    return document, words


def passing(folder: Path, name: str, most: int | None) -> list[tuple[str, str]]:
    """The edits that show and that `verify` lets pass; how the claim is replayed must at least not end in a traceback."""
    document, words = document_of(folder, name)
    wanted = {(shape(at), how): at for at in places(document) for how in ("removed", "changed")}
    chosen = sorted(key for key in wanted if most is None or wanted[key][0] not in REPLAYED)
    passed = []
    for key in chosen if most is None else random.Random(name).sample(chosen, min(most, len(chosen))):
        made = edited(document, wanted[key], key[1])
        (folder / "edited.json").write_text(json.dumps(sealed(made)), encoding="utf-8")
        code, text = said(["verify", "edited.json", *words], folder)
        assert code in (0, 1, 2, 3) and "this is a bug" not in text, (key, text)
        if code == 0 and seen(made) != seen(document) and key[0] not in NAMED.get(name, ()):
            passed.append(key)
    return passed


@pytest.mark.parametrize("name", CLAIMED)
def test_an_edit_that_shows_is_refused(folder: Path, name: str) -> None:
    assert passing(folder, name, N) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", CLAIMED)
def test_every_edit_that_shows_is_refused(folder: Path, name: str) -> None:
    assert passing(folder, name, None) == []


@pytest.mark.parametrize("name", ["score-warned", "compare", "compare-three", "triage-one", "toxicity", "drift"])
def test_what_json_prints_is_a_claim_with_its_verdict(folder: Path, name: str) -> None:
    """The verdict and everything else that `--json` prints are recomputed; an edited headline is refused."""
    from claims import CLAIMS

    words = [w for w in CLAIMS[name].words.split() if w != "--json"]
    code, text = said(["--quiet", *words, "--json"], folder)
    assert code == 0, text
    (folder / "printed.json").write_text(text[text.index("{") :], encoding="utf-8")
    code, told = said(["verify", "printed.json", *verify_words(name)], folder)
    assert code == 0, told
    document = json.loads(text[text.index("{") :])
    for edit in ("headline", "status", "code"):
        made = copy.deepcopy(document)
        made["verdict"][edit] = "much better than everything"
        (folder / "printed.json").write_text(json.dumps(sealed(made)), encoding="utf-8")
        code, told = said(["verify", "printed.json", *verify_words(name)], folder)
        assert code == 1 and "verdict" in told, (edit, told)
