"""A server that answers 40 questions for two models by a known table: 28 right by both, 6 only by a, none only by b.

    python tests/logs/answering.py PORT

It speaks the OpenAI chat protocol, so that inspect_ai, lm-eval and promptfoo can ask it. Every question is `question N`,
its answer `yes` for odd N and `no` for even N.
"""

from __future__ import annotations

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

QUESTIONS = 40
WRONG = {"a": range(34, 40), "b": range(28, 40)}


def truth(n: int) -> str:
    """The right answer."""
    return ("no", "yes")[n % 2]


def answer(model: str, n: int) -> str:
    """What a model says."""
    return truth(n + (n in WRONG[model]))


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = json.dumps(body["messages"][-1])
        said = answer(body["model"].rpartition("/")[2], int(re.findall(r"question (\d+)", asked)[-1]))
        message = {"role": "assistant", "content": said}
        self._reply(
            {
                "id": "x",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
            }
        )

    def _reply(self, data: dict[str, Any]) -> None:
        text = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def serve(port: int = 0) -> ThreadingHTTPServer:
    """The server, not started."""
    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    serve(int(sys.argv[1])).serve_forever()
