"""Limits of a service: what a request may send, how many wait, and how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from biograft.config import AtLeast, Config, Range


@dataclass(frozen=True, kw_only=True)
class ServiceConfig(Config):
    """Limits of a service. What is over a limit is refused, never cut."""

    max_body: Annotated[int, AtLeast(1024)] = 4 << 20
    """Bytes of a request; more is answered 413."""
    max_text: Annotated[int, AtLeast(1)] = 200_000
    """Characters of a text; more is answered 422."""
    max_batch: Annotated[int, AtLeast(1)] = 256
    """Texts, or terms, of one request; more is answered 422."""
    max_k: Annotated[int, AtLeast(1)] = 20
    """Candidates of a mention; a request for more gets as many."""
    max_waiting: Annotated[int, AtLeast(1)] = 256
    """Requests that wait to be linked; another one is answered 503, with Retry-After."""
    max_wait: Annotated[float, Range(above=0)] = 5.0
    """Seconds that a request would wait to be linked, as it seems; for more it is answered 503."""
    max_per_client: Annotated[int, AtLeast(1)] = 64
    """Requests of one key, or address, that are in progress; another one is answered 429."""
    timeout: Annotated[float, Range(above=0)] = 30.0
    """Seconds until a request is answered 503, and for its body to arrive (else 408)."""
    max_steps: Annotated[int, AtLeast(1)] = 4_000_000
    """Steps of work of a FHIR request, about a microsecond each; for more it is refused."""
    together: Annotated[int, AtLeast(1)] = 32
    """Texts of waiting requests that are linked in one batch."""
