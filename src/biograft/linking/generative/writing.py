"""Many mentions at once: their names written, or names of one's own choice scored."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from biograft.linking.generative.asking import Question
from biograft.linking.generative.config import GenerativeConfig
from biograft.linking.generative.names import NameTrie, longest_name
from biograft.nn.batching import pad
from biograft.nn.generation import Asked, Found, generate_names, score_names
from biograft.nn.seq2seq import Namer


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
