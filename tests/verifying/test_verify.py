"""`hitmiss verify`: every true claim of every verb holds, and every edited one is refused."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from claims import CLAIMS, claim, run, said, verify_words, write_files

from hitmiss.core.artifacts import sealed
from hitmiss.core.results import Results
from hitmiss.engine.signature import digest_of, read_signature, short

SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "results-1.json"
PUBLISHED = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
"""Made once: `jsonschema.validate` checks the schema itself each time, which test_exports.py does."""
Edit = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("claims")
    write_files(place)
    return place


@pytest.mark.parametrize("name", CLAIMS)
def test_a_true_claim_holds(folder: Path, name: str) -> None:
    """The file of a claim says everything that is needed: only the files are given again."""
    made = claim(name, folder)
    code, text = said(["verify", made.name, *verify_words(name)], folder)
    assert code == 0, text
    document = json.loads(made.read_text(encoding="utf-8"))
    if "estimates" in document:
        PUBLISHED.validate(document)


@pytest.mark.parametrize("name", ["score-positive-value", "score-encoding", "score-separator", "score-pipe", "drift"])
def test_a_signature_alone_says_how_the_files_were_read(folder: Path, name: str) -> None:
    signature = json.loads(claim(name, folder).read_text(encoding="utf-8"))["signature"]
    code, text = said(["verify", signature, *verify_words(name)], folder)
    assert code == 0, text


def first(document: dict[str, Any]) -> dict[str, Any]:
    """The first row of the table of a claim."""
    rows: list[dict[str, Any]] = next(document[t] for t in ("estimates", "differences", "standings") if t in document)
    return rows[0]


def rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    return next(document[t] for t in ("estimates", "differences", "pairs") if t in document)  # type: ignore[no-any-return]


def setting(document: dict[str, Any]) -> None:
    row = next(r for r in document["estimates"] if r["settings"])
    name = next(iter(row["settings"]))
    row["settings"][name] = 10.0


EDITS: dict[str, Edit] = {
    "value": lambda d: first(d).update(value=0.05),
    "value infinite": lambda d: first(d).update(value="inf"),
    "interval infinite": lambda d: first(d).update(low="-inf", high="inf"),
    "interval gone": lambda d: first(d).update(low=None, high=None),
    "n": lambda d: first(d).update(n=first(d)["n"] * 100),
    "n_positive": lambda d: first(d).update(n_positive=1),
    "n_failed": lambda d: first(d).update(n_failed=3),
    "of": lambda d: first(d).update(of=7.0),
    "method": lambda d: first(d).update(method="exact"),
    "note": lambda d: first(d).update(note="all is well"),
    "best": lambda d: first(d).update(best="high" if first(d)["best"] == "low" else "low"),
    "settings": setting,
    "metric": lambda d: first(d).update(metric="f1"),
    "run": lambda d: first(d).update(run={"model": "x"}),
    "slice": lambda d: first(d).update(slice={"codec": "C99"}),
    "row removed": lambda d: d["estimates"].pop(),
    "rows removed": lambda d: d["estimates"].clear(),
    "row added": lambda d: d["estimates"].append({**first(d), "slice": {"codec": "best"}}),
    "row twice": lambda d: d["estimates"].append(dict(first(d))),
    "warnings removed": lambda d: d["warnings"].clear(),
    "warning added": lambda d: d["warnings"].append("checked by a friend"),
    "protocol": lambda d: d.update(protocol="asvspoof6"),
    "content": lambda d: d.update(content="0" * 64),
    "signature n": lambda d: d.update(signature=d["signature"].replace("|n:", "|n:1")),
    "signature seed": lambda d: d.update(signature=d["signature"].replace("seed=0", "seed=1")),
    "design seed": lambda d: d["design"].update(seed=1),
    "design metric": lambda d: d["design"]["protocol"].update(metrics=["eer"]),
    "design settings": lambda d: d["design"]["protocol"]["settings"]["min_dcf"].update(c_fa=1.0),
    "reading higher": lambda d: d["reading"].update(higher="spoof"),
    "field added": lambda d: d.update(approved_by="a friend"),
    "curve point": lambda d: curve(d, "det")["frr"].__setitem__(3, 0.001),
    "curve a hundredth lower": lambda d: curve(d, "det").update(frr=[0.99 * y for y in curve(d, "det")["frr"]]),
    "curve points removed": lambda d: [curve(d, "roc")[k].pop() for k in ("fpr", "tpr", "threshold")],
    "area": lambda d: curve(d, "roc").update(area=0.9999),
    "precision": lambda d: curve(d, "pr").update(precision=[1.0] * len(curve(d, "pr")["precision"])),
    "histogram": lambda d: curve(d, "histogram")["negatives"].reverse(),
    "marked point": lambda d: curve(d, "det")["points"][0].__setitem__(1, 0.0001),
    "classes of a curve": lambda d: curve(d, "det").update(positive="real"),
    "trials of a curve": lambda d: curve(d, "det").update(n_positive=10**6),
    "curve removed": lambda d: d["pictures"][0]["displays"].pop(0),
    "curve twice": lambda d: d["pictures"][0]["displays"].append(curve(d, "det")),
    "curves of another run": lambda d: d["pictures"][0].update(run={"model": "x"}),
    "curves of a further run": lambda d: d["pictures"].append(d["pictures"][0]),
}


def curve(document: dict[str, Any], kind: str) -> dict[str, Any]:
    """The curve of a kind in the first picture of a claim."""
    return next(c for c in document["pictures"][0]["displays"] if c["kind"] == kind)  # type: ignore[no-any-return]


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_claim_is_refused(folder: Path, edit: str) -> None:
    """Whoever edits a file may seal it again, so that the digest is right: the figures must tell."""
    name = "score-warned"
    path = folder / f"{name}.json"
    document = json.loads((path if path.exists() else claim(name, folder)).read_text(encoding="utf-8"))
    assert document["warnings"]
    EDITS[edit](document)
    (folder / "edited.json").write_text(json.dumps(sealed(document)), encoding="utf-8")
    code, text = said(["verify", "edited.json", *verify_words(name)], folder)
    assert code == 1, text
    assert "differs: " in text


@pytest.mark.parametrize(("by", "code"), [(1e-10, 0), (1e-6, 1)])
def test_the_tenth_digit_may_be_that_of_another_scipy(folder: Path, by: float, code: int) -> None:
    """A claim whose interval ends differ in the tenth digit holds; further ahead it does not."""
    name = "score-warned"
    path = folder / f"{name}.json"
    document = json.loads((path if path.exists() else claim(name, folder)).read_text(encoding="utf-8"))
    row = next(r for r in document["estimates"] if r["high"] is not None)
    row["high"] = round(row["high"] + by, 10)
    other = digest_of(Results.from_dict(sealed(document)).estimates)
    document["signature"] = re.sub(r"out:\w+", f"out:{other}", document["signature"])
    (folder / "edited.json").write_text(json.dumps(sealed(document)), encoding="utf-8")
    assert f"out:{other}" in document["signature"]
    found, text = said(["verify", "edited.json", *verify_words(name)], folder)
    assert found == code, text
    document["signature"] = re.sub(r"out:\w+", "out:0123456789abcdef", document["signature"])
    (folder / "edited.json").write_text(json.dumps(sealed(document)), encoding="utf-8")
    assert said(["verify", "edited.json", *verify_words(name)], folder)[0] == 1


ASIDE: dict[str, Edit] = {
    "confusion": lambda d: edit_first(d["confusion"][0]),
    "confusions removed": lambda d: d["confusion"].clear(),
    "latency": lambda d: d["latency"][0].update(value=0.001),
    "latency removed": lambda d: d["latency"].clear(),
    "spending": lambda d: d["spending"].append({**d["latency"][0], "metric": "cost"}),
    "field added": lambda d: d.update(seal="valid"),
}


def edit_first(row: dict[str, Any]) -> bool:
    """Change the first whole number of a row, wherever it stands."""
    for name, value in row.items():
        if isinstance(value, dict) and edit_first(value):
            return True
        if isinstance(value, int) and not isinstance(value, bool):
            row[name] = value + 7
            return True
    return False


@pytest.mark.parametrize("edit", ASIDE)
def test_the_parts_of_a_triage_are_recomputed_too(folder: Path, edit: str) -> None:
    name = "triage-one"
    path = folder / f"{name}.json"
    document = json.loads((path if path.exists() else claim(name, folder)).read_text(encoding="utf-8"))
    ASIDE[edit](document)
    (folder / "edited.json").write_text(json.dumps(sealed(document)), encoding="utf-8")
    code, text = said(["verify", "edited.json", *verify_words(name)], folder)
    assert code == 1, text


TANDEM: dict[str, tuple[Edit, str]] = {
    "claimed speakers": (lambda d: d["design"]["protocol"].update(claims_speaker=True), "have no score"),
    "one name for a split": (lambda d: d["design"]["protocol"].update(split={"model": ["a"]}), "a list of 2"),
}


@pytest.mark.parametrize("edit", TANDEM)
def test_rules_of_a_tandem_in_the_claim_of_a_triage_are_refused(folder: Path, edit: str) -> None:
    name = "triage-one"
    path = folder / f"{name}.json"
    document = json.loads((path if path.exists() else claim(name, folder)).read_text(encoding="utf-8"))
    TANDEM[edit][0](document)
    (folder / "edited.json").write_text(json.dumps(sealed(document)), encoding="utf-8")
    code, text = said(["verify", "edited.json", *verify_words(name)], folder)
    assert code == 3 and TANDEM[edit][1] in text, text


@pytest.mark.parametrize("name", ["compare", "score-warned"])
def test_the_json_of_a_verification_holds_what_was_recomputed_and_what_differs(folder: Path, name: str) -> None:
    path = folder / f"{name}.json"
    document = json.loads((path if path.exists() else claim(name, folder)).read_text(encoding="utf-8"))
    table = "differences" if name == "compare" else "estimates"
    answer = answered(folder, path.name, name, 0)
    assert answer["holds"] and answer["differs"] == []
    assert answer[table] == document[table]
    document[table][0]["low"] = -0.5
    (folder / "edited.json").write_text(json.dumps(sealed(document)), encoding="utf-8")
    answer = answered(folder, "edited.json", name, 1)
    assert not answer["holds"] and answer["differs"] and answer[table][0]["low"] != -0.5


def answered(folder: Path, given: str, name: str, code: int) -> dict[str, Any]:
    """What `verify --json` prints of a claim, without what it says on stderr."""
    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out):
        assert run(["verify", given, *verify_words(name), "--json"]) == code
    return json.loads(out.getvalue())  # type: ignore[no-any-return]


def test_a_signature_is_of_calibrated_scores_by_its_choice_and_not_by_a_word(folder: Path) -> None:
    """Rows of a part that is called calibration are no calibrated scores."""
    rows = [f"i{k},{'fake' if k % 3 else 'real'},{k * 7 % 11},{'calibration' if k % 2 else 'test'}" for k in range(40)]
    (folder / "parts.csv").write_text("id,label,score,part\n" + "\n".join(rows) + "\n", encoding="utf-8")
    words = ["score", "parts.csv", "--positive", "fake", "-m", "eer", "--where", "part=calibration", "-o", "part.json"]
    code, text = said(words, folder)
    assert code == 0, text
    signature = json.loads((folder / "part.json").read_text(encoding="utf-8"))["signature"]
    assert "calibration" in signature
    code, text = said(["verify", signature, "parts.csv"], folder)
    assert code == 0, text
    name = "score-affine"
    signature = json.loads(claim(name, folder).read_text(encoding="utf-8"))["signature"]
    code, text = said(["verify", signature, *verify_words(name)], folder)
    assert code == 2 and "calibrated scores" in text, text
    fitted = ["--recalibrate-on", "triage_one.jsonl", "--bootstrap", "0", "-o", "fitted.json"]
    code, text = said(["triage", "triage_one.jsonl", *fitted], folder)
    assert code == 0, text
    signature = json.loads((folder / "fitted.json").read_text(encoding="utf-8"))["signature"]
    code, text = said(["verify", signature, "triage_one.jsonl"], folder)
    assert code == 2 and "calibrated scores" in text, text


CONTESTS: dict[str, Edit] = {
    "verdict of a row": lambda d: rows(d)[0].update(verdict="identical"),
    "p": lambda d: rows(d)[0].update(p_value=1e-9),
    "adjusted p": lambda d: rows(d)[0].update(p_adjusted=1e-9),
    "interval": lambda d: rows(d)[0].update(low=-0.5, high=-0.4),
    "test": lambda d: rows(d)[0].update(test="exact"),
    "wins": lambda d: rows(d)[0].update(wins=10**5),
    "pairs": lambda d: rows(d)[0].update(n_pairs=10**5),
    "detectable": lambda d: rows(d)[0].update(mdd=1e-6),
    "level": lambda d: d.update(level=0.99),
    "correction": lambda d: d.update(correction="none"),
    "field added": lambda d: d.update(reviewed=True),
}


@pytest.mark.parametrize("name", ["compare", "compare-three"])
@pytest.mark.parametrize("edit", CONTESTS)
def test_an_edited_comparison_is_refused(folder: Path, name: str, edit: str) -> None:
    path = folder / f"{name}.json"
    document = json.loads((path if path.exists() else claim(name, folder)).read_text(encoding="utf-8"))
    before = json.dumps(document)
    CONTESTS[edit](document)
    assert json.dumps(document) != before
    (folder / "edited.json").write_text(json.dumps(sealed(document)), encoding="utf-8")
    code, text = said(["verify", "edited.json", *verify_words(name)], folder)
    assert code == 1, text


def test_a_ranking_holds_in_any_order_of_its_files(folder: Path) -> None:
    name = "compare-three"
    made = folder / f"{name}.json"
    made = made if made.exists() else claim(name, folder)
    words = verify_words(name)
    files = [w for w in words if w.startswith("eval_")] or words[
        : next((i for i, w in enumerate(words) if w.startswith("-")), len(words))
    ]
    assert len(files) == 3
    turned = [*files[1:], files[0], *[w for w in words if w not in files]]
    code, text = said(["verify", made.name, *turned], folder)
    assert code == 0, text


def test_what_cannot_be_recomputed_is_named(folder: Path) -> None:
    """A protocol of one's own is stated by the claim alone; a thing that the claim of a stream shows is recomputed."""
    made = claim("score-own-protocol", folder)
    code, text = said(["verify", made.name, *verify_words("score-own-protocol")], folder)
    assert code == 0 and "not recomputed: the rules of the protocol own" in text
    streamed = claim("score-stream", folder)
    code, text = said(["verify", streamed.name, *verify_words("score-stream")], folder)
    assert code == 0 and "not recomputed" not in text
    document = json.loads(streamed.read_text(encoding="utf-8"))
    curve(document, "det")["frr"][3] = 0.001
    (folder / "edited.json").write_text(json.dumps(sealed(document)), encoding="utf-8")
    code, text = said(["verify", "edited.json", *verify_words("score-stream")], folder)
    assert code == 1 and "det curve" in text


@pytest.mark.parametrize("name", ["score-speakers", "score-separator"])
def test_a_printed_signature_holds_for_a_sorted_file_and_says_so(folder: Path, tmp_path: Path, name: str) -> None:
    """The bytes are others; every choice and number comes out as claimed. A changed score does not pass."""
    signature = json.loads(claim(name, folder).read_text(encoding="utf-8"))["signature"]
    words = verify_words(name)
    lines = (folder / words[0]).read_text(encoding="utf-8").splitlines(keepends=True)
    head = 0 if any(c.isdigit() for c in lines[0]) else 1
    place = tmp_path / words[0]
    place.write_text("".join([*lines[:head], *sorted(lines[head:], reverse=True)]), encoding="utf-8")
    code, text = said(["verify", signature, str(place), *words[1:]], folder)
    assert code == 0 and "these files have other bytes" in text, text
    assert "other bytes" not in said(["verify", signature, *words], folder)[1]
    place.write_text("".join([*lines[:head], *lines[head + 3 :]]), encoding="utf-8")
    assert said(["verify", signature, str(place), *words[1:]], folder)[0] != 0


def test_a_printed_signature_against_other_scores_names_the_bytes_first(folder: Path) -> None:
    """The numbers of a signature stand for its rows, so that other numbers mean other files; a results file knows its rows."""
    signature = json.loads(claim("score-speakers", folder).read_text(encoding="utf-8"))["signature"]
    words = verify_words("score-speakers")
    other = ["eval_b.tsv" if word == "eval_a.tsv" else word for word in words]
    assert other != words
    code, text = said(["verify", signature, *other], folder)
    assert code == 1 and "data: claimed " in text, text


OTHERS = (
    "score-seeds", "score-affine", "toxicity", "triage-one", "triage-guarantee", "drift", "attack-scored", "compare", "compare-three",
)  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("edit", ["value", "row", "warnings"])
def test_the_claims_of_every_verb_are_compared_both_ways(folder: Path, name: str, edit: str) -> None:
    path = folder / f"{name}.json"
    document = json.loads((path if path.exists() else claim(name, folder)).read_text(encoding="utf-8"))
    if edit == "value":
        field = "value" if "value" in first(document) else "a"
        first(document)[field] = (first(document)[field] or 0.0) + 1e-6
    elif edit == "row":
        rows(document).pop()
    else:
        document["warnings"] = [*document["warnings"][1:], "nothing to see here"]
    (folder / "edited.json").write_text(json.dumps(sealed(document)), encoding="utf-8")
    code, text = said(["verify", "edited.json", *verify_words(name)], folder)
    assert code == 1, text


@pytest.mark.parametrize("name", ["score-speakers", "compare"])
def test_a_sorted_score_file_verifies_and_a_changed_one_does_not(folder: Path, tmp_path: Path, name: str) -> None:
    path = folder / f"{name}.json"
    made = path if path.exists() else claim(name, folder)
    words = verify_words(name)
    lines = (folder / "eval_a.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    head = lines[:1] if not any(c.isdigit() for c in lines[0]) else []
    body = sorted(lines[len(head) :], reverse=True)
    (tmp_path / "eval_a.tsv").write_text("".join([*head, *body]), encoding="utf-8")
    again = [str(tmp_path / "eval_a.tsv") if w == "eval_a.tsv" else w for w in words]
    code, text = said(["verify", made.name, *again], folder)
    assert code == 0, text
    last = body[0].split()
    changed = body[0].replace(last[-1], str(float(last[-1]) + 1e-9))
    (tmp_path / "eval_a.tsv").write_text("".join([*head, changed, *body[1:]]), encoding="utf-8")
    code, text = said(["verify", made.name, *again], folder)
    assert code == 1 and "data: claimed rows" in text, text


def test_calibrated_claims_ask_for_their_development_files(folder: Path) -> None:
    made = claim("score-affine", folder)
    code, text = said(["verify", made.name, "eval_a.tsv", "--key", "eval.key"], folder)
    assert code == 2 and "--calibrate-on" in text


def test_a_file_that_does_not_say_what_was_asked_is_no_claim(folder: Path) -> None:
    """Its words could not be recomputed, so an edited warning would pass; its signature alone is still a claim."""
    document = json.loads(claim("score-speakers", folder).read_text(encoding="utf-8"))
    old = {k: v for k, v in document.items() if k in ("schema", "signature", "protocol", "warnings", "estimates")}
    (folder / "old.json").write_text(json.dumps(old), encoding="utf-8")
    code, text = said(["verify", "old.json", *verify_words("score-speakers")], folder)
    assert code == 3 and "carries no digest" in text
    (folder / "old.json").write_text(json.dumps(sealed(old)), encoding="utf-8")
    code, text = said(["verify", "old.json", *verify_words("score-speakers")], folder)
    assert code == 3 and "does not state what was asked" in text
    code, text = said(["verify", document["signature"], *verify_words("score-speakers")], folder)
    assert code == 0, text


def test_shorter_digests_of_older_versions_are_read_and_no_shorter_ones(folder: Path) -> None:
    """Signatures had 12 hex digits of a digest, and have 16."""
    signature = Results.load(claim("score-separator", folder)).signature
    parts = read_signature(signature)
    assert len(parts["data"]) == len(parts["out"]) == 16
    for digits, code in ((12, 0), (11, 1)):
        old = signature
        for name in ("data", "out"):
            old = old.replace(f"{name}:{parts[name]}", f"{name}:{parts[name][:digits]}")
        assert said(["verify", old, *verify_words("score-separator")], folder)[0] == code
    other = signature.replace(parts["out"], f"0123{parts['out'][4:]}")
    assert said(["verify", other, *verify_words("score-separator")], folder)[0] == 1


def test_signatures_escape_what_users_write_and_have_a_short_form(folder: Path) -> None:
    results = Results.load(claim("score-pipe", folder))
    assert read_signature(results.signature)["pos"] == "fa|ke"
    assert len(results.short_signature) <= 60
    other = results.signature.replace("metrics:eer", "metrics:roc_auc")
    assert short(other) != results.short_signature
    old = "hitmiss:0.1.0|protocol:asvspoof5|metrics:eer(ties=official)|pos:bonafide|n:5/3|out:abc"
    assert read_signature(old)["metrics"] == "eer(ties=official)"


def test_a_number_beyond_every_float_is_a_difference(folder: Path) -> None:
    document = json.loads(claim("score-separator", folder).read_text(encoding="utf-8"))
    document["estimates"][0]["n"] = 10**400
    (folder / "huge.json").write_text(json.dumps(sealed(document)), encoding="utf-8")
    code, text = said(["verify", "huge.json", *verify_words("score-separator")], folder)
    assert code in (1, 3) and "bug" not in text
