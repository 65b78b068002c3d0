"""What a generative linker reads of a mention: its text with the mention marked, and the prompt.

Where another form is looked up than what stands in the text (the long form of an abbreviation, a
part of a composite), that form stands in the mention's place. Training and linking ask alike.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from biograft.corpus.mention_text import clean_text, mark_mention, prompt_of
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate, Rows
from biograft.linking.fusion import CandidateMaker, Gathered, widen
from biograft.linking.generative.config import GenerativeConfig
from biograft.linking.generative.folder import GENERATIVE, Mixing, open_folder
from biograft.linking.generative.names import NameTrie, longest_name
from biograft.linking.rankers import Context
from biograft.nn.batches import pad
from biograft.nn.generation import Asked, Found, generate_names, score_names
from biograft.nn.seq2seq import Namer


class Question(NamedTuple):
    """What the model reads, and what its answer begins with."""

    source: str
    prompt: str


def ask(form: str, context: Context, config: GenerativeConfig) -> Question:
    """Write what is asked of a mention; one without a known place stands alone."""
    text, start, end = context
    if not 0 <= start <= end <= len(text):
        raise ConfigError(
            f"context: expected a mention within the {len(text):,} characters of its text, found "
            f"one from {start:,} to {end:,}"
        )
    placed = bool(text[start:end].strip())
    left, right = (text[:start], text[end:]) if placed else ("", "")
    lower = config.names.lower
    source = mark_mention(left, form, right, words=config.context_words, lower=lower)
    return Question(source, prompt_of(clean_text(form, lower=lower)) if config.prompt else "")


class Writer:
    """Asks a model for names, many mentions at once."""

    def __init__(self, namer: Namer, names: NameTrie, config: GenerativeConfig) -> None:
        self._namer, self._names = namer, names
        self._beam, self._batch = config.beam, config.batch

    def write(
        self, questions: Sequence[Question], lists: Sequence[Sequence[int]] | None = None
    ) -> Found:
        """Write the likeliest names of each mention, best first.

        ``lists`` are rows of the store: of each mention only the names of its list are written.
        """
        shape = (len(questions), self._beam.beams)
        sequences, scores = np.full(shape, -1, np.int64), np.full(shape, -np.inf, np.float32)
        with self._without_learning():
            for places, asked in self._batches(questions):
                own = None if lists is None else [lists[place] for place in places]
                sequences[places], scores[places] = self._write(asked, own)
        return Found(sequences, scores)

    def _write(self, asked: Asked, lists: Sequence[Sequence[int]] | None) -> Found:
        model, start, beam = self._namer.model, self._namer.start, self._beam
        if lists is None:
            return generate_names(model, asked, self._names.trie, start=start, config=beam)
        trie, roots, numbers = self._names.for_candidates(lists)
        found = generate_names(model, asked, trie, start=start, roots=roots, config=beam)
        there = found.sequences >= 0
        return Found(np.where(there, numbers[found.sequences], -1), found.scores)

    def score(
        self, questions: Sequence[Question], names: Sequence[Mapping[int, int]]
    ) -> list[dict[int, float]]:
        """Score names of one's choice, by sequence a row of the store that is written so."""
        scored: list[dict[int, float]] = [{} for _ in questions]
        with self._without_learning():
            for places, asked in self._batches(questions):
                rows = [row for place in places for row in names[place].values()]
                tokens = iter(self._names.tokens_of(rows))
                written = [[[*next(tokens), self._namer.end] for _ in names[place]]
                           for place in places]  # fmt: skip
                found = score_names(
                    self._namer.model,
                    asked,
                    written,
                    start=self._namer.start,
                    length_penalty=self._beam.length_penalty,
                )
                for place, own in zip(places, found, strict=True):
                    scored[place] = dict(zip(names[place], own.tolist(), strict=True))
        return scored

    def _batches(self, questions: Sequence[Question]) -> Iterator[tuple[list[int], Asked]]:
        """Put mentions of like length together, the longest first; give their places, too."""
        sources = self._namer.source_tokens([question.source for question in questions])
        prompts = self._namer.prompts_tokens([question.prompt for question in questions])
        room = self._namer.max_target - 1 - longest_name(self._namer)
        order = sorted(range(len(sources)), key=lambda place: -len(sources[place]))
        for start in range(0, len(order), self._batch):
            places = order[start : start + self._batch]
            padded = pad([sources[place] for place in places], self._namer.padding)
            # of a prompt that is too long the end says most: it ends with "is"
            own = [prompts[place][-room:] for place in places]
            yield places, Asked(padded["input_ids"], padded["attention_mask"], own)

    @contextlib.contextmanager
    def _without_learning(self) -> Iterator[None]:
        """Put the model in its inference mode for a while."""
        model = self._namer.model
        training = model.training
        model.eval()
        try:
            yield
        finally:
            model.train(training)


Written: TypeAlias = dict[int, tuple[float, int]]
"""By sequence of the trie, the mean log-probability of a name and its rank; 0 if not found."""


class GenerativeRanker:
    """Finds names of a store by writing them, and ranks them."""

    uses_context = True

    def __init__(
        self,
        kb: KnowledgeBase,
        namer: Namer,
        names: NameTrie,
        config: GenerativeConfig,
        mixing: Mixing | None = None,
    ) -> None:
        self.kb, self.namer, self.names, self.config = kb, namer, names, config
        self.mixing = mixing or Mixing(config.share, config.rescore)
        self._maker, self._writer = CandidateMaker(kb), Writer(namer, names, config)

    @property
    def name(self) -> str:
        """What gives the scores: generation, and how much it counts where that is not all."""
        share = self.mixing.share
        return GENERATIVE if share == 1 else f"{GENERATIVE}*{share:.3g}"

    @property
    def needs_search(self) -> bool:
        """Whether a search has a say, too."""
        return self.mixing.share < 1

    def in_languages(self, languages: tuple[str, ...]) -> GenerativeRanker:
        """Give the ranker that writes names in some languages only."""
        return self.restricted(languages=languages)

    def restricted(self, **asked: tuple[str, ...]) -> GenerativeRanker:
        """Give the ranker that writes names of some ``types``, ``languages`` or ``sources``."""
        names = self.names.restricted(**asked)
        return GenerativeRanker(self.kb, self.namer, names, self.config, self.mixing)

    def generate(
        self,
        texts: Sequence[str],
        contexts: Sequence[Context] = (),
        lists: Sequence[Sequence[int]] | None = None,
    ) -> Found:
        """Write names for mentions: sequences of the trie, and mean log-probabilities.

        ``lists`` are rows of the store's names: a mention is given no name but those of its list.
        """
        return self._writer.write(self._ask(texts, contexts), lists)

    def rank_candidates(
        self, texts: Sequence[str], gathered: Gathered, contexts: Sequence[Context]
    ) -> list[list[Candidate]]:
        """Give a candidate for each name and concept, best first; equal ones by the lower row."""
        scored = self.score(texts, gathered, contexts)
        return self._maker.by_name(scored, self.mixing(scored), scored.rows.shape[1])

    def score(
        self, texts: Sequence[str], gathered: Gathered, contexts: Sequence[Context]
    ) -> Gathered:
        """Add the names that the model writes to those gathered, and its scores, which come last.

        A name that was gathered and neither written nor scored again has no score of the model's.
        """
        questions = self._ask(texts, contexts)
        found = self._writer.write(questions)
        written: list[Written] = [
            {
                sequence: (score, rank)
                for rank, (sequence, score) in enumerate(zip(*each, strict=True), 1)
                if sequence >= 0
            }
            for each in zip(found.sequences.tolist(), found.scores.tolist(), strict=True)
        ]
        if self.mixing.rescore:
            again = self._not_written(gathered, written)
            for own, scores in zip(written, self._writer.score(questions, again), strict=True):
                own |= {sequence: (score, 0) for sequence, score in scores.items()}
        return self._join(gathered, written)

    def _ask(self, texts: Sequence[str], contexts: Sequence[Context]) -> list[Question]:
        places = contexts or [Context()] * len(texts)
        return [ask(*each, self.config) for each in zip(texts, places, strict=True)]

    def _not_written(self, gathered: Gathered, written: Sequence[Written]) -> list[dict[int, int]]:
        """Give the names that the search found first and the model did not write.

        They are rows of the store by their sequence.
        """
        order = np.lexsort((gathered.rows, -self.mixing.search_scores(gathered)), axis=1)
        ranked = np.take_along_axis(gathered.rows, order, axis=1)[:, : self.mixing.rescore]
        found = []
        for rows, own in zip(ranked, written, strict=True):
            kept = rows[rows >= 0]
            sequences = zip(self.names.numbers[kept].tolist(), kept.tolist(), strict=True)
            found.append({s: row for s, row in sequences if s >= 0 and s not in own})
        return found

    def _join(self, gathered: Gathered, written: Sequence[Written]) -> Gathered:
        """Put what was written beside what was gathered: a name of the store for each concept."""
        rows = [
            [row for sequence, (_, rank) in own.items() if rank for row in self._rows_of(sequence)]
            for own in written
        ]
        widest = max(map(len, rows), default=0)
        added = np.full((len(rows), widest), -1, np.int64)
        for place, found in enumerate(rows):
            added[place, : len(found)] = found
        joined = widen(gathered, added)
        scores = np.full(joined.rows.shape, -np.inf, np.float32)
        ranks = np.zeros(joined.rows.shape, np.int32)
        sequences = np.where(joined.rows >= 0, self.names.numbers[joined.rows], -1)
        for line, own in enumerate(written):
            for column, sequence in enumerate(sequences[line].tolist()):
                if sequence in own:
                    score, ranks[line, column] = own[sequence]
                    scores[line, column] = np.exp(score)
        return Gathered(
            (*gathered.generators, GENERATIVE),
            joined.rows,
            np.concatenate([joined.scores, scores[None]]),
            np.concatenate([joined.ranks, ranks[None]]),
        )

    def _rows_of(self, sequence: int) -> Rows:
        """Give the first name of each concept that a sequence stands for."""
        rows = self.names.rows_of(sequence)
        _, first = np.unique(self._maker.concepts[rows], return_index=True)
        found: Rows = rows[np.sort(first)]
        return found


def open_generative_ranker(folder: Path, kb: KnowledgeBase) -> GenerativeRanker:
    """Open a trained generative linker, or any encoder-decoder, for a store.

    The trie in the folder is used if it is of this store, else one is made in memory.
    """
    opened = open_folder(folder, kb)
    return GenerativeRanker(kb, opened.namer, opened.names, opened.config, opened.mixing)
