"""The steps of a linker, in their order; each is called with a batch of documents.

1. :class:`Detect` finds the mentions: those that a document has, those of a trained model, or the
   names of the knowledge base in its text, with ``overlaps="all"`` also those inside longer ones.
2. :class:`Expand` chooses the text that is looked up for a mention: the long form of an
   abbreviation that the document defines, of a clinical short form, the name beside it, *phlorizin
   (P)*, or each part of a composite, *ovarian and breast cancer*. Offsets remain those of the text.
3. :class:`Search` retrieves names for each text of the batch, fuses the scores of several
   searches, and lets a trained ranker order them. Names that were found in running text are
   searched lexically, unless the settings or a calibration say otherwise: the text has the name, so
   that vectors add processor time and change nothing.
4. :class:`Agree` lets the mentions that a document names without doubt decide about its short and
   ambiguous ones.
5. :class:`Decide` answers with the first candidate, or NIL if it is below the threshold. With
   ``overlaps="all"``, :class:`~biograft.linking.overlaps.Nest` then drops mentions inside longer
   ones whose concept is not broader. Where an index learned a detector,
   :class:`~biograft.linking.mention_choice.ChooseMentions` chooses among names, learned forms and
   other likely spans.
6. :class:`Assert` adds what the text says about a mention: negated, uncertain, historical, ...
7. :class:`AddMeasurements` adds the values and doses beside it.
8. :class:`Explain` says why the first candidate came first.

All steps work on one record, :class:`MentionState`. An option ``--no-X`` takes a step, or a part of
one, away. A step of your own is a callable with a ``name``; ``Linker.add_step`` puts it behind
another one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Protocol

import numpy as np

from biograft.clinical import Assertion, AssertionModel, Measurement, as_absent, find_measurements
from biograft.kb import KnowledgeBase
from biograft.linking.candidate_search import CandidateSearch
from biograft.linking.candidates import (
    Candidate,
    Context,
    Explanation,
    GeneratorScore,
    LinkedDocument,
    LinkedMention,
)
from biograft.linking.detection import (
    MISSPELT,
    REWORDED,
    MentionDetector,
    VariantMention,
    in_text_order,
    looked_up,
    outside,
)
from biograft.linking.forms import MentionForms
from biograft.linking.fusion import SAME_NAME
from biograft.linking.lexicon import (
    AS_WORD,
    KnownForm,
    NoteContext,
    StoreLexicon,
    is_plural,
    is_short,
)
from biograft.linking.longer_terms import LongerTerm, longer_term
from biograft.linking.nil import NilThreshold
from biograft.registry import Registry
from biograft.text.abbreviations import LongForms, abbreviates, find_abbreviations
from biograft.text.documents import Document, Mention

AS_WRITTEN, DEFINED, LISTED = "as written", "abbreviation of the document", "clinical short form"
WORD = "clinical word"
"""Source of the text that is looked up."""
OTHER_TERM = "a part of another term"
GIVEN, MODEL, NAME = "given", "model", "name"
"""Origins of a mention: the document has it, a detector or the names of the knowledge base."""

Candidates = tuple[Candidate, ...]


@dataclass(slots=True)
class MentionState:
    """A mention on its way through the steps; a composite has one for each of its parts."""

    mention: Mention
    """Offsets and text, as found or given."""
    origin: str
    """Step that found the mention, or ``given``."""
    form: str
    """The text that is looked up."""
    form_from: str = AS_WRITTEN
    """Source of the text that is looked up: as written, or an abbreviation, a spelling and so
    on."""
    factor: float = 1.0
    """The scores of its candidates are multiplied by it: below 1 where the form is not certain."""
    absent: bool = False
    """The mention itself says that the finding is absent: *afebrile*."""
    part_of: str = ""
    """The longer word or term of the text that the mention is a part of."""
    candidates: Candidates = ()
    """Candidates, best first."""
    support: str = ""
    """Factor of the first candidate's score, by evidence in the document."""
    concept: str | None = None
    """Id of the concept it is linked to; None before the decision, and for NIL."""
    assertion: Assertion | None = None
    """Assertion status; None before that step, or without it."""
    measurements: tuple[Measurement, ...] = ()
    """Values and doses beside the mention."""
    explanation: Explanation | None = None
    """Trace of the steps; None unless ``explain`` is set."""

    def result(self) -> LinkedMention:
        """Return the mention as the linker gives it."""
        return LinkedMention(
            self.mention.start,
            self.mention.end,
            self.mention.text,
            self.form,
            self.candidates,
            self.concept,
            self.assertion,
            self.measurements,
            self.explanation,
            self.origin,
            self.part_of,
        )


@dataclass(slots=True)
class DocumentState:
    """A document with its mentions, and those that were dropped, each with the reason."""

    document: Document
    """The document as it was read."""
    found: list[Mention] = field(default_factory=list)
    """Spans that were detected, before it is decided what is looked up for them."""
    origin: str = NAME
    """Step that found the mentions."""
    mentions: list[MentionState] = field(default_factory=list)
    """Mentions so far."""
    dropped: list[tuple[Mention, str]] = field(default_factory=list)
    """Mentions that a step dropped, with its reason."""

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The offsets of the mentions."""
        return [(each.mention.start, each.mention.end) for each in self.mentions]

    def result(self) -> LinkedDocument:
        """Return the document as the linker gives it."""
        mentions = tuple(each.result() for each in self.mentions)
        return LinkedDocument(self.document, mentions, tuple(self.dropped))


class Step(Protocol):
    """A step of a linker: a callable that changes the states of a batch of documents."""

    name: str

    def __call__(self, batch: Sequence[DocumentState]) -> None:
        """Work on the mentions of a batch of documents."""


LINKER_STEPS: Registry[Callable[[KnowledgeBase], Step]] = Registry(
    "step of a linker", {}, group="biograft.steps"
)
"""Steps of other packages: each is called with the knowledge base and returns a step. Its attribute
``after`` is the name of the step that it follows; default: ``decide``."""


@dataclass(slots=True, eq=False)
class NameRanking:
    """A search of names with what depends on its scores: composites and NIL."""

    search: CandidateSearch
    forms: MentionForms
    nil: NilThreshold


@dataclass(slots=True)
class NameRankings:
    """The search for terms and given mentions, and that for names found in running text."""

    given: NameRanking
    found: NameRanking

    def of(self, state: DocumentState) -> NameRanking:
        """Return the search for the mentions of a document."""
        return self.found if state.origin == NAME else self.given


@dataclass(slots=True)
class Detect:
    """Find the mentions of documents.

    Args:
        detector: Returns what finds mentions; it is only made where it is needed.
        origin: Origin of what it finds, ``model`` or ``name``.
        take_given: Whether documents that have mentions are linked by these.
    """

    detector: Callable[[], MentionDetector]
    origin: str
    take_given: bool
    name: str = "detect"

    def __call__(self, batch: Sequence[DocumentState]) -> None:
        """Set the spans of each document, and where they are from."""
        searched = []
        for state in batch:
            if self.take_given and state.document.mentions:
                state.origin, state.found = GIVEN, list(state.document.mentions)
            else:
                state.origin = self.origin
                searched.append(state)
        if not searched:
            return
        found = self.detector().detect([state.document for state in searched])
        for state, mentions in zip(searched, found, strict=True):
            state.found = list(mentions)


@dataclass(slots=True)
class Expand:
    """Choose what is looked up for each mention.

    Args:
        rankings: Their similarity to names decides whether a composite is split.
        lexicon: Clinical lexicon; None: short forms are not expanded, and all names stay.
        decided: Terms that reviewers decided about, which are looked up as they are.
        unwanted: Says whether a text is a name, but none of a concept that may be an answer.
    """

    rankings: NameRankings
    lexicon: StoreLexicon | None
    decided: Container[str] = ()
    unwanted: Callable[[str], bool] | None = None
    name: str = "expand"

    def __call__(self, batch: Sequence[DocumentState]) -> None:
        """Set the mentions of each document, with the text to look up."""
        for state in batch:
            forms = self.rankings.of(state).forms
            if state.origin == NAME:
                self._expand_names(state, forms)
            else:
                self._expand_given(state, forms)

    def _expand_given(self, state: DocumentState, forms: MentionForms) -> None:
        """Look up mentions that a person, a file or a model says are such."""
        mentions = state.found
        listed: dict[tuple[int, int], KnownForm] = {}
        if self.lexicon is not None:
            text, texts = state.document.text, {mention.text for mention in mentions}
            for each in mentions:
                if forms.is_name(each.text):
                    continue
                places = self.lexicon.places(text, each.start, each.end)
                if long := self.lexicon.expand(each.text, texts, places):
                    span = (each.start, each.end)
                    listed[span] = KnownForm(*span, each.text, long)
        long_forms = _long_forms(state.document, mentions, forms)
        self._set(state, forms, in_text_order(mentions), long_forms, listed)

    def _expand_names(self, state: DocumentState, forms: MentionForms) -> None:
        """Look up names found in text: short forms and words come, what is no finding goes."""
        text, mentions = state.document.text, state.found
        long_forms = _long_forms(state.document, mentions, forms)
        if reworded := {each.text: each.name for each in _reworded(mentions)}:
            pairs = ((short, reworded.get(long, long)) for short, long in long_forms.items())
            long_forms = LongForms(pairs)
        listed: dict[tuple[int, int], KnownForm] = {}
        if self.lexicon is not None:
            found = self.lexicon.find(text, {mention.text for mention in mentions})
            known = (each for each in found if long_forms.expand(each.short) is None)
            mentions, listed = _with_known(mentions, known, self.lexicon)
        more = forms.short_mentions(text, mentions, long_forms)
        mentions = in_text_order([*mentions, *more])
        if self.lexicon is not None:
            note, kept = self.lexicon.read(text), []
            for each in mentions:
                reason = note.no_finding(each)
                if reason is None or abbreviates(each.text, long_forms.get(each.text, "")):
                    kept.append(each)
                else:
                    state.dropped.append((each, reason))
            mentions = kept
        self._set(state, forms, mentions, long_forms, listed)

    def _set(
        self,
        state: DocumentState,
        forms: MentionForms,
        mentions: Sequence[Mention],
        long_forms: LongForms,
        listed: Mapping[tuple[int, int], KnownForm],
    ) -> None:
        known = [listed.get((each.start, each.end)) for each in mentions]
        chosen = [
            self._form_of(mention, forms, long_forms, entry)
            for mention, entry in zip(mentions, known, strict=True)
        ]
        parts = forms.split([form for form, _ in chosen])
        note = None
        if state.origin == NAME and self.lexicon is not None and known:
            note = self.lexicon.read(state.document.text)
        for mention, entry, (form, form_from), split in zip(
            mentions, known, chosen, parts, strict=True
        ):
            if state.origin == NAME and mention.parts:  # of a coordination that was found
                texts = mention.parts
            else:
                texts = (form,) if form in self.decided else split
            factor, absent, whole = 1.0, False, None
            if isinstance(mention, VariantMention):
                factor = mention.similarity
            elif entry is not None and form_from in (LISTED, WORD):
                factor, absent = entry.factor, entry.absent
            if state.origin == NAME and form_from in (AS_WRITTEN, MISSPELT, REWORDED):
                whole = _longer_term(state.document.text, mention, note)
            if whole is not None:
                factor *= whole.factor
            for text in texts:
                if not factor:
                    state.dropped.append((mention, OTHER_TERM))
                elif state.origin != GIVEN and self._is_unwanted(mention, text):
                    state.dropped.append((mention, "a concept that is left out"))
                else:
                    term = "" if whole is None else whole.text
                    state.mentions.append(
                        MentionState(mention, state.origin, text, form_from, factor, absent, term)
                    )

    def _is_unwanted(self, mention: Mention, form: str) -> bool:
        if self.unwanted is None:
            return False
        written = isinstance(mention, VariantMention) and self.unwanted(mention.text)
        return written or self.unwanted(form)

    def _form_of(
        self,
        mention: Mention,
        forms: MentionForms,
        long_forms: LongForms,
        known: KnownForm | None,
    ) -> tuple[str, str]:
        """Return the text to look up, and where it is from."""
        written = looked_up(mention)
        form = forms.expand(written, long_forms)
        if form != written:
            return form, DEFINED
        if isinstance(mention, VariantMention):
            return form, mention.variant
        if written in self.decided:
            return form, AS_WRITTEN
        if known is not None:
            return known.long, WORD if known.is_word else LISTED
        if is_plural(form) and not forms.is_name(form):
            return form[:-1], AS_WRITTEN
        return form, AS_WRITTEN


def _longer_term(text: str, mention: Mention, note: NoteContext | None) -> LongerTerm | None:
    """Return the longer term that a mention is a part of, whatever the layout of the text."""
    if note is None:
        return longer_term(text, mention.start, mention.end)
    start, end = note.folded.fold(mention.start), note.folded.fold(mention.end)
    return longer_term(note.text, start, end)


def _reworded(mentions: Iterable[Mention]) -> list[VariantMention]:
    found = (each for each in mentions if isinstance(each, VariantMention))
    return [each for each in found if each.variant != MISSPELT]


def _covers(mentions: Iterable[Mention]) -> Callable[[KnownForm], bool]:
    """Return a test whether any of some mentions is around a form."""
    spans = sorted((each.start, each.end) for each in mentions)
    starts = [start for start, _ in spans]
    reached = list(accumulate((end for _, end in spans), max, initial=0))
    return lambda form: reached[bisect_right(starts, form.start)] >= form.end


def _with_known(
    mentions: Sequence[Mention], known: Iterable[KnownForm], lexicon: StoreLexicon
) -> tuple[list[Mention], dict[tuple[int, int], KnownForm]]:
    """Add what the lexicon knows: a word where it says more than the names that it overlaps.

    It does not say more than a re-worded name around it, and a misspelt word not more than a
    misspelt name around it.
    """
    variants = [each for each in mentions if isinstance(each, VariantMention)]
    in_reworded, in_variant = _covers(_reworded(mentions)), _covers(variants)
    known = (
        each
        for each in known
        if not (in_variant if each.is_word and each.factor < AS_WORD else in_reworded)(each)
    )
    names = [each for each in mentions if not isinstance(each, VariantMention)]
    starts = [name.start for name in names]
    own: list[Mention] = []
    listed: dict[tuple[int, int], KnownForm] = {}
    for each in sorted(known, key=lambda each: (each.start, -each.end)):
        if own and each.start < own[-1].end:
            continue
        row = bisect_left(starts, each.end) - 1
        while each.is_word and row >= 0 and names[row].end > each.start:
            name = names[row]
            is_inside = each.start <= name.start and name.end <= each.end
            if not is_inside or name.text == each.short or lexicon.agree(name.text, each.long):
                break
            row -= 1
        else:
            own.append(Mention(each.start, each.end, each.short))
            listed[each.start, each.end] = each
    return in_text_order([*own, *outside(mentions, own)]), listed


def _long_forms(document: Document, mentions: Sequence[Mention], forms: MentionForms) -> LongForms:
    return forms.long_forms(
        document.text,
        (mention.text for mention in mentions),
        (span for mention in mentions for span in mention.spans if not mention.fragments),
    )


@dataclass(slots=True)
class Search:
    """Find the candidates of all mentions of a batch; equal texts are searched once.

    Args:
        rankings: The searches.
        k: Candidates of a mention.
        depth: Names that each search retrieves.
    """

    rankings: NameRankings
    k: int
    depth: int
    name: str = "search"

    def __call__(self, batch: Sequence[DocumentState]) -> None:
        """Set the candidates, best first."""
        for ranking in dict.fromkeys(map(self.rankings.of, batch)):
            asked = [
                (each, Context(state.document.text, each.mention.start, each.mention.end))
                for state in batch
                if self.rankings.of(state) is ranking
                for each in state.mentions
            ]
            forms, contexts = [each.form for each, _ in asked], [context for _, context in asked]
            found = ranking.search.find(forms, contexts, self.k, self.depth)
            for (each, _), candidates in zip(asked, found, strict=True):
                each.candidates = candidates


UNSUPPORTED = 0.5
"""The score of a short form that nothing in the document supports is multiplied by this."""
NAMED_ELSEWHERE = "named elsewhere in the document"
PREFERRED = "preferred name of the concept"
IN_LIST = "in the list of clinical short forms"
NO_SUPPORT = "short form without support: score halved"


@dataclass(slots=True)
class Agree:
    """Let the certain mentions of a document decide about short forms and shared names.

    A short form in capitals, *RA*, or a name that several concepts share, means the concept that
    the document names without doubt elsewhere. A short form that nothing supports is scored lower:
    the names of a store that are three capitals long are mostly something else in a text.

    Args:
        kb: The knowledge base.
        lexicon: Clinical lexicon.
    """

    kb: KnowledgeBase
    lexicon: StoreLexicon
    name: str = "agree"

    def __call__(self, batch: Sequence[DocumentState]) -> None:
        """Change the candidates of names that were found in text."""
        for state in batch:
            if state.origin == NAME:
                self._agree(state.mentions, self.lexicon.read(state.document.text))

    def _agree(self, mentions: Sequence[MentionState], note: NoteContext) -> None:
        certain = {each.candidates[0].concept for each in mentions if _is_certain(each)}
        decided: dict[tuple[str, str, int, bool], tuple[Candidates, str]] = {}  # long texts repeat
        for each in mentions:
            listed = _is_bare(each) and bool(each.candidates) and self._is_listed(each, note)
            key = (each.form, each.form_from, id(each.candidates), listed)
            if key not in decided:
                decided[key] = self._decide(each, certain, listed=listed)
            each.candidates, each.support = decided[key]

    def _is_listed(self, mention: MentionState, note: NoteContext) -> bool:
        places = note.places(mention.mention.start, mention.mention.end)
        row = self.kb.row(mention.candidates[0].concept)
        return self.lexicon.agrees(mention.form, row, [*places], in_chinese=note.is_chinese)

    def _decide(
        self, mention: MentionState, certain: set[str], *, listed: bool
    ) -> tuple[Candidates, str]:
        candidates = mention.candidates
        if not candidates or candidates[0].score < float(SAME_NAME):
            return candidates, ""
        first, is_bare = candidates[0], _is_bare(mention)
        if not is_bare and not first.tied:
            return candidates, ""
        same = [each for each in candidates if each.score >= float(SAME_NAME)]
        named = next((each for each in same if each.concept in certain), None)
        if named is not None:
            order = (named, *(each for each in candidates if each is not named))
            return tuple(replace(each, tied=()) for each in order), NAMED_ELSEWHERE
        if not is_bare:
            return candidates, ""
        if first.name.casefold() == first.concept_name.casefold():
            return candidates, PREFERRED
        if listed:
            return candidates, IN_LIST
        return tuple(each.scaled(UNSUPPORTED) for each in candidates), NO_SUPPORT


def _is_certain(mention: MentionState) -> bool:
    if not mention.candidates or _is_bare(mention):
        return False
    first = mention.candidates[0]
    return first.score >= float(SAME_NAME) and not first.tied


def _is_bare(mention: MentionState) -> bool:
    """Return True for a short form that was not expanded."""
    return mention.form_from == AS_WRITTEN and is_short(mention.form)


@dataclass(slots=True)
class Decide:
    """Answer with the first candidate, or NIL.

    Args:
        rankings: Their scores have a threshold each.
    """

    rankings: NameRankings
    name: str = "decide"

    def __call__(self, batch: Sequence[DocumentState]) -> None:
        """Set the concept of each mention; candidates of an uncertain form score lower."""
        scaled: dict[tuple[int, float], tuple[Candidates, Candidates]] = {}  # equal texts repeat
        for state in batch:
            nil = self.rankings.of(state).nil
            for each in state.mentions:
                if each.factor < 1:
                    key, own = (id(each.candidates), each.factor), each.candidates
                    if key not in scaled:
                        scaled[key] = own, tuple(c.scaled(each.factor) for c in own)
                    each.candidates = scaled[key][1]
                if each.candidates and not nil.is_nil(each.form, each.candidates[0]):
                    each.concept = each.candidates[0].concept


@dataclass(slots=True)
class Assert:
    """Add the assertion status of each mention.

    Args:
        model: Rules, or a model of your own.
    """

    model: AssertionModel
    name: str = "assert"

    def __call__(self, batch: Sequence[DocumentState]) -> None:
        """Set the assertions."""
        for state in batch:
            said = self.model.assert_status(state.document.text, state.spans)
            for each, assertion in zip(state.mentions, said, strict=True):
                each.assertion = as_absent(assertion, each.mention) if each.absent else assertion


@dataclass(slots=True)
class AddMeasurements:
    """Add the values and doses beside each mention."""

    name: str = "measure"

    def __call__(self, batch: Sequence[DocumentState]) -> None:
        """Set the measurements."""
        for state in batch:
            values = find_measurements(state.document.text, state.spans)
            for each, beside in zip(state.mentions, values, strict=True):
                each.measurements = beside


@dataclass(slots=True)
class Explain:
    """Say why the first candidate of each mention came first.

    Args:
        kb: The knowledge base.
        rankings: The searches.
        limits: Types, sources and the value set that answers are limited to.
    """

    kb: KnowledgeBase
    rankings: NameRankings
    limits: tuple[str, ...] = ()
    name: str = "explain"

    def __call__(self, batch: Sequence[DocumentState]) -> None:
        """Set the explanations."""
        for state in batch:
            for each in state.mentions:
                each.explanation = self._explain(state, each)

    def _explain(self, state: DocumentState, mention: MentionState) -> Explanation:
        first = mention.candidates[0] if mention.candidates else None
        row = self._name_row(first) if first else None
        ranking, form = self.rankings.of(state), mention.form
        is_part = mention.form_from == AS_WRITTEN and form != mention.mention.text
        return Explanation(
            form=form,
            form_from="part of the mention" if is_part else mention.form_from,
            defined_at=_defined_at(state.document.text, mention),
            name_kind=self.kb.name(row).kind if row is not None else "",
            match=_match(form, first) if first else "",
            scores=tuple(_scores(ranking.search, form, row)) if row is not None else (),
            order=_order(mention.candidates),
            support=f"part of {mention.part_of}" if mention.part_of else mention.support,
            threshold=ranking.nil.threshold_of(form),
            limits=self.limits,
        )

    def _name_row(self, candidate: Candidate) -> int | None:
        concept = self.kb.row(candidate.concept)
        concepts = self.kb.numbers("names", "concept")
        rows = self.kb.name_rows(candidate.name)
        return next((row for row in rows if concepts[row] == concept), None)


def _scores(search: CandidateSearch, form: str, row: int) -> Iterator[GeneratorScore]:
    if search.fused is None:
        return
    for generator in search.fused.generators:
        score = float(generator.score([form], np.array([[row]]))[0, 0])
        weight = search.fused.weights[generator.name]
        known = round(score, 6) if np.isfinite(score) else None
        yield GeneratorScore(generator.name, round(weight, 6), known)


def _defined_at(text: str, mention: MentionState) -> tuple[int, int] | None:
    if mention.form_from != DEFINED:
        return None
    return next(
        (
            (found.long_start, found.long_end)
            for found in find_abbreviations(text)
            if found.long.endswith(mention.form) or mention.form.endswith(found.long)
        ),
        None,
    )


def _match(form: str, first: Candidate) -> str:
    if first.name.casefold() == form.casefold():
        return f"{first.name}, as looked up"
    exact = any(item.score >= float(SAME_NAME) for item in first.evidence)
    return f"{first.name}, {'the same once normalised' if exact else 'similar'}"


def _order(candidates: Candidates) -> str:
    if len(candidates) < 2:
        return "no other concept was found" if candidates else ""
    first, second = candidates[:2]
    if first.tied:
        others = ", ".join(first.tied)
        return f"order of the store; {others} have the same name, of the same kind"
    if first.score > second.score:
        return f"highest score; next {second.concept} with {second.score:.3f}"
    return f"kind of its name; {second.concept} has the same score"
