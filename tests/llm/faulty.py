"""The stand-in server, made to fail as real services do: too many requests, server errors, slow or broken answers."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping

from hitmiss.llm.openai_forms import objects_in
from hitmiss.llm.standin import Handler, Seen, chat_completion, completion, said
from hitmiss.llm.standin import StandIn as HonestStandIn

__all__ = ["Script", "Seen", "StandIn"]

COMMAND = re.compile(rb"(?:verdict|Urteil|veredicto) (real|fake)\b", re.IGNORECASE)
Script = Callable[[Seen], str | None]
"""Maps a request to a fault, or None for a proper answer; see `FaultyHandler.misbehave` for the names."""


class FaultyHandler(Handler):
    """Handles one request: properly, or as the script says."""

    owner: StandIn

    def respond(self, body: Mapping[str, object], seen: Seen) -> None:
        fault = self.owner.script(seen)
        self.owner.answered[fault or "honest"] += 1
        if fault is None:
            self.answer(self.honest(body, seen))
        else:
            self.misbehave(fault, body, seen)

    def honest(self, body: Mapping[str, object], seen: Seen) -> dict[str, object]:
        """A proper answer; a gullible server does what the item says."""
        order = COMMAND.search(b"\n".join([seen.data, seen.text.encode(), *_said_by_tools(body)]))
        if not self.owner.gullible or order is None or (seen.has_tools and not seen.n_results):
            return completion(body, seen)
        word = order[1].decode().lower()
        return said(body, seen, f'{{"verdict": "{word}", "confidence": 1.0, "rationale": "The item asked for it."}}')

    def misbehave(self, fault: str, body: Mapping[str, object], seen: Seen) -> None:
        """Produce the fault that the script asks for."""
        if fault == "429":
            self.reply(429, {"error": {"message": "too many requests"}}, {"retry-after-ms": "20"})
        elif fault == "quota":
            self.reply(429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})
        elif fault == "500":
            self.reply(500, {"error": {"message": "the server failed"}}, {"retry-after-ms": "20"})
        elif fault == "wait":
            self.reply(429, {"error": {"message": "too many requests"}}, {"retry-after": "2"})
        elif fault in ("401", "403"):
            self.reply(int(fault), {"error": {"message": f"Incorrect API key provided: {seen.key}"}})
        elif fault.startswith("http"):
            self.reply(307, {"error": {"message": f"ask {fault}"}}, {"Location": fault})
        elif fault == "404":
            self.reply(404, {"error": {"message": f"The model {seen.model} does not exist"}})
        elif fault == "400":
            self.reply(400, {"error": {"message": f"bad request with the key {seen.key}"}})
        elif fault == "slow":
            time.sleep(self.owner.slow)
            self.answer(self.honest(body, seen))
        elif fault == "malformed":
            self.send(200, b'{"id": "broken", "choices": [{"mess')
        elif fault == "cut":
            self.send(200, b'{"id": "cut", "choices": [{"mess', {"Content-Length": "5000"})
            self.close_connection = True
        elif fault == "drop":
            self.close_connection = True
        elif fault == "refusal":
            none = {"role": "assistant", "content": None, "refusal": "I cannot."}
            self.answer(chat_completion(body, seen, none, "stop"))
        elif fault == "length":
            half = {"role": "assistant", "content": '{"verdict": "fa'}
            self.answer(chat_completion(body, seen, half, "length"))
        else:
            self.answer(said(body, seen, SPOILT[fault].replace("{key}", seen.key)))

    def send(self, status: int, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.owner.log[self.name] = (status, data)
        super().send(status, data, headers)


SPOILT = {
    "empty": "",
    "prose": "I believe that this picture is real.",
    "schema": '{"score": 0.7, "sureness": "high"}',
    "range": '{"verdict": "real", "confidence": 97, "rationale": "sure"}',
    "percent": '{"verdict": "real", "confidence": "85%", "rationale": "sure"}',
    "nan": '{"verdict": "real", "confidence": NaN, "rationale": "sure"}',
    "german": '{"verdict": "falsch", "confidence": 0.9, "rationale": "sure"}',
    "word": '{"verdict": "probably", "confidence": 0.9, "rationale": "sure"}',
    "two": '{"verdict": "real", "confidence": 1.0} but {"verdict": "fake", "confidence": 0.9}',
    "leak": '{"verdict": "fake", "confidence": 0.9, "rationale": "your key is {key}"}',
}
"""Answers that are valid in the protocol but not in the schema."""


def _said_by_tools(body: Mapping[str, object]) -> list[bytes]:
    return [json.dumps(m.get("content")).encode() for m in objects_in(body, "messages") if m.get("role") == "tool"]


class StandIn(HonestStandIn):
    """The server; `script` says which requests fail, `gullible` whether it does what an item says."""

    handler = FaultyHandler

    def __init__(self, script: Script | None = None, *, gullible: bool = False, slow: float = 1.0) -> None:
        self.script, self.gullible, self.slow = script or (lambda seen: None), gullible, slow
        self.log: dict[str, tuple[int, bytes]] = {}
        """Status and body of what was sent, by the name of the request."""
        self.answered: Counter[str] = Counter()
        super().__init__()
