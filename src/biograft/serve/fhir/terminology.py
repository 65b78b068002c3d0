"""The operations of a FHIR R4 terminology service, on a store; they know nothing of HTTP."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from biograft.kb import KnowledgeBase
from biograft.kb.code_systems import (
    LOCAL,
    CodeSystems,
    Entries,
    SuppliedSystem,
    fits,
)
from biograft.kb.fhir import AT_ONCE, Resource, TerminologyError, list_in, spend
from biograft.kb.search import NameSuggestions
from biograft.kb.value_sets import UnknownImportError, ValueSet, ValueSetReader
from biograft.kb.vocabularies import canonical_id, code_of, system_of, vocabulary_of
from biograft.mapping import MappingSet
from biograft.mapping.sssom import quoted
from biograft.serve.fhir.closure import ClosureTables
from biograft.serve.fhir.content import MAX_SERVED, FhirContent, codes_first
from biograft.serve.fhir.expansion import (
    Expansion,
    Languages,
    designations,
    display,
    languages_of,
    wanted_designations,
)
from biograft.serve.fhir.parameters import (
    Coding,
    Parameters,
    coding,
    optional,
    outcome_of,
    pairs_of,
    part,
    parts,
    to_parameters,
)
from biograft.serve.fhir.translation import (
    NO_MATCH,
    RELATIONSHIPS,
    CodeMatch,
    Question,
    TranslationMap,
    map_of_set,
    read_map,
)
from biograft.serve.fhir.validation import (
    Validation,
    not_validated,
    stated_versions,
    version_check,
)

if TYPE_CHECKING:
    from biograft.mapping import ReviewStore

_MAX_CHILDREN = 1_000
"""Codes that a look-up lists below a code."""
_MAX_RESOURCES = 200
"""Code systems and value sets that a request brings."""
_MAX_VALIDATIONS = 1_000
_STEPS_OF_CODE = 50
_STEPS_OF_REVIEW = 100_000
_PROPERTIES = ("display", "designation", "definition", "parent", "child", "inactive", "type")
_SAME_AS = "same-as"
_SUPPLEMENT = "http://hl7.org/fhir/StructureDefinition/valueset-supplement"


class Terminology:
    """The terminology service of a store.

    Args:
        kb: Knowledge base that is served.
        suggestions: Searches names as they are typed, for the ``filter`` of ``$expand``.
        urls: URIs of code systems by prefix of their ids, or by source, beside those known.
        content: Resources and mapping sets that are served beside the store.
        review: Returns the review whose decisions are served; None: there is none.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        suggestions: NameSuggestions,
        urls: Mapping[str, str] | None = None,
        content: FhirContent | None = None,
        review: Callable[[], ReviewStore | None] = lambda: None,
    ) -> None:
        self.kb, self._suggestions = kb, suggestions
        self._content, self._review = content or FhirContent(), review
        self.systems = CodeSystems(kb, urls)
        if served := list(codes_first(self._content.of("CodeSystem"))):
            self.systems = self.systems.with_supplied(served, {}, {}, max_concepts=MAX_SERVED)
        self._served_sets: dict[str, list[Resource]] = {}
        for each in self._content.of("ValueSet"):
            self._served_sets.setdefault(str(each["url"]), []).append(each)
        self._closures = ClosureTables(self.systems)
        self._reviewed: tuple[int | None, list[TranslationMap]] = (None, [])
        self._expanded = lru_cache(4)(self._all_of_url)

    def warm_up(self) -> None:
        """Answer once what is asked of a code, so that nothing is opened by a request."""
        for system in self.systems:
            for entry in self.systems.members(system)[:1].tolist():
                named = [("system", system.url)]
                code = self.systems.code(entry)
                asked = Parameters([*named, ("code", code)])
                for answer in (self.lookup, self.validate_code, self.translate):
                    answer(asked)
                self.subsumes(Parameters([*named, ("codeA", code), ("codeB", code)]))

    # ---- what a request brings

    def _codes(self, asked: Parameters) -> CodeSystems:
        """Return the codes that a request is about: of the store, and of its own resources."""
        resources = _brought(asked, "CodeSystem")
        if (own := asked.resource("codeSystem", "CodeSystem")) is not None:
            resources.append(own)
        names = ("check-system-version", "system-version", "force-system-version")
        wanted = [*asked.all_texts("useSupplement"), *_required_supplements(asked)]
        if not resources and not wanted and not any(name in asked for name in names):
            return self.systems
        checked, preferred, forced = (_versions(asked.all_texts(name)) for name in names)
        return self.systems.with_supplied(resources, {**checked, **preferred}, forced, wanted)

    def _value_set(
        self, asked: Parameters, codes: CodeSystems, *, lenient: bool = False
    ) -> ValueSet:
        reader = self._reader(asked, codes, lenient=lenient)
        given = asked.resource("valueSet", "ValueSet")
        if given is not None:
            return reader.of_resource(given)
        url, version = asked.required("url"), asked.text("valueSetVersion")
        return reader.of_url(f"{url}|{version}" if version and "|" not in url else url)

    def _reader(
        self, asked: Parameters, codes: CodeSystems, *, lenient: bool = False
    ) -> ValueSetReader:
        return ValueSetReader(
            self.kb,
            codes,
            _brought(asked, "ValueSet"),
            lenient=lenient,
            versions=_versions(asked.all_texts("default-valueset-version")),
            served=self._served_sets,
        )

    # ---- CodeSystem

    def lookup(self, asked: Parameters) -> Resource:
        """Return what is known of a code (``CodeSystem/$lookup``).

        Args:
            asked: The parameters of the request.
        """
        codes = self._codes(asked)
        given = asked.coding("coding") or Coding(asked.text("system"), asked.required("code"))
        entry = self._entry(codes, given._replace(version=given.version or asked.text("version")))
        system = codes.known_system(entry)
        wanted, languages = asked.all_texts("property"), languages_of(asked)
        shown = display(codes, entry, languages)
        listed = [
            part("name", "String", system.name or "kb"),
            optional("version", "String", system.version),
            optional("display", "String", shown),
            part("system", "Uri", system.url),
            part("code", "Code", codes.code(entry)),
        ]
        sources: Mapping[str, str] = {}
        if isinstance(system, SuppliedSystem):
            sources = system.concept(entry).sources
            listed.append(part("abstract", "Boolean", system.is_abstract(entry)))
            listed += [part("used-supplement", "Canonical", each) for each in codes.supplements]
        if _wants("designation", wanted):
            only = [each.removeprefix("lang.") for each in wanted if each.startswith("lang.")]
            listed += [
                parts(
                    "designation",
                    optional("language", "Code", each.get("language")),
                    optional("use", "Coding", each.get("use")),
                    optional("source", "Canonical", sources.get(str(each["value"]))),
                    part("value", "String", each["value"]),
                )
                for each in wanted_designations(designations(codes, codes.row(entry)), only)
            ]
        return to_parameters(*listed, *self._properties(codes, entry, wanted, languages))

    def _properties(
        self, codes: CodeSystems, entry: int, wanted: list[str], languages: Languages
    ) -> list[Resource]:
        row, system = codes.row(entry), codes.known_system(entry)
        listed = []
        if _wants("inactive", wanted):
            listed.append(_property("inactive", "Boolean", not codes.is_active(entry)))
        if isinstance(system, SuppliedSystem):
            described = system.concept(entry)
            if described.definition and _wants("definition", wanted):
                listed.append(part("definition", "String", described.definition))
            listed += [
                _property(name, kind, value)
                for name, value, kind in described.properties
                if _wants(name, wanted) and name not in ("parent", "child", "inactive")
            ]
        else:
            concept = self.kb.concept_at(row)
            if _wants("definition", wanted):
                listed += [_property("definition", "String", d.text) for d in concept.definitions]
            if _wants("type", wanted):
                listed += [_property("type", "Code", t.code, t.label) for t in concept.types]
            listed += self._related(row, wanted)
        for name, rows_of in (("parent", codes.parents), ("child", codes.children)):
            rows = rows_of(row) if _wants(name, wanted) else ()
            if len(rows) > _MAX_CHILDREN:
                if name in wanted:
                    raise TerminologyError(
                        "too-costly",
                        f"property {name}: {len(rows)} codes, at most {_MAX_CHILDREN} are listed; "
                        "use ValueSet/$expand with count and offset",
                    )
                continue
            spend(_STEPS_OF_CODE * len(rows))
            for other in codes.of_rows(system, rows).tolist():
                called = display(codes, other, languages) or ""
                listed.append(_property(name, "Code", codes.code(other), called))
        return listed

    def _related(self, row: int, wanted: list[str]) -> list[Resource]:
        """Return the concepts at the other end of the relations that are asked for by name."""
        listed = []
        for name in dict.fromkeys(wanted):
            if name in self.kb.relation_names and name not in _PROPERTIES:
                for each in self.kb.relations(
                    self.kb.id_at(row), relation=name, direction="out", limit=_MAX_CHILDREN
                ):
                    described = self._described(self.kb.row(each.tail))
                    listed.append(_property(name, "Coding", coding(*described)))
        return listed

    def validate_code(self, asked: Parameters) -> Resource:
        """Return whether a system has a code, by a name of it (``CodeSystem/$validate-code``).

        Args:
            asked: The parameters of the request.
        """
        codes = self._codes(asked)
        url = asked.text("url") or asked.text("system")
        own = asked.resource("codeSystem", "CodeSystem")
        if url is None and own is not None:
            url = str(own.get("url"))
        system = None if url is None else codes.known(url, asked.text("version"))
        return Validation(
            codes, asked, system=system, value_sets=self._value_set_urls(asked)
        ).answer()

    def subsumes(self, asked: Parameters) -> Resource:
        """Return how two codes stand to each other (``CodeSystem/$subsumes``).

        Args:
            asked: The parameters of the request.
        """
        codes, default = self._codes(asked), asked.text("system")
        entries = []
        for which in "AB":
            given = asked.coding(f"coding{which}") or Coding(
                default, asked.required(f"code{which}"), version=asked.text("version")
            )
            entries.append(self._entry(codes, given._replace(system=given.system or default)))
        if codes.system(entries[0]) != codes.system(entries[1]):
            raise TerminologyError("invalid", "the codes are of different systems")
        first, second = map(codes.row, entries)
        outcome = {
            (True, True): "equivalent",
            (True, False): "subsumes",
            (False, True): "subsumed-by",
            (False, False): "not-subsumed",
        }[codes.is_a(second, first), codes.is_a(first, second)]
        return to_parameters(part("outcome", "Code", outcome))

    # ---- ValueSet

    def expand(self, asked: Parameters) -> Resource:
        """Return the codes of a value set, page by page (``ValueSet/$expand``).

        Args:
            asked: The parameters of the request.
        """
        _refuse(asked, "context", "exclude-system")
        codes = self._codes(asked)
        chosen = self._value_set(asked, codes)
        _check_versions(chosen, _versions(asked.all_texts("check-system-version")))
        made = Expansion(codes, asked, chosen, self._suggestions, str(self.kb.manifest["made_at"]))
        # those of a URL of the store are kept, so that the next page is available
        is_own = not chosen.resource and "valueSet" not in asked
        kept = codes is self.systems and is_own and "filter" not in asked
        return made.answer(self._expanded(asked.required("url")) if kept else None)

    def _value_set_urls(self, asked: Parameters) -> Container[str]:
        return ChainMap(
            {str(e.get("url")): [e] for e in _brought(asked, "ValueSet")}, self._served_sets
        )

    def _all_of_url(self, url: str) -> Entries:
        reader = ValueSetReader(self.kb, self.systems, served=self._served_sets)
        return reader.of_url(url).entries(self.systems)

    def validate_member(self, asked: Parameters) -> Resource:
        """Return whether a value set has a code (``ValueSet/$validate-code``).

        Args:
            asked: The parameters of the request.
        """
        _refuse(asked, "context")
        codes = self._codes(asked)
        if codes.supplied:
            codes.hints = stated_versions(asked)
        try:
            chosen = self._value_set(asked, codes, lenient=True)
        except UnknownImportError as error:
            return not_validated(asked, error)
        checks = _versions(asked.all_texts("check-system-version"))
        known = self._value_set_urls(asked)
        return Validation(codes, asked, chosen=chosen, checks=checks, value_sets=known).answer()

    def validate_batch(
        self, asked: Parameters, validate: Callable[[Parameters], Resource]
    ) -> Resource:
        """Return the answers to several requests of ``$validate-code``, in their order.

        Args:
            asked: The requests, and the resources that they share.
            validate: Answers one of them.
        """
        listed = asked.resources("validation", "Parameters")
        if not listed:
            raise TerminologyError("required", "validation: missing")
        if len(listed) > _MAX_VALIDATIONS:
            raise TerminologyError("too-costly", f"validation: at most {_MAX_VALIDATIONS} at once")
        answers = []
        for each in listed:
            try:
                answer = validate(asked.with_values(pairs_of(each), without="validation"))
            except TerminologyError as error:
                answer = outcome_of(error)
            answers.append({"name": "validation", "resource": answer})
        return to_parameters(*answers)

    # ---- ConceptMap

    def closure(self, asked: Parameters) -> Resource:
        """Keep the is-a relations between the codes of a client (``$closure``).

        Args:
            asked: The parameters of the request.
        """
        return self._closures.answer(asked)

    def resources(self, kind: str) -> list[Resource]:
        """Return the resources of a type that are served beside the store.

        Args:
            kind: CodeSystem, ValueSet or ConceptMap.
        """
        if kind == "CodeSystem":
            listed = [each.resource for each in self.systems.supplied]
            return [*listed, *self.systems.known_supplements.values()]
        return self._content.of(kind)

    def translate(self, asked: Parameters) -> Resource:
        """Return the codes of other systems for a code (``ConceptMap/$translate``).

        Without ``url`` and ``conceptMap``, all maps are asked, and then the store.

        Args:
            asked: The parameters of the request.
        """
        question, codes = Question.read(asked), self._codes(asked)
        own, url = asked.resource("conceptMap", "ConceptMap"), asked.text("url")
        brought = [*([own] if own else []), *_brought(asked, "ConceptMap")]
        known = [*map(read_map, brought), *self.maps()]
        sides = ("target", "source") if question.reverse else ("source", "target")
        listed = known[:1] if own else known
        if url is not None and own is None:
            listed = [self._map(known, url, asked.text("conceptMapVersion"))]
        listed = [m for m in listed if m.has_scope(sides[0], question.own_scope)]
        is_wanted = self._in_scope(asked, codes, question, listed, sides[1])

        def find_map(wanted: str) -> TranslationMap | None:
            return next((m for m in known if wanted in (m.url, m.canonical)), None)

        found: dict[tuple[Any, ...], CodeMatch] = {}
        for given in question.codings:
            for each in self._spellings(given) if listed else ():
                for chosen in listed:
                    for match in chosen.find(each, reverse=question.reverse, find_map=find_map):
                        selected = question.select(match)
                        other = match.source if question.reverse else match.target
                        if selected is not None and is_wanted(other, chosen):
                            found.setdefault(match, selected)
        answered = {(e.system, e.code) for m in found.values() for e in (m.source, m.target)}
        for given in question.codings if own is None and url is None else ():
            for how, *described in self._translations(given):
                other = Coding(*described)
                match = CodeMatch(given, other, how)
                match = match.inverted() if question.reverse else match
                if other[:2] not in answered and question.select(match) and is_wanted(other, None):
                    found.setdefault(other[:2], match)
        matches = list(found.values())
        success = any(m.equivalence not in NO_MATCH and not m.depends_on for m in matches)
        message = f"{url or 'the store'} has no translation"
        if needed := sorted({each.name for match in matches for each in match.depends_on}):
            message = f"the translation depends on {', '.join(needed)}; give it as dependency"
        return to_parameters(
            part("result", "Boolean", success),
            None if success else part("message", "String", message),
            *(_answered(match, question) for match in matches),
        )

    @property
    def is_reviewed(self) -> bool:
        """Whether the decisions of a review are served, so that translations may change."""
        return self._review() is not None

    def maps(self) -> list[TranslationMap]:
        """Return the concept maps that are served: resources, mapping sets, the review."""
        return [*self._content.maps, *self._set_maps, *self._review_maps()]

    @cached_property
    def _set_maps(self) -> list[TranslationMap]:
        return [
            map_of_set(each, each.id or f"urn:biograft:mapping-set:{name}", self._coding_of, name)
            for name, each in self._content.sets
        ]

    def _review_maps(self) -> list[TranslationMap]:
        """Return the decisions so far, a map for each queue; read anew after a decision."""
        store = self._review()
        if store is None:
            return []
        spend(_STEPS_OF_CODE)
        revision = store.revision()
        if self._reviewed[0] != revision:
            spend(_STEPS_OF_REVIEW)
            from biograft.mapping import export_decisions  # with SQLAlchemy, where there is one

            maps = []
            for queue in store.queues():
                name = str(queue["queue"])
                decisions = export_decisions(store, name, left_out=[])
                mappings = MappingSet.of_decisions(decisions, source=name)
                url = f"urn:biograft:review:{quoted(name)}"
                maps.append(map_of_set(mappings, url, self._coding_of, f"review-{name}"))
            self._reviewed = (revision, maps)
        return self._reviewed[1]

    @staticmethod
    def _map(known: Sequence[TranslationMap], url: str, version: str | None) -> TranslationMap:
        base, _, after = url.partition("|")
        wanted = version or after
        for each in known:
            if each.url == base and (not wanted or fits(each.version, wanted)):
                return each
        raise TerminologyError(
            "not-found", f"no concept map {url!r}; leave url out to translate by the store"
        )

    def _in_scope(
        self,
        asked: Parameters,
        codes: CodeSystems,
        question: Question,
        listed: Sequence[TranslationMap],
        side: str,
    ) -> Callable[[Coding, TranslationMap | None], bool]:
        """Return whether a code is in the value set that the answer has to be from."""
        url = question.scope
        if url is None:
            return lambda coding, chosen: True
        named = {id(m) for m in listed if m.scope(side).partition("|")[0] == url.partition("|")[0]}
        value_set: ValueSet | None = None
        try:
            value_set = self._reader(asked, codes).of_url(url)
        except TerminologyError as error:
            if not named or error.code != "not-found":
                raise

        def is_in(coding: Coding, chosen: TranslationMap | None) -> bool:
            if id(chosen) in named:
                return True
            system = codes.find(coding.system) if coding.system else None
            entries = codes.resolve(system, coding.code or "") if system else []
            return value_set is not None and any(value_set.has(e, codes) for e in entries)

        return is_in

    def _spellings(self, given: Coding) -> list[Coding]:
        """Return a code as it was given, and as the store writes it."""
        system = self.systems.find(given.system or "")
        entries = self.systems.resolve(system, given.code or "")[:1] if system else []
        codes = dict.fromkeys([given.code, *map(self.systems.code, entries)])
        return [given._replace(code=code) for code in codes]

    def _coding_of(self, identifier: str, label: str) -> Coding:
        """Return the code of an id: as the store has it, else by its vocabulary."""
        row = self.kb.find_row(identifier)
        if row is None:
            vocabulary = vocabulary_of(identifier)
            system = system_of(vocabulary) if vocabulary else None
            code = code_of(identifier, vocabulary) if system else identifier
            return Coding(system or LOCAL, code, label or None)
        own = (e for e in self.systems.entries_at(row) if self._is_id(e, identifier))
        url, code, shown = self._described(next(own, row))
        return Coding(url or LOCAL, code, label or shown)

    def _is_id(self, entry: int, identifier: str) -> bool:
        return canonical_id(self.systems.identifier(entry)) == canonical_id(identifier)

    def _translations(self, given: Coding) -> list[tuple[str, str | None, str, str | None]]:
        """Return (equivalence, system, code, display): ids of the concept before references."""
        spend(_STEPS_OF_CODE)
        system = self.systems.find(given.system) if given.system else None
        if system is None or given.code is None:
            return []
        own = self.systems.resolve(system, given.code)
        same: list[tuple[str, int]] = []
        related: list[tuple[str, int]] = []
        for row in dict.fromkeys(self.systems.row(entry) for entry in own):
            for entry in self.systems.entries_at(row):
                if self.systems.is_xref(entry):
                    related.append(("relatedto", entry))
                elif self.systems.system(entry) != system:
                    same.append(("equivalent", entry))
                elif entry not in own and self.systems.is_primary(entry):
                    same.append(("equal", entry))
            others = (
                self.kb.neighbours(self.kb.id_at(row), relation=_SAME_AS)
                if _SAME_AS in self.kb.relation_names
                else ()
            )
            related += [("relatedto", self.kb.row(other)) for other in others]
        referring = self.systems.referring(system, given.code)
        related += [("relatedto", row) for row in referring]
        return [(how, *self._described(entry)) for how, entry in same + related]

    def _described(self, entry: int) -> tuple[str | None, str, str | None]:
        """Return system, code and display; a cross-reference has no name of its own here."""
        system = self.systems.system(entry)
        shown = None if self.systems.is_xref(entry) else display(self.systems, entry, Languages())
        return system.url if system else None, self.systems.code(entry), shown

    # ---- codes

    @staticmethod
    def _entry(codes: CodeSystems, given: Coding) -> int:
        url, code = given.system, given.code
        if url is None or code is None:
            raise TerminologyError("required", f"{'system' if url is None else 'code'}: missing")
        return codes.entry(codes.known(url, given.version), code)


def _answered(match: CodeMatch, question: Question) -> Resource:
    """Return a translation in the words of R4, or of R5 where the request was."""
    if question.reverse and not question.is_r5:
        match = match.inverted()
    target, source = match.target, match.source
    has_source = question.is_r5 and question.reverse
    origin = ("originMap", "Canonical") if question.is_r5 else ("source", "Uri")
    names = ("attribute", "value") if question.is_r5 else ("element", "concept")
    return parts(
        "match",
        part("equivalence", "Code", match.equivalence),
        part("relationship", "Code", RELATIONSHIPS[match.equivalence]) if question.is_r5 else None,
        part("concept", "Coding", coding(target.system, target.code, target.display))
        if target.code
        else None,
        part("source", "Coding", coding(source.system, source.code or "", source.display))
        if has_source
        else None,
        optional(*origin, match.origin if question.is_r5 else match.origin.partition("|")[0]),
        *(
            parts(kind, part(names[0], "Uri", each.name), part(names[1], "Coding", value))
            for kind, listed in (("dependsOn", match.depends_on), ("product", match.products))
            for each in listed
            for value in (coding(each.system, each.value, each.display),)
        ),
    )


def _brought(asked: Parameters, *kinds: str) -> list[Resource]:
    """Return the resources that a request brings, of some kinds; default: of all."""
    brought = asked.resources("tx-resource", "CodeSystem", "ValueSet", "ConceptMap")
    if len(brought) > _MAX_RESOURCES:
        raise TerminologyError("too-costly", f"tx-resource: at most {_MAX_RESOURCES}")
    return [each for each in brought if not kinds or each["resourceType"] in kinds]


def _value_set_urls(asked: Parameters) -> set[str]:
    return {str(each.get("url")) for each in _brought(asked, "ValueSet")}


def _required_supplements(asked: Parameters) -> list[str]:
    """Return the supplements that the value set of a request says it needs."""
    url = str(asked.single("url")).partition("|")[0]
    given = [asked.single("valueSet"), *_brought(asked, "ValueSet")]
    own: Resource = next((e for e in given if e and (e is given[0] or e.get("url") == url)), {})
    extensions = [e for e in list_in(own, "extension", "ValueSet") if isinstance(e, dict)]
    named = (e.get("valueCanonical") for e in extensions if e.get("url") == _SUPPLEMENT)
    return [each for each in named if isinstance(each, str)]


def _versions(given: Sequence[str]) -> dict[str, str]:
    """Read ``SYSTEM|VERSION`` as of system-version."""
    found = {}
    for each in given:
        url, bar, version = each.rpartition("|")
        if not bar:
            raise TerminologyError("invalid", f"{each!r}: expected SYSTEM|VERSION")
        found[url] = version
    return found


def _check_versions(chosen: ValueSet, wanted: Mapping[str, str]) -> None:
    for system in chosen.systems:
        version = wanted.get(system.url)
        if version is not None and not fits(system.version, version):
            raise TerminologyError(
                "version-error", version_check(system.url, system.version, version)
            )


def _wants(name: str, wanted: list[str]) -> bool:
    """Whether a property is returned: all are, unless some are named."""
    spend(1 + len(wanted) // AT_ONCE)
    if not wanted or name in wanted or "*" in wanted:
        return True
    return name == "designation" and any(each.startswith("lang.") for each in wanted)


def _property(name: str, kind: str, value: Any, description: str = "") -> Resource:
    return parts(
        "property",
        part("code", "Code", name),
        part("value", kind, value),
        optional("description", "String", description),
    )


def _refuse(asked: Parameters, *names: str) -> None:
    """Refuse parameters without which the answer would be another one."""
    for name in names:
        if name in asked:
            raise TerminologyError("not-supported", f"{name}: not supported")
