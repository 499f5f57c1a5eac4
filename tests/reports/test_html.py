"""The report as a file: whole, deterministic, without anything that a name could make it do."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.reports.hostile import HOSTILE, hostile_trials

import hitmiss as hm
from hitmiss.core.design import Design
from hitmiss.core.errors import UsageError
from hitmiss.core.header import Header
from hitmiss.core.report_spec import ReportSpec
from hitmiss.core.text import escape_invisible
from hitmiss.core.trials import Trials, stack
from hitmiss.reports.evaluations import RunData, evaluations
from hitmiss.reports.html import render, write_report
from hitmiss.reports.page import Page, compose
from hitmiss.reports.pictures import pictures
from hitmiss.reports.sources import Measuring, measured

METRICS = ("eer", "min_dcf", "act_dcf", "roc_auc", "accuracy", "ece", "aurc")


class Seen(HTMLParser):
    """Every tag with its attributes, and the text of scripts, styles and everything else."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": [], "": []}
        self._at = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._at = tag if tag in ("script", "style") else ""

    def handle_endtag(self, tag: str) -> None:
        self._at = "" if self._at == tag else self._at

    def handle_data(self, data: str) -> None:
        self.inside[self._at].append(data)

    @property
    def text(self) -> str:
        return "".join(self.inside[""])


@pytest.fixture(scope="module")
def hostile() -> RunData:
    measuring = Measuring(Design.of(METRICS, by=("codec", "<i>codec</i>", "codec,codec_q"), bootstrap=20))
    return measured(hostile_trials(), HOSTILE[1], measuring)


@pytest.fixture(scope="module")
def page(hostile: RunData) -> str:
    return render(compose([hostile], ReportSpec(title=HOSTILE[3])))


@pytest.fixture(scope="module")
def both(hostile: RunData) -> Page:
    return compose([hostile, replace(hostile, name="b")], ReportSpec(title=HOSTILE[3]))


@pytest.mark.parametrize("static", [False, True])
def test_names_are_text_and_nothing_else(both: Page, static: bool) -> None:
    made = render(both, static=static)
    seen = Seen(made)
    known = {
        "html", "head", "meta", "title", "link", "style", "body", "a", "header", "div", "button", "nav", "ul", "li", "main", "h1", "h2",
        "h3", "h4", "section", "p", "b", "ol", "span", "table", "caption", "thead", "tbody", "tr", "th", "td", "small", "svg", "path",
        "circle", "figure", "figcaption", "noscript", "details", "summary", "i", "dl", "dt", "dd", "code", "footer", "script", "br",
        "img", "bdi", "g", "text", "rect", "clippath", "input", "label", "output", "fieldset", "legend", "select", "option",
    }  # fmt: skip
    assert {tag for tag, _ in seen.tags} <= known
    for tag, attributes in seen.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], (tag, attributes)
        for name in ("href", "src"):
            address = attributes.get(name) or "#"
            assert address.startswith(("#", "data:image/svg+xml;base64,", "data:,")), address
    for word in HOSTILE:
        shown = escape_invisible(word, keep="\n")
        assert shown.splitlines()[0][:20] in seen.text.replace("\n", " ") or shown[:20] in seen.text, word
    assert "\x1b" not in seen.text and "\x00" not in seen.text
    assert "\u202e" not in re.sub(r"<bdi>.*?</bdi>", "", made, flags=re.DOTALL), (
        "an item's text keeps its order to itself"
    )
    assert "49" not in re.findall(r"\{\{ 7\*7 \}\}|49\{", seen.text)


def test_the_policy_names_the_very_scripts_and_styles(page: str) -> None:
    seen = Seen(page)
    policy = next(a["content"] or "" for t, a in seen.tags if t == "meta" and a.get("http-equiv"))
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    run = [
        text
        for (_, a), text in zip([t for t in seen.tags if t[0] == "script"], seen.inside["script"], strict=True)
        if "type" not in a
    ]
    (script,), (style,) = run, seen.inside["style"]

    def digest(content: bytes) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}'"

    assert rules["script-src"].split() == [digest(script.encode())]
    assert rules["style-src"].split() == [digest(style.encode())]
    assert "unsafe" not in policy and "http" not in policy.replace("http-equiv", "")


def test_figures_are_inside_the_page_with_escaped_names(page: str) -> None:
    """Drawn before any script runs: what a browser without scripts and a printer see is the figure itself."""
    kinds = re.findall(r'<figure [^>]*data-kind="(\w+)"', page)
    assert set(kinds) == {"det", "roc", "pr", "histogram", "bayes_error", "tippett", "reliability", "risk_coverage"}
    figures = re.findall(r'<svg class="plate".*?</svg>', page, re.DOTALL)
    assert len(figures) == len(kinds) + len(re.findall("data-slice=", page))
    for figure in figures:
        root = ElementTree.fromstring(figure)  # well formed, whatever the names are
        assert {element.tag for element in root.iter()} <= {"svg", "g", "path", "text", "title", "rect", "clipPath"}
        assert not [name for element in root.iter() for name in element.attrib if name.startswith("on")]
    assert any("&lt;script&gt;" in figure for figure in figures)


def test_the_numbers_are_there_without_scripts(page: str) -> None:
    plain = Seen(page).text
    for words in (
        "miss rate",
        "false-alarm rate",
        "AUC",
        "average precision",
        "by the prior alone",
        "stated",
        "likelihood ratio at least",
    ):
        assert words in plain


def test_static_pages_have_no_script(hostile: RunData) -> None:
    static = render(compose([hostile]), static=True)
    assert "<script" not in static and "script-src 'none'" in static.replace("&#39;", "'")
    assert len(re.findall("data-kind=", static)) == 8
    assert static.count('<svg class="plate"') == 8 + static.count("data-slice=")


def test_the_same_runs_give_the_same_bytes(hostile: RunData, tmp_path: Path) -> None:
    sizes = [write_report([hostile], tmp_path / f"{i}.html", ReportSpec()) for i in (0, 1)]
    assert sizes[0] == (tmp_path / "0.html").stat().st_size < 1_000_000
    assert (tmp_path / "0.html").read_bytes() == (tmp_path / "1.html").read_bytes()


def secret_trials() -> Trials:
    rng = np.random.default_rng(0)
    label = np.arange(400) % 2
    text = [f"private {i} " + "x" * 3000 for i in range(400)]
    return Trials.of(
        label, rng.normal(size=400) + label, item=[f"ID{i:04d}" for i in range(400)], text=text, codec=["a", "b"] * 200
    )


@pytest.mark.parametrize(
    ("options", "ids", "texts"),
    [
        (ReportSpec(), True, True),
        (ReportSpec(redact_text=True), True, False),
        (ReportSpec(no_samples=True), False, False),
    ],
)
def test_samples_are_shown_only_as_asked(options: ReportSpec, ids: bool, texts: bool) -> None:
    made = render(compose([measured(secret_trials(), "run", Measuring(Design.of(["eer"], by="codec")))], options))
    assert bool(re.search(r"ID\d{4}", made)) == ids and ("private " in made) == texts
    assert ("ids of wrongly answered trials" in made) == ids
    if texts:
        assert "x" * 600 not in made and "3,0" in made  # cut, and said so


def test_the_text_of_an_item_is_shown_as_the_model_got_it() -> None:
    words = (
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467 <b>",
        "\u0915\u094d\u200d\u0937",
    )
    text = [words[i % 3] for i in range(120)]
    trials = Trials.of([i % 2 for i in range(120)], [(i * 7 % 13) / 13 for i in range(120)], text=text)
    made = render(compose([measured(trials, "run", Measuring(Design.of(["eer"])))], ReportSpec()))
    shown = set(map(html.unescape, re.findall(r"<bdi>(.*?)</bdi>", made, re.DOTALL)))
    assert shown and shown <= set(words)


def test_the_budget_of_bytes_holds() -> None:
    data = measured(secret_trials(), "run", Measuring(Design.of(["eer"], by="codec")))
    page = compose([data, replace(data, name="again")], ReportSpec(samples=50, budget=5_000))
    shown = [s for part in page.parts for e in part.section("errors").errors for s in (*e.false_alarms, *e.misses)]
    assert 0 < sum(s.size for s in shown) <= 5_000
    assert sum(e.left_out for part in page.parts for e in part.section("errors").errors) == 100 - len(shown), (
        "each item once"
    )
    assert "did not fit into the budget" in render(page)


def test_nothing_of_the_machine_is_inside(tmp_path: Path) -> None:
    folder = tmp_path / "secret-folder"
    folder.mkdir()
    lines = [f"u{i}\t{'bonafide' if i % 3 else 'spoof'}\t{i % 7 + (i % 3 > 0)}" for i in range(90)]
    (folder / "s.tsv").write_text("utt\tkey\tscore\n" + "\n".join(lines) + "\n")
    trials = hm.read(folder / "s.tsv", positive="bonafide")
    made = render(compose([measured(trials, "s", Measuring(Design.of(["eer"])))]))
    assert "secret-folder" not in made and str(Path.home()) not in made and "s.tsv" in made


def two(shift: float, name: str, n: int = 600) -> RunData:
    rng = np.random.default_rng(1)
    label = np.arange(n) % 3 == 0
    score = rng.normal(size=n) + shift * label
    header = Header("bonafide", "spoof", "llr")
    return measured(
        Trials.of(label, score, header=header), name, Measuring(Design.of(["eer", "roc_auc"], bootstrap=100))
    )


def test_several_runs_stand_side_by_side_and_are_tested() -> None:
    page = compose([two(3.0, "good"), two(0.6, "bad")])
    (part,) = page.parts
    assert [name for name, _ in part.summary.headlines] == ["good", "bad"]
    assert any("good does better than bad" in v for v in part.section("versus").texts)
    det = next(f for f in part.section("curves").figures if f.kind == "det")
    assert [word for _, _, word in det.plate.key] == ["good", "bad"] and part.section("versus").tables
    three = compose([two(3.0, "x"), two(2.9, "y"), two(0.6, "z")])
    assert any("share a letter" in note for note in (t.note for t in three.parts[0].section("versus").tables))


def test_repetitions_of_one_run_are_not_compared() -> None:
    one = two(2.0, "x").trials
    assert one is not None
    seeds = stack({"1": one, "2": one}, "seed")
    data = RunData("x", hm.measure(seeds, ["eer"]), tuple(pictures(seeds)), seeds)
    (part,) = compose([data]).parts
    versus = part.section("versus")
    assert not versus.tables and "repetitions of one run" in versus.texts[0]
    both = stack({"1": one, "2": one}, "system")
    (part,) = compose([RunData("x", hm.measure(both, ["eer"]), (), both)]).parts
    assert part.section("versus").texts[0] == "The two are identical: eer."


def test_results_without_trials_are_not_tested_and_say_so() -> None:
    bare = [replace(two(s, name), trials=None) for s, name in ((3.0, "a"), (0.6, "b"))]
    (part,) = compose(bare).parts
    versus = part.section("versus")
    assert not versus.tables and "nothing was tested" in versus.texts[0]


def test_runs_on_other_trials_are_never_put_side_by_side() -> None:
    found = evaluations([two(3.0, "a"), two(3.0, "b", n=900)])
    assert [len(e.members) for e in found] == [1, 1]
    with pytest.raises(UsageError, match="nothing to report"):
        evaluations([])


def test_reversed_scores_are_the_first_thing_said() -> None:
    data = two(-3.0, "turned")
    found = compose([data]).parts[0].summary.verdict
    assert found.headline.startswith("Worse than chance") and any("REVERSED" in line.text for line in found.checks)
    assert 'class="verdict bad"' in render(compose([data]))


def test_undefined_figures_are_dashes_with_a_reason() -> None:
    label, codec = [1, 1, 0, 0, 1, 1], ["a", "a", "a", "a", "b", "b"]
    trials = Trials.of(label, [3.0, 1.0, 2.0, 0.0, 1.0, 2.0], codec=codec)
    data = RunData("r", hm.measure(trials, ["eer"], by=["codec"]), tuple(pictures(trials)), trials)
    made = render(compose([data]))
    assert (
        'title="undefined: only positive here">–</td>' in made.replace("<b>–</b>", "–") or "only positive here" in made
    )


def test_many_slices_and_many_systems_stay_small() -> None:
    """The size of a page is that of its tables and thinned curves, whatever the number of trials."""
    from tests.reports import stories

    label, codec = stories.layout(20_000, 200)
    score = np.random.default_rng(0).normal(size=20_000) + 2 * label
    asked = Measuring(Design.of(["eer", "roc_auc"], by="codec", bootstrap=20))
    one = measured(stories.trials(label, score, codec), "one", asked)
    assert len(render(compose([one])).encode()) <= 500_000
    many = render(compose(stories.systems(30, size=300), compare=Design(bootstrap=50)))
    assert len(many.encode()) <= 1_000_000


def test_a_page_of_several_evaluations_begins_with_an_overview() -> None:
    other = replace(two(2.0, "other", n=300), name="other")
    page = compose([two(3.0, "good"), other])
    assert page.overview is not None and len(page.overview.rows) == len(page.parts) == 2
    text = render(page)
    for part in page.parts:
        assert text.index(part.summary.verdict.headline) < text.index(f'id="{part.id}-summary"')
        assert f'href="#{part.id}-summary"' in text
    assert compose([two(3.0, "good")]).overview is None


def test_one_number_has_one_format_on_a_page() -> None:
    """The rate of the headline is written alike in the tables, the comparison and the titles of figures."""
    page = compose([two(3.0, "good"), two(0.6, "bad")])
    (part,) = page.parts
    for name, head in part.summary.headlines:
        number = head.value.removesuffix("\u00a0%")
        overall = next(row for row in part.section("numbers").tables[0].rows if row[0].text == name)
        assert number in [cell.text for cell in overall]
        compared = part.section("versus").tables[0].rows[0]
        assert head.value in [cell.text for cell in compared]
    best = part.summary.headlines[0][1].value
    det = next(f for f in part.section("curves").figures if f.kind == "det")
    assert best in det.title
