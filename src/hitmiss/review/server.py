"""The review on a socket: bound first, so that the address is known and reserved, then served until it is stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from hitmiss.core.errors import EnvironmentFault, UsageError
from hitmiss.core.packages import need_package
from hitmiss.review.application import application
from hitmiss.review.guard import Hosts, is_loopback
from hitmiss.review.library import Library
from hitmiss.review.queue import LEASE_SECONDS, Queue
from hitmiss.review.sessions import Sessions, token_of
from hitmiss.review.store import Store


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
        raise UsageError.of("remote-not-allowed", host=host)
    uvicorn, _ = (need_package(name, "the page", "hitmiss[review]") for name in ("uvicorn", "starlette"))
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
        raise EnvironmentFault.of("port-taken", host=host, port=port, strerror=error.strerror or error) from None
    listener.listen(128)
    return listener
