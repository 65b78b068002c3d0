"""Reviewed names: what people decided about terms, beside the names of a store.

An index may hold them (``INDEX/reviewed``): a small store of the names that were approved, with the
source ``reviewed``, its lexical index, the pairs that were rejected, and what was fitted to the
decisions. The store itself is not touched.

* A term that was decided is looked up as it is, and gets what was decided.
* A rejected concept is no candidate for that term.
* Other terms are compared with reviewed names as with names of the store: a reviewed name scores
  ``weight`` times its lexical score.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp
from pathlib import Path
from typing import NamedTuple

from biograft.artifacts import ArtifactKind
from biograft.errors import StoreError
from biograft.kb import KnowledgeBase
from biograft.kb.names import term_key
from biograft.linking.calibration import Calibration
from biograft.linking.candidates import Candidate, Evidence
from biograft.linking.fusion import best_per_concept
from biograft.linking.learned import LearnedForm
from biograft.linking.lexical.index import LexicalConfig, LexicalIndex
from biograft.text.spelling.corrections import english_words

REVIEWED = ArtifactKind(
    format="biograft-reviewed-names",
    version=1,
    called="folder of reviewed names",
    remedy="run `biograft learn` again",
    keys=("approved", "rejected", "nil", "weight", "weights"),
)
SOURCE = "reviewed"
DEFAULT_WEIGHT = 0.9
"""Weight of a reviewed name relative to a name of the store, if too few decisions exist."""
_EXACT = 1.0
_DEPTH = 16
"""Reviewed names that are compared with a text."""
_STEEP = 12.0
"""Steepness with which votes of reviewed names fall with their similarity."""
_STORE, _LEXICAL, _CALIBRATION = "kb", "lexical", "calibration.json"


@dataclass(frozen=True, slots=True)
class TermDecisions:
    """Decisions about terms, by the key of each (:func:`biograft.kb.names.term_key`)."""

    approved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Concepts that a term means; several where a term has several codes, the best first."""
    rejected: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Concepts that a term does not mean."""
    nil: frozenset[str] = frozenset()
    """Terms without a concept."""
    combined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Concepts of the terms, and their wordings, that mean all of them."""

    def __contains__(self, text: object) -> bool:
        if not isinstance(text, str):
            return False
        key = term_key(text)
        return key in self.approved or key in self.nil or key in self.rejected


class SimilarName(NamedTuple):
    """A reviewed name that is like a text."""

    concept: str
    name: str
    score: float
    """Lexical score, before it is weighted."""


class ReviewedNames:
    """Applies decisions to the candidates of a linker."""

    def __init__(
        self,
        kb: KnowledgeBase,
        decisions: TermDecisions,
        names: LexicalIndex | None = None,
        weight: float = DEFAULT_WEIGHT,
        *,
        weights: Mapping[str, float] | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        """Combine decisions and reviewed names.

        Args:
            kb: Knowledge base of the concepts.
            decisions: Decisions by term.
            names: Index of the names that other terms may resemble.
            weight: Weight of such a resemblance.
            weights: Weights of the generators, learned from the decisions; default: those of the
                index.
            calibration: Calibration learned from the decisions.
        """
        self.kb, self.decisions, self._names, self.weight = kb, decisions, names, weight
        self.weights, self.calibration = weights, calibration

    def __contains__(self, text: object) -> bool:
        """Return whether something was decided about a term."""
        return text in self.decisions

    def apply(
        self,
        texts: Sequence[str],
        ranked: Sequence[Sequence[Candidate]],
        k: int,
        *,
        by_concept: bool = True,
        by_similarity: bool = True,
        allowed: Callable[[str], bool] | None = None,
    ) -> list[list[Candidate]]:
        """Return the candidates of texts, best first, with what was decided.

        Args:
            texts: The texts that were looked up.
            ranked: The candidates of each, best first, without what was decided.
            k: Candidates that are returned of each.
            by_concept: Return each concept once.
            by_similarity: Compare texts with reviewed names, too.
            allowed: Says which concepts may be answers; None: all.
        """
        near: Sequence[Sequence[SimilarName]] = [()] * len(texts)
        if by_similarity and self.weight:
            near = self.similar(texts)
        results = []
        for text, found, hits in zip(texts, ranked, near, strict=True):
            similar = [
                self._candidate(hit.concept, hit.name, self.weight * hit.score, rank)
                for rank, hit in enumerate(hits, 1)
            ]
            merged = self._decided(text, [*found, *similar])
            kept = [each for each in merged if allowed is None or allowed(each.concept)]
            results.append((best_per_concept(kept) if by_concept else kept)[:k])
        return results

    def _decided(self, text: str, candidates: Sequence[Candidate]) -> list[Candidate]:
        key, decisions = term_key(text), self.decisions
        if key in decisions.nil and key not in decisions.approved:
            return []
        rejected = decisions.rejected.get(key, frozenset())
        others = [each for each in candidates if each.concept not in rejected]
        others.sort(key=lambda each: -each.score)  # stable: names of the store come first
        best = max(_EXACT, others[0].score if others else 0)
        own = [self._candidate(each, text, best, 1) for each in decisions.approved.get(key, ())]
        if len(own) > 1 and key not in decisions.combined:
            own[0] = replace(own[0], tied=tuple(each.concept for each in own[1:]))
        return [*own, *others]

    def combined(self, found: Candidate) -> list[Candidate]:
        """Return the candidates of all concepts of a combined term, if its name was found.

        Args:
            found: Candidate with the name.
        """
        return [
            replace(
                self._candidate(each, found.name, found.score, 1), probability=found.probability
            )
            for each in self.decisions.combined.get(term_key(found.name), ())
        ]

    def votes(self, text: str) -> Mapping[str, float]:
        """Return the concepts of reviewed names that are like a text, with the share of each.

        Args:
            text: A term.
        """
        (hits,) = self.similar([text])
        best = max((hit.score for hit in hits), default=0.0)
        weights = {hit.name: hit.score * exp(_STEEP * (hit.score - best)) for hit in hits}
        total, votes = sum(weights.values()), defaultdict[str, float](float)
        for hit in hits:
            votes[hit.concept] += weights[hit.name] / total
        return votes

    def forms(self) -> Iterator[LearnedForm]:
        """Yield the approved terms as forms of running text; ordinary words are none."""
        if self._names is None:
            return
        store, common, terms = self._names.kb, english_words(), self.decisions.approved
        for concept in store:
            for name in concept.names:
                if name.text.lower() not in common and term_key(name.text) in terms:
                    yield LearnedForm(name.text, concept.id, n_documents=0)

    def similar(self, texts: Sequence[str]) -> list[list[SimilarName]]:
        """Return the reviewed names that are like each text, best first."""
        if self._names is None or not texts:
            return [[] for _ in texts]
        hits = self._names.search(texts, _DEPTH)
        store, results = self._names.kb, []
        for rows, scores in zip(hits.rows.tolist(), hits.scores.tolist(), strict=True):
            found = []
            for row, score in zip(rows, scores, strict=True):
                if row < 0 or score <= 0:
                    continue
                concept = store.id_at(int(store.numbers("names", "concept")[row]))
                found.append(SimilarName(concept, store.name(row).text, score))
            results.append(found)
        return results

    def _candidate(self, concept: str, name: str, score: float, rank: int) -> Candidate:
        return Candidate.of_evidence(self.kb, concept, Evidence(SOURCE, name, rank, score))

    # ---- files

    @classmethod
    def build(
        cls,
        kb: KnowledgeBase,
        folder: Path,
        decisions: TermDecisions,
        names: Iterable[tuple[str, str]],
    ) -> ReviewedNames:
        """Write a store of reviewed names, (text, concept id), and its index; open them.

        Args:
            kb: Knowledge base of the concepts.
            folder: Folder of the store and index.
            decisions: Decisions by term.
            names: Reviewed names: text and concept id.
        """
        by_concept: defaultdict[str, list[str]] = defaultdict(list)
        for text, concept in names:
            by_concept[concept].append(text)
        if not by_concept:
            return cls(kb, decisions)
        # what only `biograft learn` needs, and linking does not
        from biograft.kb import BuildConfig, build_store
        from biograft.kb.sources import SourceConfig

        with tempfile.TemporaryDirectory(dir=folder) as work:
            source = Path(work) / "names.jsonl"
            lines = (
                {"id": each, "names": [{"text": t, "source": SOURCE} for t in dict.fromkeys(texts)]}
                for each, texts in by_concept.items()
            )
            source.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
            given = SourceConfig(path=source, format="jsonl")
            build_store(BuildConfig(sources=(given,)), folder / _STORE)
        store = KnowledgeBase.open(folder / _STORE)
        config = LexicalConfig(synonym_substitution=False)
        LexicalIndex.build(store, config).save(folder / _LEXICAL)
        return cls(kb, decisions, LexicalIndex.open(folder / _LEXICAL, store))

    def save(self, folder: Path) -> None:
        """Write the decisions, and what was fitted to them, beside the names."""
        decisions = self.decisions
        if self.calibration is not None:
            self.calibration.save(folder / _CALIBRATION, overwrite=True)
        REVIEWED.write(
            folder,
            {
                "approved": {key: list(ids) for key, ids in decisions.approved.items()},
                "rejected": {key: sorted(ids) for key, ids in decisions.rejected.items()},
                "nil": sorted(decisions.nil),
                "combined": {key: list(ids) for key, ids in decisions.combined.items()},
                "weight": self.weight,
                "weights": None if self.weights is None else dict(self.weights),
            },
            overwrite=True,
        )

    @classmethod
    def open(cls, folder: Path, kb: KnowledgeBase) -> ReviewedNames:
        """Open the reviewed names of a store.

        Args:
            folder: Folder of the reviewed names.
            kb: Knowledge base of their concepts.
        """
        manifest = REVIEWED.read(folder)
        try:
            decisions = TermDecisions(
                {key: tuple(ids) for key, ids in manifest["approved"].items()},
                {key: frozenset(ids) for key, ids in manifest["rejected"].items()},
                frozenset(manifest["nil"]),
                {key: tuple(ids) for key, ids in manifest.get("combined", {}).items()},
            )
            weight, weights = float(manifest["weight"]), manifest["weights"]
        except (AttributeError, TypeError, ValueError) as error:
            raise REVIEWED.damaged(folder / REVIEWED.file, repr(error)) from error
        names, calibration = None, folder / _CALIBRATION
        if (folder / _STORE).is_dir():
            try:
                names = LexicalIndex.open(folder / _LEXICAL, KnowledgeBase.open(folder / _STORE))
            except StoreError as error:  # which would say how to make a store or an index
                raise REVIEWED.damaged(folder, str(error).partition(";")[0]) from error
        return cls(
            kb,
            decisions,
            names,
            weight,
            weights=weights,
            calibration=Calibration.load(calibration, remedy=REVIEWED.remedy)
            if calibration.exists()
            else None,
        )
