"""The step of a linker that applies learned forms (:mod:`biograft.linking.learned`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate, Evidence
from biograft.linking.learned import LearnedForm
from biograft.linking.lexicon import NoteContext
from biograft.linking.steps import GIVEN, DocumentState, MentionState
from biograft.text.documents import Mention
from biograft.text.names_index import NamesIndex

SOURCE = "learned"
"""Source of a candidate that was learned, and where the text that is looked up is from."""
NO_MENTION = "learned: no mention"
"""Why a mention is dropped."""


class FormMatch(NamedTuple):
    """A learned form in a text."""

    start: int
    end: int
    entry: LearnedForm


class LearnedForms:
    """The step of a linker that applies learned forms.

    Args:
        kb: Knowledge base of the concepts.
        forms: The forms; those of concepts that the knowledge base does not have are left out.
        nested: Keep mentions inside others.
        only: Whether each concept, by row, may be an answer; default: all.
    """

    name = SOURCE

    def __init__(
        self,
        kb: KnowledgeBase,
        forms: Sequence[LearnedForm],
        *,
        nested: bool = False,
        only: Any = None,
    ) -> None:
        self.kb, self._nested = kb, nested
        self.forms = tuple(
            each
            for each in forms
            if not each.concept
            or ((row := kb.find_row(each.concept)) is not None and (only is None or only[row]))
        )
        self._names = NamesIndex.build([each.form for each in self.forms])
        self._has_sections = any(each.section for each in self.forms)

    def __call__(self, batch: Sequence[DocumentState]) -> None:
        """Apply the forms to a batch of documents."""
        if not self.forms:
            return
        texts = [state.document.text for state in batch]
        for state, matches in zip(batch, self.find(texts), strict=True):
            state.mentions, dropped = self.apply(state, matches)
            state.dropped += [(mention, NO_MENTION) for mention in dropped]

    def find(self, texts: Sequence[str]) -> list[list[FormMatch]]:
        """Find the forms in texts, overlapping ones included.

        Args:
            texts: Texts.
        """
        found: list[list[FormMatch]] = [[] for _ in texts]
        section_at = SectionFinder(texts)
        for n, start, end, entries in self.places(texts):
            section = ""
            if self._has_sections and any(each.section for each in entries):
                section = section_at(n, start)
            own = [each for each in entries if each.section in ("", section)]
            if own:  # of a section before any
                entry = max(own, key=lambda each: each.section)
                found[n].append(FormMatch(start, end, entry))
        return found

    def places(self, texts: Sequence[str]) -> Iterator[tuple[int, int, int, list[LearnedForm]]]:
        """Yield the number of a text, a place of a form, and all that is learned of the form.

        Args:
            texts: Texts.
        """
        for n, match in self._names.occurrences(texts):
            yield n, match.start, match.end, [self.forms[row] for row in match.name_rows]

    def apply(
        self, state: DocumentState, matches: Sequence[FormMatch]
    ) -> tuple[list[MentionState], list[Mention]]:
        """Return the mentions of a document with what was learned, and those that are dropped.

        Args:
            state: The document with its mentions.
            matches: The forms in its text.
        """
        by_span: defaultdict[tuple[int, int], list[MentionState]] = defaultdict(list)
        for each in state.mentions:
            by_span[each.mention.start, each.mention.end].append(each)
        if state.origin == GIVEN:
            matches = [each for each in matches if each.entry.concept and each[:2] in by_span]
        dropped: list[Mention] = []
        for start, end, entry in sorted(matches, key=lambda match: match.start - match.end):
            same = by_span.get((start, end), [])
            if not entry.concept:
                dropped += [each.mention for each in by_span.pop((start, end), ())]
                continue
            around = [span for span in by_span if span[0] < end and start < span[1]]
            if not self._nested and state.origin != GIVEN:
                if any(stop - first > end - start for first, stop in around):
                    continue
                for span in around:
                    del by_span[span]
            by_span[start, end] = [self.mention(state, (start, end), entry, same)]
        mentions = (each for of_span in by_span.values() for each in of_span)
        order = sorted(mentions, key=lambda each: (each.mention.start, -each.mention.end))
        return order, dropped

    def mention(
        self,
        state: DocumentState,
        span: tuple[int, int],
        entry: LearnedForm,
        same: Sequence[MentionState],
    ) -> MentionState:
        """Return the mention of a form, before the candidates that the linker found for it.

        Args:
            state: The document.
            span: The place of the form.
            entry: The form.
            same: Mentions that the linker found there.
        """
        text = state.document.text[span[0] : span[1]]
        evidence = Evidence(SOURCE, entry.form, 1, entry.score)
        first = Candidate.of_evidence(self.kb, entry.concept, evidence)
        others = (each for found in same for each in found.candidates)
        return MentionState(
            same[0].mention if same else Mention(*span, text),
            state.origin,
            text,
            SOURCE,
            candidates=(first, *(each for each in others if each.concept != first.concept)),
            support=entry.support,
            concept=first.concept,
        )


class SectionFinder:
    """Returns the names of sections; each text is read once.

    Args:
        texts: Texts.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._read: dict[int, NoteContext] = {}

    def __call__(self, text: int, offset: int) -> str:
        """Return the name of a section; empty: none is named.

        Args:
            text: Number of the text.
            offset: A place in it.
        """
        if text not in self._read:
            self._read = {text: NoteContext(self._texts[text])}
        return self._read[text].section_at(offset)
