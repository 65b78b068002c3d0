"""Earlier decisions: what they say of the terms of a table, checked against the knowledge base.

A decision stands (``seen``) as long as the store has its concept under the same name. Otherwise it
is not applied, and its flag says what changed:

========  ==========================================================================
retired   no concept has the id any more, and none takes its place
replaced  the id is retired, and another concept takes its place
split     several concepts take its place
merged    the id belongs to a concept with another id of the same vocabulary
renamed   the concept has another preferred name
========  ==========================================================================
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate
from biograft.linking.outputs.report import ConceptIds
from biograft.mapping.decisions import NIL, REJECTED, Decision
from biograft.text import normalise, term_key

SEEN = "seen"
CHANGES = ("retired", "replaced", "split", "merged", "renamed")
FLAGS = (SEEN, *CHANGES)


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier decision about a term, and whether it still holds."""

    decision: Decision | None = None
    flag: str = ""
    """``seen``, or what changed; empty if nothing was decided."""
    concept: str = ""
    """Id in the store now; empty: none."""
    name: str = ""
    candidates: tuple[Candidate, ...] = ()
    """Concepts that may take the place of a retired one."""
    rejected: frozenset[str] = frozenset()
    """Ids of concepts that the term does not mean."""


class EarlierDecisions:
    """Earlier decisions by term; of several on one term the latest counts.

    >>> EarlierDecisions(read_decisions("lab.sssom.tsv"), kb).of("hart atack")  # doctest: +SKIP
    """

    def __init__(
        self, decisions: Iterable[Decision], kb: KnowledgeBase, ids: ConceptIds | None = None
    ) -> None:
        self._kb, self._ids = kb, ids or ConceptIds(kb)
        self.n_decided = self.n_proposed = 0
        self._decided: dict[tuple[str, str, str], Decision] = {}
        self._rejected: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        self._by_text: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
        self._by_code: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
        self._used: set[tuple[str, str, str]] = set()
        for decision in decisions:
            self._add(decision)
        self._checked: dict[Decision, Earlier] = {}

    def _add(self, decision: Decision) -> None:
        if not decision.is_decided:
            self.n_proposed += 1
            return
        self.n_decided += 1
        key = (term_key(decision.term), decision.code, decision.context)
        if decision.verdict == REJECTED:
            self._rejected[key] |= {self._kb.id_at(row) for row in self._rows(decision.concept)}
        else:
            known = self._decided.get(key)
            if known is None or decision.time >= known.time or not decision.time:
                self._decided[key] = decision
        self._by_text[key[0]].add(key)
        if decision.code and not key[0]:
            self._by_code[decision.code].add(key)

    @property
    def n_unused(self) -> int:
        """Number of terms with a decision that no term asked for so far had."""
        return len((self._decided.keys() | self._rejected.keys()) - self._used)

    def of(self, text: str, code: str = "", context: str = "") -> Earlier:
        """Return what was decided about a term.

        A decision with another code or context does not count; one without, for a term that has
        them, and the other way round, does if all decisions on that text agree.
        """
        keys = self._keys(term_key(text), code, context)
        self._used |= keys
        rejected = frozenset().union(*(self._rejected.get(key, ()) for key in keys))
        answers = {d.concept: d for key in keys if (d := self._decided.get(key)) is not None}
        if len(answers) != 1:
            return Earlier(rejected=rejected)
        (decision,) = answers.values()
        if decision not in self._checked:
            self._checked[decision] = self._check(decision)
        return self._checked[decision]

    def _keys(self, text: str, code: str, context: str) -> set[tuple[str, str, str]]:
        exact = (text, code, context)
        known = self._by_text.get(text, set())
        if exact in known:
            return {exact}
        if code in self._by_code:
            return self._by_code[code]
        return {
            key
            for key in known
            if (not code or not key[1] or code == key[1])
            and (not context or not key[2] or context == key[2])
        }

    def _check(self, decision: Decision) -> Earlier:
        """Compare a decision with the store."""
        if decision.verdict == NIL:
            return Earlier(decision, SEEN)
        rows = self._rows(decision.concept)
        if not rows:
            return self._retired(decision)
        row = self._kb.find_row(decision.concept)
        primary = self._kb.id_at(rows[0] if row is None else row)
        if primary != decision.concept and not self._is_other_vocabulary(primary, decision):
            if len(rows) > 1:
                return Earlier(decision, "split", candidates=self._candidates(rows))
            return self._now(decision, "merged", primary)
        name = self._kb.name_at(self._kb.row(primary))
        is_same = not decision.name or normalise(name) == normalise(decision.name)
        return self._now(decision, SEEN if is_same else "renamed", primary)

    def _rows(self, concept: str) -> tuple[int, ...]:
        """Return the rows of the concepts with an id, or of the one that refers to it.

        ``--prefer`` gives ids that may be cross-references.
        """
        if rows := self._kb.rows_of([concept]):
            return rows
        found = [each.id for each in self._kb.by_xref(concept)]
        return tuple(map(self._kb.row, found)) if len(found) == 1 else ()

    def _is_other_vocabulary(self, primary: str, decision: Decision) -> bool:
        return self._ids.vocabulary(primary) != self._ids.vocabulary(decision.concept)

    def _retired(self, decision: Decision) -> Earlier:
        successor = self._kb.replacement(decision.concept)
        by = successor.replaced_by if successor else ()
        if len(by) == 1:
            return self._now(decision, "replaced", by[0])
        candidates = by or (successor.consider if successor else ())
        flag = "split" if by else "retired"
        return Earlier(decision, flag, candidates=self._candidates(map(self._kb.row, candidates)))

    def _now(self, decision: Decision, flag: str, concept: str) -> Earlier:
        return Earlier(decision, flag, concept, self._kb.name_at(self._kb.row(concept)))

    def _candidates(self, rows: Iterable[int]) -> tuple[Candidate, ...]:
        found = [(self._kb.id_at(row), self._kb.name_at(row)) for row in rows]
        return tuple(Candidate(concept, name, name, 0.0) for concept, name in found)
