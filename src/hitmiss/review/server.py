"""The review as a site: what each address answers. Pages are made here and need no script; the script adds the keys."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from hitmiss.errors import DataError, EnvironmentFault, UsageError
from hitmiss.review import adjudication, ecg
from hitmiss.review.guard import MEDIA_POLICY, App, Guard, Hosts
from hitmiss.review.media import AUDIO, ECG, IMAGE, TEXT, Library
from hitmiss.review.queue import NEGATIVE, POSITIVE, UNSURE, VERDICTS, Queue
from hitmiss.review.sessions import Session, Sessions
from hitmiss.review.store import Item, Reviewer, Store
from hitmiss.review.summary import own_progress, summarise
from hitmiss.review.waveform import waveform
from hitmiss.visible import visible

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES: Final = Path(__file__).parent / "templates"
ASSETS: Final = {"review.css": "text/css", "review.js": "text/javascript"}
MOST_BODY: Final = 64 * 1024
MOST_FIELDS: Final = 20
SORRY: Final = {
    400: "That was no proper request.",
    403: "This form is out of date. Go back, load the page again and repeat what you did; nothing was lost.",
    404: "There is nothing here.",
    413: "That was too long.",
    503: "Your verdict was NOT saved: the review file cannot be written now (is the disk full?). Nothing that was saved before is lost. Try again.",
}


@dataclass(frozen=True)
class Visit:
    """A request: the browser's session, who has signed in, and the form that was sent."""

    session: Session
    who: Reviewer | None
    form: Mapping[str, str]
    parts: Mapping[str, str]
    query: Mapping[str, str]
    is_new: bool


class Refused(Exception):
    """A request that is answered with a sentence."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Site:
    """The handlers. Each takes a visit and gives a response; all work with the review is done in threads."""

    def __init__(self, store: Store, queue: Queue, library: Library, sessions: Sessions) -> None:
        self.store, self.queue, self.library, self.sessions = store, queue, library, sessions

    def start(self, visit: Visit) -> Any:
        """Who are you? Or on to the work."""
        if visit.who is not None:
            return self._go("/adjudicate" if visit.who.is_adjudicator else "/review")
        return self._page(visit, "start.html", needs_token=self.sessions.needs_token, wrong=visit.query.get("wrong"))

    def sign_in(self, visit: Visit) -> Any:
        """Take a name (and the token); the session gets a new id, so that no old one is worth anything."""
        if not self.sessions.is_token(visit.form.get("token", "")):
            return self._go("/?wrong=token")
        try:
            who = self.store.sign_in(visit.form.get("name", ""), time.time())
        except UsageError:
            return self._go("/?wrong=name")
        return self._with_cookie(self._go("/"), self.sessions.fresh(who.id))

    def leave(self, visit: Visit) -> Any:
        """Sign out; what was held goes back to the queue."""
        if visit.who is not None:
            self.queue.leave(visit.who)
        return self._with_cookie(self._go("/"), self.sessions.fresh())

    def review(self, visit: Visit) -> Any:
        """The next item, or that there is none."""
        who = _reviewer(visit)
        item = self.queue.take(who, time.time())
        last, done = self.queue.last(who), own_progress(self.store, who.id)
        about: dict[str, Any] = {
            "last": last,
            "own": done[0],
            "all": done[1],
            "wanted": self.store.n_items * self.store.per_item,
        }
        if item is None:
            return self._page(visit, "done.html", is_done=about["all"] >= about["wanted"], **about)
        return self._page(visit, "item.html", saved=visit.query.get("saved"), **self._shown(item), **about)

    def verdict(self, visit: Visit) -> Any:
        """Take a verdict, then on to the next item."""
        who, form = _reviewer(visit), visit.form
        if form.get("verdict") not in VERDICTS:
            raise Refused(400)
        outcome = self.queue.judge(
            who, form.get("item", ""), form["verdict"], note=_note(form), seconds=_seconds(form), now=time.time()
        )
        if outcome == "unknown":
            raise Refused(404)
        return self._go("/review?saved=taken" if outcome == "taken" else "/review?saved=1")

    def undo(self, visit: Visit) -> Any:
        """Take the last verdict back."""
        self.queue.undo(_reviewer(visit), time.time())
        return self._go("/review?saved=undone")

    def progress(self, visit: Visit) -> Any:
        """How far it is."""
        _somebody(visit)
        return self._page(visit, "progress.html", summary=summarise(self.store))

    def media(self, visit: Visit) -> Any:
        """The picture or the sound of an item. There is no other way to a file."""
        from starlette.responses import FileResponse

        _somebody(visit)
        item = self.store.item(visit.parts["key"])
        if item is None or item.kind not in (IMAGE, AUDIO):
            raise Refused(404)
        file = self.library.file(item.source)
        headers = {"content-security-policy": MEDIA_POLICY, "content-disposition": "inline"}
        return FileResponse(file.path, media_type=file.mime, headers=headers)

    def disputes(self, visit: Visit) -> Any:
        """What people disagree on."""
        _adjudicator(visit)
        found = adjudication.disputes(self.store)
        return self._page(visit, "disputes.html", disputes=found, open=[d for d in found if d.decision is None])

    def dispute(self, visit: Visit) -> Any:
        """One item that people disagree on."""
        _adjudicator(visit)
        found = adjudication.find_dispute(self.store, visit.parts["key"])
        if found is None:
            raise Refused(404)
        return self._page(visit, "dispute.html", dispute=found, **self._shown(found.item))

    def decide(self, visit: Visit) -> Any:
        """Settle a dispute, then on to the next that is open."""
        who, form = _adjudicator(visit), visit.form
        if form.get("verdict") not in VERDICTS:
            raise Refused(400)
        key, said = form.get("item", ""), {"note": _note(form), "seconds": _seconds(form)}
        if adjudication.decide(self.store, who, key, form["verdict"], now=time.time(), **said) == "unknown":  # type: ignore[arg-type]
            raise Refused(404)
        following = next((d for d in adjudication.disputes(self.store) if d.decision is None), None)
        return self._go(f"/adjudicate/{following.item.key}" if following else "/adjudicate")

    def reopen(self, visit: Visit) -> Any:
        """Take a decision back."""
        key = visit.form.get("item", "")
        return self._go(
            f"/adjudicate/{key}"
            if adjudication.reopen(self.store, _adjudicator(visit), key, time.time())
            else "/adjudicate"
        )

    def asset(self, visit: Visit) -> Any:
        """The style and the script, by name."""
        from starlette.responses import Response

        name = visit.parts["name"]
        if name not in ASSETS:
            raise Refused(404)
        return Response((TEMPLATES / name).read_text(encoding="utf-8"), media_type=ASSETS[name])

    def icon(self, _: Visit) -> Any:
        """There is none."""
        from starlette.responses import Response

        return Response(status_code=204)

    def sorry(self, status: int) -> Any:
        """A sentence instead of a page."""
        from starlette.responses import HTMLResponse

        page = (
            environment().get_template("sorry.html").render(who=None, text=SORRY.get(status, SORRY[400]), status=status)
        )
        return HTMLResponse(page, status_code=status)

    def _shown(self, item: Item) -> dict[str, Any]:
        """What the page needs to show an item. A file that is gone leaves its place empty; people may still go on."""
        from markupsafe import Markup

        shown: dict[str, Any] = {"item": item, "text": item.source if item.kind == TEXT else "", "drawing": ""}
        try:
            shown["drawing"] = Markup(self._drawn(item))  # our own lines; names in them are escaped
        except (DataError, OSError):
            shown["broken"] = True
        return {"broken": False, **shown}

    def _drawn(self, item: Item) -> str:
        if item.kind == ECG:
            return ecg.draw(self.library.ecg(item.source))
        return waveform(self.library.file(item.source).path) if item.kind == AUDIO else ""

    def _page(self, visit: Visit, name: str, **values: Any) -> Any:
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
        response = HTMLResponse(environment().get_template(name).render(**common, **values))
        return self._with_cookie(response, visit.session) if visit.is_new else response

    def _go(self, where: str) -> Any:
        from starlette.responses import RedirectResponse

        return RedirectResponse(where, status_code=303)

    def _with_cookie(self, response: Any, session: Session) -> Any:
        response.set_cookie(
            self.sessions.cookie_name, self.sessions.cookie(session), httponly=True, samesite="strict", path="/"
        )
        return response


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
    return form.get("note", "").replace("\r\n", "\n").strip()


def _seconds(form: Mapping[str, str]) -> float | None:
    """What the script counted; nothing where it did not run, or says nonsense."""
    try:
        seconds = float(form.get("seconds", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < 86_400 else None


def application(store: Store, library: Library, sessions: Sessions, hosts: Hosts, queue: Queue | None = None) -> App:
    """The whole site behind its guard, as an ASGI application."""
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

    async def nothing(_: Any, __: Any) -> Any:
        return site.sorry(404)

    return Guard(Starlette(routes=routes, exception_handlers={404: nothing}), hosts)


def _endpoint(site: Site, handler: Callable[[Visit], Any]) -> Callable[[Any], Awaitable[Any]]:
    from starlette.concurrency import run_in_threadpool

    async def endpoint(request: Any) -> Any:
        try:
            form = await _form(request) if request.method == "POST" else {}
            return await run_in_threadpool(_answered, site, handler, request, form)
        except Refused as refused:
            return site._go("/") if refused.status == 401 else site.sorry(refused.status)
        except EnvironmentFault:
            return site.sorry(503)
        except (DataError, OSError):
            return site.sorry(404)

    return endpoint


def _answered(site: Site, handler: Callable[[Visit], Any], request: Any, form: Mapping[str, str]) -> Any:
    sessions = site.sessions
    known = sessions.read(request.cookies.get(sessions.cookie_name))
    if request.method == "POST" and (known is None or not sessions.is_form_token(known, form.get("form_token", ""))):
        raise Refused(403)
    session = known or sessions.fresh()
    who = site.store.reviewer(session.reviewer) if session.reviewer is not None else None
    visit = Visit(session, who, form, request.path_params, request.query_params, known is None)
    return handler(visit)


async def _form(request: Any) -> dict[str, str]:
    """The fields of a form; one that is too long is refused before it is read to the end."""
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


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Templates in which every text is escaped and what cannot be seen is written out."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_seen,
    )


def _seen(value: Any) -> Any:
    return visible(value, keep="\n\t") if isinstance(value, str) and not hasattr(value, "__html__") else value
