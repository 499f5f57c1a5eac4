"""Identifying a browser: a signed cookie, a token against forged forms, and the token for remote use."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hitmiss.core.errors import DataError

SHORTEST_TOKEN: Final = 16


@dataclass(frozen=True)
class Session:
    """A browser session, and the reviewer who signed in (None: not signed in yet)."""

    id: str
    reviewer: int | None = None


class Sessions:
    """Creates and checks cookies and tokens. All comparisons take constant time."""

    def __init__(self, secret: str, token: str | None = None) -> None:
        self._token = token
        # a new token invalidates the cookies that were issued under the old one
        self._key = hmac.digest(secret.encode(), (token or "").encode(), "sha256")
        self.cookie_name = f"review_{hashlib.sha256(secret.encode()).hexdigest()[:8]}"

    @property
    def needs_token(self) -> bool:
        """Say whether signing in needs a token."""
        return self._token is not None

    def fresh(self, reviewer: int | None = None) -> Session:
        """Create a new session."""
        return Session(secrets.token_urlsafe(16), reviewer)

    def cookie(self, session: Session) -> str:
        """Return the cookie that the browser stores."""
        text = f"{session.id}.{session.reviewer or 0}"
        return f"{text}.{self._sign('cookie', text)}"

    def read(self, cookie: str | None) -> Session | None:
        """Return the session of a cookie; None if this server did not issue it."""
        text, _, seal = (cookie or "").rpartition(".")
        if not text or not hmac.compare_digest(seal.encode("utf-8", "replace"), self._sign("cookie", text).encode()):
            return None
        name, _, reviewer = text.rpartition(".")
        return Session(name, int(reviewer) or None)

    def form_token(self, session: Session) -> str:
        """Return the token that every form of this session carries."""
        return self._sign("form", session.id)

    def is_form_token(self, session: Session, given: str) -> bool:
        """Say whether a form carries the token of its session."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.form_token(session).encode())

    def is_token(self, given: str) -> bool:
        """Say whether this is the token for remote use."""
        return self._token is None or hmac.compare_digest(
            given.strip().encode("utf-8", "replace"), self._token.encode()
        )

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose}\x1f{text}".encode("utf-8", "replace"), "sha256").hexdigest()


def token_of(path: Path) -> str:
    """Read the token from a file that only its owner can read; if it does not exist, create it with a new token."""
    if not path.exists():
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:  # noqa: PTH123
            file.write(secrets.token_urlsafe(24) + "\n")
    token = path.read_text(encoding="utf-8").strip()
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise DataError.of("bad-token", path_name=path.name, SHORTEST_TOKEN=SHORTEST_TOKEN)
    return token
