"""Make the pictures of the pages again: `python docs/screenshots.py [NAME…]` (needs Chromium, playwright and the extra `review`).

Runs the small demo into a temporary folder, writes a report of each part of it, and takes a picture of each: report.png
(the README's file), report_attacks.png (attacks over strength), report_triage.png (verdicts and people), report_errors.png (errors
that can be heard and filtered), report_toxicity.png (languages) and report_ranking.png (submissions to a challenge). review.png
is the page on which people judge, served by `hitmiss review`.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PICTURES = {
    "report": (["{files}/results.json", "--title", "A detector of fake voices", "--name", "voices"], ""),
    "report_attacks": (["ecg-attacks={demo}/ecg_small/run", "--media", "{demo}/ecg_small"], "#e1-curves"),
    "report_triage": (
        ["triage={demo}/triage_small/results.jsonl", "--human", "{demo}/triage_small/people.jsonl"],
        "#e1-triage",
    ),
    "report_errors": (["deepfake-audio={demo}/voices_small/run", "--media", "{demo}/voices_small"], "#e1-errors"),
    "report_toxicity": (["toxicity={files}/output/predictions:baseline"], ""),
    "report_ranking": (["{files}/board.json"], ""),
}
"""Reports by name: what is reported on, and the part of the page that is shown; without one its beginning."""
REVIEW = "review"


def hitmiss(*words: str) -> None:
    """Run a command of hitmiss."""
    subprocess.run([sys.executable, "-m", "hitmiss", *words], check=True)


def simulate(kind: str, jobs: list[str], folder: Path) -> None:
    """Write simulated files, or run the small demo, for these jobs."""
    hitmiss("demo", kind, *(word for job in jobs for word in ("--only", job)), "-o", str(folder))


def measure(files: Path) -> None:
    """Score the README's file and rank the submissions to a challenge."""
    measured = ["--positive", "fake", "-m", "eer", "-m", "roc_auc", "--by", "codec", "--unit", "speaker"]
    hitmiss("score", str(files / "clips.csv"), *measured, "--bootstrap", "1000", "-o", str(files / "results.json"))
    sent = [str(path) for path in sorted((files / "submissions").iterdir())]
    asked = ["--key", str(files / "key.tsv"), "-p", "asvspoof5", "-m", "min_dcf", "-m", "eer", "--unit", "speaker"]
    hitmiss("compare", *sent, *asked, "-o", str(files / "board.json"))


def picture_of_report(browser: Any, page: Path, part: str) -> None:
    """Open a report and take a picture of its beginning, or of a part."""
    tab = browser.new_page(viewport={"width": 1280, "height": 1000}, reduced_motion="reduce")
    tab.goto(page.as_uri())
    tab.wait_for_selector("html[data-ready]")
    if part:
        tab.locator(part).evaluate("e => e.scrollIntoView({block: 'start', behavior: 'instant'})")
        tab.mouse.wheel(0, -70)  # the heading is not to lie below the bar at the top
        tab.wait_for_timeout(300)
    tab.screenshot(path=DOCS / f"{page.stem}.png")


def picture_of_review(browser: Any, folder: Path) -> None:
    """Serve a simulated review, judge one item by keyboard, and take a picture of the next one."""
    simulate("--files", ["review"], folder)
    run = folder / "demo" / "review" / "results.jsonl"
    begun = [sys.executable, "-m", "hitmiss", "review", str(run), "--per-item", "2", "--port", "0"]
    begun += ["--store", str(folder / "new.sqlite")]  # the simulated people have judged everything in the other
    server = subprocess.Popen(begun, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said = next(line for line in server.stdout or () if "http://" in line)
        tab = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        tab.goto(re.findall(r"http://\S+", said)[0])
        tab.keyboard.type("Ann")
        for key in ("Enter", "1"):
            with tab.expect_navigation():
                tab.keyboard.press(key)
            tab.wait_for_selector("html[data-awake]", state="attached")
        tab.keyboard.press("z")  # the simulated pictures are small
        tab.wait_for_timeout(300)
        tab.screenshot(path=DOCS / f"{REVIEW}.png")
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=30)


def main() -> None:
    """Simulate, report, review, take the pictures."""
    from playwright.sync_api import sync_playwright

    names = sys.argv[1:] or [*PICTURES, REVIEW]
    wanted = {name: PICTURES[name] for name in names if name != REVIEW}
    used = " ".join(word for words, _ in wanted.values() for word in words)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        demo, files = Path(folder) / "demo", Path(folder) / "files"
        if "{demo}" in used:
            simulate("--small", ["voices", "triage", "ecg"], demo)
        if "{files}" in used:
            simulate("--files", ["clips", "asvspoof5", "toxicity"], files)
            measure(files)
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, (words, part) in wanted.items():
            page = Path(folder) / f"{name}.html"
            asked = [word.format(demo=demo, files=files) for word in words]
            hitmiss("report", *asked, "--bootstrap", "200", "-o", str(page))
            picture_of_report(browser, page, part)
        if REVIEW in names:
            picture_of_review(browser, Path(folder) / REVIEW)
        browser.close()


if __name__ == "__main__":
    main()
