"""Generative entity linking (GenBioEL): a sequence-to-sequence model generates concept names.

The encoder reads the mention marked in its text, the decoder a prompt (*mention is*), and a trie
constrains generation to the names of the store. If another form is looked up than the text has
(the long form of an abbreviation, a part of a composite), it replaces the mention. Training and
linking make their inputs alike.

Names are normalised: lower case, punctuation as spaces. Names of a store that are then equal are
one text, which may belong to several concepts. The trie holds the token sequences of the texts.

The score of a name is ``w * g + (1 - w) * s``. g is the geometric mean of the probabilities of
the name's tokens (0 if the name was not generated), s the score of the search (0 if the name is
not in its candidate pool), and w the weight of generation, which is fitted on held-out mentions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from biograft.artifacts import (
    ArraySpec,
    ArtifactKind,
    check_range,
    describe_files,
    new_folder,
    open_arrays,
    save_arrays,
)
from biograft.config import from_mapping
from biograft.errors import ConfigError, nearest
from biograft.kb import KnowledgeBase
from biograft.kb.build import shared_names
from biograft.kb.concepts import close_types
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.candidates import Candidate, Context, Scores, pad_rows
from biograft.linking.fusion import (
    CandidateBuilder,
    CandidatePool,
    check_generators,
    extend_pool,
    fuse_scores,
    normalise_weights,
)
from biograft.linking.rankers import GENERATIVE_FORMAT
from biograft.linking.trained_configs import GenerativeConfig, NamesConfig
from biograft.models.batches import pad
from biograft.models.generation import BeamConfig, GeneratedNames, GenerationInputs, generate_names
from biograft.models.pretrained import describe_tokenizer
from biograft.models.seq2seq import Seq2SeqModel
from biograft.progress import Progress
from biograft.text.mention_text import (
    clean_name,
    clean_text,
    cut_context,
    mark_mention,
    prompt_of,
)
from biograft.text.trie import FlatTrie

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Selection:
    """The texts that may be generated, and the text of each name of the store."""

    texts: tuple[str, ...]
    """Distinct, in the order of the store."""
    numbers: Ints
    """Index of the text of each row of the names table; -1 for an excluded row."""
    concepts: Ints
    """The concept of each row."""

    @property
    def lengths(self) -> Ints:
        """Number of characters of each text."""
        return np.fromiter(map(len, self.texts), np.int64, len(self.texts))


def select_names(kb: KnowledgeBase, config: NamesConfig) -> Selection:
    """Select the names of a store that may be generated, and normalise them.

    Args:
        kb: The store.
        config: Types, languages and sources; which names are kept of several.

    Returns:
        The texts, and the text of each name.

    Raises:
        ConfigError: No name is left, or a type, language or source is unknown.
    """
    concepts = kb.numbers("names", "concept").astype(np.int64)
    selected = selected_rows(kb, config)
    index_of: dict[str, int] = {}
    numbers = np.full(len(selected), -1, np.int64)
    for row, name in enumerate(kb.texts("names", "text")):
        if selected[row] and (text := clean_name(name, lower=config.lower)):
            numbers[row] = index_of.setdefault(text, len(index_of))
    texts = list(index_of)
    rows = np.flatnonzero(numbers >= 0)
    if config.shared == "fewest":  # every concept keeps a name
        owners, keys = concepts[rows].astype(np.uint32), numbers[rows].astype(np.uint64)
        numbers[rows[shared_names(owners, keys)]] = -1
        rows = np.flatnonzero(numbers >= 0)
    if config.per_concept != "all":
        if config.per_concept == "shortest":
            ranks = np.array([len(texts[number]) for number in numbers[rows].tolist()], np.float64)
        else:
            ranks = np.random.default_rng(config.seed).random(len(numbers))[rows]
        order = np.lexsort((rows, ranks, concepts[rows]))
        _, first = np.unique(concepts[rows[order]], return_index=True)
        dropped = np.ones(len(numbers), np.bool_)
        dropped[rows[order[first]]] = False
        numbers[dropped] = -1
        rows = np.flatnonzero(numbers >= 0)
    if not len(rows):
        raise ConfigError(
            f"names: none of the {kb.n_names:,} names of {kb.folder} is left; select more types, "
            "languages or sources"
        )
    left, numbers[rows] = np.unique(numbers[rows], return_inverse=True)
    return Selection(tuple(texts[index] for index in left.tolist()), numbers, concepts)


def selected_rows(kb: KnowledgeBase, config: NamesConfig) -> Flags:
    """Return which names of a store have the configured types, languages and sources.

    Args:
        kb: The store.
        config: Types by code or label, which mean their subtypes, too; languages and sources.

    Returns:
        A flag for each row of the names table.

    Raises:
        ConfigError: A type, language or source is unknown.
    """
    selected = np.ones(kb.n_names, np.bool_)
    for column, known in (("language", kb.languages), ("source", kb.sources)):
        if names := getattr(config, f"{column}s"):
            codes = [_index_of(f"{column}s", name, known) for name in names]
            selected &= np.isin(kb.numbers("names", column), codes)
    if config.types:
        code_of = {kind.label: kind.code for kind in kb.types if kind.label}
        known = [kind.code for kind in kb.types]
        roots = [known[_index_of("types", code_of.get(n, n), known)] for n in config.types]
        subtypes = close_types({kind.code: kind.tree for kind in kb.types}, tuple(roots))
        indices = [index for index, code in enumerate(known) if code in subtypes]
        wanted = kb.numbers("types", "concept")[np.isin(kb.numbers("types", "type"), indices)]
        selected &= np.isin(kb.numbers("names", "concept"), wanted)
    return selected


def _index_of(field: str, name: str, known: list[str]) -> int:
    if name not in known:
        raise ConfigError(f"{field}: no name of the store is of {name!r}; {nearest(name, known)}")
    return known.index(name)


NAME_TRIE = ArtifactKind(
    format="biograft-name-trie",
    version=1,
    called="trie of names",
    remedy="remove the folder, it is rebuilt for the current store",
    keys=("store", "tokenizer", "names", "n_cut"),
)
_ARRAYS = {
    "numbers": ArraySpec("int32", ("names",), low=-1, below="sequences"),
    "rows": ArraySpec("uint32", ("rows",), below="names"),
    "starts": ArraySpec("int64", ("sequences + 1",), ends="rows"),
}
_CHUNK = 1 << 16
"""Names tokenised at once: lists of tokens take many times the memory of an array."""


class Forest(NamedTuple):
    """One trie for several mentions, each limited to the names of its own list."""

    trie: FlatTrie
    roots: Ints  # (mentions,): the root node of the names of each
    numbers: Ints  # (sequences of the forest,): their indices in the trie of all names


@dataclass(frozen=True, slots=True)
class NameTrie:
    """A trie of the names of a store that may be generated; equal names are one sequence."""

    kb: KnowledgeBase
    """Knowledge base that has the names."""
    seq2seq: Seq2SeqModel
    """Model whose tokens the names are made of."""
    config: NamesConfig
    """Selection of the names."""
    trie: FlatTrie
    """Token sequences of the names."""
    numbers: npt.NDArray[np.integer[Any]]
    """Index of the sequence of each row of the names table; -1 for an excluded row."""
    rows: npt.NDArray[np.integer[Any]]
    """Rows of the names of each sequence."""
    starts: Ints
    """Start of the rows of each sequence in ``rows``."""
    n_cut: int
    """Number of names that were truncated to what the model can generate."""

    @classmethod
    def build(
        cls,
        kb: KnowledgeBase,
        seq2seq: Seq2SeqModel,
        config: NamesConfig | None = None,
        progress: Progress | None = None,
    ) -> NameTrie:
        """Build the trie of a store's names.

        Args:
            kb: Knowledge base of the names.
            seq2seq: Model whose tokens they are split into.
            config: Names that may be generated.
            progress: Progress of building.
        """
        config, progress = config or NamesConfig(), progress or Progress(enabled=False)
        progress.start("names")
        selection = select_names(kb, config)
        progress.start("trie")
        tokens, ends, n_cut = _tokenize(seq2seq, selection.texts, progress)
        trie, of_text = FlatTrie.build(tokens, ends)
        of_text = np.append(of_text, -1)  # the text -1 is that of excluded rows
        progress.finish()
        return cls._of(kb, seq2seq, config, trie, of_text[selection.numbers], n_cut)

    @classmethod
    def _of(
        cls,
        kb: KnowledgeBase,
        seq2seq: Seq2SeqModel,
        config: NamesConfig,
        trie: FlatTrie,
        numbers: Ints,
        n_cut: int,
    ) -> NameTrie:
        rows = np.flatnonzero(numbers >= 0)
        order = np.argsort(numbers[rows], kind="stable")
        starts = np.zeros(trie.n_sequences + 1, np.int64)
        np.cumsum(np.bincount(numbers[rows], minlength=trie.n_sequences), out=starts[1:])
        rows = rows[order].astype(np.uint32)
        return cls(kb, seq2seq, config, trie, numbers.astype(np.int32), rows, starts, n_cut)

    @property
    def nbytes(self) -> int:
        """Size of all arrays in bytes."""
        arrays = (self.numbers, self.rows, self.starts)
        return self.trie.nbytes + sum(int(array.nbytes) for array in arrays)

    def rows_of(self, sequence: int) -> Ints:
        """Return the rows of the store's names with a sequence, ascending."""
        rows = self.rows[int(self.starts[sequence]) : int(self.starts[sequence + 1])]
        return rows.astype(np.int64)

    def tokens_of(self, rows: Sequence[int]) -> list[list[int]]:
        """Return the tokens of some names of the store, without the end token."""
        lower = self.config.lower
        texts = [clean_name(self.kb.name(row).text, lower=lower) for row in rows]
        longest = self.seq2seq.longest_name
        return [tokens[:longest] for tokens in self.seq2seq.tokens(texts)]

    def restricted(self, **filters: tuple[str, ...]) -> NameTrie:
        """Return the trie of the names of some types, languages or sources (NamesConfig)."""
        config = replace(self.config, **filters)  # type: ignore[arg-type]
        numbers = np.where(selected_rows(self.kb, config), self.numbers, -1)
        keep = np.zeros(self.trie.n_sequences, np.bool_)
        keep[numbers[numbers >= 0]] = True
        trie, sequences = self.trie.subset(keep)
        new_numbers = np.full(len(keep) + 1, -1, np.int64)
        new_numbers[sequences] = np.arange(len(sequences))
        return self._of(self.kb, self.seq2seq, config, trie, new_numbers[numbers], self.n_cut)

    def for_candidates(self, lists: Sequence[Sequence[int]]) -> Forest:
        """Build one trie in which each mention is limited to the names of its list of rows."""
        names = [
            sorted({row for row in rows if row >= 0 and self.numbers[row] >= 0}) for rows in lists
        ]
        token_lists = iter(self.tokens_of([row for rows in names for row in rows]))
        sequences = [
            [mention, *next(token_lists), self.seq2seq.end]
            for mention, rows in enumerate(names)
            for _ in rows
        ]
        # every mention has its node, even without a name
        tokens, lengths = _flatten([*sequences, *([mention] for mention in range(len(names)))])
        trie, numbers = FlatTrie.build(tokens, np.cumsum(lengths))
        first, _ = trie.children(np.zeros(len(names), np.int64))
        originals = np.full(trie.n_sequences, -1, np.int64)
        originals[numbers[: len(sequences)]] = [self.numbers[row] for rows in names for row in rows]
        return Forest(trie, first + np.arange(len(names)), originals)

    def save(self, folder: Path, *, overwrite: bool = False) -> None:
        """Write the trie to a folder.

        Args:
            folder: Folder to write.
            overwrite: Replace a folder that exists.
        """
        content = {
            "store": store_fingerprint(self.kb),
            "tokenizer": hash_tokenizer(self.seq2seq),
            "names": asdict(self.config),
            "n_names": len(self.rows),
            "n_sequences": self.trie.n_sequences,
            "n_nodes": self.trie.n_nodes,
            "n_cut": self.n_cut,
        }
        with NAME_TRIE.new(folder, content, overwrite=overwrite) as work:
            self.trie.save(work)
            save_arrays(work, {name: getattr(self, name) for name in _ARRAYS})

    @classmethod
    def open(
        cls, folder: Path, kb: KnowledgeBase, seq2seq: Seq2SeqModel, config: NamesConfig
    ) -> NameTrie:
        """Memory-map a trie, or build one in memory if the folder's trie is of other names.

        Args:
            folder: Folder of the trie.
            kb: Knowledge base of the names.
            seq2seq: Model whose tokens they are split into.
            config: Names that may be generated.
        """
        manifest = NAME_TRIE.read(folder)
        NAME_TRIE.check_files(folder, manifest)
        names = json.loads(json.dumps(asdict(config)))
        recorded = (manifest["store"], manifest["tokenizer"], manifest["names"])
        if recorded != (store_fingerprint(kb), hash_tokenizer(seq2seq), names):
            return cls.build(kb, seq2seq, config)
        trie = FlatTrie.open(folder)
        try:
            check_range("tokens", trie.tokens, 0, seq2seq.vocabulary_size - 1)
            if trie.depth > seq2seq.longest_name + 1:
                raise ValueError(f"children: a name of {trie.depth} tokens, too long for the model")
            arrays = open_arrays(folder, _ARRAYS, names=kb.n_names, sequences=trie.n_sequences)
        except ValueError as error:
            raise NAME_TRIE.damaged(folder, error) from error
        return cls(kb, seq2seq, config, trie, **arrays, n_cut=int(manifest["n_cut"]))


def hash_tokenizer(seq2seq: Seq2SeqModel) -> str:
    """Compute the SHA-256 of everything that determines the tokens of a name."""
    content = [describe_tokenizer(seq2seq.tokenizer), seq2seq.end, seq2seq.longest_name]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _tokenize(
    seq2seq: Seq2SeqModel, texts: Sequence[str], progress: Progress
) -> tuple[Ints, Ints, int]:
    """Tokenize names; return the concatenated tokens, their ends, and the number truncated."""
    longest, n_cut = seq2seq.longest_name, 0
    parts, lengths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for start in range(0, len(texts), _CHUNK):
        names = seq2seq.tokens(texts[start : start + _CHUNK])
        n_cut += sum(len(tokens) > longest for tokens in names)
        flat, chunk_lengths = _flatten([[*tokens[:longest], seq2seq.end] for tokens in names])
        parts.append(flat)
        lengths.append(chunk_lengths)
        progress.advance(len(names), (start + len(names)) / len(texts))
    return np.concatenate(parts), np.cumsum(np.concatenate(lengths)), n_cut


def _flatten(sequences: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Concatenate sequences of tokens; also return their lengths."""
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    flat = (token for sequence in sequences for token in sequence)
    return np.fromiter(flat, np.int64, int(lengths.sum())), lengths


GENERATIVE = "generative"


@dataclass(frozen=True, slots=True)
class Mixing:
    """The weight of generation beside a search, and the weights of the search's generators."""

    generation_weight: float = 1.0
    """Weight of generation, from 0 to 1; 1: generation alone."""
    rescore: int = 0
    """The first names of the search are scored by the model, this many if not generated."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Weights of the generators of the search; empty means the defaults, for any generators."""

    def __post_init__(self) -> None:
        if not 0 <= self.generation_weight <= 1 or self.rescore < 0:
            raise ValueError(f"expected a weight from 0 to 1 and a rescore of at least 0: {self}")

    def __call__(self, scored: CandidatePool) -> Scores:
        """Compute the final score of each name; generation is the last generator of the pool."""
        generated: Scores = scored.scores[-1]
        if self.generation_weight == 1:
            return generated
        return self.mix(generated, self.search_scores(search_pool(scored)), scored.rows >= 0)

    def mix(self, generated: Scores, searched: Scores, valid: Flags) -> Scores:
        """Compute the weighted mean of two scores of each name.

        Args:
            generated: Scores of the generation, -inf where there is none.
            searched: Scores of the search, likewise.
            valid: Names that have either.
        """
        weight = self.generation_weight
        parts = ((weight, generated), (1 - weight, searched))
        total = sum(w * np.where(np.isfinite(s), s, 0) for w, s in parts)
        return np.where(valid, total, -np.inf).astype(np.float32)

    def search_scores(self, pool: CandidatePool) -> Scores:
        """Compute the score of the search for each name."""
        names = pool.generators
        if not names:
            return np.full(pool.rows.shape, -np.inf, np.float32)
        if self.weights:
            check_generators(pool, self.weights, "the weight of generation was fitted beside")
        return fuse_scores(pool, normalise_weights(names, self.weights))


def search_pool(scored: CandidatePool) -> CandidatePool:
    """Return a pool without its last generator, which is generation."""
    return CandidatePool(scored.generators[:-1], scored.rows, scored.scores[:-1], scored.ranks[:-1])


class Seq2SeqInput(NamedTuple):
    """The text of the encoder, and the prompt of the decoder."""

    source: str
    prompt: str


def make_input(form: str, context: Context, config: GenerativeConfig) -> Seq2SeqInput:
    """Make the input of a mention; without a context, the form stands alone.

    Args:
        form: The form that is looked up.
        context: The text and the offsets of the mention.
        config: Words of the context, prompt and case.

    Returns:
        The text of the encoder, and the prompt of the decoder.

    Raises:
        ConfigError: The mention is not within the text.
    """
    left, mention, right = context.split()
    if not mention.strip():
        left = right = ""
    lower, words = config.names.lower, config.context_words
    if config.prompt == "left":
        before, inside, after = cut_context(left, form, right, words=words, lower=lower)
        return Seq2SeqInput(" ".join([*before, *inside, *after]), " ".join(before))
    source = mark_mention(left, form, right, words=words, lower=lower)
    prompt = prompt_of(clean_text(form, lower=lower)) if config.prompt == "mention" else ""
    return Seq2SeqInput(source, prompt)


Generated: TypeAlias = dict[int, tuple[float, int]]
"""By sequence of the trie: the mean log-probability of a name, and its rank (0: only scored)."""


MODEL, TRIE = "model", "trie"
GENERATIVE_LINKER = ArtifactKind(
    format=GENERATIVE_FORMAT,
    version=3,
    called="generative linker",
    remedy="train the linker again",
    keys=("config", "mixing", "report", "provenance"),
)


class Seq2SeqLinker:
    """Finds names of a store by generating them, or those of a search, and ranks them.

    Args:
        kb: Knowledge base of the names.
        seq2seq: Encoder-decoder that generates them.
        names: Their trie.
        config: Settings of the generation.
        mixing: Weights beside a search; default: those of ``config``.
    """

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
        self._builder = CandidateBuilder(kb)

    def save(self, folder: Path, report: Mapping[str, Any], provenance: Mapping[str, Any]) -> None:
        """Write the linker, replacing an earlier one of the same run.

        Args:
            folder: Its folder.
            report: Counts and metrics of the training.
            provenance: Hashes of what it was trained with.
        """
        with new_folder(folder, overwrite=True) as work:
            self.seq2seq.save_pretrained(work / MODEL)
            files = describe_files(work)  # without the trie, which can be rebuilt
            self.names.save(work / TRIE)
            content = {
                "config": asdict(self.config),
                "mixing": asdict(self.mixing),
                "report": report,
                "provenance": provenance,
                "files": files,
            }
            GENERATIVE_LINKER.write(work, content)

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

    def prompted(self, prompt: str) -> Seq2SeqLinker:
        """Return a linker with another prompt, for a model that was not trained here.

        Args:
            prompt: As ``GenerativeConfig.prompt``.
        """
        config = replace(self.config, prompt=prompt)
        return Seq2SeqLinker(self.kb, self.seq2seq, self.names, config, self.mixing)

    def in_languages(self, languages: tuple[str, ...]) -> Seq2SeqLinker:
        """Return a linker that generates names in some languages only.

        Args:
            languages: Codes of the languages.

        Returns:
            A linker with the same model.
        """
        names = self.names.restricted(languages=languages)
        return Seq2SeqLinker(self.kb, self.seq2seq, names, self.config, self.mixing)

    def generate(
        self,
        texts: Sequence[str],
        contexts: Sequence[Context] = (),
        lists: Sequence[Sequence[int]] | None = None,
    ) -> GeneratedNames:
        """Generate the most probable names of mentions, best first.

        Args:
            texts: The forms that are looked up.
            contexts: The text around each mention, or nothing.
            lists: Rows of the names table for each mention, which gets names from its own only;
                None: any names.

        Returns:
            Sequences of the trie, and their mean log-probabilities.
        """
        beam, size = self.config.beam, self.config.batch
        return self._generate(self._inputs(texts, contexts), lists, beam, size)

    def _generate(
        self,
        inputs: Sequence[Seq2SeqInput],
        lists: Sequence[Sequence[int]] | None,
        beam: BeamConfig,
        size: int,
    ) -> GeneratedNames:
        """Generate names in batches of similar length, the longest first."""
        shape = (len(inputs), beam.beams)
        found = GeneratedNames(np.full(shape, -1, np.int64), np.full(shape, -np.inf, np.float32))
        sources, prompts = self.seq2seq.inputs(
            [each.source for each in inputs], [each.prompt for each in inputs]
        )
        order = sorted(
            range(len(sources)), key=lambda row: (-len(sources[row]), -len(prompts[row]))
        )
        model = self.seq2seq.model
        training = model.training
        model.eval()
        try:
            for start in range(0, len(order), size):
                rows = order[start : start + size]
                padded = pad([sources[row] for row in rows], self.seq2seq.padding)
                begun = [prompts[row] for row in rows]
                batch = GenerationInputs(padded["input_ids"], padded["attention_mask"], begun)
                trie, roots, numbers = self.names.trie, None, None
                if lists is not None:
                    trie, roots, numbers = self.names.for_candidates([lists[row] for row in rows])
                names = generate_names(model, batch, trie, roots=roots, config=beam)
                sequences = names.sequences
                if numbers is not None:
                    sequences = np.where(sequences >= 0, numbers[sequences], -1)
                found.sequences[rows], found.scores[rows] = sequences, names.scores
        finally:
            model.train(training)
        return found

    def rank_candidates(
        self, texts: Sequence[str], pool: CandidatePool, contexts: Sequence[Context]
    ) -> list[list[Candidate]]:
        """Return a candidate per name and concept, best first; ties go to the lower row.

        Args:
            texts: Mentions.
            pool: Names that a search found for each of them.
            contexts: Text around each of them.
        """
        scored = self.score(texts, pool, contexts)
        return self._builder.by_name(scored, self.mixing(scored), scored.rows.shape[1])

    def score(
        self, texts: Sequence[str], pool: CandidatePool, contexts: Sequence[Context]
    ) -> CandidatePool:
        """Add the generated names to a pool, and the model's scores as its last generator.

        Names of the pool that are neither generated nor rescored have no score of the model.

        Args:
            texts: The forms that are looked up.
            pool: What a search found.
            contexts: The text around each mention, or nothing.

        Returns:
            The pool with more names, and one more generator.
        """
        inputs = self._inputs(texts, contexts)
        results: list[Generated] = [{} for _ in inputs]
        beam, size = self.config.beam, self.config.batch
        if self.config.generate:
            names = self._generate(inputs, None, beam, size)
            self._add(results, names, ranked=True)
        if self.mixing.rescore:
            lists = self._not_generated(pool, results)
            width = max(map(len, lists), default=0)
            if width:  # as many beams as names leave none out, so that the scores are exact
                size = max(1, size * beam.beams // width)
                names = self._generate(inputs, lists, replace(beam, beams=width), size)
                self._add(results, names, ranked=not self.config.generate)
        return self._join(pool, results)

    @staticmethod
    def _add(results: Sequence[Generated], names: GeneratedNames, *, ranked: bool) -> None:
        """Add generated names to the results of their mentions."""
        lines = zip(results, names.sequences.tolist(), names.scores.tolist(), strict=True)
        for result, sequences, scores in lines:
            for rank, (sequence, score) in enumerate(zip(sequences, scores, strict=True), 1):
                if sequence >= 0:
                    result[sequence] = (score, rank if ranked else 0)

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
        rows: list[list[int]] = [[] for _ in generated]
        for own, results in zip(rows, generated, strict=True):
            for sequence, (_, rank) in results.items():
                if self.config.generate and rank:
                    names = self.names.rows_of(sequence)
                    _, first = np.unique(self._builder.concepts[names], return_index=True)
                    own.extend(names[np.sort(first)].tolist())
        joined = extend_pool(pool, pad_rows(rows))
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


def load_seq2seq_linker(folder: Path, kb: KnowledgeBase) -> Seq2SeqLinker:
    """Load a trained generative linker, or any encoder-decoder.

    A plain encoder-decoder, as pre-training or an import writes it, gets the default settings,
    which are those of the paper. The trie in the folder is used if it is of this store; else one
    is built in memory.

    Args:
        folder: Its folder.
        kb: A store, which need not be the one it was trained with.

    Returns:
        The linker.

    Raises:
        StoreError: The folder is damaged, or of another format or version.
    """
    if not GENERATIVE_LINKER.is_at(folder):
        config, seq2seq = GenerativeConfig(), Seq2SeqModel.from_pretrained(folder)
        return Seq2SeqLinker(kb, seq2seq, NameTrie.build(kb, seq2seq, config.names), config)
    manifest = GENERATIVE_LINKER.read(folder)
    GENERATIVE_LINKER.check_files(folder, manifest)
    try:
        config = from_mapping(GenerativeConfig, manifest["config"], "config.")
        mixing = Mixing(**manifest["mixing"])
    except (ConfigError, TypeError, ValueError) as error:
        raise GENERATIVE_LINKER.damaged(folder / GENERATIVE_LINKER.file, repr(error)) from error
    seq2seq = Seq2SeqModel.from_pretrained(
        folder / MODEL, max_source=config.max_source, max_target=config.max_target
    )
    if NAME_TRIE.is_at(folder / TRIE):
        names = NameTrie.open(folder / TRIE, kb, seq2seq, config.names)
    else:
        names = NameTrie.build(kb, seq2seq, config.names)
    return Seq2SeqLinker(kb, seq2seq, names, config, mixing)
