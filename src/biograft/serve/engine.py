"""Engine of the service: a store, its linkers and its suggestions, opened once.

A new version is opened beside the one in use and put in its place; requests in progress end on the
one they began with.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from biograft.catalogue import Catalogue
from biograft.errors import ConfigError, NotFoundError, StoreError
from biograft.kb import KnowledgeBase, Match
from biograft.kb.fhir import Work, spend
from biograft.kb.names import normalise
from biograft.kb.search import NameSuggestions
from biograft.language import ASKED_LANGUAGE
from biograft.linking.config import LinkerConfig, LinkerFiles

if TYPE_CHECKING:
    from fastapi import Response

    from biograft.linking import Candidate, LinkedDocument, Linker
    from biograft.mapping import ReviewStore
    from biograft.serve.fhir.content import FhirContent
    from biograft.serve.fhir.terminology import Terminology


def to_json(content: Any) -> bytes:
    """Return JSON in UTF-8; lone surrogates, which UTF-8 has not, are escaped.

    Args:
        content: The body.
    """
    try:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(content, separators=(",", ":")).encode()


def in_language(text: str) -> str:
    """Return the text of an error, or of what is lost, in the language of the request."""
    language = ASKED_LANGUAGE.get()
    return Catalogue.open(language).error(text) if language else text


def json_answer(
    content: Any,
    status: int = 200,
    headers: dict[str, str] | None = None,
    media_type: str = "application/json",
) -> Response:
    """Answer in JSON; a ``detail``, the text of an error, is in the language of the request.

    Args:
        content: The body.
        status: Status of the answer.
        headers: Further headers.
        media_type: Content type of the answer.
    """
    from fastapi import Response  # the tools of biograft mcp, which need to_json, run without it

    if isinstance(content, dict) and "detail" in content:
        content |= {"detail": in_language(content["detail"])}
    return Response(to_json(content), status, headers, media_type=media_type)


_WARM_UP = (
    "Denies chest pian. Type 2 diabetes mellitus (T2DM), heart and kidney failure.",
    "患者否认发热，2型糖尿病10年。",
)
"""Texts that all parts of a linker work on: names, misspelt ones, abbreviations, two languages."""
_SORTED_AT_ONCE = 20_000
"""Names that are sorted when they are first searched."""
_KEPT_SEARCHES = 1 << 14
"""Searches whose answers are kept: what people type is often the same."""
_KEPT_HITS = 20
"""Answers with more concepts are not kept."""
_SHOWN = 5
"""Concepts that a message names."""
MAX_RELATIVES = 100
"""Parents, and children, that are given with a concept."""
_AT_ONCE = 32
"""Texts that are linked before the work on a request is looked at."""
_MAX_LINKERS = 32
"""Combinations of settings whose linker is kept; they share store and index."""


class LinkJob(NamedTuple):
    """The texts of one request, and the settings of a linker that it asks for."""

    texts: tuple[str, ...]
    settings: tuple[tuple[str, Any], ...]
    as_terms: bool = False
    """Whether each text is a term, not a text with mentions."""


class ServiceEngine:
    """A store with a linker and suggestions, as one process of the service has them.

    Args:
        kb: The knowledge base.
        open_linker: Opens the linker of the service, when it is first needed.
        systems: URIs in FHIR by prefix of ids, or by source, beside those known.
        max_steps: Microseconds of processor time for the texts that are linked together.
        content: Resources of FHIR, and mapping sets, that are served beside the store.
        review: Returns the review whose decisions are served.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        open_linker: Callable[[], Linker],
        systems: Mapping[str, str] | None = None,
        max_steps: float = math.inf,
        content: FhirContent | None = None,
        review: Callable[[], ReviewStore | None] = lambda: None,
    ) -> None:
        self.kb, self._open_linker, self._systems = kb, open_linker, systems
        self._max_steps, self._content, self._review = max_steps, content, review
        self._linker: Linker | None = None
        self._opening, self._sorting = threading.Lock(), threading.Lock()
        self.warm_terminology: Terminology | None = None
        """The terminology, once it has answered, so that nothing has to be opened."""
        self._suggestions: NameSuggestions | None = None
        self._linker_of = lru_cache(_MAX_LINKERS)(self._with_settings)
        self._kept = lru_cache(_KEPT_SEARCHES)(self._search_json)

    @classmethod
    def open(
        cls,
        kb: str | Path | KnowledgeBase,
        files: LinkerFiles | str | Path | None = None,
        linker: LinkerConfig | None = None,
        *,
        systems: Mapping[str, str] | None = None,
        max_steps: float = math.inf,
        fhir: Sequence[str | Path] = (),
        review: Callable[[], ReviewStore | None] = lambda: None,
        at_once: bool = True,
    ) -> ServiceEngine:
        """Open a store and its index; link one text, so that no request waits for the first use.

        Args:
            kb: The knowledge base, or its folder.
            files: The index and the trained parts of the linker, or the folder of the index alone.
            linker: Settings of the linker.
            systems: URIs of code systems in FHIR.
            max_steps: Microseconds of processor time for the texts that are linked together.
            fhir: FHIR packages, resources and mapping sets to serve beside the store.
            review: Returns the review whose decisions are served.
            at_once: Open linker and suggestions now; else each when it is first needed.
        """
        if not isinstance(files, LinkerFiles):
            files = LinkerFiles(index=None if files is None else Path(files))
        parts = vars(files)
        store = KnowledgeBase.open(kb)

        def open_linker() -> Linker:
            from biograft.linking import Linker

            return Linker.open(store, **parts, config=linker)

        content = None
        if fhir:
            from biograft.serve.fhir.content import read_content

            content = read_content(fhir)
        engine = cls(store, open_linker, systems, max_steps, content, review)
        if fhir:
            engine.terminology.maps()  # errors are said at the start
        if at_once:
            engine.warm_up()
        else:
            for part in filter(None, parts.values()):
                if not Path(part).exists():
                    raise StoreError(f"{part}: no such file or folder")
        return engine

    @property
    def linker(self) -> Linker:
        """The linker, opened when it is first needed."""
        with self._opening:
            if self._linker is None:
                self._linker = self._open_linker()
            return self._linker

    @property
    def suggestions(self) -> NameSuggestions:
        """Suggestions of names, sorted when they are first needed."""
        with self._sorting:
            if self._suggestions is None:
                self._suggestions = NameSuggestions(self.kb)
            return self._suggestions

    def warm_up(self) -> None:
        """Search and link once, so that no request waits for the first use."""
        self.suggestions.pinyin.find("aa")
        self.search_json("a", 1, None)
        self._link([LinkJob(_WARM_UP, ()), LinkJob(_WARM_UP, (), as_terms=True)])

    # ---- text

    def assert_status(self, text: str, spans: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
        """Return what a text says about spans of it, as plain values.

        Args:
            text: A text.
            spans: Start and end of each.
        """
        pairs = [(start, end) for start, end in spans]
        found = self.linker.assertions.assert_status(text, pairs)
        return [
            {"start": start, "end": end, **each.to_json()}
            for (start, end), each in zip(pairs, found, strict=True)
        ]

    def link(self, jobs: Sequence[LinkJob]) -> list[list[LinkedDocument] | list[list[Candidate]]]:
        """Answer several requests; texts that are linked by the same settings go together.

        Args:
            jobs: The requests.
        """
        with Work(max_steps=self._max_steps).counted():
            return self._link(jobs)

    def _link(self, jobs: Sequence[LinkJob]) -> list[Any]:
        groups: dict[tuple[bool, tuple[tuple[str, Any], ...]], list[int]] = {}
        for number, job in enumerate(jobs):
            groups.setdefault((job.as_terms, job.settings), []).append(number)
        answers: list[Any] = [None] * len(jobs)
        for (as_terms, settings), numbers in groups.items():
            linker = self._linker_of(settings)
            texts = [text for number in numbers for text in jobs[number].texts]
            linked: list[Any] = []
            for each in linker.link_mentions(texts) if as_terms else linker.pipe(texts, _AT_ONCE):
                spend()
                linked.append(each)
            done = 0
            for number in numbers:
                end = done + len(jobs[number].texts)
                answers[number], done = linked[done:end], end
        return answers

    def _with_settings(self, settings: tuple[tuple[str, Any], ...]) -> Linker:
        return self.linker.with_settings(**dict(settings)) if settings else self.linker

    # ---- concepts

    @cached_property
    def terminology(self) -> Terminology:
        """The FHIR terminology of the store, made when it is first asked for."""
        from biograft.serve.fhir.terminology import Terminology

        return Terminology(self.kb, self.suggestions, self._systems, self._content, self._review)

    def open_terminology(self) -> None:
        """Answer once what look-ups are asked."""
        self.terminology.warm_up()
        self.warm_terminology = self.terminology

    def concept(self, identifier: str) -> dict[str, Any]:
        """Return a concept with its names, definitions, types, ids, parents and children.

        At most ``MAX_RELATIVES`` parents, and as many children; ``relations`` has their numbers.

        Args:
            identifier: An id of the concept.
        """
        row = self.row(identifier)
        concept, identifier = self.kb.concept_at(row).to_json(), self.kb.id_at(row)
        return {
            **concept,
            "name": self._name(identifier),
            "parents": self._named(self.kb.parents(identifier)),
            "children": self._named(self.kb.children(identifier)),
            "relations": [
                {"relation": each.relation, "direction": each.direction, "n": each.n}
                for each in self.kb.count_relations(identifier)
            ],
        }

    def search(self, text: str, limit: int, language: str | None) -> list[Match]:
        """Return the concepts whose names begin with a text, or have words that do.

        Args:
            text: What was typed.
            limit: Maximum number of concepts.
            language: Language of the names; default: any.
        """
        ready = self._suggestions
        if ready is None and self.kb.n_names > _SORTED_AT_ONCE:  # sorting takes too long
            return NameSuggestions(self.kb, text).find(text, limit, language=language)
        return (ready or self.suggestions).find(text, limit, language=language)

    def search_json(self, text: str, limit: int, language: str | None) -> bytes:
        """Return what ``search`` returns as JSON; answers to frequent searches are kept.

        Args:
            text: What was typed.
            limit: Maximum number of concepts.
            language: Language of the names; default: any.
        """
        answer = self._kept if limit <= _KEPT_HITS else self._search_json
        return answer(normalise(text), limit, language, ASKED_LANGUAGE.get())

    def _search_json(self, text: str, limit: int, language: str | None, shown: str) -> bytes:
        hits = [
            {
                "concept": each.concept,
                "name": self.kb.name_in(self.kb.row(each.concept), shown),
                "matched": each.name,
                "language": each.language,
                "how": each.how,
            }
            for each in self.search(text, limit, language)
        ]
        return to_json({"concepts": hits})

    def neighbours(self, identifier: str, relation: str | None, limit: int) -> list[dict[str, str]]:
        """Return the concepts in relation to a concept, in both directions.

        Args:
            identifier: An id of the concept.
            relation: The relation; default: all.
            limit: Maximum number of concepts.

        Returns:
            Each with the direction of the relation; ``out``: the concept asked for is its head.
        """
        own = self.kb.id_at(self.row(identifier))
        found = []
        for each in self.kb.relations(own, relation=relation, limit=limit)[:limit]:
            outward = each.head == own
            other = each.tail if outward else each.head
            found.append(
                {
                    "concept": other,
                    "name": self._name(other),
                    "relation": each.relation,
                    "direction": "out" if outward else "in",
                }
            )
        return found

    def is_a(self, concept: str, ancestor: str) -> bool:
        """Return whether a concept is another one, or below it.

        Args:
            concept: An id of the concept.
            ancestor: An id of the other concept.
        """
        return self.kb.hierarchy.is_a(self.row(concept), self.row(ancestor))

    def versions(self) -> dict[str, Any]:
        """Describe the store that answers, without its place on disk."""
        return {
            "n_concepts": len(self.kb),
            "n_names": self.kb.n_names,
            "n_relations": self.kb.n_relations,
            "languages": list(self.kb.languages),
            "made_at": self.kb.manifest.get("made_at"),
            "scores": self.linker.score_source,
            "calibrated": self.linker.calibration is not None,
        }

    def row(self, identifier: str) -> int:
        """Return the row of a concept, or say that there is none, without a place on disk.

        A code of another vocabulary that one concept alone refers to is an id of it, too.

        Args:
            identifier: An id of the concept.
        """
        row = self.kb.find_row(identifier)
        if row is not None:
            return row
        if (retired := self.kb.replacement(identifier)) is not None:
            raise NotFoundError(f"no concept has the id {identifier!r}; {retired}")
        referring = [concept.id for concept in self.kb.by_xref(identifier)]
        if len(referring) == 1:
            return self.kb.row(referring[0])
        several = f"; several refer to it: {', '.join(referring[:_SHOWN])}" if referring else ""
        raise NotFoundError(f"no concept has the id {identifier!r}{several}")

    def _named(self, ids: Sequence[str]) -> list[dict[str, str]]:
        return [{"id": each, "name": self._name(each)} for each in ids[:MAX_RELATIVES]]

    def _name(self, identifier: str) -> str:
        return self.kb.name_in(self.kb.row(identifier), ASKED_LANGUAGE.get())

    def named(self, found: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Return candidates with the names of concepts in the language of the request."""
        language = ASKED_LANGUAGE.get()
        return tuple(each.named(self.kb, language) for each in found) if language else tuple(found)


def settings_of(**wanted: Any) -> tuple[tuple[str, Any], ...]:
    """Return the settings that a request gives, in a fixed order; None means not given.

    Args:
        wanted: Settings by name; None is not given.
    """
    given = {key: value for key, value in wanted.items() if value is not None}
    for key in ("types", "sources"):
        if key in given:
            given[key] = tuple(given[key])
    threshold = given.get("threshold")
    if threshold is not None and not 0 <= threshold <= 1:
        raise ConfigError(f"threshold: expected a number from 0 to 1, found {threshold}")
    return tuple(sorted(given.items()))
