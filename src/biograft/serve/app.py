"""The application: routes under ``/v1``, health and metrics, errors as one line of JSON."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path as PathPart, Query, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

import biograft
from biograft.config import check_choice
from biograft.errors import BiograftError
from biograft.kb import KnowledgeBase
from biograft.linking import Candidate
from biograft.linking.config import LinkerConfig, LinkerFiles
from biograft.linking.outputs import link_chunks
from biograft.mapping import ReviewStore
from biograft.serve.batches import MicroBatcher
from biograft.serve.config import ServiceConfig
from biograft.serve.engine import LinkJob, ServiceEngine, json_answer, settings_of
from biograft.serve.export import MEDIA_TYPES, add_annotations
from biograft.serve.fhir.routes import FhirRoutes
from biograft.serve.guard import Guard, ServiceMetrics
from biograft.serve.keys import KeyFile
from biograft.serve.review import add_review
from biograft.serve.schemas import (
    MAX_QUERY,
    PER_REQUEST,
    AssertionsAnswer,
    AssertionsRequest,
    BatchAnswer,
    CandidateAnswer,
    ConceptAnswer,
    IsAAnswer,
    LinkAnswer,
    LinkOptions,
    LinkRequest,
    MentionsAnswer,
    MentionsRequest,
    NeighboursAnswer,
    Problem,
    SearchAnswer,
    SearchQuery,
    TermAnswer,
    add_problems,
)

_ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem, "description": text}
    for code, text in {
        401: "no key, or an unknown one",
        403: "the key's role, or a page of another site, may not do this",
        413: "the body is too large",
        415: "the body is not JSON",
        421: "the host name of the request is not allowed; see --allow-host",
        400: "the body cannot be read",
        422: "the request is not as described",
        429: "too many requests of this client; see Retry-After",
        503: "too many requests wait, or no answer in time; see Retry-After",
    }.items()
}
_UNKNOWN: dict[int | str, dict[str, Any]] = {
    404: {"model": Problem, "description": "nothing has this id"}
}
_SHORT = 50
"""Mentions of an answer that is written at once, not in a thread."""
_PAGE = Path(__file__).parent / "page"
_MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
}
"""The page may load, and send to, this service only."""
_TO = ("json", *MEDIA_TYPES)
To = Annotated[str, Query(description="Format of the answer.", json_schema_extra={"enum": _TO})]
Identifier = Annotated[str, Query(min_length=1, max_length=MAX_QUERY)]
IdInPath = Annotated[str, PathPart(max_length=MAX_QUERY)]


class Service:
    """The state of a process: the engine in use, the queue before it, and the metrics.

    Args:
        reopen: Opens knowledge base and linker, now and at each reload.
        config: Limits of the service.
    """

    def __init__(self, reopen: Callable[[], ServiceEngine], config: ServiceConfig) -> None:
        self.reopen, self.config = reopen, config
        self.engine = reopen()
        self.metrics = ServiceMetrics()
        self.batcher: MicroBatcher[LinkJob, Any] = MicroBatcher(
            lambda jobs: self.engine.link(jobs),  # noqa: PLW0108 - a reload replaces the engine
            max_batch=config.together,
            max_waiting=config.max_waiting,
            max_seconds=config.max_wait,
            size=lambda job: len(job.texts),
        )
        self._reloading = asyncio.Lock()
        self.stopping = False

    async def reload(self) -> None:
        """Reopen the store and the index without losing a request in progress."""
        async with self._reloading:
            engine = await asyncio.to_thread(self.reopen)
            await asyncio.to_thread(engine.open_terminology)
            self.engine = engine


def create_app(
    kb: str | Path | KnowledgeBase,
    files: LinkerFiles | str | Path | None = None,
    linker: LinkerConfig | None = None,
    *,
    config: ServiceConfig | None = None,
    keys: str | Path | None = None,
    systems: Mapping[str, str] | None = None,
    review: str | Path | None = None,
    allowed_hosts: Sequence[str] = (),
    token: str | None = None,
    fhir: Sequence[str | Path] = (),
) -> Guard:
    """Return the ASGI application of a service.

    Args:
        kb: The knowledge base, or its folder.
        files: The index and the trained parts of the linker, or the folder of the index alone.
        linker: Settings of the linker.
        config: Limits of the service.
        keys: File of the keys that are accepted; default: without keys, requests are answered by
            the names ``allowed_hosts``, ``localhost`` and IP addresses only, and those of a page
            of another site are refused.
        systems: URIs of code systems, by the prefix of ids or the source of names.
        review: Database of a review, created if missing.
        allowed_hosts: Host names that requests may use where there are no keys.
        token: Where there are no keys: what browsers must send, and who reads or changes a review.
        fhir: FHIR packages, resources and mapping sets to serve beside the store.

    >>> uvicorn.run(create_app("KB", "INDEX"))  # doctest: +SKIP
    """
    config = config or ServiceConfig()
    reviewed: ReviewStore | None = None

    def reopen() -> ServiceEngine:
        return ServiceEngine.open(
            kb,
            files,
            linker,
            systems=systems,
            max_steps=config.max_steps,
            fhir=fhir,
            review=lambda: reviewed,
        )

    service = Service(reopen, config)
    opened = KeyFile.open(keys) if keys is not None else None
    reviewed = (
        None
        if review is None
        else ReviewStore.open(
            review, create=True, has_concept=lambda id_: service.engine.kb.find_row(id_) is not None
        )
    )

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.stopping = False
        opening = asyncio.create_task(asyncio.to_thread(service.engine.open_terminology))
        yield
        opening.cancel()
        service.stopping = True
        fhir_routes.stop()
        await service.batcher.close()
        if reviewed is not None:
            reviewed.close()

    app = FastAPI(
        title="biograft",
        version=biograft.__version__,
        description="Links medical text to the concepts of a knowledge base.",
        lifespan=lifespan,
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
    )
    app.state.service = service
    add_problems(app)
    _add_text(app, service)
    add_annotations(app, lambda: service.engine.kb, config, _ERRORS)
    _add_concepts(app, service)
    fhir_routes = FhirRoutes(
        app,
        lambda: service.engine.terminology,
        warm=lambda: service.engine.warm_terminology,
        seconds=config.timeout,
        max_steps=config.max_steps,
    )
    review_routes = APIRouter(responses=_ERRORS | _UNKNOWN)
    add_review(review_routes, reviewed, lambda: service.engine)
    app.include_router(review_routes)
    _add_page(app)
    _add_health(app, service, reviewed)
    metrics = service.metrics
    return Guard(fhir_routes, config, metrics, opened, allowed_hosts, token, kept=fhir_routes.kept)


def _add_text(app: FastAPI, service: Service) -> None:
    limits = service.config

    @app.post(
        "/v1/link",
        response_model=LinkAnswer | BatchAnswer,
        responses={**_ERRORS, 200: {"content": {kind: {} for kind in MEDIA_TYPES.values()}}},
        summary="Find the mentions of a text, or of several, and link them",
    )
    async def link(asked: LinkRequest, to: To = "json") -> Response:
        check_choice("to", to, _TO)
        if (asked.text is None) == (asked.texts is None):
            return json_answer({"detail": "give either text or texts"}, 422)
        texts = [asked.text] if asked.text is not None else asked.texts or []
        if refused := _refusal(texts, "text" if asked.text is not None else "texts", limits):
            return refused
        linked = await service.batcher.submit(LinkJob(tuple(texts), _settings(asked, limits)))
        service.metrics.mentions.inc(sum(len(each.mentions) for each in linked))

        def written() -> Response:
            if to != "json":
                content = "".join(link_chunks(linked, to, service.engine.kb)).encode(
                    "utf-8", "backslashreplace"
                )
                return Response(content, media_type=MEDIA_TYPES[to])
            named = service.engine.named
            documents = []
            for each in linked:
                mentions = [replace(m, candidates=named(m.candidates)) for m in each.mentions]
                shown = replace(each, mentions=tuple(mentions))
                documents.append(LinkAnswer.model_validate(shown).model_dump())
            return json_answer(documents[0] if asked.text is not None else {"documents": documents})

        is_short = sum(len(each.mentions) for each in linked) <= _SHORT
        return written() if is_short else await asyncio.to_thread(written)

    @app.post(
        "/v1/mentions",
        response_model=MentionsAnswer,
        responses=_ERRORS,
        summary="Link terms, each of which is one mention",
    )
    async def link_mentions(asked: MentionsRequest) -> Response:
        if refused := _refusal(asked.mentions, "mentions", limits):
            return refused
        job = LinkJob(tuple(asked.mentions), _settings(asked, limits), as_terms=True)
        answers = await service.batcher.submit(job)
        service.metrics.mentions.inc(len(answers))
        pairs = zip(asked.mentions, map(service.engine.named, answers), strict=True)
        return json_answer({"mentions": [_term(text, found).model_dump() for text, found in pairs]})

    @app.post(
        "/v1/assertions",
        response_model=AssertionsAnswer,
        responses=_ERRORS,
        summary="Assertion status of given spans of a text",
    )
    async def assertions(asked: AssertionsRequest) -> Response:
        if refused := _refusal([asked.text], "text", limits):
            return refused
        engine = service.engine
        found = await asyncio.to_thread(engine.assert_status, asked.text, asked.spans)
        return json_answer({"assertions": found})


def _refusal(texts: list[str], what: str, limits: ServiceConfig) -> Response | None:
    """Return the answer to too many texts, or too long ones; None if they may be linked."""
    longest = max(map(len, texts), default=0)
    if len(texts) > limits.max_batch:
        detail = f"{what}: {len(texts)} given; at most {limits.max_batch} in a request"
    elif longest > limits.max_text:
        detail = f"{what}: {longest} characters; a text has at most {limits.max_text}"
    else:
        return None
    return json_answer({"detail": detail}, 422)


def _settings(asked: LinkOptions, limits: ServiceConfig) -> tuple[tuple[str, Any], ...]:
    given = asked.model_dump(include=set(PER_REQUEST))
    if given["k"] is not None:
        given["k"] = min(given["k"], limits.max_k)
    return settings_of(**given)


def _add_concepts(app: FastAPI, service: Service) -> None:
    @app.get(
        "/v1/search",
        response_model=SearchAnswer,
        responses=_ERRORS,
        summary="Suggestions of concepts while typing",
        openapi_extra={"parameters": SearchQuery.parameters()},
    )
    async def search(request: Request) -> Response:
        asked = SearchQuery.read(request.query_params)
        body = service.engine.search_json(asked.q, asked.limit, asked.language)
        return Response(body, media_type="application/json")

    @app.get(
        "/v1/concepts/{identifier:path}",
        response_model=ConceptAnswer,
        responses={**_ERRORS, **_UNKNOWN},
        summary="A concept by any of its ids",
    )
    async def concept(identifier: IdInPath) -> Response:
        return json_answer(service.engine.concept(identifier))

    @app.get(
        "/v1/neighbours/{identifier:path}",
        response_model=NeighboursAnswer,
        responses={**_ERRORS, **_UNKNOWN},
        summary="The concepts in relation to one",
    )
    async def neighbours(
        identifier: IdInPath,
        relation: Annotated[str | None, Query(max_length=MAX_QUERY)] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    ) -> Response:
        found = service.engine.neighbours(identifier, relation, limit)
        return json_answer({"concept": identifier, "neighbours": found})

    @app.get(
        "/v1/is-a",
        response_model=IsAAnswer,
        responses={**_ERRORS, **_UNKNOWN},
        summary="Whether a concept is another one, or below it",
    )
    async def is_a(concept: Identifier, ancestor: Identifier) -> Response:
        return json_answer({"is_a": service.engine.is_a(concept, ancestor)})


def _add_page(app: FastAPI) -> None:
    """Serve the page and its files, which are part of the package and load nothing else."""
    files = {
        f"/page/{path.name}": (path.read_bytes(), _MEDIA_TYPES[path.suffix])
        for path in _PAGE.iterdir()
        if path.suffix in _MEDIA_TYPES
    }
    files["/"] = files.pop("/page/index.html")
    files["/review"] = files.pop("/page/review.html")

    def add(path: str, content: bytes, media_type: str) -> None:
        async def get() -> Response:
            return Response(content, media_type=media_type, headers=_PAGE_HEADERS)

        app.add_api_route(path, get, methods=["GET"], include_in_schema=False)

    for path, (content, media_type) in files.items():
        add(path, content, media_type)


def _add_health(app: FastAPI, service: Service, review: ReviewStore | None) -> None:
    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> Response:
        return json_answer({"status": "ok"})

    @app.get("/readyz", include_in_schema=False)
    def readyz() -> Response:
        if service.stopping:
            return json_answer({"status": "stopping"}, 503)
        try:
            if review is not None:
                review.check()
        except BiograftError:
            return json_answer({"status": "the review cannot be reached"}, 503)
        return json_answer({"status": "ready"})

    @app.get("/v1/version", responses=_ERRORS, summary="The store that answers")
    async def version() -> dict[str, Any]:
        return {"biograft": biograft.__version__, **service.engine.versions()}

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    @app.post("/v1/admin/reload", responses=_ERRORS, summary="Open store and index anew")
    async def reload() -> dict[str, Any]:
        await service.reload()
        return service.engine.versions()


def _term(text: str, found: Sequence[Candidate]) -> TermAnswer:
    best = found[0] if found else None
    return TermAnswer(
        text=text,
        concept=best.concept if best else None,
        name=best.concept_name if best else None,
        score=best.score if best else None,
        candidates=[CandidateAnswer.model_validate(each) for each in found],
    )
