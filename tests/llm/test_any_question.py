"""Any question: own classes, an own word for an abstention, prompts with variables and examples, a matrix of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from llm_parts import rows_of, write_dataset

from hitmiss.cli.main import run
from hitmiss.core.ask_spec import AskSpec
from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.llm.items import read_items
from hitmiss.llm.parsers import LENIENT, STRICT
from hitmiss.llm.plan import matrix
from hitmiss.llm.prompts import Prompts
from hitmiss.llm.question import Question

ASKED = Question("toxic", "harmless", "pass")
JUDGE = """
def judge(item):
    if "unclear" in item.text:
        return {"verdict": "pass", "confidence": 0.5}
    return {"verdict": "toxic" if "idiot" in item.text else "harmless", "confidence": 0.9}
"""


@pytest.fixture
def comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judging.py").write_text(JUDGE)
    texts = ["you idiot", "nice day", "unclear", "idiot!", "thanks", "hello"]
    labels = ["toxic", "harmless", "toxic", "toxic", "harmless", "toxic"]
    rows = [
        {"id": f"c{i}", "text": t, "label": c, "meta": {"language": "en"}}
        for i, (t, c) in enumerate(zip(texts, labels, strict=True))
    ]
    return write_dataset(tmp_path, rows)


def words(dataset: Path, *more: str) -> list[str]:
    asked = ["--positive", "toxic", "--negative", "harmless", "--abstention", "pass"]
    return ["llm", "--dataset", str(dataset), "--models", "judging.py:judge", "-o", "r.jsonl", *asked, *more]


def test_classes_of_its_own_go_through_to_the_numbers(comments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words(comments)) == 0, capsys.readouterr().err
    rows = rows_of(Path("r.jsonl"))
    assert [r["prediction"] for r in rows] == ["toxic", "harmless", "uncertain", "toxic", "harmless", "harmless"]
    assert [r["label"] for r in rows] == ["toxic", "harmless", "toxic", "toxic", "harmless", "toxic"]
    capsys.readouterr()
    assert run(["triage", "r.run", "--json", "--bootstrap", "0"]) == 0, capsys.readouterr().err
    found = {e["metric"]: e["value"] for e in json.loads(capsys.readouterr().out)["estimates"] if not e["slice"]}
    assert found["accuracy"] == pytest.approx(4 / 6) and found["coverage"] == pytest.approx(5 / 6)
    assert found["fake_slip_rate"] == pytest.approx(1 / 4)  # one of four toxic comments was passed


@pytest.mark.parametrize("text", ["temperature", "weather=1,2", "temperature=warm"])
def test_what_cannot_be_varied_is_refused(text: str, comments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words(comments, "--vary", text)) == 2
    assert "--vary takes one setting and its values" in capsys.readouterr().err


def test_a_label_of_another_question_is_refused(comments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words(comments)[:-4], "--negative", "kind"]) == 3
    assert "the label must be kind or toxic" in capsys.readouterr().err


def test_items_without_labels_are_answered_and_not_scored(
    comments: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{k: v for k, v in row.items() if k != "label"} for row in rows_of(comments)]
    bare = write_dataset(tmp_path, rows, "bare.jsonl")
    assert run(words(bare)) == 0, capsys.readouterr().err
    assert "the items have no labels" in capsys.readouterr().out
    assert all("label" not in r and r["prediction"] for r in rows_of(Path("r.jsonl")))
    assert run(["llm", *words(bare)[1:], "--canaries", "2", "--resume"]) == 2
    key = ["--dataset", str(comments), "--positive", "toxic", "--negative", "harmless"]
    assert run(["triage", "r.jsonl", *key, "--json", "--bootstrap", "0"]) == 0, capsys.readouterr().err
    some = write_dataset(tmp_path, [*rows[:2], *rows_of(comments)[2:]], "some.jsonl")
    with pytest.raises(Exception, match="2 rows of the dataset cannot be used"):
        read_items(some, question=ASKED)


def test_answers_are_read_in_the_words_of_the_question() -> None:
    said = '{"verdict": "harmless", "confidence": 0.8, "rationale": ""}'
    assert LENIENT.read(said, ASKED).verdict == STRICT.read(said, ASKED).verdict == "real"
    assert LENIENT.read("Verdict: **Toxic**", ASKED).verdict == "fake"
    assert LENIENT.read("Verdict: pass", ASKED).verdict == "uncertain"
    assert LENIENT.read("Verdict: purple", ASKED).verdict is None
    assert STRICT.read(said.replace("harmless", "real"), ASKED).verdict is None
    with pytest.raises(UsageError, match="three different words"):
        Question("toxic", "Toxic")


def test_variables_are_filled_and_unknown_ones_refused(comments: Path) -> None:
    [item, *_] = read_items(comments, question=ASKED)
    own = Prompts.of("Is this {{ meta.language }} comment {{positive}} or {{negative}}? {not a variable}", ASKED)
    assert own.rules(item) == "Is this en comment toxic or harmless? {not a variable}"
    assert '"harmless" | "toxic" | "pass"' in Prompts.of(None, ASKED).rules(item)
    with pytest.raises(UnknownName, match=r"meta\.nation"):
        Prompts.of("{{meta.nation}}", ASKED).rules(item)


def test_the_matrix_has_a_run_for_every_combination() -> None:
    prompts = {"brief": Prompts("a"), "long": Prompts("b")}
    found = matrix(["m", "n"], prompts, AskSpec(), {"temperature": [0.0, 0.7]})
    assert len(found) == 8 and found["n@long@temperature=0.7"].settings.temperature == 0.7
    assert found["n@long@temperature=0.7"].prompts.system == "b" and found["m@brief@temperature=0.0"].model == "m"


@pytest.mark.extras
@pytest.mark.usefixtures("canary")
class TestAsked:
    """What the server is sent."""

    def test_examples_prompts_and_settings(self, pictures: Path, tmp_path: Path) -> None:
        pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
        from forked import command, done
        from tests.llm.faulty import StandIn

        for name in ("brief", "long"):
            (tmp_path / f"{name}.txt").write_text(f"{name}: {{{{negative}}}} or {{{{positive}}}}?")
        shown = [{**row, "image": str(row["image"])} for row in rows_of(pictures)[:2]]
        examples = write_dataset(tmp_path, shown, "shown.jsonl")
        more = ["--prompt", str(tmp_path / "brief.txt"), str(tmp_path / "long.txt"), "--vary", "temperature=0,0.5"]
        more += ["--examples", str(examples), "--root", str(pictures.parent), "--limit", "4"]
        bodies: list[Any] = []
        with StandIn() as server:
            note = server.note
            server.note = lambda body, *rest: bodies.append(body) or note(body, *rest)  # type: ignore[method-assign]
            code, _, err = done(command(pictures, server, tmp_path / "r.jsonl", *more), tmp_path)
        assert code == 0, err
        rows = rows_of(tmp_path / "r.jsonl")
        runs = dict.fromkeys(r["model"] for r in rows)
        assert list(runs) == [f"judge-1@{p}@temperature={t}" for p in ("brief", "long") for t in ("0", "0.5")]
        assert len(rows) == 16 == len(server.requests)
        assert {r["models"]["agent"] for r in rows} == {"judge-1"}
        assert {r["run_config"]["temperature"] for r in rows if "0.5" in r["model"]} == {0.5}
        assert len({r["prompt_hashes"]["system"] for r in rows}) == 2
        asked = [json.dumps(body["messages"]) for body in bodies]
        assert sum("brief: real or fake?" in text for text in asked) == 8
        answers = [f'"verdict": "{row["label"]}"' for row in shown]
        assert all(answer in text.replace("\\", "") for text in asked for answer in answers)
        assert all(text.count("image_url") >= 3 for text in asked)

    def test_an_answer_that_cannot_be_read_is_asked_for_once_more(self, pictures: Path, tmp_path: Path) -> None:
        pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
        from forked import command, done
        from tests.llm.faulty import Seen, StandIn

        first: set[str] = set()

        def script(seen: Seen) -> str | None:
            is_new = seen.item not in first
            first.add(seen.item)
            return "prose" if is_new else None

        with StandIn(script) as server:
            more = ["--repair", "--limit", "4"]
            code, _, err = done(command(pictures, server, tmp_path / "r.jsonl", *more), tmp_path)
        assert code == 0, err
        rows: list[dict[str, Any]] = rows_of(tmp_path / "r.jsonl")
        assert len(server.requests) == 8
        assert all(r["prediction"] and r["first_answer"] and r["outcome"] != "unparsed" for r in rows)
        assert all(r["first_verdict"] is None and r["strict_verdict"] == r["prediction"] for r in rows)
        assert [t["role"] for t in rows[0]["turns"]] == ["assistant", "user", "assistant"]
