"""Mentions chosen by evidence: names, learned forms and a learned tagger together.

A span of a text with a concept is an option. Options are what the linker answers, what a form was
marked as, and what a search finds for the spans that the tagger thinks likely. A logistic function
of all that is known of an option says how probable it is that an annotator would have marked it;
of the options that overlap, those with the highest sum of probabilities above a limit are taken.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from biograft.arrays import Flags, Floats
from biograft.kb import KnowledgeBase
from biograft.linking.calibration import logistic
from biograft.linking.fusion import SAME_NAME
from biograft.linking.learned import APPROVED, LearnedDetector, LearnedForm
from biograft.linking.learned_mentions import LearnedForms
from biograft.linking.lexicon import is_short
from biograft.linking.steps import DEFINED, GIVEN, MODEL, DocumentState, MentionState, Step
from biograft.text.documents import Mention
from biograft.text.span_tagger import Span

Concepts = frozenset[str]

LOOKED_UP = 5
"""Concepts that are searched for a span."""
_LEAST = 0.3
"""Least probability of a mention, with which F1 is highest in cross-validation on train."""
_CERTAIN = 1e6
"""More than any sum of probabilities: reviewers' decisions hold."""
UNLIKELY = "learned: hardly a mention"
"""Why a mention is dropped."""
_PENALTY, _NEWTON_STEPS = 1.0, 25


class MentionOption(NamedTuple):
    """A span of a text with concepts, and what is known of it."""

    span: Span
    concepts: Concepts
    mentions: tuple[MentionState, ...]
    """The mentions of the document if it is chosen."""
    values: tuple[float, ...]


@dataclass(slots=True)
class _Known:
    """Facts of a span with concepts, from which its features are made."""

    mentions: tuple[MentionState, ...] = ()
    answered: float = 0.0
    """Score of the linker's answer; 0: it answers otherwise."""
    found: float = 0.0
    """Score of the search for the text of the span."""
    gap: float = 1.0
    """Distance of the score to the first of the search."""
    share: float = 0.0
    """Share with these concepts of the places where the form was marked."""


class ChooseMentions:
    """The step of a linker that chooses the mentions of running text by evidence.

    Args:
        kb: Knowledge base of the concepts.
        detector: What was learned.
        search: Steps that look up the mentions of documents.
        k: Candidates of a mention.
        only: Whether each concept, by row, may be an answer; default: all.
    """

    name = "choose"

    def __init__(
        self,
        kb: KnowledgeBase,
        detector: LearnedDetector,
        search: Sequence[Step],
        k: int,
        only: Any = None,
    ) -> None:
        self._detector, self._search, self._k = detector, search, k
        self._forms = LearnedForms(kb, detector.forms, only=only)
        self._prior: Counter[str] = Counter()
        for each in detector.forms:
            if each.concept:
                self._prior[each.concept] += each.n_right

    def __call__(self, batch: Sequence[DocumentState]) -> None:
        """Choose the mentions of a batch of documents."""
        batch = [state for state in batch if state.origin != GIVEN]
        for state, options in zip(batch, self.options(batch), strict=True):
            likely = probabilities(options, self._detector.weights)
            for n, option in enumerate(options):
                for mention in option.mentions:
                    if mention.support == APPROVED:
                        likely[n] = _CERTAIN
                    mention.support = mention.support or f"a mention by {likely[n]:.2f}"
            chosen = choose(options, likely)
            kept = {option.span for option in chosen}
            state.dropped += [
                (each.mention, UNLIKELY)
                for each in state.mentions
                if (each.mention.start, each.mention.end) not in kept
            ]
            state.mentions = [each for option in chosen for each in option.mentions]

    def options(self, batch: Sequence[DocumentState]) -> list[list[MentionOption]]:
        """Return the options of documents.

        Args:
            batch: Documents with the linker's answers.
        """
        texts = [state.document.text for state in batch]
        answers = [_by_span(each for each in state.mentions if each.concept) for state in batch]
        forms: list[dict[Span, list[LearnedForm]]] = [{} for _ in batch]
        for n, start, end, entries in self._forms.places(texts):
            forms[n][start, end] = entries
        likely = self._detector.tagger.probabilities(
            texts,
            hints(batch),
            [{*own, *known} for own, known in zip(answers, forms, strict=True)],
        )
        found = self._find(batch, likely)
        return [
            self._options(*each) for each in zip(batch, answers, forms, likely, found, strict=True)
        ]

    def _find(
        self, batch: Sequence[DocumentState], spans: Sequence[Mapping[Span, float]]
    ) -> list[dict[Span, list[MentionState]]]:
        """Search for the texts of spans."""
        states = []
        for state, own in zip(batch, spans, strict=True):
            text = state.document.text
            found = [Mention(start, end, text[start:end]) for start, end in sorted(own)]
            document = replace(state.document, mentions=tuple(found))
            states.append(DocumentState(document, found, MODEL))
        for step in self._search:
            step(states)
        return [_by_span(state.mentions) for state in states]

    def _options(
        self,
        state: DocumentState,
        answers: Mapping[Span, list[MentionState]],
        forms: Mapping[Span, list[LearnedForm]],
        likely: Mapping[Span, float],
        found: Mapping[Span, list[MentionState]],
    ) -> list[MentionOption]:
        text = state.document.text
        known = [
            (span, concepts, each)
            for span in sorted(likely)
            for concepts, each in self._concepts(
                state, span, answers.get(span, []), forms.get(span, []), found.get(span, [])
            ).items()
        ]
        named: defaultdict[str, dict[str, float]] = defaultdict(dict)
        best: defaultdict[str, float] = defaultdict(float)
        for span, concepts, each in known:
            form = text[slice(*span)].lower()
            best[form] = max(best[form], likely[span])
            certain = likely[span] * max(each.answered, each.share, float(each.found >= SAME_NAME))
            for concept in concepts:
                named[concept][form] = max(named[concept].get(form, 0.0), certain)
        options = []
        for span, concepts, each in known:
            form = text[slice(*span)].lower()
            elsewhere = min(
                max(
                    (value for other, value in named[concept].items() if other != form), default=0.0
                )
                for concept in concepts
            )
            prior = min(math.log1p(self._prior[concept]) for concept in concepts)
            values = _values(
                each,
                likely[span],
                text[slice(*span)],
                forms.get(span, []),
                elsewhere,
                prior,
                best[form],
            )
            options.append(MentionOption(span, concepts, each.mentions, values))
        return options

    def _concepts(
        self,
        state: DocumentState,
        span: Span,
        answers: list[MentionState],
        forms: list[LearnedForm],
        found: list[MentionState],
    ) -> dict[Concepts, _Known]:
        """Return what is known of each concept, or several of a composite, for a span."""
        known: defaultdict[Concepts, _Known] = defaultdict(_Known)
        if all(each.candidates for each in found):
            if len(found) == 1:
                candidates = found[0].candidates[:LOOKED_UP]
                for candidate in candidates:
                    own = known[frozenset([candidate.concept])]
                    own.found = candidate.score
                    own.gap = candidates[0].score - candidate.score
                    others = (each for each in candidates if each is not candidate)
                    order = (candidate, *others)[: self._k]
                    own.mentions = (_chosen(found[0], candidates=order),)
            elif found:
                own = known[frozenset(each.candidates[0].concept for each in found)]
                own.found, own.gap = min(_score(each) for each in found), 0.0
                own.mentions = tuple(
                    _chosen(each, candidates=each.candidates[: self._k]) for each in found
                )
        n_marked = sum(each.n_right for each in forms if each.concept)
        for form in forms:
            if form.concept:
                mention = self._forms.mention(state, span, form, found)
                mention.candidates = mention.candidates[: self._k]
                own = known[frozenset([mention.concept or ""])]
                own.share, own.mentions = form.n_right / n_marked, (mention,)
        if answers:
            own = known[frozenset(each.concept or "" for each in answers)]
            own.answered, own.mentions = max(_score(each) for each in answers), tuple(answers)
        return known


def hints(batch: Sequence[DocumentState]) -> list[dict[Span, str]]:
    """Return the linker's answers as hints of a tagger.

    Args:
        batch: Documents with the linker's answers.
    """
    return [
        {
            (each.mention.start, each.mention.end): (
                f"{each.concept is not None} {int(4 * min(_score(each), 1))} {each.form_from}"
            )
            for each in state.mentions
        }
        for state in batch
    ]


def _by_span(
    mentions: Iterator[MentionState] | Sequence[MentionState],
) -> dict[Span, list[MentionState]]:
    found: defaultdict[Span, list[MentionState]] = defaultdict(list)
    for each in mentions:
        found[each.mention.start, each.mention.end].append(each)
    return dict(found)


def _score(mention: MentionState) -> float:
    return mention.candidates[0].score if mention.candidates else 0.0


def _chosen(mention: MentionState, **changes: Any) -> MentionState:
    changed = replace(mention, **changes)
    changed.concept = changed.candidates[0].concept
    return changed


def _values(
    known: _Known,
    likely: float,
    text: str,
    forms: Sequence[LearnedForm],
    elsewhere: float,
    prior: float,
    repeated: float,
) -> tuple[float, ...]:
    """Return what is known of an option as numbers.

    Args:
        known: What is known of its concepts.
        likely: How probable the span is.
        text: The text of the span.
        forms: What the form of the span was marked as, with whatever concepts.
        elsewhere: How certain it is that the document has the concept in other words.
        prior: How often the concept was marked, as a logarithm.
        repeated: How probable the form is where it is most so in the document.
    """
    log_odds, share = _log_odds(likely), known.share
    n_marked = sum(each.n_right for each in forms if each.concept)
    marked = (n_marked + 1) / (max(each.n_seen for each in forms) + 2) if forms else 0.0
    is_name = bool(known.found >= SAME_NAME)
    exact = max(known.answered, float(is_name), share)
    answer = known.mentions[0] if known.answered else None
    return (
        log_odds,
        known.answered > 0,
        known.answered,
        answer is not None and answer.form_from == DEFINED,
        known.found,
        is_name,
        max(known.found - 0.7, 0.0),
        known.gap == 0,
        known.gap,
        share > 0,
        _log_odds(share) if share else -3.0,
        share,
        math.log1p(n_marked) if share else 0.0,
        bool(forms),
        marked,
        share * marked,
        elsewhere,
        prior,
        prior > 0,
        is_short(text),
        " " in text,
        repeated,
        exact,
        log_odds * exact,
        likely * exact,
        likely * share,
        likely * known.found,
        elsewhere * known.found,
        prior * known.found,
    )


def _log_odds(probability: float) -> float:
    bounded = min(max(probability, 1e-4), 1 - 1e-4)
    return math.log(bounded / (1 - bounded))


def choose(
    options: Sequence[MentionOption], likely: Sequence[float] | Floats
) -> list[MentionOption]:
    """Return the options that do not overlap and together are most probable, in text order.

    Args:
        options: Options of a document.
        likely: How probable each is.
    """
    pairs = sorted(
        (option.span[1], option.span[0], n)
        for n, option in enumerate(options)
        if likely[n] > _LEAST
    )
    ends = [end for end, _, _ in pairs]
    sums, before = [0.0], []
    for row, (_, start, n) in enumerate(pairs):
        before.append(bisect_right(ends, start, 0, row))
        sums.append(max(sums[-1], sums[before[-1]] + float(likely[n]) - _LEAST))
    chosen, row = [], len(pairs)
    while row:
        if sums[row] > sums[row - 1]:
            chosen.append(options[pairs[row - 1][2]])
            row = before[row - 1]
        else:
            row -= 1
    return chosen[::-1]


def probabilities(options: Sequence[MentionOption], weights: Sequence[float]) -> Floats:
    """Return how probable it is that each option is marked.

    Args:
        options: Options.
        weights: Weights of their values, the last that of a constant.
    """
    if not options:
        return np.zeros(0)
    scores = np.array([option.values for option in options], np.float64) @ weights[:-1]
    return logistic(scores + weights[-1])


def fit_weights(values: Floats, right: Flags) -> tuple[float, ...]:
    """Fit a logistic regression with a penalty on squared weights, by Newton's method.

    Args:
        values: Values of options.
        right: Whether each is marked.
    """
    mean, scale = values.mean(0), values.std(0) + 1e-6
    inputs = np.c_[(values - mean) / scale, np.ones(len(values))]
    penalty = np.r_[np.full(values.shape[1], _PENALTY), 0.0]
    weights = np.zeros(inputs.shape[1])
    for _ in range(_NEWTON_STEPS):
        likely = logistic(np.clip(inputs @ weights, -30, 30))
        slope = inputs.T @ (likely - right) + penalty * weights
        curve = (inputs * (likely * (1 - likely) + 1e-6)[:, None]).T @ inputs + np.diag(penalty)
        step = np.linalg.solve(curve + 1e-6 * np.eye(len(curve)), slope)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    own = weights[:-1] / scale
    return tuple(float(each) for each in (*own, weights[-1] - own @ mean))
