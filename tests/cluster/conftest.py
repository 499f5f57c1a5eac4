"""One real Ray cluster for the tests of this folder, and what they and its worker processes can import."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitmiss.cluster.ray import Cluster, joined

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "detection")]
from ray_nodes import Nodes  # noqa: E402  # found by the line above


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster of this machine's cores, in processes of their own."""
    pytest.importorskip("ray")
    with joined("auto") as found:
        yield found


@pytest.fixture(scope="session")
def started_nodes() -> Iterator[Nodes]:
    """What `nodes` are kept in from test to test: starting them takes some seconds."""
    pytest.importorskip("ray")
    found = Nodes()
    yield found
    found.stop()


@pytest.fixture
def nodes(started_nodes: Nodes) -> Nodes:
    """A cluster of a head and two further nodes, all alive."""
    return started_nodes.make_whole()
