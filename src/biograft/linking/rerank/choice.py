"""A second opinion on linked mentions: which of the candidates is meant, or none of them.

:class:`CandidateChooser` is what gives it, such as a language model (``llm.py``). It sees
the mention in its context, and the candidates of the linker. It can choose one of these, or none,
and nothing else: where it fails, or answers something else, the linker's own answer stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple, Protocol

from biograft.config import AtLeast, Choice, Config
from biograft.errors import BiograftError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate, Evidence, LinkedDocument, LinkedMention
from biograft.linking.fusion import SAME_NAME

_CHOSEN = "chosen by a language model"


class ChoiceOption(NamedTuple):
    """A candidate, as a chooser sees it."""

    name: str
    types: tuple[str, ...]
    definition: str


class ChoiceQuestion(NamedTuple):
    """A mention in its context, and the candidates, best first."""

    before: str
    mention: str
    after: str
    options: tuple[ChoiceOption, ...]


class ChoiceError(BiograftError):
    """There is no choice; ``reason`` is one of a few, to be counted."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"no choice: {reason}")
        self.reason = reason


class UnavailableError(ChoiceError):
    """The chooser could not be asked at all."""


class CandidateChooser(Protocol):
    """Says which of the candidates of a mention is meant."""

    @property
    def name(self) -> str:
        """Name in the evidence of a choice."""

    def choose(self, question: ChoiceQuestion) -> int | None:
        """Return the position of the candidate, from 0, or None for none of them.

        Raises ``ChoiceError`` where there is no choice; the linker's own answer stays then.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceConfig(Config):
    """Settings of questions: mentions to ask about, and the shown context."""

    ask: Annotated[str, Choice("doubtful", "all")] = "doubtful"
    """``doubtful``: mentions that equal no name of the first candidate, or also one of another
    concept; ``all``: every mention with candidates."""
    n_candidates: Annotated[int, AtLeast(1)] = 8
    """Candidates that are shown."""
    context_characters: Annotated[int, AtLeast(0)] = 300
    """Characters of text that are shown on each side of a mention."""
    name_characters: Annotated[int, AtLeast(1)] = 200
    """Characters of a mention, a name and a definition that are shown."""
    max_failures: Annotated[int, AtLeast(1)] = 3
    """Mentions in a row for which the chooser could not be asked; it is not asked again then."""


class ChoiceReview:
    """Asks a chooser about the mentions of linked documents, and counts its answers.

    >>> review = ChoiceReview(kb, chooser)  # doctest: +SKIP
    >>> documents = list(review.apply(linker.pipe(texts)))  # doctest: +SKIP
    >>> review.counts  # doctest: +SKIP
    Counter({'asked': 12, 'same answer': 9, 'other answer': 2, 'none': 1})
    """

    def __init__(
        self, kb: KnowledgeBase, chooser: CandidateChooser, config: ChoiceConfig | None = None
    ) -> None:
        self._kb, self._chooser, self.config = kb, chooser, config or ChoiceConfig()
        self.counts: Counter[str] = Counter()
        """Mentions by what became of them."""
        self._failures = 0

    def apply(self, documents: Iterable[LinkedDocument]) -> Iterator[LinkedDocument]:
        """Give the documents with the answers as they were chosen."""
        for linked in documents:
            mentions = (self._reviewed(linked.document.text, each) for each in linked.mentions)
            yield replace(linked, mentions=tuple(mentions))

    def _reviewed(self, text: str, mention: LinkedMention) -> LinkedMention:
        if not self._is_asked(mention):
            return mention
        if self._failures >= self.config.max_failures:
            self.counts["not asked, after failures"] += 1
            return mention
        shown = mention.candidates[: self.config.n_candidates]
        self.counts["asked"] += 1
        try:
            chosen = self._chooser.choose(self._question(text, mention, shown))
            if chosen is not None and not 0 <= chosen < len(shown):
                raise ChoiceError("outside the candidates")
        except ChoiceError as error:
            self._failures = self._failures + 1 if isinstance(error, UnavailableError) else 0
            self.counts[error.reason] += 1
            return mention
        self._failures = 0
        return self._answered(mention, None if chosen is None else shown[chosen])

    def _is_asked(self, mention: LinkedMention) -> bool:
        if not mention.candidates:
            return False
        first = mention.candidates[0]
        return self.config.ask == "all" or bool(first.tied) or first.score < float(SAME_NAME)

    def _question(
        self, text: str, mention: LinkedMention, shown: Iterable[Candidate]
    ) -> ChoiceQuestion:
        width = self.config.context_characters
        before = text[max(0, mention.start - width) : mention.start]
        after = text[mention.end : mention.end + width]
        options = tuple(
            ChoiceOption(
                self._cut(each.concept_name),
                each.types,
                self._cut(self._kb[each.concept].definition),
            )
            for each in shown
        )
        return ChoiceQuestion(before, self._cut(mention.form), after, options)

    def _cut(self, text: str) -> str:
        return text[: self.config.name_characters]

    def _answered(self, mention: LinkedMention, chosen: Candidate | None) -> LinkedMention:
        """Put the chosen candidate first; no other is tied with it then."""
        if chosen is None:
            self.counts["none"] += 1
            return replace(mention, concept=None)
        self.counts["same answer" if chosen.concept == mention.concept else "other answer"] += 1
        evidence = Evidence(self._chooser.name, chosen.concept_name, 1, 1.0)
        first = replace(chosen, evidence=(*chosen.evidence, evidence), tied=())
        others = (replace(each, tied=()) for each in mention.candidates if each is not chosen)
        why = mention.explanation
        return replace(
            mention,
            candidates=(first, *others),
            concept=first.concept,
            explanation=None if why is None else replace(why, order=_CHOSEN),
        )
