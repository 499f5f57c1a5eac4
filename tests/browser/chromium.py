"""Debian's Chromium, driven by Playwright: one place for everything that needs a real browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HAS_SANDBOX = os.geteuid() != 0
"""Chromium has none for root."""
FLAGS = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@contextmanager
def browser() -> Iterator[Any]:
    """A browser of one's own; the test is skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine; apt-get install -y chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; make test-extras")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS), chromium_sandbox=HAS_SANDBOX)
        try:
            yield opened
        finally:
            opened.close()
