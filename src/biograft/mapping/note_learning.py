"""Learning from annotated text: forms that stand for a concept, and forms that are no mention.

What is learned is what the linker answers otherwise than people marked: for each form, in all text
or in one section, what most of its places were marked as. It is measured by cross-validation over
documents first, and kept only if it gains.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from biograft.artifacts import new_folder, sole_writer
from biograft.errors import ConfigError
from biograft.evaluation.gold import gold_ids
from biograft.evaluation.linking import StoreIds
from biograft.kb import KnowledgeBase
from biograft.kb.vocabularies import canonical_id
from biograft.linking import Linker
from biograft.linking.config import LinkerConfig
from biograft.linking.index import open_index
from biograft.linking.learned import LEARNED_FORMS, LearnedForm, save_learned
from biograft.linking.learned_mentions import LearnedForms, SectionFinder
from biograft.linking.steps import DocumentState, MentionState
from biograft.mapping.status_learning import FEW, StatusLearning, fit_statuses
from biograft.metrics.precision_recall import Counts, percent
from biograft.metrics.significance import paired_counts
from biograft.progress import Progress
from biograft.text.documents import Document
from biograft.text.names_index import NamesIndex

_FOLDS = 5
_CONCEPT_PRECISION = (0.5, 0.6, 0.7)
"""Least precision of a form with a concept, one right and one wrong case added; chosen of these."""
_NO_MENTION_PRECISION = (1.0, 0.9, 0.8, 0.65)
"""The same of a form that is no mention; 1: none is learned."""
_MIN_IN_SECTION = 3
"""Places of a form in one section from which the section counts apart."""
INSIDE = "inside"
_Spans = dict[tuple[int, int], frozenset[str]]


@dataclass(frozen=True, slots=True)
class FormLearningReport:
    """What was learned from annotated text, and what it is worth."""

    n_documents: int
    n_mentions: int
    n_unknown: int
    """Marked mentions whose concept the knowledge base does not have."""
    n_forms: int = 0
    """Forms that were learned, with a concept."""
    n_no_mention: int = 0
    """Forms that are no mention."""
    is_applied: bool = False
    f1_before: float = 0.0
    """F1 of spans with their concepts, in percent, without what is learned."""
    f1_after: float = 0.0
    """The same with it: each document by what was learned from the others."""
    gain: float = 0.0
    interval: tuple[float, float] = (0.0, 0.0)
    """95 % interval of the gain, over documents."""
    thresholds: tuple[float, float] = (0.0, 1.0)
    """Least precision of a form with a concept, and of one that is no mention."""
    statuses: StatusLearning | None = None
    """What was learned about statuses; None where no mention has one."""
    forms: tuple[LearnedForm, ...] = field(default=(), repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values, without what was learned."""
        values = {key: value for key, value in asdict(self).items() if key != "forms"}
        return values | {"statuses": self.statuses.to_json() if self.statuses else None}


class _Place(NamedTuple):
    """A place where a form stands: what people marked there, and what the linker answers."""

    form: int
    """Row of the form."""
    section: str
    marked: frozenset[str]
    answered: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Note:
    """A document with what is marked in it and what the linker answers.

    Args:
        state: The document as the linker leaves it.
        gold: What is marked: a concept is its gold id, or the primary id of its only concept.
        ids: Ids of the concepts of the store.
    """

    state: DocumentState
    gold: _Spans
    ids: StoreIds
    places: list[_Place] = field(default_factory=list)

    def answers(self, mentions: Iterable[MentionState]) -> _Spans:
        """Return mentions as spans with concepts; the gold may use another id of a concept.

        Args:
            mentions: Mentions of the document.
        """
        expected = frozenset().union(*self.gold.values())
        found: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
        for each in mentions:
            if each.concept:
                own = canonical_id(each.concept)
                if own not in expected:
                    own = min(self.ids.own(each.concept) & expected, default=own)
                found[each.mention.start, each.mention.end].add(own)
        return {span: frozenset(concepts) for span, concepts in found.items()}

    def counts(self, mentions: Iterable[MentionState]) -> Counts:
        """Return how many spans are right with their concepts, wrong, and missed.

        Args:
            mentions: Mentions of the document.
        """
        return Counts.from_answers(self.gold.items(), self.answers(mentions).items())


def learn_forms(
    kb: KnowledgeBase,
    index: str | Path,
    documents: Sequence[Document],
    *,
    config: LinkerConfig | None = None,
    source: str = "",
    progress: Progress | None = None,
) -> FormLearningReport:
    """Teach an index forms of annotated text; those that it was taught before are replaced.

    Args:
        kb: Knowledge base of the index.
        index: Folder of the index.
        documents: Documents with their mentions.
        config: Settings of the linker that the forms are learned for.
        source: Where the documents are from.
        progress: Progress of linking the documents.

    >>> learn_forms(kb, "INDEX", documents).gain  # doctest: +SKIP
    3.1
    """
    folder = Path(index)
    opened = open_index(kb, folder, config, with_reviewed=True, with_learned=False)
    linker = Linker(
        kb,
        opened.search,
        names=opened.names,
        calibration=opened.calibration,
        reviewed=opened.reviewed,
        config=_settings(config),
    )
    report = fit_forms(linker, documents, progress)
    with sole_writer(folder), new_folder(folder / LEARNED_FORMS, overwrite=True) as work:
        statuses = report.statuses
        phrases = statuses.phrases if statuses is not None and statuses.is_applied else ()
        save_learned(work, source, report.forms if report.is_applied else (), phrases)
    return report


def _settings(config: LinkerConfig | None) -> LinkerConfig:
    return replace(config or LinkerConfig(), assertions=False, mentions="find", k=1)


def fit_forms(
    linker: Linker, documents: Sequence[Document], progress: Progress | None = None
) -> FormLearningReport:
    """Learn forms from annotated text, and measure them by cross-validation.

    Args:
        linker: The linker that the forms are learned for, without any.
        documents: Documents with their mentions.
        progress: Progress of linking the documents.
    """
    if not any(document.mentions for document in documents):
        raise ConfigError("documents: none has a mention; give text with marked mentions")
    notes, texts, n_unknown = _read(linker, documents, progress)
    before = [note.counts(note.state.mentions) for note in notes]
    folds = np.random.default_rng(0).permutation(len(notes)) % min(_FOLDS, len(notes))
    tried = {
        thresholds: _cross_validated(linker, notes, texts, folds, thresholds)
        for thresholds in product(_CONCEPT_PRECISION, _NO_MENTION_PRECISION)
    }
    thresholds, after = max(tried.items(), key=lambda item: sum(item[1], Counts()).f1)
    gain, _ = paired_counts(after, before)
    forms = choose_forms([note.places for note in notes], texts, thresholds)
    applied = gain.difference > 0 and (len(notes) < FEW or gain.interval.low > 0)
    return FormLearningReport(
        n_documents=len(notes),
        n_mentions=sum(len(note.gold) for note in notes),
        n_unknown=n_unknown,
        n_forms=sum(bool(each.concept) for each in forms),
        n_no_mention=sum(not each.concept for each in forms),
        is_applied=applied,
        f1_before=percent(sum(before, Counts()).f1),
        f1_after=percent(sum(after, Counts()).f1),
        gain=percent(gain.difference),
        interval=(percent(gain.interval.low), percent(gain.interval.high)),
        thresholds=thresholds,
        statuses=fit_statuses(documents, folds, linker.config.assertion_rules),
        forms=tuple(forms),
    )


def _read(
    linker: Linker, documents: Sequence[Document], progress: Progress | None
) -> tuple[list[_Note], list[str], int]:
    """Link documents; return them with each place of a form that was marked or answered."""
    ids, n_unknown = StoreIds(linker.kb), 0
    states: list[DocumentState] = []
    if progress is not None:
        progress.start("link")
    for document in documents:
        states += linker.states([replace(document, mentions=())])
        if progress is not None:
            progress.advance(1, len(states) / len(documents))
    notes: list[_Note] = []
    answers: list[_Spans] = []
    forms: dict[str, None] = {}
    for document, state in zip(documents, states, strict=True):
        gold: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
        for mention in document.mentions:
            marked = gold_ids(mention.concepts)
            gold[mention.start, mention.end].update(map(ids.meant, marked))
            n_unknown += any(ids.known(each) is None for each in marked)
        note = _Note(state, {span: frozenset(each) for span, each in gold.items() if each}, ids)
        notes.append(note)
        answers.append(note.answers(state.mentions))
        spans = [*note.gold, *answers[-1]]
        forms.update(dict.fromkeys(state.document.text[start:end] for start, end in spans))
    _find_places(notes, answers, NamesIndex.build(forms))
    return notes, list(forms), n_unknown


def _find_places(notes: Sequence[_Note], answers: Sequence[_Spans], names: NamesIndex) -> None:
    """Add to each note the places where a form stands."""
    texts = [note.state.document.text for note in notes]
    section_at = SectionFinder(texts)
    for n, (start, end, _, rows) in names.occurrences(texts):
        note, section = notes[n], section_at(n, start)
        marked = note.gold.get((start, end))
        if marked is None:
            is_inside = any(first <= start and end <= last for first, last in note.gold)
            marked = frozenset({INSIDE}) if is_inside else frozenset()
        answered = answers[n].get((start, end), frozenset())
        note.places.append(_Place(rows[0], section, marked, answered))


def _cross_validated(
    linker: Linker,
    notes: Sequence[_Note],
    texts: Sequence[str],
    folds: Any,
    thresholds: tuple[float, float],
) -> list[Counts]:
    """Return the counts of each document by what is learned from the other folds."""
    nested = linker.config.overlaps == "all"
    counts: list[Counts] = [Counts()] * len(notes)
    for fold in range(int(folds.max()) + 1):
        others = [note.places for n, note in enumerate(notes) if folds[n] != fold]
        learned = LearnedForms(linker.kb, choose_forms(others, texts, thresholds), nested=nested)
        held_out = np.flatnonzero(folds == fold).tolist()
        found = learned.find([notes[n].state.document.text for n in held_out])
        for n, matches in zip(held_out, found, strict=True):
            mentions, _ = learned.apply(notes[n].state, matches)
            counts[n] = notes[n].counts(mentions)
    return counts


def choose_forms(
    places: Sequence[Sequence[_Place]], texts: Sequence[str], thresholds: tuple[float, float]
) -> list[LearnedForm]:
    """Return the forms that are marked otherwise than the linker answers, and mostly so.

    Args:
        places: The places of forms in each document.
        texts: The forms by row.
        thresholds: Least precision of a form with a concept, and of one that is no mention.
    """
    seen: defaultdict[tuple[int, str], list[tuple[int, _Place]]] = defaultdict(list)
    for n, of_document in enumerate(places):
        for place in of_document:
            seen[place.form, ""].append((n, place))
            if place.section:
                seen[place.form, place.section].append((n, place))
    forms: list[LearnedForm] = []
    general: dict[int, LearnedForm | None] = {}
    for (row, section), found in sorted(seen.items()):
        if section and len(found) < _MIN_IN_SECTION:
            continue
        entry = _entry(texts[row], section, found, thresholds)
        if not section:
            general[row] = entry
        elif entry is None or ((known := general[row]) and known.concept == entry.concept):
            continue
        if entry is not None:
            forms.append(entry)
    return forms


def _entry(
    form: str,
    section: str,
    found: Sequence[tuple[int, _Place]],
    thresholds: tuple[float, float],
) -> LearnedForm | None:
    """Return what a form means by its places; None where that is uncertain, or known already."""
    counts = Counter(place.marked for _, place in found)
    marked, n_right = max(counts.items(), key=lambda item: (item[1], sorted(item[0])))
    if len(marked) > 1 or INSIDE in marked:
        return None
    n_known = sum(place.answered == place.marked for _, place in found)
    documents = {n for n, place in found if place.marked == marked}
    (concept,) = marked or ("",)
    entry = LearnedForm(form, concept, section, n_right, len(found), len(documents))
    least = thresholds[0] if concept else thresholds[1]
    is_answered = any(place.answered for _, place in found)
    if n_right <= n_known or entry.score < least or not (concept or is_answered):
        return None
    return entry
