"""Make the pictures of the pages again: `python docs/screenshots.py [NAME…]` (needs Chromium and playwright).

Runs the small demo into a temporary folder, writes a report of each part of it, and takes a picture of each: report.png
(the README's file), report_attacks.png (attacks over strength), report_triage.png (verdicts and people), report_errors.png (errors
that can be heard and filtered), report_toxicity.png (languages) and report_ranking.png (submissions to a challenge).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

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
"""By name: what is reported on, and the part of the page that is shown; without one its beginning."""


def hitmiss(*words: str) -> None:
    """Run a command of hitmiss."""
    subprocess.run([sys.executable, "-m", "hitmiss", *words], check=True)


def main() -> None:
    """Simulate, report, take the pictures."""
    from playwright.sync_api import sync_playwright

    wanted = {name: PICTURES[name] for name in sys.argv[1:] or PICTURES}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        demo, files = Path(folder) / "demo", Path(folder) / "files"
        if any("{demo}" in word for words, _ in wanted.values() for word in words):
            jobs = [word for name in ("voices", "triage", "ecg") for word in ("--only", name)]
            hitmiss("demo", "--small", *jobs, "-o", str(demo))
        if any("{files}" in word for words, _ in wanted.values() for word in words):
            hitmiss(
                "demo",
                "--files",
                *(w for n in ("clips", "asvspoof5", "toxicity") for w in ("--only", n)),
                "-o",
                str(files),
            )
            measured = ["--positive", "fake", "-m", "eer", "-m", "roc_auc", "--by", "codec", "--unit", "speaker"]
            hitmiss(
                "score", str(files / "clips.csv"), *measured, "--bootstrap", "1000", "-o", str(files / "results.json")
            )
            sent = [str(path) for path in sorted((files / "submissions").iterdir())]
            asked = [
                "--key",
                str(files / "key.tsv"),
                "-p",
                "asvspoof5",
                "-m",
                "min_dcf",
                "-m",
                "eer",
                "--unit",
                "speaker",
            ]
            hitmiss("compare", *sent, *asked, "-o", str(files / "board.json"))
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, (words, part) in wanted.items():
            page = Path(folder) / f"{name}.html"
            asked = [word.format(demo=demo, files=files) for word in words]
            hitmiss("report", *asked, "--bootstrap", "200", "-o", str(page))
            tab = browser.new_page(viewport={"width": 1280, "height": 1000}, reduced_motion="reduce")
            tab.goto(page.as_uri())
            tab.wait_for_selector("html[data-ready]")
            if part:
                tab.locator(part).evaluate("e => e.scrollIntoView({block: 'start', behavior: 'instant'})")
                tab.mouse.wheel(0, -70)  # the heading is not to lie below the bar at the top
                tab.wait_for_timeout(300)
            tab.screenshot(path=DOCS / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
