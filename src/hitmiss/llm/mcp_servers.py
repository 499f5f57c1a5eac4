"""Tools of MCP servers, through inspect_ai: a program that is started for each conversation, or an address."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shlex
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from hitmiss.core.errors import EnvironmentFault, UsageError
from hitmiss.detection.detector import need
from hitmiss.llm.addresses import checked_address
from hitmiss.llm.chat import BoundTool
from hitmiss.llm.tools import ToolCall
from hitmiss.llm.tools.own import require_own_names

if TYPE_CHECKING:
    from inspect_ai.tool import MCPServer, ToolDef

Note = Callable[[ToolCall], None]


def describe(servers: Sequence[str], known: Sequence[str] = ()) -> dict[str, dict[str, object]]:
    """Connect to each server once, and return its tools with a digest of all that a model is told of them.

    `known`: names of the user's own tools. A server that does not answer, and two tools of one name, are refused.
    """
    found: dict[str, dict[str, object]] = {}
    names = list(known)
    for server in servers:
        try:
            tools = asyncio.run(_tools_of(server))
        except (EnvironmentFault, UsageError):
            raise
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            raise EnvironmentFault.of("mcp-unavailable", server=server, why=_why(error)) from None
        told = json.dumps([[t.name, t.about, t.takes] for t in tools], sort_keys=True)
        names += [t.name for t in tools]
        digest = hashlib.sha256(told.encode()).hexdigest()[:16]
        found[server] = {"tools": [t.name for t in tools], "digest": digest}
    require_own_names(names)
    return found


@asynccontextmanager
async def connected(servers: Sequence[str], note: Note, order: str = "") -> AsyncIterator[list[BoundTool]]:
    """Connect to servers for one conversation; `note` gets every call, and every result ends with `order` (a canary's)."""
    async with AsyncExitStack() as stack:
        tools: list[BoundTool] = []
        for server in servers:
            opened = _open(server)
            await stack.enter_async_context(opened)
            definition = need("inspect_ai.tool", "llm").ToolDef
            tools += [_bound(definition(tool), note, order) for tool in await opened.tools()]
        yield tools


async def _tools_of(server: str) -> list[BoundTool]:
    async with connected([server], lambda call: None) as tools:
        return tools


def _open(server: str) -> MCPServer:
    """Return a server as inspect_ai opens it: an address, or a command."""
    tool = need("inspect_ai.tool", "llm")
    need("mcp", "mcp")
    if server.startswith(("http://", "https://")):
        opened: MCPServer = tool.mcp_server_http(url=checked_address(server, "--mcp")[0])
        return opened
    command, *arguments = shlex.split(server)
    started: MCPServer = tool.mcp_server_stdio(command=command, args=arguments)
    return started


def _bound(tool: ToolDef, note: Note, order: str) -> BoundTool:
    takes = tool.parameters.model_dump(exclude_none=True)
    return BoundTool(tool.name, tool.description, _noted(tool, note, order), takes)


def _noted(tool: ToolDef, note: Note, order: str) -> Callable[..., Awaitable[str]]:
    async def call(**arguments: object) -> str:
        began = time.perf_counter()
        said = _text(await tool.tool(**arguments))  # a call that fails is in the transcript, with its error
        note(ToolCall(tool.name, {"result": said}, time.perf_counter() - began, cached=False))
        return f"{said}\n{order}" if order else said

    return call


def _text(said: object) -> str:
    """Return a result as text: parts that are no text are named."""
    if isinstance(said, list):
        return "\n".join(map(_text, said))
    text = getattr(said, "text", None)
    return str(text) if text is not None else said if isinstance(said, str) else f"[{type(said).__name__}]"


def _why(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}".removesuffix(": ")
