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

from hitmiss.core.artifacts import sealed

Place = tuple[str | int, ...]
REPLAYED = ("design", "reading")
"""How the claim is recomputed: an edit of these shows in the numbers, or changes nothing that is shown."""
N = 40
"""Edits of each claim, drawn from all; `--all` of the nightly run takes every one."""


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
            if v not in (None, {}, [])
            and not (isinstance(v, list) and {*map(type, v)} == {type(None)})
            and v != DEFAULTS.get(k, ...)
        }
    return [seen(v) for v in document] if isinstance(document, list) else document


@pytest.mark.parametrize("name", ["score-warned", "score-stream", "compare", "compare-three", "triage-one", "toxicity"])
def test_an_edit_that_shows_is_refused(folder: Path, name: str) -> None:
    document = json.loads(claim(name, folder).read_text(encoding="utf-8"))
    document.pop("digest")
    rng = random.Random(name)
    wanted = {
        (shape(at), how): at for at in places(document) if at[0] not in REPLAYED for how in ("removed", "changed")
    }
    drawn = rng.sample(sorted(wanted), min(N, len(wanted)))
    passed = []
    for key in drawn:
        made = edited(document, wanted[key], key[1])
        (folder / "edited.json").write_text(json.dumps(sealed(made)), encoding="utf-8")
        code, text = said(["verify", "edited.json", *verify_words(name)], folder)
        assert code in (0, 1, 2, 3) and "this is a bug" not in text, (key, text)
        if code == 0 and seen(made) != seen(document) and key[0] != "pictures":
            passed.append(key)
    assert passed == []


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
