"""Strings that are looked up for the mentions of a document, and the reasons."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from typing import NamedTuple

from biograft.corpus.abbreviations import LongForms
from biograft.documents import Document, Mention
from biograft.linking.detection import MisspeltMention, in_text_order, looked_up, outside
from biograft.linking.detection.guards import without_persons_and_units
from biograft.linking.mentions import MentionForms
from biograft.linking.short_forms import KnownForm, KnownShortForms, is_plural

AS_WRITTEN, DEFINED, LISTED = "as written", "abbreviation of the document", "clinical short form"
MISSPELT = "misspelt name"


class Lookup(NamedTuple):
    """A mention with a text to look up for it: all of it, or one part of a composite."""

    mention: Mention
    form: str
    how: str = AS_WRITTEN
    """Where the form is from: the mention, the name it misspells, a definition, or the list."""


class LookupBuilder:
    """Says what is looked up for the mentions of a document."""

    def __init__(
        self,
        forms: MentionForms,
        short_forms: KnownShortForms | None,
        decided: Container[str] = (),
    ) -> None:
        """``decided`` are terms that people decided about: they are looked up as they are."""
        self._forms, self._short_forms, self._decided = forms, short_forms, decided

    def of_given(self, document: Document, mentions: Sequence[Mention]) -> list[Lookup]:
        """Return the lookups of mentions that a person, a file or a model says are such."""
        long_forms, listed = self._long_forms(document, mentions), {}
        if self._short_forms is not None:
            texts = {mention.text for mention in mentions}
            unknown = [each for each in texts if not self._forms.is_name(each)]
            expanded = ((each, self._short_forms.expand(each, texts)) for each in unknown)
            listed = {short: long for short, long in expanded if long}
        return self._lookups(in_text_order(mentions), long_forms, listed)

    def of_found(self, document: Document, mentions: Sequence[Mention]) -> list[Lookup]:
        """Return the lookups of mentions that were found by names.

        Headings, persons and units are left out; further occurrences of short forms are added.
        """
        text = document.text
        mentions = without_persons_and_units(text, mentions)
        long_forms = self._long_forms(document, mentions)
        known: list[KnownForm] = []
        if self._short_forms is not None:
            mentions = self._without_headings(text, mentions, long_forms)
            known = [
                each
                for each in self._short_forms.find(text, {mention.text for mention in mentions})
                if long_forms.expand(each.short) is None
                and not self._short_forms.is_heading(text, each.start, each.end)
            ]
            own = [Mention(each.start, each.end, each.short) for each in known]
            mentions = in_text_order([*own, *outside(mentions, own)])
        more = self._forms.short_mentions(text, mentions, long_forms)
        listed = {each.short: each.long for each in known}
        return self._lookups(in_text_order([*mentions, *more]), long_forms, listed, use_parts=True)

    def _long_forms(self, document: Document, mentions: Sequence[Mention]) -> LongForms:
        return self._forms.long_forms(
            document.text,
            (mention.text for mention in mentions),
            (span for mention in mentions for span in mention.spans if not mention.fragments),
        )

    def _without_headings(
        self, text: str, mentions: Sequence[Mention], defined: Collection[str]
    ) -> list[Mention]:
        known = self._short_forms
        return [
            mention
            for mention in mentions
            if known is None
            or mention.text in defined
            or not known.is_heading(text, mention.start, mention.end)
        ]

    def _lookups(
        self,
        mentions: Sequence[Mention],
        long_forms: LongForms,
        listed: Mapping[str, str],
        *,
        use_parts: bool = False,
    ) -> list[Lookup]:
        forms = []
        for mention in mentions:
            written = looked_up(mention)
            form = self._forms.expand(written, long_forms)
            if form != written:
                forms.append((form, DEFINED))
            elif isinstance(mention, MisspeltMention):
                forms.append((form, MISSPELT))
            elif written in self._decided:
                forms.append((form, AS_WRITTEN))
            elif mention.text in listed:
                forms.append((listed[mention.text], LISTED))
            elif is_plural(form) and not self._forms.is_name(form):
                forms.append((form[:-1], AS_WRITTEN))
            else:
                forms.append((form, AS_WRITTEN))
        parts = [
            (form,) if form in self._decided else of
            for (form, _), of in zip(
                forms, self._forms.split([form for form, _ in forms]), strict=True
            )
        ]
        return [
            Lookup(mention, part, how)
            for mention, (_, how), of in zip(mentions, forms, parts, strict=True)
            for part in (mention.parts if use_parts and mention.parts else of)
        ]
