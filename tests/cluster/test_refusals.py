"""What a cluster that lets nobody in, or whose processes die, is told as: one sentence with its code."""

from __future__ import annotations

import os
import signal
import socket
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from detect_parts import two_logits
from tests.findings.producing import assert_produces

from hitmiss.cluster.ray import Cluster, joined
from hitmiss.detection.cluster import RayDetector
from hitmiss.detection.detector import as_detector

pytestmark = pytest.mark.extras


def dying(*_: Any) -> Any:
    """No process survives this."""
    os._exit(1)


def test_processes_that_die_while_they_open_the_detector(cluster: Cluster, tmp_path: Path) -> None:
    fleet = RayDetector(cluster, dying, actors=1)
    assert_produces("cluster-cannot-open", fleet.__enter__, tmp_path)


def test_a_process_that_is_killed_between_two_questions(cluster: Cluster, tmp_path: Path) -> None:
    def asked() -> object:
        with RayDetector(cluster, partial(as_detector, two_logits, sample_rate=16000), actors=1) as fleet:
            (about,) = (member.about for member in fleet.members)
            assert about is not None
            os.kill(about.pid, signal.SIGKILL)
            return fleet.outputs(np.zeros((1, 16), np.float32))

    assert_produces("workers-died/one", asked, tmp_path)


def test_another_cluster_cannot_be_joined_from_one(cluster: Cluster, tmp_path: Path) -> None:
    """Ray holds one connection in a process."""
    assert cluster.cpus
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert_produces("cluster-not-joined", lambda: joined(address).__enter__(), tmp_path, address)
