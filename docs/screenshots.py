"""The pictures of the pages, made again: `python docs/screenshots.py` (needs Chromium and playwright).

Writes docs/report.png from a report of simulated ASVspoof 5 scores.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def main() -> None:
    """Simulate, report, take the pictures."""
    from playwright.sync_api import sync_playwright

    from hitmiss.simulate.asvspoof5 import write

    with tempfile.TemporaryDirectory() as folder:
        data, page = write(Path(folder) / "data", share=0.02), Path(folder) / "report.html"
        words = ["report", f"{data}/scores_a.tsv", "--key", f"{data}/ASVspoof5.eval.track_1.tsv", "-p", "asvspoof5"]
        words += ["--score-kind", "llr", "--by", "codec", "--bootstrap", "200", "-o", str(page)]
        subprocess.run([sys.executable, "-m", "hitmiss", *words], check=True)
        with sync_playwright() as started:
            browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            tab = browser.new_page(viewport={"width": 1280, "height": 1100})
            tab.goto(page.as_uri())
            tab.screenshot(path=DOCS / "report.png")
            browser.close()


if __name__ == "__main__":
    main()
