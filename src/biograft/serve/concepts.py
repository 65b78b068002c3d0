"""Concepts for programs that must not invent any: answers of bounded size, each with its source.

Every list is cut at a limit, and says so (``truncated``); every concept has its id, its label and
the source of that label. What is found is computed by the store, the linker and the terminology of
:class:`~biograft.serve.engine.ServiceEngine`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import biograft
from biograft.errors import NotFoundError
from biograft.kb import ConceptRelation, Replacement
from biograft.kb.fingerprints import store_fingerprint
from biograft.kb.names import normalise
from biograft.kb.store import DIRECTIONS
from biograft.kb.vocabularies import canonical_id
from biograft.linking import Candidate, LinkedMention
from biograft.mapping import SourceTerm, TermMapping, map_terms
from biograft.serve.engine import LinkJob, ServiceEngine, settings_of

Answer = dict[str, Any]
MAX_TEXT = 2_000
"""Characters of a name or a definition; longer ones are cut."""
_FINGERPRINT = 12
_SUGGESTED = 3
"""Concepts that are offered for a label that is not right."""
_SHOWN_IDS = 50


class ConceptAnswers:
    """Answers about concepts and texts, as plain values of bounded size."""

    def __init__(self, engine: ServiceEngine) -> None:
        self.engine, self.kb = engine, engine.kb
        self._linking = threading.Lock()
        self._ends = self.kb.numbers("concepts", "names_end")
        self.version = (
            f"{self.kb.manifest.get('made_at')} {store_fingerprint(self.kb)[:_FINGERPRINT]}"
        )
        """When the store was built, and a hash of its content."""

    # ---- concepts

    def described(self, row: int) -> Answer:
        """Return a concept by its id, its label, and the source of the label."""
        names = self._name_rows(row)
        return {
            "id": self.kb.id_at(row),
            "label": _cut(self.kb.name_at(row)),
            "source": self.kb.name(names[0]).source if names else None,
        }

    def _name_rows(self, row: int) -> range:
        return range(int(self._ends[row - 1]) if row else 0, int(self._ends[row]))

    def of_id(self, identifier: str) -> Answer:
        """Return the concept with an id."""
        return self.described(self.engine.row(identifier))

    def search(self, text: str, limit: int, language: str | None = None) -> Answer:
        """Find concepts by names that begin with a text, or have words that do."""
        found = self.engine.search(text, limit + 1, language)
        hits = [
            {
                **self.of_id(each.concept),
                "evidence": {"name": _cut(each.name), "language": each.language, "how": each.how},
            }
            for each in found[:limit]
        ]
        return self._answer(concepts=hits, truncated=len(found) > limit)

    def concept(self, identifier: str, limit: int) -> Answer:
        """Return what the store knows of a concept."""
        known = self.engine.concept(identifier)
        row = self.engine.row(identifier)
        lists = {
            "definitions": [{**each, "text": _cut(each["text"])} for each in known["definitions"]],
            "names": [{**each, "text": _cut(each["text"])} for each in known["names"]],
            "parents": [self.described(each) for each in self.kb.hierarchy.parents(row)],
            "types": known["types"],
            "ids": known["ids"],
            "relations": known["relations"],
        }
        return self._answer(
            **self.described(row),
            **{key: each[:limit] for key, each in lists.items()},
            n_names=len(known["names"]),
            n_children=len(self.kb.hierarchy.children(row)),
            truncated=any(len(each) > limit for each in lists.values()),
        )

    def names(self, identifier: str, language: str | None, limit: int) -> Answer:
        """Return the names of a concept, with their languages, kinds and sources."""
        row = self.engine.row(identifier)
        known = (self.kb.name(position) for position in self._name_rows(row))
        names = [
            {**asdict(each), "text": _cut(each.text)}
            for each in known
            if language is None or each.language == language
        ]
        return self._answer(**self.described(row), **_listed("names", names, limit))

    # ---- hierarchy and relations

    def relatives(self, identifier: str, way: str, limit: int) -> Answer:
        """Return the ``ancestors``, ``descendants``, ``parents`` or ``children`` of a concept."""
        row, hierarchy = self.engine.row(identifier), self.kb.hierarchy
        ways: Mapping[str, Callable[[int], Sequence[int]]] = {
            "ancestors": hierarchy.ancestors,
            "descendants": hierarchy.descendants,
            "parents": hierarchy.parents,
            "children": hierarchy.children,
        }
        rows = ways[way](row)
        return self._answer(**self.described(row), **_listed(way, rows, limit, self.described))

    def is_a(self, identifier: str, ancestor: str) -> Answer:
        """Return whether a concept is another or below it, and the way up as evidence."""
        row, above = self.engine.row(identifier), self.engine.row(ancestor)
        found = self.engine.is_a(identifier, ancestor)
        up = self.kb.hierarchy.path(row, above)[0] if found else []
        return self._answer(
            **self.described(row),
            ancestor=self.described(above),
            is_a=found,
            evidence=[self.described(each) for each in up],
        )

    def path(self, identifier: str, other: str) -> Answer:
        """Return the shortest way between two concepts over a common ancestor."""
        row, target = self.engine.row(identifier), self.engine.row(other)
        up, down = self.kb.hierarchy.path(row, target)
        return self._answer(
            **self.described(row),
            other=self.described(target),
            common_ancestor=self.described(up[-1]) if up else None,
            up=[self.described(each) for each in up],
            down=[self.described(each) for each in down],
        )

    def neighbours(
        self, identifier: str, relation: str | None, direction: str, limit: int
    ) -> Answer:
        """Return the concepts in relation to one, by relation and direction."""
        if relation is not None and relation not in self.kb.relation_names:
            known = ", ".join(self.kb.relation_names[:_SHOWN_IDS])
            raise NotFoundError(f"no relation is called {relation!r}; known: {known}")
        if direction not in DIRECTIONS:
            raise NotFoundError(
                f"direction: expected one of {', '.join(DIRECTIONS)}, found {direction!r}"
            )
        row = self.engine.row(identifier)
        own = self.kb.id_at(row)
        found = self.kb.relations(own, relation=relation, direction=direction, limit=limit + 1)
        listed = _listed("neighbours", found, limit, lambda each: self._neighbour(each, own))
        counted = [
            each for each in self.kb.count_relations(own) if direction in ("both", each.direction)
        ]
        listed["total"] = sum(
            each.n for each in counted if relation is None or each.relation == relation
        )
        listed["truncated"] = listed["total"] > len(listed["neighbours"])
        return self._answer(**self.described(row), **listed)

    def _neighbour(self, each: ConceptRelation, own: str) -> Answer:
        outward = each.head == own
        return {
            **self.of_id(each.tail if outward else each.head),
            "relation": each.relation,
            "direction": "out" if outward else "in",
            "evidence": {"source": each.source},
        }

    def cross_references(self, identifier: str, limit: int) -> Answer:
        """Return the ids of a concept in all vocabularies, or the concepts that refer to an id."""
        row = self.kb.find_row(identifier)
        referring = [
            {**self.of_id(each.id), "evidence": {"refers_to": identifier}}
            for each in self.kb.by_xref(identifier)[: limit + 1]
        ]
        if row is None and not referring:
            raise NotFoundError(f"no concept has the id {identifier!r}, and none refers to it")
        own = _listed("codes", [] if row is None else self._codes(row), limit)
        return self._answer(
            concept=None if row is None else self.described(row),
            **own | {"truncated": own["truncated"] or len(referring) > limit},
            referred_to_by=referring[:limit],
        )

    def _codes(self, row: int) -> list[Answer]:
        systems = self.engine.terminology.systems
        codes = []
        for entry in systems.entries_at(row):
            system = systems.system(entry)
            is_xref = systems.is_xref(entry)
            codes.append(
                {
                    "id": systems.identifier(entry),
                    "system": None if system is None else system.url,
                    "code": systems.code(entry),
                    "kind": "cross-reference"
                    if is_xref
                    else "primary"
                    if systems.is_primary(entry)
                    else "alternate",
                    "in_use": is_xref or systems.is_active(entry),
                }
            )
        return codes

    # ---- texts

    def link_text(self, text: str, k: int, limit: int) -> Answer:
        """Find and link the mentions of a text."""
        with self._linking:
            (linked,) = self.engine.link([LinkJob((text,), settings_of(k=k))])[0]
        listed = _listed("mentions", linked.mentions, limit, lambda each: self._mention(each, k))  # type: ignore[union-attr]
        return self._answer(**listed)

    def _mention(self, mention: LinkedMention, k: int) -> Answer:
        answer = mention.answer
        return {
            "start": mention.start,
            "end": mention.end,
            "text": mention.text,
            "concept": None if answer is None else self._candidate(answer),
            "status": mention.status,
            "section": mention.section,
            "ambiguous": list(mention.ambiguous[:_SHOWN_IDS]),
            "candidates": [self._candidate(each) for each in mention.candidates[:k]],
        }

    def _candidate(self, candidate: Candidate) -> Answer:
        return {
            **self.of_id(candidate.concept),
            "score": candidate.score,
            "probability": candidate.probability,
            "evidence": [each.to_json() for each in candidate.evidence],
        }

    def map_terms(self, terms: Sequence[str], k: int) -> Answer:
        """Map each distinct term to a concept, or to none."""
        return self._answer(terms=[self._mapping(each, k) for each in self._mapped(terms)])

    def _mapped(self, terms: Iterable[str | SourceTerm]) -> list[TermMapping]:
        with self._linking:
            return list(map_terms(self.engine.linker, terms))

    def _mapping(self, mapping: TermMapping, k: int) -> Answer:
        found = mapping.concept is not None
        return {
            "term": mapping.term.text,
            "concept": self.of_id(mapping.concept) if mapping.concept is not None else None,
            "score": mapping.score,
            "probability": mapping.probability,
            "flag": mapping.flag,
            "others": [self._candidate(each) for each in mapping.others[: k - found]],
        }

    # ---- checks

    def check(self, codes: Sequence[tuple[str, str]]) -> Answer:
        """Say of each id and label whether the id exists, and whether the label is its own."""
        checked = [self._checked(*each) for each in codes]
        wrong = [n for n, each in enumerate(checked) if each["status"] in _UNNAMED]
        terms = [SourceTerm(checked[n]["label"], str(n)) for n in wrong]
        offered = {int(each.term.code): self._offered(each) for each in self._mapped(terms)}
        for n in wrong:
            checked[n]["suggestions"] = offered.get(n, [])
        return self._answer(
            codes=checked,
            n_wrong=sum(each["status"] in _WRONG for each in checked),
        )

    def _checked(self, identifier: str, label: str) -> Answer:
        retired = self._retired(identifier)
        named = self.kb.find(label) if label.strip() else []
        rows = [] if retired else self.kb.rows_of([identifier])
        own = {self.kb.id_at(row) for row in rows}
        match = next((each for each in named if each.concept in own), None)
        others = [self.of_id(each.concept) for each in named if each.concept not in own]
        row = self.kb.row(match.concept) if match else self.kb.find_row(identifier)
        if retired:
            row, status = None, "retired"
        elif row is None:
            status = "cross_reference" if self.kb.by_xref(identifier) else "unknown_id"
        elif not label.strip():
            status = "no_label"
        elif match is not None:
            is_preferred = normalise(match.name) == normalise(match.concept_name)
            status = "preferred" if is_preferred else "synonym"
        else:
            status = "label_of_another" if others else "unknown_label"
        return {
            "id": identifier,
            "label": label,
            "status": status,
            "concept": None if row is None else self.described(row),
            "evidence": None
            if match is None
            else {"name": _cut(match.name), "language": match.language, "how": match.how},
            "label_belongs_to": others[:_SUGGESTED],
            **({} if retired is None else self._successors(retired)),
        }

    def _retired(self, identifier: str) -> Replacement | None:
        """Return what took the place of an id, unless a concept of today has it as its own.

        An id that was merged into another of the same vocabulary is retired, too, whether or not
        its source still has an entry for it; an alternate id of another vocabulary is not.
        """
        row = self.kb.find_row(identifier)
        primary = None if row is None else self.kb.id_at(row)
        if primary is not None and canonical_id(primary) == canonical_id(identifier):
            return None
        stated = self.kb.replacement(identifier)
        if stated is not None or primary is None:
            return stated
        prefix, colon, _ = identifier.partition(":")
        if colon and primary.upper().startswith(f"{prefix.upper()}:"):
            return Replacement(identifier, replaced_by=(primary,))
        return None

    def _successors(self, retired: Replacement) -> Answer:
        """Return the concepts that take the place of a retired id."""
        named = {"replaced_by": retired.replaced_by, "consider": retired.consider}
        return {how: [self.of_id(each) for each in ids[:_SHOWN_IDS]] for how, ids in named.items()}

    def _offered(self, mapping: TermMapping) -> list[Answer]:
        """Return the concepts that the linker would give to a label."""
        best = [] if mapping.concept is None else [mapping.concept]
        ids = [*best, *(other.concept for other in mapping.others)]
        return [self.of_id(each) for each in ids[:_SUGGESTED]]

    def versions(self) -> Answer:
        """Describe what answers: the program, the store and its sources."""
        read = self.kb.manifest.get("sources", ())
        names = [str(each["path"]).replace("\\", "/").rpartition("/")[2] for each in read]
        hashes = [
            {"name": name, "format": each.get("format"), "sha256": _hashes(each)}
            for name, each in zip(names, read, strict=True)
        ]
        known = {**self.engine.versions(), "relations": self.kb.relation_names}
        return self._answer(
            biograft=biograft.__version__,
            **known,
            vocabularies=self.kb.sources[:_SHOWN_IDS],
            sources=hashes[:_SHOWN_IDS],
            truncated=max(len(self.kb.sources), len(hashes)) > _SHOWN_IDS,
        )

    def _answer(self, **content: Any) -> Answer:
        return {**content, "version": self.version}


_UNNAMED = ("unknown_id", "unknown_label", "label_of_another")
"""Results of a check for which other concepts are offered."""
_WRONG = (*_UNNAMED, "cross_reference", "retired")


def _hashes(source: Mapping[str, Any]) -> list[str]:
    return [str(file["sha256"])[:_FINGERPRINT] for file in source.get("files", ())][:_SHOWN_IDS]


def _listed(
    what: str, items: Sequence[Any], limit: int, describe: Callable[[Any], Any] = lambda each: each
) -> Answer:
    """Return the first items of a list, how many there are, and whether some were left out."""
    return {
        what: [describe(each) for each in items[:limit]],
        "total": len(items),
        "truncated": len(items) > limit,
    }


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
