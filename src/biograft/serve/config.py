"""Limits of a service: what a request may send, how many wait, and how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from biograft.config import AtLeast, Config, Doc, Option, Range


@dataclass(frozen=True, kw_only=True)
class ServiceConfig(Config):
    """Limits of a service. What is over a limit is refused, never cut."""

    max_body: Annotated[int, AtLeast(1024), Doc("Bytes of a request; more is answered 413.")] = (
        4 << 20
    )
    max_text: Annotated[
        int, AtLeast(1), Option("Characters of a text; more is answered 422.", metavar="N")
    ] = 200_000
    max_batch: Annotated[
        int, AtLeast(1), Doc("Texts, or terms, of one request; more is answered 422.")
    ] = 256
    max_k: Annotated[
        int, AtLeast(1), Doc("Candidates of a mention; a request for more gets as many.")
    ] = 20
    max_waiting: Annotated[
        int,
        AtLeast(1),
        Option(
            "Requests that wait to be linked; another one is answered 503, with Retry-After.",
            metavar="N",
        ),
    ] = 256
    max_wait: Annotated[
        float,
        Range(above=0),
        Doc("Estimated seconds until a request is linked; for more it is answered 503."),
    ] = 5.0
    max_per_client: Annotated[
        int,
        AtLeast(1),
        Doc("Requests of one key, or address, that are in progress; another one is answered 429."),
    ] = 64
    timeout: Annotated[
        float,
        Range(above=0),
        Option(
            "Seconds until a request is answered 503, and for its body to arrive (else 408).",
            metavar="S",
        ),
    ] = 30.0
    max_steps: Annotated[
        int,
        AtLeast(1),
        Doc("Steps of work of a request, about a microsecond each; for more it is refused."),
    ] = 4_000_000
    together: Annotated[
        int, AtLeast(1), Doc("Texts of waiting requests that are linked in one batch.")
    ] = 32
