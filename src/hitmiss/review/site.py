"""What each address of the review answers. Pages need no script; the script adds the keys."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hitmiss.errors import DataError, UsageError
from hitmiss.review import adjudication, ecg, pages
from hitmiss.review.guard import MEDIA_POLICY
from hitmiss.review.media import AUDIO, ECG, IMAGE, TEXT, Library
from hitmiss.review.queue import LONGEST_NOTE, NEGATIVE, POSITIVE, UNSURE, VERDICTS, Queue
from hitmiss.review.sessions import Session, Sessions
from hitmiss.review.store import Item, Reviewer, Store
from hitmiss.review.summary import own_progress, summarise
from hitmiss.review.waveform import waveform


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
            return go("/adjudicate" if visit.who.is_adjudicator else "/review")
        return self._page(visit, "start.html", needs_token=self.sessions.needs_token, wrong=visit.query.get("wrong"))

    def sign_in(self, visit: Visit) -> Any:
        """Take a name (and the token); the session gets a new id, so that no old one is worth anything."""
        if not self.sessions.is_token(visit.form.get("token", "")):
            return go("/?wrong=token")
        try:
            who = self.store.sign_in(visit.form.get("name", ""), time.time())
        except UsageError:
            return go("/?wrong=name")
        return self._with_cookie(go("/"), self.sessions.fresh(who.id))

    def leave(self, visit: Visit) -> Any:
        """Sign out; what was held goes back to the queue."""
        if visit.who is not None:
            self.queue.leave(visit.who)
        return self._with_cookie(go("/"), self.sessions.fresh())

    def review(self, visit: Visit) -> Any:
        """The next item, or that there is none."""
        who = _reviewer(visit)
        item = self.queue.take(who)
        last, done = self.queue.last(who), own_progress(self.store, who.id)
        about: dict[str, Any] = {
            "last": last,
            "own": done[0],
            "all": done[1],
            "wanted": self.store.n_items * self.store.per_item,
        }
        if item is None:
            return self._page(visit, "done.html", is_done=about["all"] >= about["wanted"], **about)
        note = self.queue.undone_note(who, item)
        return self._page(visit, "item.html", saved=visit.query.get("saved"), note=note, **self._shown(item), **about)

    def verdict(self, visit: Visit) -> Any:
        """Take a verdict, then on to the next item."""
        who, form = _reviewer(visit), visit.form
        if form.get("verdict") not in VERDICTS:
            raise Refused(400)
        outcome = self.queue.judge(who, form.get("item", ""), form["verdict"], note=_note(form), seconds=_seconds(form))
        if outcome == "unknown":
            raise Refused(404)
        return go("/review?saved=taken" if outcome == "taken" else "/review?saved=1")

    def undo(self, visit: Visit) -> Any:
        """Take the last verdict back."""
        self.queue.undo(_reviewer(visit))
        return go("/review?saved=undone")

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
        key, note, seconds = form.get("item", ""), _note(form), _seconds(form)
        outcome = adjudication.decide(
            self.store, who, key, form["verdict"], note=note, seconds=seconds, now=time.time()
        )
        if outcome == "unknown":
            raise Refused(404)
        following = next((d for d in adjudication.disputes(self.store) if d.decision is None), None)
        return go(f"/adjudicate/{following.item.key}" if following else "/adjudicate")

    def reopen(self, visit: Visit) -> Any:
        """Take a decision back."""
        key = visit.form.get("item", "")
        was_decided = adjudication.reopen(self.store, _adjudicator(visit), key, time.time())
        return go(f"/adjudicate/{key}" if was_decided else "/adjudicate")

    def asset(self, visit: Visit) -> Any:
        """The style and the script, by name."""
        from starlette.responses import Response

        name = visit.parts["name"]
        if name not in pages.ASSETS:
            raise Refused(404)
        return Response(pages.asset(name), media_type=pages.ASSETS[name])

    def icon(self, _: Visit) -> Any:
        """There is none."""
        from starlette.responses import Response

        return Response(status_code=204)

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
        response = HTMLResponse(pages.page(name, **common, **values))
        return self._with_cookie(response, visit.session) if visit.is_new else response

    def _with_cookie(self, response: Any, session: Session) -> Any:
        response.set_cookie(
            self.sessions.cookie_name, self.sessions.cookie(session), httponly=True, samesite="strict", path="/"
        )
        return response


def go(where: str) -> Any:
    """On to another page."""
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
    """What the script counted; nothing where it did not run, or says nonsense."""
    try:
        seconds = float(form.get("seconds", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < 86_400 else None
