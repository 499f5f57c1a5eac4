"""The review as an ASGI application: addresses, sessions and forms, behind the guard."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from hitmiss.core.errors import DataError, EnvironmentFault
from hitmiss.review.guard import App, Guard, Hosts
from hitmiss.review.library import Library
from hitmiss.review.queue import Queue
from hitmiss.review.store import Store

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
from hitmiss.review.pages import sorry
from hitmiss.review.sessions import Sessions
from hitmiss.review.site import PageRequest, Refused, Site, go

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


def _endpoint(site: Site, handler: Callable[[PageRequest], Response]) -> Callable[[Request], Awaitable[Response]]:
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


def _answered(
    site: Site, handler: Callable[[PageRequest], Response], request: Request, form: Mapping[str, str]
) -> Response:
    sessions = site.sessions
    known = sessions.read(request.cookies.get(sessions.cookie_name))
    if request.method == "POST" and (known is None or not sessions.is_form_token(known, form.get("form_token", ""))):
        raise Refused(403)
    session = known or sessions.fresh()
    who = site.store.reviewer(session.reviewer) if session.reviewer is not None else None
    visit = PageRequest(session, who, form, request.path_params, request.query_params, known is None)
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
