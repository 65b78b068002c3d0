"""The service: linking, search and look-ups over HTTP, by FastAPI and uvicorn (extra ``serve``).

>>> from biograft.serve import ServiceConfig, create_app
>>> app = create_app("KB", config=ServiceConfig(max_text=10_000))  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.serve.app import create_app as create_app
    from biograft.serve.batches import (
        MicroBatcher as MicroBatcher,
        QueueFullError as QueueFullError,
    )
    from biograft.serve.config import ServiceConfig as ServiceConfig
    from biograft.serve.engine import ServiceEngine as ServiceEngine
    from biograft.serve.fhir import Terminology as Terminology, parse_systems as parse_systems
    from biograft.serve.keys import ApiKey as ApiKey, KeyFile as KeyFile
    from biograft.serve.mcp import create_mcp_server as create_mcp_server, run_mcp as run_mcp
    from biograft.serve.run import run_service as run_service


__getattr__, __dir__, __all__ = lazify(__name__)
