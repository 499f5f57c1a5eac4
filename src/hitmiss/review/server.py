"""The review as a web application: pages, sessions, forms and the socket."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from hitmiss.core.errors import DataError, EnvironmentFault, UsageError
from hitmiss.core.text import escape_controls, escape_invisible
from hitmiss.review import drawing, store
from hitmiss.review.drawing import waveform
from hitmiss.review.guard import MEDIA_POLICY, App, Guard, Hosts, is_loopback
from hitmiss.review.items import AUDIO, ECG, IMAGE, TEXT, Library
from hitmiss.review.store import (
    LEASE_SECONDS,
    LONGEST_NOTE,
    NEGATIVE,
    POSITIVE,
    UNSURE,
    VERDICTS,
    Item,
    Queue,
    Reviewer,
    Store,
)
from hitmiss.review.summary import own_progress, summarise

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup
    from starlette.requests import Request
    from starlette.responses import Response


# ----------------------------------------------------------------------
# The look of the review: templates in which every text is escaped, the style, the script, and the error pages.

TEMPLATES: Final = Path(__file__).parent / "templates"
ASSETS: Final = {"review.css": "text/css", "review.js": "text/javascript"}
SORRY: Final = {
    400: "That was not a valid request.",
    403: "This form is out of date. Go back, load the page again and repeat what you did; nothing was lost.",
    404: "There is nothing here.",
    413: "That was too long.",
    503: "Your verdict was NOT saved: the review file cannot be written now (is the disk full?). Nothing that was saved before is lost. Try again.",
}


def page(name: str, **values: object) -> str:
    """Fill in a template."""
    return environment().get_template(name).render(**values)


def sorry(status: int) -> str:
    """Return a page with a sentence about what went wrong."""
    return page("sorry.html", who=None, text=SORRY.get(status, SORRY[400]))


def asset(name: str) -> str:
    """Return the style or the script."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Create the templates: every text is escaped and invisible characters are shown, except in judged texts."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_seen,
    )
    made.filters["verbatim"] = _as_is
    return made


def _as_is(text: str) -> Markup:
    """Return a text that people judge: every character of it, with markup escaped."""
    from markupsafe import escape

    return escape(escape_controls(text))


def _seen(value: object) -> object:
    return escape_invisible(value, keep="\n\t") if isinstance(value, str) and not hasattr(value, "__html__") else value


# ----------------------------------------------------------------------
# Identifying a browser: a signed cookie, a token against forged forms, and the token for remote use.

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
        raise DataError(f"{path.name}: a token is one line of at least {SHORTEST_TOKEN} plain letters and digits")
    return token


# ----------------------------------------------------------------------
# The answer of each address of the review. Pages work without scripts; the script adds the keyboard keys.


@dataclass(frozen=True)
class Visit:
    """A request: the session of the browser, who has signed in, and the form that was sent."""

    session: Session
    who: Reviewer | None
    form: Mapping[str, str]
    parts: Mapping[str, str]
    query: Mapping[str, str]
    is_new: bool


class Refused(Exception):
    """A request that is answered with an error message."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Site:
    """The request handlers. Each takes a visit and returns a response; all work on the review is done in threads."""

    def __init__(self, store: Store, queue: Queue, library: Library, sessions: Sessions) -> None:
        self.store, self.queue, self.library, self.sessions = store, queue, library, sessions

    def start(self, visit: Visit) -> Response:
        """Show the sign-in page, or go on to the work if somebody has signed in."""
        if visit.who is not None:
            return go("/adjudicate" if visit.who.is_adjudicator else "/review")
        return self._page(visit, "start.html", needs_token=self.sessions.needs_token, wrong=visit.query.get("wrong"))

    def sign_in(self, visit: Visit) -> Response:
        """Sign in with a name (and the token); the session gets a new id, so that older ids become useless."""
        if not self.sessions.is_token(visit.form.get("token", "")):
            return go("/?wrong=token")
        try:
            who = self.store.sign_in(visit.form.get("name", ""), time.time())
        except UsageError:
            return go("/?wrong=name")
        return self._with_cookie(go("/"), self.sessions.fresh(who.id))

    def leave(self, visit: Visit) -> Response:
        """Sign out; the item that was held returns to the queue."""
        if visit.who is not None:
            self.queue.leave(visit.who)
        return self._with_cookie(go("/"), self.sessions.fresh())

    def review(self, visit: Visit) -> Response:
        """Show the next item, or say that there is no further item."""
        who = _reviewer(visit)
        item = self.queue.take(who)
        last, done = self.queue.last(who), own_progress(self.store, who.id)
        wanted = self.store.n_items * self.store.per_item
        about: dict[str, object] = {"last": last, "own": done[0], "all": done[1], "wanted": wanted}
        if item is None:
            return self._page(visit, "done.html", is_done=done[1] >= wanted, **about)
        note = self.queue.undone_note(who, item)
        return self._page(visit, "item.html", saved=visit.query.get("saved"), note=note, **self._shown(item), **about)

    def verdict(self, visit: Visit) -> Response:
        """Store a verdict, then go to the next item."""
        who, form = _reviewer(visit), visit.form
        if form.get("verdict") not in VERDICTS:
            raise Refused(400)
        outcome = self.queue.judge(who, form.get("item", ""), form["verdict"], note=_note(form), seconds=_seconds(form))
        if outcome == "unknown":
            raise Refused(404)
        return go("/review?saved=taken" if outcome == "taken" else "/review?saved=1")

    def undo(self, visit: Visit) -> Response:
        """Take the last verdict back."""
        self.queue.undo(_reviewer(visit))
        return go("/review?saved=undone")

    def progress(self, visit: Visit) -> Response:
        """Show the progress."""
        _somebody(visit)
        return self._page(visit, "progress.html", summary=summarise(self.store))

    def media(self, visit: Visit) -> Response:
        """Return the picture or the sound of an item. This is the only way to a file."""
        from starlette.responses import FileResponse

        _somebody(visit)
        item = self.store.item(visit.parts["key"])
        if item is None or item.kind not in (IMAGE, AUDIO):
            raise Refused(404)
        file = self.library.file(item.source)
        headers = {"content-security-policy": MEDIA_POLICY, "content-disposition": "inline"}
        return FileResponse(file.path, media_type=file.mime, headers=headers)

    def disputes(self, visit: Visit) -> Response:
        """List the items on which people disagree."""
        _adjudicator(visit)
        found = store.disputes(self.store)
        return self._page(visit, "disputes.html", disputes=found, open=[d for d in found if d.decision is None])

    def dispute(self, visit: Visit) -> Response:
        """Show one item on which people disagree."""
        _adjudicator(visit)
        found = store.find_dispute(self.store, visit.parts["key"])
        if found is None:
            raise Refused(404)
        return self._page(visit, "dispute.html", dispute=found, **self._shown(found.item))

    def decide(self, visit: Visit) -> Response:
        """Settle a dispute, then go to the next open one."""
        who, form = _adjudicator(visit), visit.form
        if form.get("verdict") not in VERDICTS:
            raise Refused(400)
        key, note, seconds = form.get("item", ""), _note(form), _seconds(form)
        outcome = store.decide(self.store, who, key, form["verdict"], note=note, seconds=seconds, now=time.time())
        if outcome == "unknown":
            raise Refused(404)
        following = next((d for d in store.disputes(self.store) if d.decision is None), None)
        return go(f"/adjudicate/{following.item.key}" if following else "/adjudicate")

    def reopen(self, visit: Visit) -> Response:
        """Take a decision back."""
        key = visit.form.get("item", "")
        was_decided = store.reopen(self.store, _adjudicator(visit), key, time.time())
        return go(f"/adjudicate/{key}" if was_decided else "/adjudicate")

    def asset(self, visit: Visit) -> Response:
        """Return the style or the script, by name."""
        from starlette.responses import Response

        name = visit.parts["name"]
        if name not in ASSETS:
            raise Refused(404)
        return Response(asset(name), media_type=ASSETS[name])

    def icon(self, _: Visit) -> Response:
        """Answer that there is no icon."""
        from starlette.responses import Response

        return Response(status_code=204)

    def _shown(self, item: Item) -> dict[str, object]:
        """Return what the page needs to show an item. If its file is gone, its place is empty and people can go on."""
        from markupsafe import Markup

        shown: dict[str, object] = {"item": item, "text": item.source if item.kind == TEXT else "", "drawing": ""}
        try:
            shown["drawing"] = Markup(self._drawn(item))  # lines made here; names in them are escaped
        except (DataError, OSError):
            shown["broken"] = True
        return {"broken": False, **shown}

    def _drawn(self, item: Item) -> str:
        if item.kind == ECG:
            return drawing.draw_ecg(self.library.ecg(item.source))
        return waveform(self.library.file(item.source).path) if item.kind == AUDIO else ""

    def _page(self, visit: Visit, name: str, **values: object) -> Response:
        from starlette.responses import HTMLResponse

        config = self.store.config
        words = {POSITIVE: config["positive"], NEGATIVE: config["negative"], UNSURE: "cannot tell"}
        common = {
            "who": visit.who,
            "form_token": self.sessions.form_token(visit.session),
            "words": words,
            "verdicts": VERDICTS,
            "config": config,
        }
        response = HTMLResponse(page(name, **common, **values))
        return self._with_cookie(response, visit.session) if visit.is_new else response

    def _with_cookie(self, response: Response, session: Session) -> Response:
        response.set_cookie(
            self.sessions.cookie_name, self.sessions.cookie(session), httponly=True, samesite="strict", path="/"
        )
        return response


def go(where: str) -> Response:
    """Redirect to another page."""
    from starlette.responses import RedirectResponse

    return RedirectResponse(where, status_code=303)


def _reviewer(visit: Visit) -> Reviewer:
    who = _somebody(visit)
    if who.is_adjudicator:
        raise Refused(404)
    return who


def _adjudicator(visit: Visit) -> Reviewer:
    who = _somebody(visit)
    if not who.is_adjudicator:
        raise Refused(404)
    return who


def _somebody(visit: Visit) -> Reviewer:
    if visit.who is None:
        raise Refused(401)
    return visit.who


def _note(form: Mapping[str, str]) -> str:
    note = form.get("note", "").replace("\r\n", "\n").strip()
    if len(note) > LONGEST_NOTE:
        raise Refused(413)
    return note


def _seconds(form: Mapping[str, str]) -> float | None:
    """Return the seconds that the script counted; None if it did not run or sent an impossible value."""
    try:
        seconds = float(form.get("seconds", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < 86_400 else None


# ----------------------------------------------------------------------
# The review as an ASGI application: addresses, sessions and forms, behind the guard.

MOST_BODY: Final = 64 * 1024
MOST_FIELDS: Final = 20


def application(store: Store, library: Library, sessions: Sessions, hosts: Hosts, queue: Queue | None = None) -> App:
    """Return the whole site behind its guard, as an ASGI application."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    site = Site(store, queue or Queue(store), library, sessions)
    reads = {
        "/": site.start, "/review": site.review, "/progress": site.progress, "/media/{key}": site.media,
        "/adjudicate": site.disputes, "/adjudicate/{key}": site.dispute, "/assets/{name}": site.asset,
        "/favicon.ico": site.icon,
    }  # fmt: skip
    writes = {
        "/sign-in": site.sign_in, "/leave": site.leave, "/verdict": site.verdict, "/undo": site.undo,
        "/decide": site.decide, "/reopen": site.reopen,
    }  # fmt: skip
    routes = [Route(path, _endpoint(site, handler), methods=["GET"]) for path, handler in reads.items()]
    routes += [Route(path, _endpoint(site, handler), methods=["POST"]) for path, handler in writes.items()]

    async def nothing(_: Request, __: Exception) -> Response:
        return _sorry(404)

    return Guard(Starlette(routes=routes, exception_handlers={404: nothing}), hosts)


def _endpoint(site: Site, handler: Callable[[Visit], Response]) -> Callable[[Request], Awaitable[Response]]:
    from starlette.concurrency import run_in_threadpool

    async def endpoint(request: Request) -> Response:
        try:
            form = await _form(request) if request.method == "POST" else {}
            return await run_in_threadpool(_answered, site, handler, request, form)
        except Refused as refused:
            return go("/") if refused.status == 401 else _sorry(refused.status)
        except EnvironmentFault:
            return _sorry(503)
        except (DataError, OSError):
            return _sorry(404)

    return endpoint


def _answered(site: Site, handler: Callable[[Visit], Response], request: Request, form: Mapping[str, str]) -> Response:
    sessions = site.sessions
    known = sessions.read(request.cookies.get(sessions.cookie_name))
    if request.method == "POST" and (known is None or not sessions.is_form_token(known, form.get("form_token", ""))):
        raise Refused(403)
    session = known or sessions.fresh()
    who = site.store.reviewer(session.reviewer) if session.reviewer is not None else None
    visit = Visit(session, who, form, request.path_params, request.query_params, known is None)
    return handler(visit)


async def _form(request: Request) -> dict[str, str]:
    """Read the fields of a form; a form that is too long is refused before it is read to the end."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY:
            raise Refused(413)
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:
        raise Refused(400) from None
    return dict(pairs)


def _sorry(status: int) -> Response:
    from starlette.responses import HTMLResponse

    return HTMLResponse(sorry(status), status_code=status)


# ----------------------------------------------------------------------
# The site on a socket: bound first, so that the address is known and reserved, then served until it is stopped.


def serve(
    store: Store,
    library: Library,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    allow_remote: bool = False,
    names: tuple[str, ...] = (),
    token_file: Path | None = None,
    lease_seconds: float = LEASE_SECONDS,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve a review until interrupted. `ready` is called with the address once it can be opened."""
    if not is_loopback(host) and not allow_remote:
        raise UsageError(f"{host} can be reached from other machines; that needs --allow-remote, and a token")
    uvicorn, _ = _need("uvicorn"), _need("starlette")
    # an extra host name means that others connect, for example through a proxy: they need the token too
    token = token_of(token_file or store.path.with_suffix(".token")) if allow_remote or token_file or names else None
    with _bound(host, port) as listener:
        taken = listener.getsockname()[1]

        hosts = Hosts(taken, tuple(n.lower() for n in names), allow_remote)
        sessions = Sessions(store.meta("secret"), token)
        app = application(store, library, sessions, hosts, Queue(store, lease_seconds))
        config = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            server_header=False,
            lifespan="off",
            proxy_headers=False,
            ws="none",
        )
        shown = f"[{host}]" if ":" in host else host
        ready(f"http://{shown}:{taken}/")
        uvicorn.Server(config).run(sockets=[listener])


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise EnvironmentFault(
            f"cannot listen on {host} port {port}: {error.strerror or error}; try --port 0"
        ) from None
    listener.listen(128)
    return listener


def _need(package: str) -> ModuleType:
    try:
        return import_module(package)
    except ImportError:
        raise EnvironmentFault(f"the page needs the package {package!r}: pip install 'hitmiss[review]'") from None
