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
from biograft.linking.learned import LEARNED_FORMS, LearnedDetector, LearnedForm, save_learned
from biograft.linking.learned_mentions import LearnedForms, SectionFinder
from biograft.linking.mention_choice import (
    MentionOption,
    choose,
    fit_weights,
    hints,
    probabilities,
)
from biograft.linking.steps import DocumentState, MentionState
from biograft.mapping.status_learning import StatusLearning, fit_statuses, gain_of, in_percent
from biograft.metrics.precision_recall import Counts, percent
from biograft.progress import Progress
from biograft.text.documents import Document
from biograft.text.names_index import NamesIndex
from biograft.text.span_tagger import SpanTagger

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
    """Result of learning from annotated text, with its gain."""

    n_documents: int
    """Number of annotated documents."""
    n_mentions: int
    """Number of their mentions."""
    n_unknown: int
    """Marked mentions whose concept the knowledge base does not have."""
    n_forms: int = 0
    """Forms that were learned, with a concept."""
    n_no_mention: int = 0
    """Forms that are no mention."""
    is_applied: bool = False
    """Whether the forms were added to the index."""
    f1_before: float = 0.0
    """F1 of spans with their concepts, in percent, without what is learned."""
    f1_after: float = 0.0
    """The same with it: each document by what was learned from the others."""
    gain: float = 0.0
    """F1 with what is learned less that without, in percentage points."""
    interval: tuple[float, float] = (0.0, 0.0)
    """95 % interval of the gain, over documents."""
    thresholds: tuple[float, float] = (0.0, 1.0)
    """Least precision of a form with a concept, and of one that is no mention."""
    statuses: StatusLearning | None = None
    """Result of learning statuses; None if no mention has one."""
    forms: tuple[LearnedForm, ...] = field(default=(), repr=False)
    """Learned texts, each with its concept."""
    detector: LearnedDetector | None = field(default=None, repr=False)
    """Learned detector; None if it brings no gain."""
    detector_gain: float = 0.0
    """F1 with the detector less that with learned forms alone, where these are applied."""
    detector_interval: tuple[float, float] = (0.0, 0.0)
    """95 % interval of the gain of the detector, over documents."""

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values, without what was learned."""
        values = asdict(replace(self, forms=(), detector=None))
        del values["forms"]
        if self.statuses is not None:
            del values["statuses"]["phrases"]
        return {**values, "detector": self.detector is not None}


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
        found: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
        for each in mentions:
            if each.concept:
                found[each.mention.start, each.mention.end].add(each.concept)
        return {span: self.meant(concepts) for span, concepts in found.items()}

    def meant(self, concepts: Iterable[str]) -> frozenset[str]:
        """Return concepts by the ids that the gold uses for them.

        Args:
            concepts: Ids of concepts of the store.
        """
        expected, found = frozenset().union(*self.gold.values()), set()
        for each in concepts:
            own = canonical_id(each)
            if own not in expected:
                own = min(self.ids.own(each) & expected, default=own)
            found.add(own)
        return frozenset(found)

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
    detector: bool = False,
    progress: Progress | None = None,
) -> FormLearningReport:
    """Teach an index forms of annotated text; those that it was taught before are replaced.

    Args:
        kb: Knowledge base of the index.
        index: Folder of the index.
        documents: Documents with their mentions.
        config: Settings of the linker that the forms are learned for.
        source: Where the documents are from.
        detector: Learn a detector of mentions, too.
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
    report = fit_forms(linker, documents, progress, detector=detector)
    with sole_writer(folder), new_folder(folder / LEARNED_FORMS, overwrite=True) as work:
        statuses = report.statuses
        phrases = statuses.phrases if statuses is not None and statuses.is_applied else ()
        forms = report.forms if report.is_applied else ()
        save_learned(work, source, forms, phrases, report.detector)
    return report


def _settings(config: LinkerConfig | None) -> LinkerConfig:
    return replace(config or LinkerConfig(), assertions=False, mentions="find", k=1)


def fit_forms(
    linker: Linker,
    documents: Sequence[Document],
    progress: Progress | None = None,
    *,
    detector: bool = False,
) -> FormLearningReport:
    """Learn forms from annotated text, and measure them by cross-validation.

    Args:
        linker: The linker that the forms are learned for, without any.
        documents: Documents with their mentions.
        progress: Progress of linking the documents.
        detector: Learn a detector of mentions, too.
    """
    if detector and linker.config.overlaps == "all":
        raise ConfigError("detector: finds no mentions inside others; leave out overlaps 'all'")
    if not any(document.mentions for document in documents):
        raise ConfigError("documents: none has a mention; give text with marked mentions")
    notes, texts, n_unknown = _read(linker, documents, progress)
    before = [note.counts(note.state.mentions) for note in notes]
    folds = np.random.default_rng(0).permutation(len(notes)) % min(_FOLDS, len(notes))
    tried = {
        thresholds: _cross_validated(linker, notes, texts, folds, thresholds)
        for thresholds in product(_CONCEPT_PRECISION, _NO_MENTION_PRECISION)
    }
    counts = {thresholds: _counts(notes, mentions) for thresholds, mentions in tried.items()}
    thresholds, after = max(counts.items(), key=lambda item: sum(item[1], Counts()).f1)
    applied, gain = gain_of(after, before)
    forms = choose_forms([note.places for note in notes], texts, thresholds)
    report = FormLearningReport(
        n_documents=len(notes),
        n_mentions=sum(len(note.gold) for note in notes),
        n_unknown=n_unknown,
        n_forms=sum(bool(each.concept) for each in forms),
        n_no_mention=sum(not each.concept for each in forms),
        is_applied=applied,
        f1_before=percent(sum(before, Counts()).f1),
        f1_after=percent(sum(after, Counts()).f1),
        **in_percent("", gain),
        thresholds=thresholds,
        statuses=fit_statuses(documents, folds, linker.config.assertion_rules),
        forms=tuple(forms),
    )
    if not detector:
        return report
    if applied:
        for note, mentions in zip(notes, tried[thresholds], strict=True):
            note.state.mentions = mentions
    known = after if applied else before
    learned, found = _fit_detector(linker, notes, texts, folds, progress)
    is_better, more = gain_of(found, known)
    report = replace(report, **in_percent("detector_", more))
    if not is_better:
        return report
    _, gain = gain_of(found, before)
    f1 = percent(sum(found, Counts()).f1)
    return replace(report, detector=learned, f1_after=f1, **in_percent("", gain))


def _counts(notes: Sequence[_Note], mentions: Sequence[Sequence[MentionState]]) -> list[Counts]:
    return [note.counts(each) for note, each in zip(notes, mentions, strict=True)]


def _fit_detector(
    linker: Linker,
    notes: Sequence[_Note],
    texts: Sequence[str],
    folds: Any,
    progress: Progress | None,
) -> tuple[LearnedDetector, list[Counts]]:
    """Learn a detector; return it with the counts of each document without what it taught."""
    options: list[list[MentionOption]] = [[] for _ in notes]
    n_folds = int(folds.max()) + 1
    if progress is not None:
        progress.start("learn a detector")
    for fold in range(n_folds):
        held_out = np.flatnonzero(folds == fold).tolist()
        others = [note for note, own in zip(notes, folds, strict=True) if own != fold]
        chooser = linker.chooser(_detector_of(others, texts))
        found = chooser.options([notes[n].state for n in held_out])
        for n, each in zip(held_out, found, strict=True):
            options[n] = each
        if progress is not None:
            progress.advance(1, (fold + 1) / (n_folds + 1))
    values = [np.array([each.values for each in own]) for own in options]
    right = [
        np.array([note.gold.get(each.span) == note.meant(each.concepts) for each in own])
        for note, own in zip(notes, options, strict=True)
    ]

    def weights_of(numbers: Any) -> tuple[float, ...]:
        used = [n for n in numbers if len(values[n])]
        return fit_weights(
            np.concatenate([values[n] for n in used]), np.concatenate([right[n] for n in used])
        )

    counts: list[Counts] = [Counts()] * len(notes)
    for fold in range(n_folds):
        weights = weights_of(np.flatnonzero(folds != fold))
        for n in np.flatnonzero(folds == fold).tolist():
            chosen = choose(options[n], probabilities(options[n], weights))
            counts[n] = notes[n].counts(m for option in chosen for m in option.mentions)
    return replace(_detector_of(notes, texts), weights=weights_of(range(len(notes)))), counts


def _detector_of(notes: Sequence[_Note], texts: Sequence[str]) -> LearnedDetector:
    """Learn a tagger of documents, and count what forms were marked as."""
    states = [note.state for note in notes]
    tagger = SpanTagger.fit(
        [state.document.text for state in states], hints(states), [note.gold for note in notes]
    )
    return LearnedDetector(tagger, tuple(count_forms([note.places for note in notes], texts)))


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
) -> list[list[MentionState]]:
    """Return the mentions of each document by what is learned from the other folds."""
    nested = linker.config.overlaps == "all"
    mentions: list[list[MentionState]] = [[] for _ in notes]
    for fold in range(int(folds.max()) + 1):
        others = [note.places for n, note in enumerate(notes) if folds[n] != fold]
        learned = LearnedForms(linker.kb, choose_forms(others, texts, thresholds), nested=nested)
        held_out = np.flatnonzero(folds == fold).tolist()
        found = learned.find([notes[n].state.document.text for n in held_out])
        for n, matches in zip(held_out, found, strict=True):
            mentions[n], _ = learned.apply(notes[n].state, matches)
    return mentions


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


def count_forms(places: Sequence[Sequence[_Place]], texts: Sequence[str]) -> list[LearnedForm]:
    """Return each form with each concept that it was marked as, and forms never marked.

    Args:
        places: The places of forms in each document.
        texts: The forms by row.
    """
    seen: defaultdict[int, list[tuple[int, frozenset[str]]]] = defaultdict(list)
    for n, of_document in enumerate(places):
        for place in of_document:
            seen[place.form].append((n, place.marked))
    forms = []
    for row, found in sorted(seen.items()):
        marked = Counter(min(own) for _, own in found if len(own) == 1 and INSIDE not in own)
        for concept, n_right in sorted(marked.items()) or [("", len(found))]:
            n_documents = len({n for n, own in found if not concept or concept in own})
            forms.append(LearnedForm(texts[row], concept, "", n_right, len(found), n_documents))
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
