"""The generative linker (GenBioEL): a sequence-to-sequence model generates concept names.

The encoder reads the mention marked in its text, the decoder a prompt (*mention is*), and a trie
constrains generation to the names of the store. If another form is looked up than the text has
(the long form of an abbreviation, a part of a composite), it replaces the mention. Training and
linking make their inputs alike.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate, Rows
from biograft.linking.fusion import CandidateBuilder, CandidatePool, extend_pool
from biograft.linking.generative.config import GenerativeConfig
from biograft.linking.generative.folder import GENERATIVE, Mixing, load_folder
from biograft.linking.generative.names import NameTrie, longest_name
from biograft.linking.queries import Context
from biograft.models.batches import pad
from biograft.models.generation import BeamConfig, GeneratedNames, GenerationInputs, generate_names
from biograft.models.seq2seq import Seq2SeqModel
from biograft.text.mention_text import clean_text, mark_mention, prompt_of


class Seq2SeqInput(NamedTuple):
    """The text of the encoder, and the prompt of the decoder."""

    source: str
    prompt: str


def make_input(form: str, context: Context, config: GenerativeConfig) -> Seq2SeqInput:
    """Make the input of a mention; without a context, the form stands alone."""
    text, start, end = context
    if not 0 <= start <= end <= len(text):
        raise ConfigError(
            f"context: expected a mention within the {len(text):,} characters of its text, found "
            f"one from {start:,} to {end:,}"
        )
    in_context = bool(text[start:end].strip())
    left, right = (text[:start], text[end:]) if in_context else ("", "")
    lower = config.names.lower
    source = mark_mention(left, form, right, words=config.context_words, lower=lower)
    return Seq2SeqInput(source, prompt_of(clean_text(form, lower=lower)) if config.prompt else "")


class NameGenerator:
    """Generates and scores names with a model, for many mentions at once."""

    def __init__(self, seq2seq: Seq2SeqModel, names: NameTrie, config: GenerativeConfig) -> None:
        self._seq2seq, self._names = seq2seq, names
        self._beam, self._batch_size = config.beam, config.batch

    def generate(
        self, inputs: Sequence[Seq2SeqInput], lists: Sequence[Sequence[int]] | None = None
    ) -> GeneratedNames:
        """Generate the most probable names of each mention, best first.

        ``lists`` are rows of the store: each mention gets names from its own list only.
        """
        shape = (len(inputs), self._beam.beams)
        sequences, scores = np.full(shape, -1, np.int64), np.full(shape, -np.inf, np.float32)
        with self._inference_mode():
            for indices, batch in self._batches(inputs, self._batch_size):
                rows = None if lists is None else [lists[index] for index in indices]
                sequences[indices], scores[indices] = self._generate(batch, rows, self._beam)
        return GeneratedNames(sequences, scores)

    def score(
        self, inputs: Sequence[Seq2SeqInput], lists: Sequence[Sequence[int]]
    ) -> list[dict[int, float]]:
        """Score all names of a list of rows for each mention; return scores by sequence.

        As many beams as names leave none out, so that the scores are exact.
        """
        width = max(map(len, lists), default=0)
        scored: list[dict[int, float]] = [{} for _ in inputs]
        if not width:
            return scored
        beam = replace(self._beam, beams=width)
        size = max(1, self._batch_size * self._beam.beams // width)
        with self._inference_mode():
            for indices, batch in self._batches(inputs, size):
                found = self._generate(batch, [lists[index] for index in indices], beam)
                pairs = zip(indices, found.sequences.tolist(), found.scores.tolist(), strict=True)
                for index, sequences, scores in pairs:
                    each = zip(sequences, scores, strict=True)
                    scored[index] = {sequence: score for sequence, score in each if sequence >= 0}
        return scored

    def _generate(
        self, batch: GenerationInputs, lists: Sequence[Sequence[int]] | None, beam: BeamConfig
    ) -> GeneratedNames:
        model, start = self._seq2seq.model, self._seq2seq.start
        if lists is None:
            return generate_names(model, batch, self._names.trie, start=start, config=beam)
        trie, roots, numbers = self._names.for_candidates(lists)
        names = generate_names(model, batch, trie, start=start, roots=roots, config=beam)
        return GeneratedNames(
            np.where(names.sequences >= 0, numbers[names.sequences], -1), names.scores
        )

    def _batches(
        self, inputs: Sequence[Seq2SeqInput], size: int
    ) -> Iterator[tuple[list[int], GenerationInputs]]:
        """Yield batches of similar length, the longest first, with the indices of the inputs."""
        sources = self._seq2seq.source_tokens([item.source for item in inputs])
        prompts = self._seq2seq.batch_prompt_tokens([item.prompt for item in inputs])
        room = self._seq2seq.max_target - 1 - longest_name(self._seq2seq)
        order = sorted(range(len(sources)), key=lambda index: -len(sources[index]))
        for start in range(0, len(order), size):
            indices = order[start : start + size]
            padded = pad([sources[index] for index in indices], self._seq2seq.padding)
            # a long prompt keeps its end, which is the word "is"
            ends = [prompts[index][-room:] for index in indices]
            yield indices, GenerationInputs(padded["input_ids"], padded["attention_mask"], ends)

    @contextlib.contextmanager
    def _inference_mode(self) -> Iterator[None]:
        """Switch dropout off, and restore the model's mode afterwards."""
        model = self._seq2seq.model
        training = model.training
        model.eval()
        try:
            yield
        finally:
            model.train(training)


Generated: TypeAlias = dict[int, tuple[float, int]]
"""By sequence of the trie: the mean log-probability of a name, and its rank (0: only scored)."""


class Seq2SeqLinker:
    """Finds names of a store by generating them, or those of a search, and ranks them."""

    def __init__(
        self,
        kb: KnowledgeBase,
        seq2seq: Seq2SeqModel,
        names: NameTrie,
        config: GenerativeConfig,
        mixing: Mixing | None = None,
    ) -> None:
        self.kb, self.seq2seq, self.names, self.config = kb, seq2seq, names, config
        self.mixing = mixing or Mixing(config.generation_weight, config.rescore)
        self._builder, self._generator = CandidateBuilder(kb), NameGenerator(seq2seq, names, config)

    @property
    def name(self) -> str:
        """Name of the scoring method, with the weight of generation if a search is mixed in."""
        weight = self.mixing.generation_weight
        within = "" if self.config.generate else f"@{self.mixing.rescore}"
        return f"{GENERATIVE}{within}" if weight == 1 else f"{GENERATIVE}{within}*{weight:.3g}"

    @property
    def uses_context(self) -> bool:
        """Whether the model reads the words around a mention."""
        return self.config.context_words > 0

    @property
    def needs_search(self) -> bool:
        """Whether the scores of a search are mixed in, or only its names are ranked."""
        return self.mixing.generation_weight < 1 or not self.config.generate

    def in_languages(self, languages: tuple[str, ...]) -> Seq2SeqLinker:
        """Return a linker that generates names in these languages only."""
        return self.restricted(languages=languages)

    def restricted(self, **filters: tuple[str, ...]) -> Seq2SeqLinker:
        """Return a linker that generates names of some ``types``, ``languages`` or ``sources``."""
        names = self.names.restricted(**filters)
        return Seq2SeqLinker(self.kb, self.seq2seq, names, self.config, self.mixing)

    def generate(
        self,
        texts: Sequence[str],
        contexts: Sequence[Context] = (),
        lists: Sequence[Sequence[int]] | None = None,
    ) -> GeneratedNames:
        """Generate names for mentions: sequences of the trie, and mean log-probabilities.

        ``lists`` are rows of the names table: each mention gets names from its own list only.
        """
        return self._generator.generate(self._inputs(texts, contexts), lists)

    def rank_candidates(
        self, texts: Sequence[str], pool: CandidatePool, contexts: Sequence[Context]
    ) -> list[list[Candidate]]:
        """Return a candidate per name and concept, best first; ties go to the lower row."""
        scored = self.score(texts, pool, contexts)
        return self._builder.by_name(scored, self.mixing(scored), scored.rows.shape[1])

    def score(
        self, texts: Sequence[str], pool: CandidatePool, contexts: Sequence[Context]
    ) -> CandidatePool:
        """Add the generated names to a pool, and the model's scores as its last generator.

        Names of the pool that are neither generated nor rescored have no score of the model.
        """
        inputs = self._inputs(texts, contexts)
        names = self._generate(inputs) if self.config.generate else [{} for _ in inputs]
        if self.mixing.rescore:
            lists = self._not_generated(pool, names)
            for found, scores in zip(names, self._generator.score(inputs, lists), strict=True):
                ranks = {} if self.config.generate else {s: r for r, s in enumerate(scores, 1)}
                found |= {seq: (score, ranks.get(seq, 0)) for seq, score in scores.items()}
        return self._join(pool, names)

    def _generate(self, inputs: Sequence[Seq2SeqInput]) -> list[Generated]:
        """Return the names that the beams of each mention find among all."""
        names = self._generator.generate(inputs)
        return [
            {
                sequence: (score, rank)
                for rank, (sequence, score) in enumerate(zip(*beams, strict=True), 1)
                if sequence >= 0
            }
            for beams in zip(names.sequences.tolist(), names.scores.tolist(), strict=True)
        ]

    def _inputs(self, texts: Sequence[str], contexts: Sequence[Context]) -> list[Seq2SeqInput]:
        contexts = contexts or [Context()] * len(texts)
        return [
            make_input(text, context, self.config)
            for text, context in zip(texts, contexts, strict=True)
        ]

    def _not_generated(
        self, pool: CandidatePool, generated: Sequence[Generated]
    ) -> list[list[int]]:
        """Return the rows of the first names of the search that were not generated."""
        order = np.lexsort((pool.rows, -self.mixing.search_scores(pool)), axis=1)
        first = np.take_along_axis(pool.rows, order, axis=1)[:, : self.mixing.rescore]
        sequences = np.where(first >= 0, self.names.numbers[first], -1)
        return [
            [row for row, seq in zip(*pair, strict=True) if seq >= 0 and seq not in results]
            for *pair, results in zip(first.tolist(), sequences.tolist(), generated, strict=True)
        ]

    def _join(self, pool: CandidatePool, generated: Sequence[Generated]) -> CandidatePool:
        """Add generated names to a pool: one name of the store for each concept.

        Where nothing is generated, only names of the search are ranked, and none is added.
        """
        rows = [
            [row for seq, (_, rank) in results.items() if rank for row in self._rows_of(seq)]
            if self.config.generate
            else []
            for results in generated
        ]
        width = max(map(len, rows), default=0)
        added = np.full((len(rows), width), -1, np.int64)
        for line, row_list in enumerate(rows):
            added[line, : len(row_list)] = row_list
        joined = extend_pool(pool, added)
        scores = np.full(joined.rows.shape, -np.inf, np.float32)
        ranks = np.zeros(joined.rows.shape, np.int32)
        sequences = np.where(joined.rows >= 0, self.names.numbers[joined.rows], -1)
        for line, results in enumerate(generated):
            for column, sequence in enumerate(sequences[line].tolist()):
                if sequence in results:
                    score, ranks[line, column] = results[sequence]
                    scores[line, column] = np.exp(score)
        return CandidatePool(
            (*pool.generators, GENERATIVE),
            joined.rows,
            np.concatenate([joined.scores, scores[None]]),
            np.concatenate([joined.ranks, ranks[None]]),
        )

    def _rows_of(self, sequence: int) -> Rows:
        """Return the first name of each concept that a sequence stands for."""
        rows = self.names.rows_of(sequence)
        _, first = np.unique(self._builder.concepts[rows], return_index=True)
        result: Rows = rows[np.sort(first)]
        return result


def load_seq2seq_linker(folder: Path, kb: KnowledgeBase) -> Seq2SeqLinker:
    """Load a trained generative linker, or any encoder-decoder, for a store.

    The trie in the folder is used if it is of this store; else one is built in memory.
    """
    parts = load_folder(folder, kb)
    return Seq2SeqLinker(kb, parts.seq2seq, parts.names, parts.config, parts.mixing)
