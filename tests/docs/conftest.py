"""What the pages share: the files that their set-up commands write."""

from __future__ import annotations

import contextlib
import io
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hitmiss.cli.main import run

SetUp = Callable[[str, Path], None]


@pytest.fixture(scope="session")
def set_up(tmp_path_factory: pytest.TempPathFactory) -> SetUp:
    """Run a set-up command in an empty folder; a page with the same command gets a copy of what it wrote."""
    made: dict[str, Path] = {}

    def in_folder(command: str, folder: Path) -> None:
        if command not in made:
            made[command] = tmp_path_factory.mktemp("setup")
            with contextlib.chdir(made[command]), contextlib.redirect_stdout(io.StringIO()):
                assert run(shlex.split(command)) == 0, command
        shutil.copytree(made[command], folder, dirs_exist_ok=True)

    return in_folder
