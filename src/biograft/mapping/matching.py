"""Matching of two knowledge bases: which concept of one is which concept of the other.

The names of one are searched among those of the other. What is known of a pair of concepts (names
they share, how its rivals stand, the matches of parents and children) becomes a confidence by a
logistic model; cross-references come beside it. What has no match is placed under the match of its
nearest ancestor.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_version
from biograft.kb.records import IdKind, NameKind
from biograft.linking.candidates import Generator
from biograft.linking.fusion import SAME_NAME
from biograft.mapping.config import MatchConfig
from biograft.mapping.rows import MADE_HERE, MappingRow
from biograft.mapping.sets import MappingSet
from biograft.mapping.sssom import PLACEHOLDER, SOURCE, concept_curie, quoted
from biograft.progress import Progress
from biograft.text.vocabulary import ROMAN_NUMBERS

_MEANT = (NameKind.PREFERRED, NameKind.SYNONYM, NameKind.RELATED)
"""Kinds of names that mean the concept, or nearly so, and nothing broader or narrower."""
_NUMBER = re.compile(r"\d+|\b(?:i{1,3}|iv|vi{0,3}|ix|x)\b")
_PREFERRED_WEIGHT = 0.3
"""Weight of the similarity to a preferred name when rival pairs are ordered."""
_SURE = 0.9
"""Similarity from which the best match of a parent or child supports a pair."""
_XREF, _SHARED = 0.99, 0.8
"""Confidence of a cross-reference from one to the other, and of one that both have."""
_SAME = float(SAME_NAME)
_CHUNK = 4096

WEIGHTS = {
    "intercept": -2.362,
    "similarity": 3.024,
    "same": 0.385,
    "subject_preferred": -0.387,
    "target_preferred": -0.901,
    "subject_same": 0.556,
    "target_same": 0.275,
    "shared_names": 0.616,
    "rival": -3.307,
    "rival_similarity": -6.328,
    "rival_names": -1.334,
    "suitor": -0.444,
    "suitor_names": -0.401,
    "other_numbers": -0.843,
    "structure": 0.521,
}
"""Weights of the logistic model, fitted by ``biograft_lab.scripts.match_ontologies`` to HPO and the
Disease Ontology, which are matched by their UMLS ids."""


class ConceptMatch(NamedTuple):
    """A concept of one knowledge base and the one that it is, or is narrower than, in another."""

    subject: int
    """Row of the concept in the first."""
    target: int
    """Row in the second."""
    relation: str
    """``exact`` or ``broad``: the target is broader."""
    confidence: float
    """Probability that the match is right, from 0 to 1."""
    names: tuple[str, str] = ("", "")
    """The names of both that are most alike."""
    justification: str = "LexicalMatching"
    """Justification, a term of SEMAPV."""


@dataclass(slots=True)
class _Pair:
    """Evidence for a match of two concepts."""

    best: float = 0.0
    """Similarity of the names that are most alike."""
    subject_preferred: float = 0.0
    """The same of the preferred name of the subject."""
    target_preferred: float = 0.0
    names: tuple[str, int] = ("", -1)
    """A name of the subject and the row of the name that it is most like."""
    shared: set[str] = field(default_factory=set)
    """Names that both have."""

    @property
    def standing(self) -> float:
        """Value by which rival pairs are ordered."""
        return self.best + _PREFERRED_WEIGHT * (self.subject_preferred + self.target_preferred)

    def add(self, text: str, row: int, score: float, preferred: tuple[bool, bool]) -> None:
        """Note that two names are alike.

        Args:
            text: Name of the subject.
            row: Row of the name of the target.
            score: Their similarity.
            preferred: Whether each is the preferred name of its concept.
        """
        if score > self.best:
            self.best, self.names = score, (text, row)
        if preferred[0]:
            self.subject_preferred = max(self.subject_preferred, score)
        if preferred[1]:
            self.target_preferred = max(self.target_preferred, score)
        if score >= _SAME:
            self.shared.add(text.lower())

    @property
    def same(self) -> int:
        """Number of names that both have."""
        return len(self.shared)


_Pairs = dict[tuple[int, int], _Pair]


def match_stores(
    subjects: KnowledgeBase,
    targets: KnowledgeBase,
    search: Generator,
    config: MatchConfig | None = None,
    progress: Progress | None = None,
) -> list[ConceptMatch]:
    """Match the concepts of one knowledge base with those of another, the surest first.

    Args:
        subjects: Knowledge base whose concepts are matched.
        targets: Knowledge base that they are matched with.
        search: Finds the names of the targets.
        config: Settings.
        progress: Progress of the search.
    """
    config = config or MatchConfig()
    pairs = find_pairs(subjects, targets, search, config.k, progress)
    names = targets.texts("names", "text")
    confidence = {
        key: _logistic(features) for key, features in pair_features(pairs, subjects, targets)
    }
    referred = dict(_cross_references(subjects, targets)) if config.xrefs else {}
    for key, known in referred.items():
        confidence[key] = 1 - (1 - known) * (1 - confidence.get(key, 0.0))
    chosen: dict[int, ConceptMatch] = {}
    taken: set[int] = set()
    for key in sorted(confidence, key=lambda key: (-confidence[key], key)):
        subject, target = key
        if confidence[key] < config.threshold:
            break
        if subject in chosen or (config.one_to_one and target in taken):
            continue
        taken.add(target)
        text, row = pairs[key].names if key in pairs else ("", -1)
        why = "DatabaseCrossReference" if key in referred else "LexicalMatching"
        alike = (text, names[row]) if row >= 0 else ("", "")
        chosen[subject] = ConceptMatch(subject, target, "exact", confidence[key], alike, why)
    matches = [*chosen.values()]
    if config.broader:
        matches += _placed(subjects, chosen)
    return matches


def find_pairs(
    subjects: KnowledgeBase,
    targets: KnowledgeBase,
    search: Generator,
    k: int,
    progress: Progress | None = None,
) -> _Pairs:
    """Search each name of the subjects among those of the targets.

    Args:
        subjects: Knowledge base whose names are searched.
        targets: Knowledge base of the search.
        search: Finds the names of the targets.
        k: Names that each is compared with.
        progress: Shows how far the search is.
    """
    concepts, kinds = targets.numbers("names", "concept"), _meant(targets)
    listed = [
        (row, name.text, name.kind == NameKind.PREFERRED)
        for row in range(len(subjects))
        for name in subjects.names_at(row)
        if name.kind in _MEANT
    ]
    pairs: defaultdict[tuple[int, int], _Pair] = defaultdict(_Pair)
    if progress is not None:
        progress.start("match")
    for start in range(0, len(listed), _CHUNK):
        part = listed[start : start + _CHUNK]
        hits = search.search([text for _, text, _ in part], k)
        for (subject, text, is_preferred), rows, scores in zip(
            part, hits.rows.tolist(), hits.scores.tolist(), strict=True
        ):
            for row, score in zip(rows, scores, strict=True):
                if row >= 0 and score > 0 and (kind := kinds[row]):
                    pair = pairs[subject, int(concepts[row])]
                    pair.add(text, row, score, (is_preferred, kind == NameKind.PREFERRED))
        if progress is not None:
            progress.advance(len(part), (start + len(part)) / len(listed))
    if progress is not None:
        progress.finish()
    return dict(pairs)


def _meant(kb: KnowledgeBase) -> list[str]:
    """Return the kind of each name that means its concept; empty for others."""
    kinds = (kb.name(row).kind for row in range(kb.n_names))
    return [kind if kind in _MEANT else "" for kind in kinds]


def pair_features(
    pairs: _Pairs, subjects: KnowledgeBase, targets: KnowledgeBase
) -> Iterator[tuple[tuple[int, int], dict[str, float]]]:
    """Yield what the confidence of each pair is computed from.

    Args:
        pairs: The pairs.
        subjects: Knowledge base of the first of each.
        targets: Knowledge base of the second.
    """
    of_subject: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    of_target: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for key in pairs:
        of_subject[key[0]].append(key)
        of_target[key[1]].append(key)
    structure = _Structure(pairs, of_subject, subjects, targets)
    names = targets.texts("names", "text")
    for key, pair in pairs.items():
        rivals = [pairs[other] for other in of_subject[key[0]] if other != key]
        suitors = [pairs[other] for other in of_target[key[1]] if other != key]
        text, row = pair.names
        yield (
            key,
            {
                "similarity": pair.best,
                "same": float(pair.best >= _SAME),
                "subject_preferred": pair.subject_preferred,
                "target_preferred": pair.target_preferred,
                "subject_same": float(pair.subject_preferred >= _SAME),
                "target_same": float(pair.target_preferred >= _SAME),
                "shared_names": math.log1p(pair.same),
                "rival": _most(rivals, "standing") - pair.standing,
                "rival_similarity": _most(rivals, "best") - pair.best,
                "rival_names": float(_most(rivals, "same") > pair.same),
                "suitor": _most(suitors, "standing") - pair.standing,
                "suitor_names": float(_most(suitors, "same") > pair.same),
                "other_numbers": float(_numbers(text) != _numbers(names[row])),
                "structure": structure.support(key),
            },
        )


def _most(pairs: Sequence[_Pair], field: str) -> float:
    return max((getattr(pair, field) for pair in pairs), default=0.0)


def _numbers(text: str) -> frozenset[str]:
    found = _NUMBER.findall(text.lower())
    return frozenset(ROMAN_NUMBERS.get(number, number) for number in found)


class _Structure:
    """Whether parents and children of a concept match above and below that of its pair."""

    def __init__(
        self,
        pairs: _Pairs,
        of_subject: dict[int, list[tuple[int, int]]],
        subjects: KnowledgeBase,
        targets: KnowledgeBase,
    ) -> None:
        first = (max(keys, key=lambda key: pairs[key].standing) for keys in of_subject.values())
        self._match = {key[0]: key[1] for key in first if pairs[key].best >= _SURE}
        self._subjects, self._targets = subjects.hierarchy, targets.hierarchy
        self._above: dict[int, frozenset[int]] = {}

    def support(self, key: tuple[int, int]) -> float:
        """Return the shares of matched parents and of matched children that agree, summed."""
        subject, target = key
        if not len(self._targets.parents(target)):
            return 0.0
        parents = [
            self._match[row] for row in self._subjects.parents(subject) if row in self._match
        ]
        children = [
            self._match[row] for row in self._subjects.children(subject) if row in self._match
        ]
        above = sum(row in self._ancestors(target) for row in parents) / (len(parents) or 1)
        below = sum(target in self._ancestors(row) for row in children) / (len(children) or 1)
        return above + below

    def _ancestors(self, row: int) -> frozenset[int]:
        if row not in self._above:
            self._above[row] = frozenset(self._targets.ancestors(row))
        return self._above[row]


def _logistic(features: dict[str, float]) -> float:
    value = WEIGHTS["intercept"] + sum(WEIGHTS[name] * each for name, each in features.items())
    return 1 / (1 + math.exp(-value))


def _cross_references(
    subjects: KnowledgeBase, targets: KnowledgeBase
) -> Iterator[tuple[tuple[int, int], float]]:
    """Yield the pairs that cross-references name, with the confidence of each kind."""
    named: defaultdict[str, list[int]] = defaultdict(list)
    for row, xref in _xrefs(targets):
        named[next(iter(targets.spellings(xref)), xref)].append(row)
    own = {subjects.id_at(row): row for row in range(len(subjects))}
    shared: set[tuple[int, int]] = set()
    direct: set[tuple[int, int]] = set()
    for row, xref in _xrefs(subjects):
        direct.update((row, target) for target in targets.rows_of([xref]))
        spelling = next(iter(targets.spellings(xref)), xref)
        shared.update((row, target) for target in named.get(spelling, ()))
    for xref, rows in named.items():
        if (subject := own.get(xref)) is not None:
            direct.update((subject, target) for target in rows)
    yield from ((key, _SHARED) for key in sorted(shared - direct))
    yield from ((key, _XREF) for key in sorted(direct))


def _xrefs(kb: KnowledgeBase) -> Iterator[tuple[int, str]]:
    for row in range(len(kb)):
        for identifier in kb.concept_at(row).ids:
            if identifier.kind == IdKind.XREF:
                yield row, identifier.id


def _placed(subjects: KnowledgeBase, matched: dict[int, ConceptMatch]) -> Iterator[ConceptMatch]:
    """Place each concept without a match under the matches of its nearest ancestors."""
    hierarchy = subjects.hierarchy
    for row in range(len(subjects)):
        if row in matched:
            continue
        above = next((each for each in hierarchy.ancestors(row) if each in matched), None)
        if above is not None:
            found = matched[above]
            yield ConceptMatch(
                row,
                found.target,
                "broad",
                found.confidence,
                (subjects.name_at(above), ""),
                "StructuralMatching",
            )


def as_set(
    matches: Iterable[ConceptMatch], subjects: KnowledgeBase, targets: KnowledgeBase
) -> MappingSet:
    """Return matches as a mapping set.

    Args:
        matches: The matches.
        subjects: Knowledge base of the subjects.
        targets: Knowledge base of the targets.
    """
    sides = (subjects, targets)
    source, kb = (quoted(each.folder.resolve().name) for each in sides)
    versions = [store_version(each) for each in sides]
    rows = [
        MappingRow(
            subject_id=concept_curie(subjects.id_at(each.subject)),
            subject_label=subjects.name_at(each.subject),
            predicate_id=f"skos:{each.relation}Match",
            object_id=concept_curie(targets.id_at(each.target)),
            object_label=targets.name_at(each.target),
            mapping_justification=f"semapv:{each.justification}",
            subject_source=f"{SOURCE}:{source}",
            subject_source_version=versions[0],
            object_source=f"{SOURCE}:{kb}",
            object_source_version=versions[1],
            confidence=round(each.confidence, 4),
            slots=MADE_HERE | ({"match_string": each.names[0]} if each.names[0] else {}),
        )
        for each in matches
    ]
    prefixes = {**targets.iris.prefixes, **subjects.iris.prefixes, SOURCE: PLACEHOLDER}
    return MappingSet(rows=rows, prefixes=prefixes)
