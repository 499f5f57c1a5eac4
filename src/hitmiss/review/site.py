"""The answer of each address of the review. Pages work without scripts; the script adds the keyboard keys."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hitmiss.core.errors import DataError, UsageError
from hitmiss.review import disputes, ecg_paper
from hitmiss.review.guard import MEDIA_POLICY
from hitmiss.review.library import AUDIO, ECG, IMAGE, TEXT, Library
from hitmiss.review.queue import LONGEST_NOTE, NEGATIVE, POSITIVE, UNSURE, VERDICTS, Queue
from hitmiss.review.store import Item, Reviewer, Store
from hitmiss.review.summary import own_progress, summarise
from hitmiss.review.waveform import waveform

if TYPE_CHECKING:
    from starlette.responses import Response
from hitmiss.review.pages import ASSETS, asset, page
from hitmiss.review.sessions import Session, Sessions


@dataclass(frozen=True)
class PageRequest:
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
    """The request handlers. Each takes a request and returns a response; all work on the review is done in threads."""

    def __init__(self, store: Store, queue: Queue, library: Library, sessions: Sessions) -> None:
        self.store, self.queue, self.library, self.sessions = store, queue, library, sessions

    def start(self, request: PageRequest) -> Response:
        """Show the sign-in page, or go on to the work if somebody has signed in."""
        if request.who is not None:
            return go("/adjudicate" if request.who.is_adjudicator else "/review")
        return self._page(
            request, "start.html", needs_token=self.sessions.needs_token, wrong=request.query.get("wrong")
        )

    def sign_in(self, request: PageRequest) -> Response:
        """Sign in with a name (and the token); the session gets a new id, so that older ids become useless."""
        if not self.sessions.is_token(request.form.get("token", "")):
            return go("/?wrong=token")
        try:
            who = self.store.sign_in(request.form.get("name", ""), time.time())
        except UsageError:
            return go("/?wrong=name")
        return self._with_cookie(go("/"), self.sessions.fresh(who.id))

    def leave(self, request: PageRequest) -> Response:
        """Sign out; the item that was held returns to the queue."""
        if request.who is not None:
            self.queue.leave(request.who)
        return self._with_cookie(go("/"), self.sessions.fresh())

    def review(self, request: PageRequest) -> Response:
        """Show the next item, or say that there is no further item."""
        who = _reviewer(request)
        item = self.queue.take(who)
        last, done = self.queue.last(who), own_progress(self.store, who.id)
        wanted = self.store.n_items * self.store.per_item
        about: dict[str, object] = {"last": last, "own": done[0], "all": done[1], "wanted": wanted}
        if item is None:
            return self._page(request, "done.html", is_done=done[1] >= wanted, **about)
        note = self.queue.undone_note(who, item)
        return self._page(
            request, "item.html", saved=request.query.get("saved"), note=note, **self._shown(item), **about
        )

    def verdict(self, request: PageRequest) -> Response:
        """Store a verdict, then go to the next item."""
        who, form = _reviewer(request), request.form
        if form.get("verdict") not in VERDICTS:
            raise Refused(400)
        outcome = self.queue.judge(who, form.get("item", ""), form["verdict"], note=_note(form), seconds=_seconds(form))
        if outcome == "unknown":
            raise Refused(404)
        return go("/review?saved=taken" if outcome == "taken" else "/review?saved=1")

    def undo(self, request: PageRequest) -> Response:
        """Take the last verdict back."""
        self.queue.undo(_reviewer(request))
        return go("/review?saved=undone")

    def progress(self, request: PageRequest) -> Response:
        """Show the progress."""
        _somebody(request)
        return self._page(request, "progress.html", summary=summarise(self.store))

    def media(self, request: PageRequest) -> Response:
        """Return the picture or the sound of an item. This is the only way to a file."""
        from starlette.responses import FileResponse

        _somebody(request)
        item = self.store.item(request.parts["key"])
        if item is None or item.kind not in (IMAGE, AUDIO):
            raise Refused(404)
        file = self.library.file(item.source)
        headers = {"content-security-policy": MEDIA_POLICY, "content-disposition": "inline"}
        return FileResponse(file.path, media_type=file.mime, headers=headers)

    def disputes(self, request: PageRequest) -> Response:
        """List the items on which people disagree."""
        _adjudicator(request)
        found = disputes.disputes(self.store)
        return self._page(request, "disputes.html", disputes=found, open=[d for d in found if d.decision is None])

    def dispute(self, request: PageRequest) -> Response:
        """Show one item on which people disagree."""
        _adjudicator(request)
        found = disputes.find_dispute(self.store, request.parts["key"])
        if found is None:
            raise Refused(404)
        return self._page(request, "dispute.html", dispute=found, **self._shown(found.item))

    def decide(self, request: PageRequest) -> Response:
        """Settle a dispute, then go to the next open one."""
        who, form = _adjudicator(request), request.form
        if form.get("verdict") not in VERDICTS:
            raise Refused(400)
        key, note, seconds = form.get("item", ""), _note(form), _seconds(form)
        outcome = disputes.decide(self.store, who, key, form["verdict"], note=note, seconds=seconds, now=time.time())
        if outcome == "unknown":
            raise Refused(404)
        following = next((d for d in disputes.disputes(self.store) if d.decision is None), None)
        return go(f"/adjudicate/{following.item.key}" if following else "/adjudicate")

    def reopen(self, request: PageRequest) -> Response:
        """Take a decision back."""
        key = request.form.get("item", "")
        was_decided = disputes.reopen(self.store, _adjudicator(request), key, time.time())
        return go(f"/adjudicate/{key}" if was_decided else "/adjudicate")

    def asset(self, request: PageRequest) -> Response:
        """Return the style or the script, by name."""
        from starlette.responses import Response

        name = request.parts["name"]
        if name not in ASSETS:
            raise Refused(404)
        return Response(asset(name), media_type=ASSETS[name])

    def icon(self, _: PageRequest) -> Response:
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
            return ecg_paper.draw_ecg(self.library.ecg(item.source))
        return waveform(self.library.file(item.source).path) if item.kind == AUDIO else ""

    def _page(self, request: PageRequest, name: str, **values: object) -> Response:
        from starlette.responses import HTMLResponse

        config = self.store.config
        words = {POSITIVE: config["positive"], NEGATIVE: config["negative"], UNSURE: "cannot tell"}
        common = {
            "who": request.who,
            "form_token": self.sessions.form_token(request.session),
            "words": words,
            "verdicts": VERDICTS,
            "config": config,
        }
        response = HTMLResponse(page(name, **common, **values))
        return self._with_cookie(response, request.session) if request.is_new else response

    def _with_cookie(self, response: Response, session: Session) -> Response:
        response.set_cookie(
            self.sessions.cookie_name, self.sessions.cookie(session), httponly=True, samesite="strict", path="/"
        )
        return response


def go(where: str) -> Response:
    """Redirect to another page."""
    from starlette.responses import RedirectResponse

    return RedirectResponse(where, status_code=303)


def _reviewer(request: PageRequest) -> Reviewer:
    who = _somebody(request)
    if who.is_adjudicator:
        raise Refused(404)
    return who


def _adjudicator(request: PageRequest) -> Reviewer:
    who = _somebody(request)
    if not who.is_adjudicator:
        raise Refused(404)
    return who


def _somebody(request: PageRequest) -> Reviewer:
    if request.who is None:
        raise Refused(401)
    return request.who


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
