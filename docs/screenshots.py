"""The pictures of the pages, made again: `python docs/screenshots.py [DEMO]` (needs Chromium and playwright).

Runs the small demo into a temporary folder (or takes the one that is named), writes a report of each part of it, and takes a picture of each:
report.png (scores), report_attacks.png (attacks over strength), report_triage.png (verdicts and people) and
report_errors.png (errors that can be heard and filtered).
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
    "report": (["{demo}/asvspoof5_small/results.json"], ""),
    "report_attacks": (["ecg-attacks={demo}/ecg_small/run", "--media", "{demo}/ecg_small"], "#e1-curves"),
    "report_triage": (
        ["triage={demo}/triage_small/results.jsonl", "--human", "{demo}/triage_small/people.jsonl"],
        "#e1-triage",
    ),
    "report_errors": (["deepfake-audio={demo}/voices_small/run", "--media", "{demo}/voices_small"], "#e1-errors"),
}
"""By name: what is reported on, and the part of the page that is shown; without one its beginning."""


def main() -> None:
    """Simulate, report, take the pictures."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        demo = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "demo"
        if not demo.is_dir():
            jobs = [word for name in ("asvspoof5", "voices", "triage", "ecg") for word in ("--only", name)]
            subprocess.run([sys.executable, "-m", "hitmiss", "demo", "--small", *jobs, "-o", str(demo)], check=True)
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, (words, part) in PICTURES.items():
            page = Path(folder) / f"{name}.html"
            asked = [word.format(demo=demo) for word in words]
            command = [sys.executable, "-m", "hitmiss", "report", *asked, "--bootstrap", "200", "-o", str(page)]
            subprocess.run(command, check=True)
            tab = browser.new_page(viewport={"width": 1280, "height": 1000}, reduced_motion="reduce")
            tab.goto(page.as_uri())
            if part:
                tab.locator(part).evaluate("e => e.scrollIntoView({block: 'start', behavior: 'instant'})")
                tab.mouse.wheel(0, -70)  # the heading is not to lie below the bar at the top
                tab.wait_for_timeout(300)
            tab.screenshot(path=DOCS / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
