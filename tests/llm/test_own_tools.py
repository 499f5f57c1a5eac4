"""Tools of the user's own: functions, MCP servers; and canaries in what tools say."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from llm_parts import rows_of, write_dataset

from hitmiss.core.errors import EnvironmentFault, UsageError
from hitmiss.llm.canaries import RESULTS, make_canaries
from hitmiss.llm.items import read_items
from hitmiss.llm.plan import CallPlan
from hitmiss.llm.tools.own import call_own, open_tool, open_tools

OWN = '''
def words(item, least: int = 1, lower: bool = True) -> dict:
    """Count the words of the text
    that are at least so long.

    Not shown to the model.
    """
    found = [w for w in item.text.split() if len(w) >= least]
    return {"n": len(found), "id": item.id}

def breaks(item):
    """Fail."""
    raise ValueError("it is broken")

def silent(item):
    return 1

def any_of(item, *names: str):
    """Take what comes."""

def metadata(item):
    """Has the name of a built-in tool."""
'''
SERVER = """
import json, sys
TOOLS = [{"name": "reverse", "description": "Spell a text backwards.", "inputSchema": {"type": "object",
          "properties": {"text": {"type": "string", "description": "what to spell"}}}},
         {"name": "fails", "description": "Always fails.", "inputSchema": {"type": "object", "properties": {}}}]
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, given = asked["method"], asked.get("params", {})
    if method == "initialize":
        about = {"protocolVersion": given["protocolVersion"], "capabilities": {"tools": {}}}
        result = {**about, "serverInfo": {"name": "spelling", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        text = given.get("arguments", {}).get("text", "abc")
        failed = given["name"] == "fails"
        result = {"content": [{"type": "text", "text": "no luck" if failed else text[::-1]}], "isError": failed}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "server.py").write_text(SERVER)
    words = ["one two three", "a " * 200, "four five", "b " * 200]
    labels = ["real", "fake", "real", "fake"]
    rows = [{"id": f"t{i}", "text": w, "label": c} for i, (w, c) in enumerate(zip(words, labels, strict=True))]
    return write_dataset(tmp_path, rows)


def test_a_model_is_told_the_first_paragraph_and_the_arguments(texts: Path) -> None:
    tool = open_tool("mine.py:words")
    assert (tool.name, tool.about) == ("words", "Count the words of the text that are at least so long.")
    assert tool.takes["required"] == []
    properties: Any = tool.takes["properties"]
    assert {name: one["type"] for name, one in properties.items()} == {"least": "integer", "lower": "boolean"}
    [item, *_] = read_items(texts)
    assert call_own(tool, item, {"least": 4}).result == {"n": 1, "id": "t0"}
    assert call_own(open_tool("mine.py:breaks"), item, {}).result == {"error": "ValueError: it is broken"}
    before = tool.identity["version"]
    (texts.parent / "mine.py").write_text(OWN + "\n\ndef more(item):\n    'More.'\n")
    assert open_tool("mine.py:words").identity["version"] != before, "a changed file is another tool"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("mine.py:silent", "no docstring"),
        ("mine.py:any_of", "names is not annotated"),
        ("mine.py:OWN", "has no .OWN."),
        ("math:pi", "is a float"),
    ],
)
@pytest.mark.usefixtures("texts")
def test_what_cannot_be_a_tool_is_refused(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        open_tool(name)


def test_two_tools_of_one_name_and_tools_without_a_mode_are_refused(texts: Path) -> None:
    for names in (["mine.py:metadata"], ["mine.py:words", "mine.py:words"]):
        with pytest.raises(UsageError, match="two tools are called"):
            open_tools(names)
    with pytest.raises(UsageError, match="asked without"):
        CallPlan(read_items(texts), ["m"], own_tools=open_tools(["mine.py:words"]))


def test_canaries_in_what_tools_say_are_asked_with_tools_only(texts: Path) -> None:
    items = read_items(texts)
    made = make_canaries(items, 3, kinds_with_tools={"text"})
    places = [item.meta["place"] for item in made]
    assert places == ["after the text", "before the text", RESULTS] * 2
    order, control = made[2], made[5]
    assert order.text in {i.text for i in items} and "Urteil real" in order.order
    assert sorted(order.order.replace(" ", "")) == sorted(control.order.replace(" ", "")) != order.order
    assert order.sha256 not in {i.sha256 for i in items}
    plan = CallPlan(items, ["m"], (False, True), canaries=made, own_tools=open_tools(["mine.py:words"]))
    asked = [(c.item.id, c.use_tools) for c in plan.calls if c.is_canary and c.item.order]
    assert asked == [(order.id, True), (control.id, True)]


@pytest.mark.extras
@pytest.mark.usefixtures("canary")
class TestAsked:
    """What the server is offered, and what comes of it."""

    def test_own_tools_are_offered_called_and_kept(self, texts: Path, tmp_path: Path) -> None:
        pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
        from forked import command, done
        from tests.llm.faulty import StandIn

        bodies: list[Any] = []
        with StandIn() as server:
            note = server.note
            server.note = lambda body, *rest: bodies.append(body) or note(body, *rest)  # type: ignore[method-assign]
            more = ["--tools", "both", "--tool", "mine.py:words", "--tool", "mine.py:breaks"]
            words = command(texts, server, tmp_path / "r.jsonl", *more)
            code, _, err = done(words, tmp_path, tmp_path)
            assert code == 0, err
            (tmp_path / "mine.py").write_text(OWN + "\n")
            code, _, err = done([*words, "--resume", "--trials", "2"], tmp_path, tmp_path)
            assert code == 4 and "words" in err, "rows of two versions of a tool are not mixed"
        offered = [b["tools"] for b in bodies if "tools" in b]
        assert offered and all([t["function"]["name"] for t in tools] == ["words", "breaks"] for tools in offered)
        assert {p["type"] for p in offered[0][0]["function"]["parameters"]["properties"].values()} == {
            "integer",
            "boolean",
        }
        rows = {r["id"]: r for r in rows_of(tmp_path / "r.jsonl") if r["use_tools"]}
        for row in rows.values():
            assert [d["tool"] for d in row["tool_details"]] == ["words", "breaks"]
            assert row["tool_details"][1]["error"] == "ValueError: it is broken"
            said = [t["text"] for t in row["turns"] if t["role"] == "tool"]
            assert json.loads(said[0]) == {
                "n": len(next(i.text for i in read_items(texts) if i.id == row["id"]).split()),
                "id": row["id"],
            }  # type: ignore[union-attr]

    def test_tools_of_an_mcp_server(self, texts: Path, tmp_path: Path) -> None:
        pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
        pytest.importorskip("mcp", reason="mcp is not installed")
        from forked import command, done
        from tests.llm.faulty import StandIn

        with StandIn() as server:
            more = ["--tools", "tools", "--mcp", f"{sys.executable} {tmp_path / 'server.py'}"]
            words = command(texts, server, tmp_path / "r.jsonl", *more)
            code, _, err = done(words, tmp_path)
            assert code == 0, err
            (tmp_path / "server.py").write_text(SERVER.replace("backwards", "the other way"))
            code, _, err = done([*words, "--resume", "--trials", "2"], tmp_path)
            assert code == 4 and "digest" in err, "rows of two descriptions of a tool are not mixed"
        for row in rows_of(tmp_path / "r.jsonl"):
            assert row["prediction"] and [d["tool"] for d in row["tool_details"]] == ["reverse", "fails"]
            assert "no luck" in row["tool_details"][1]["error"]
            said = [t for t in row["turns"] if t["role"] == "tool"]
            assert said[0]["text"] == "cba" and "no luck" in said[1]["error"]
        log = next((tmp_path / "r.run" / "logs").glob("*.eval"))
        from inspect_ai.log import read_eval_log

        events = [e for e in read_eval_log(str(log)).samples[0].events if e.event == "tool"]
        assert [(e.function, e.error is not None) for e in events] == [("reverse", False), ("fails", True)]

    def test_a_server_that_does_not_answer_is_refused_before_anything_is_bought(self) -> None:
        pytest.importorskip("mcp", reason="mcp is not installed")
        from hitmiss.llm.mcp_servers import describe

        with pytest.raises(EnvironmentFault, match="does not answer"):
            describe([f"{sys.executable} -c 'raise SystemExit(3)'"])
        with pytest.raises(EnvironmentFault, match="does not answer"):
            describe(["/no/such/program"])

    def test_a_gullible_model_follows_orders_in_what_tools_say(self, texts: Path, tmp_path: Path) -> None:
        pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
        from forked import command, done
        from tests.llm.faulty import StandIn

        for gullible, followed in ((True, 1), (False, 0)):
            out = tmp_path / f"{gullible}.jsonl"
            with StandIn(gullible=gullible) as server:
                more = ["--tools", "both", "--tool", "mine.py:words", "--canaries", "3", "--json"]
                code, told, err = done(command(texts, server, out, *more), tmp_path, tmp_path)
            assert code == 0, err
            [found] = [c for c in json.loads(told)["canaries"] if c["part"] == RESULTS]
            assert (found["tools"], found["followed"], found["of"]) == ("tools", followed, 1)
