"""One comment on a pull request of GitHub or a merge request of GitLab: written anew, never a second one.

Where it goes and with which token is read from the environment that both give to their jobs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal
from urllib.error import URLError
from urllib.request import Request, urlopen

from hitmiss.core.errors import EnvironmentFault, UsageError

Host = Literal["github", "gitlab"]
SECONDS: Final = 30
PAGE: Final = 100


def post_comment(text: str, mark: str, host: Host, env: Mapping[str, str] | None = None) -> str:
    """Post a comment, or write the one that holds the same mark anew; and return what was done.

    Raises
    ------
    UsageError
        `no-pull-request`: the environment names no pull request, or no token.
    EnvironmentFault
        `comment-not-posted`: the host did not take it.
    """
    known = os.environ if env is None else env
    address, headers, one = _github(known) if host == "github" else _gitlab(known)
    try:
        old = [c for c in _call("GET", f"{address}?per_page={PAGE}", headers) if mark in str(c.get("body"))]
        if old:
            _call("PATCH" if host == "github" else "PUT", f"{one}/{old[0]['id']}", headers, text)
            return "comment updated"
        _call("POST", address, headers, text)
        return "comment posted"
    except (URLError, OSError, ValueError) as error:
        raise EnvironmentFault.of("comment-not-posted", host=host, why=str(error)) from None


def _github(env: Mapping[str, str]) -> tuple[str, dict[str, str], str]:
    event = Path(env.get("GITHUB_EVENT_PATH", ""))
    held: dict[str, Any] = json.loads(event.read_text(encoding="utf-8")) if event.is_file() else {}
    number = (held.get("pull_request") or held).get("number")
    token, name = env.get("GITHUB_TOKEN"), env.get("GITHUB_REPOSITORY")
    if not (number and token and name):
        raise UsageError.of(
            "no-pull-request", host="github", needs="GITHUB_EVENT_PATH, GITHUB_REPOSITORY, GITHUB_TOKEN"
        )
    root = f"{env.get('GITHUB_API_URL', 'https://api.github.com')}/repos/{name}/issues"
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    return f"{root}/{number}/comments", headers, f"{root}/comments"


def _gitlab(env: Mapping[str, str]) -> tuple[str, dict[str, str], str]:
    number, project = env.get("CI_MERGE_REQUEST_IID"), env.get("CI_PROJECT_ID")
    token, root = env.get("GITLAB_TOKEN"), env.get("CI_API_V4_URL")
    if not (number and project and token and root):
        needs = "CI_API_V4_URL, CI_PROJECT_ID, CI_MERGE_REQUEST_IID, GITLAB_TOKEN"
        raise UsageError.of("no-pull-request", host="gitlab", needs=needs)
    notes = f"{root}/projects/{project}/merge_requests/{number}/notes"
    return notes, {"PRIVATE-TOKEN": token}, notes


def _call(method: str, address: str, headers: Mapping[str, str], text: str | None = None) -> Any:
    body = None if text is None else json.dumps({"body": text}).encode()
    asked = Request(address, body, {**headers, "Content-Type": "application/json"}, method=method)
    with urlopen(asked, timeout=SECONDS) as answer:
        return json.loads(answer.read() or b"null")
