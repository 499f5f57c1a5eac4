"""What `cluster` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "lost-cluster": Entry(
        ERROR,
        "the head of the cluster, {place}:{place_2}, takes no connections",
        fix="start it again and give the same command (after `detect` with {--resume})",
    ),
    "workers-died": Entry(
        ERROR, "{what}: {RETRIES} processes died over it ({error}); each needs the memory of one shard"
    ),
    "bad-cluster-address": Entry(ERROR, "{--cluster?} is auto, HOST:PORT or ray://HOST:PORT; found {address!r}"),
    "no-cluster": Entry(
        ERROR,
        "nothing answers at {host}:{port} ({strerror})",
        fix="start a cluster there with `ray start --head`, or say {--cluster auto} for one on this machine",
    ),
    "cluster-not-joined": Entry(
        ERROR,
        "the cluster at {address} cannot be joined: {first}",
        fix="all machines need one version of Python and ray, and RAY_AUTH_TOKEN here must be the cluster's",
    ),
    "cluster-version": Entry(
        ERROR, "a machine of the cluster has hitmiss {version}, this one {version_2}", fix="install one version on all"
    ),
    "cluster-lacks": Entry(
        ERROR, "a machine of the cluster lacks what the work needs: {error}", fix="install it on all of them"
    ),
    "unseen-file": Entry(
        ERROR,
        "a machine of the cluster does not see the file {file}",
        fix="put the files where every machine finds them under the same path",
    ),
}
