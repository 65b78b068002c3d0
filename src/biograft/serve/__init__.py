"""The service: linking, search and look-ups over HTTP, by FastAPI and uvicorn (extra ``serve``).

>>> from biograft.serve import ServiceConfig, create_app
>>> app = create_app("KB", config=ServiceConfig(max_text=10_000))  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.serve.app import create_app as create_app
    from biograft.serve.config import ServiceConfig as ServiceConfig
    from biograft.serve.engine import ServiceEngine as ServiceEngine
    from biograft.serve.keys import ApiKey as ApiKey, KeyFile as KeyFile
    from biograft.serve.mcp import create_mcp_server as create_mcp_server
    from biograft.serve.run import run_service as run_service


__getattr__, __dir__, __all__ = lazify(__name__)
