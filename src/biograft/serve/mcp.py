"""MCP (Model Context Protocol): the tools of a store for a language model, by stdio or HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biograft.errors import MissingExtraError
from biograft.kb import KnowledgeBase
from biograft.linking.config import LinkerConfig, LinkerFiles
from biograft.serve.agent_sets import ServedSets
from biograft.serve.agent_tools import INSTRUCTIONS, ConceptTools, ToolCalls, ToolError
from biograft.serve.engine import ServiceEngine, to_json
from biograft.serve.mcp_stdio import ABOUT, answer_stdio

if TYPE_CHECKING:
    from mcp.server import MCPServer


def create_mcp_server(
    kb: str | Path | KnowledgeBase,
    files: LinkerFiles | str | Path | None = None,
    linker: LinkerConfig | None = None,
    *,
    mapping_sets: Sequence[str | Path] = (),
    value_sets: Sequence[str | Path] = (),
) -> MCPServer[Any]:
    """Return the server of a knowledge base, of the package ``mcp``.

    Args:
        kb: The knowledge base, or its folder.
        files: The index and the trained parts of the linker, or the folder of the index alone.
        linker: Settings of the linker; default: 10 candidates.
        mapping_sets: Files of mapping sets, by which codes are translated.
        value_sets: Files of value sets.

    >>> create_mcp_server("KB", "INDEX").run()  # doctest: +SKIP
    """
    try:
        from mcp.server import MCPServer
        from mcp_types import CallToolResult, TextContent, Tool
    except ModuleNotFoundError as error:
        raise MissingExtraError("mcp", "biograft mcp --http") from error
    engine = ServiceEngine.open(kb, files, linker or LinkerConfig(k=10))
    calls = ToolCalls(ConceptTools(engine, ServedSets(engine.kb, mapping_sets, value_sets)))

    class _Server(MCPServer[Any]):
        """A server whose tools are listed and called as over stdio."""

        async def list_tools(self) -> list[Tool]:
            return [Tool.model_validate(each) for each in calls.described]

        async def call_tool(
            self, name: str, arguments: dict[str, Any], context: Any = None
        ) -> CallToolResult:
            try:
                answer = calls.call(name, arguments)
            except ToolError as error:
                said = TextContent(type="text", text=str(error))
                return CallToolResult(content=[said], is_error=True)
            text = to_json(answer).decode()
            content = [TextContent(type="text", text=text)]
            return CallToolResult(content=list(content), structured_content=answer)

    return _Server(
        ABOUT["name"],
        title=ABOUT["title"],
        description=ABOUT["description"],
        version=ABOUT["version"],
        instructions=INSTRUCTIONS,
        log_level="ERROR",
    )


def run_mcp(
    kb: str | Path,
    files: LinkerFiles | str | Path | None = None,
    linker: LinkerConfig | None = None,
    *,
    mapping_sets: Sequence[str | Path] = (),
    value_sets: Sequence[str | Path] = (),
    http: bool = False,
    host: str = "127.0.0.1",
    port: int = 8081,
    keys: str | Path | None = None,
) -> None:
    """Answer on standard input and output, or over HTTP at ``/mcp``, until interrupted.

    Args:
        kb: The knowledge base, or its folder.
        files: The index and the trained parts of the linker, or the folder of the index alone.
        linker: Settings of the linker; default: 10 candidates.
        mapping_sets: Files of mapping sets, by which codes are translated.
        value_sets: Files of value sets.
        http: Answer over HTTP.
        host: Address to listen at.
        port: Port to listen at.
        keys: File of the keys that are accepted, which other machines need.
    """
    if not http:
        engine = ServiceEngine.open(kb, files, linker or LinkerConfig(k=10), at_once=False)
        sets = ServedSets(engine.kb, mapping_sets, value_sets)
        answer_stdio(ToolCalls(ConceptTools(engine, sets)), engine.warm_up)
        return
    from biograft.serve.run import check_host, ending, run_app, server_options

    check_host(host, keys)
    server = create_mcp_server(kb, files, linker, mapping_sets=mapping_sets, value_sets=value_sets)
    app = http_app(server, host, keys)
    run_app(ending(app), server_options(host, port))


def http_app(
    server: MCPServer[Any], host: str = "127.0.0.1", keys: str | Path | None = None
) -> Any:
    """Return the ASGI application of a server, which answers each request by itself.

    With ``keys`` the requests pass the guard of the service, with its limits.

    Args:
        server: The server.
        host: Address to listen at.
        keys: File of the keys.
    """
    app = server.streamable_http_app(host=host, json_response=True, stateless_http=True)
    if keys is None:
        return app
    from biograft.serve.config import ServiceConfig
    from biograft.serve.keys import KeyFile

    try:
        from biograft.serve.guard import Guard, ServiceMetrics
    except ModuleNotFoundError as error:
        raise MissingExtraError("serve", "a service with keys") from error
    return Guard(app, ServiceConfig(), ServiceMetrics(), KeyFile.open(keys))
