"""The names that a generative linker may generate, and the trie that limits generation to them.

Names are normalised: lower case, punctuation as spaces. Names of a store that are then equal are
one text, which may belong to several concepts. The trie holds the token sequences of the texts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.artifacts import (
    ArtifactKind,
    check_ends,
    check_length,
    check_range,
    describe_files,
    new_folder,
    open_array,
    save_array,
)
from biograft.errors import ConfigError, nearest
from biograft.kb import KnowledgeBase
from biograft.kb.assembly import shared_names
from biograft.kb.concepts import close_types
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.generative.config import NamesConfig
from biograft.models.pretrained import describe_tokenizer
from biograft.models.seq2seq import Seq2SeqModel
from biograft.progress import Progress
from biograft.text.mention_text import clean_name
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
    """Select the names of a store that may be generated, and normalise them."""
    concepts = kb.numbers("names", "concept").astype(np.int64)
    texts, numbers = _normalise_names(kb, config, selected_rows(kb, config))
    if config.shared == "fewest":
        _drop_shared(numbers, concepts)
    if config.per_concept != "all":
        _keep_one_per_concept(numbers, concepts, texts, config)
    if not (numbers >= 0).any():
        raise ConfigError(
            f"names: none of the {kb.n_names:,} names of {kb.folder} is left; select more types, "
            "languages or sources"
        )
    return _renumber(texts, numbers, concepts)


def selected_rows(kb: KnowledgeBase, config: NamesConfig) -> Flags:
    """Return which rows of the names table have the configured types, languages and sources."""
    table = kb.table("names")
    selected = np.ones(table.num_rows, np.bool_)
    for column, known in (("language", kb.languages), ("source", kb.sources)):
        names = getattr(config, f"{column}s")
        if names:
            codes = [_index_of(f"{column}s", name, known) for name in names]
            selected &= np.isin(table.column(column).to_numpy(), codes)
    if config.types:
        selected &= _of_types(kb, config.types)[table.column("concept").to_numpy()]
    return selected


def _of_types(kb: KnowledgeBase, types: tuple[str, ...]) -> Flags:
    """Return which concepts have one of the types, given by code or label, or a subtype."""
    codes = {kind.label: kind.code for kind in kb.types if kind.label}
    known = [kind.code for kind in kb.types]
    roots = tuple(known[_index_of("types", codes.get(name, name), known)] for name in types)
    subtypes = close_types({kind.code: kind.tree for kind in kb.types}, roots)
    indices = [index for index, code in enumerate(known) if code in subtypes]
    table, flags = kb.table("types"), np.zeros(len(kb), np.bool_)
    rows = np.isin(table.column("type").to_numpy(), indices)
    flags[table.column("concept").to_numpy()[rows]] = True
    return flags


def _index_of(field: str, name: str, known: list[str]) -> int:
    if name not in known:
        raise ConfigError(f"{field}: no name of the store is of {name!r}; {nearest(name, known)}")
    return known.index(name)


def _normalise_names(
    kb: KnowledgeBase, config: NamesConfig, selected: Flags
) -> tuple[list[str], Ints]:
    """Normalise the selected names; return the distinct texts, and the text of each row."""
    index_of: dict[str, int] = {}
    numbers = np.full(len(selected), -1, np.int64)
    row = 0
    for chunk in kb.table("names").column("text").iterchunks():
        for name in chunk.to_pylist():
            if selected[row] and (text := clean_name(name, lower=config.lower)):
                numbers[row] = index_of.setdefault(text, len(index_of))
            row += 1
    return list(index_of), numbers


def _drop_shared(numbers: Ints, concepts: Ints) -> None:
    """Keep a shared text for the concept with the fewest names; every concept keeps a name."""
    rows = np.flatnonzero(numbers >= 0)
    owners, keys = concepts[rows].astype(np.uint32), numbers[rows].astype(np.uint64)
    numbers[rows[shared_names(owners, keys)]] = -1


def _keep_one_per_concept(
    numbers: Ints, concepts: Ints, texts: list[str], config: NamesConfig
) -> None:
    """Keep one name per concept: its shortest, or a random one by the seed."""
    rows = np.flatnonzero(numbers >= 0)
    if config.per_concept == "shortest":
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        order = np.lexsort((rows, lengths[numbers[rows]], concepts[rows]))
    else:
        keys = np.random.default_rng(config.seed).random(len(numbers))
        order = np.lexsort((keys[rows], concepts[rows]))
    _, first = np.unique(concepts[rows[order]], return_index=True)
    chosen = rows[order[first]]
    text_of = numbers[chosen]
    numbers[:] = -1
    numbers[chosen] = text_of


def _renumber(texts: list[str], numbers: Ints, concepts: Ints) -> Selection:
    """Renumber the remaining texts, in their order."""
    left = np.unique(numbers[numbers >= 0])
    new_numbers = np.full(len(texts) + 1, -1, np.int64)  # the last is for excluded rows
    new_numbers[left] = np.arange(len(left))
    return Selection(tuple(texts[index] for index in left.tolist()), new_numbers[numbers], concepts)


NAME_TRIE = ArtifactKind(
    format="biograft-name-trie",
    version=1,
    called="trie of names",
    remedy="remove the folder, it is rebuilt for the current store",
    keys=("store", "tokenizer", "names", "n_cut"),
)
_ARRAYS: dict[str, type[np.generic]] = {
    "numbers": np.int32,
    "rows": np.uint32,
    "starts": np.int64,
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
    seq2seq: Seq2SeqModel
    config: NamesConfig
    trie: FlatTrie
    numbers: npt.NDArray[np.integer[Any]]
    """Index of the sequence of each row of the names table; -1 for an excluded row."""
    rows: npt.NDArray[np.integer[Any]]
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
        """Build the trie of a store's names."""
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
        longest = longest_name(self.seq2seq)
        return [tokens[:longest] for tokens in self.seq2seq.batch_name_tokens(texts)]

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
        names = [sorted({row for row in rows if row >= 0 and self.numbers[row] >= 0})
               for rows in lists]  # fmt: skip
        token_lists = iter(self.tokens_of([row for rows in names for row in rows]))
        sequences = [[mention, *next(token_lists), self.seq2seq.end]
                     for mention, rows in enumerate(names) for _ in rows]  # fmt: skip
        # every mention has its node, even without a name
        tokens, lengths = _flatten([*sequences, *([mention] for mention in range(len(names)))])
        trie, numbers = FlatTrie.build(tokens, np.cumsum(lengths))
        first, _ = trie.children(np.zeros(len(names), np.int64))
        originals = np.full(trie.n_sequences, -1, np.int64)
        originals[numbers[: len(sequences)]] = [self.numbers[row] for rows in names for row in rows]
        return Forest(trie, first + np.arange(len(names)), originals)

    def save(self, folder: Path, *, overwrite: bool = False) -> None:
        """Write the trie to a folder."""
        with new_folder(folder, overwrite=overwrite) as work:
            self.trie.save(work)
            for name in _ARRAYS:
                save_array(work / f"{name}.npy", getattr(self, name))
            content = {
                "store": store_fingerprint(self.kb),
                "tokenizer": hash_tokenizer(self.seq2seq),
                "names": asdict(self.config),
                "n_names": len(self.rows),
                "n_sequences": self.trie.n_sequences,
                "n_nodes": self.trie.n_nodes,
                "n_cut": self.n_cut,
                "files": describe_files(work),
            }
            NAME_TRIE.write(work, content)

    @classmethod
    def open(
        cls, folder: Path, kb: KnowledgeBase, seq2seq: Seq2SeqModel, config: NamesConfig
    ) -> NameTrie:
        """Memory-map a trie, or build one in memory if the folder's trie is of other names."""
        manifest = NAME_TRIE.read(folder)
        NAME_TRIE.check_files(folder, manifest)
        if not _is_for(manifest, kb, seq2seq, config):
            return cls.build(kb, seq2seq, config)
        trie = FlatTrie.open(folder)
        try:
            _check_tokens(trie, seq2seq)
            numbers, rows, starts = (
                open_array(folder / f"{name}.npy", kind) for name, kind in _ARRAYS.items()
            )
            check_length("numbers", numbers, kb.n_names)
            check_range("numbers", numbers, -1, trie.n_sequences - 1)
            check_range("rows", rows, 0, kb.n_names - 1)
            check_length("starts", starts, trie.n_sequences + 1)
            check_ends("starts", starts, len(rows))
        except ValueError as error:
            raise NAME_TRIE.damaged(folder, error) from error
        return cls(kb, seq2seq, config, trie, numbers, rows, starts, int(manifest["n_cut"]))


def longest_name(seq2seq: Seq2SeqModel) -> int:
    """Return the maximum number of tokens of a name; the prompt has as many."""
    return (seq2seq.max_target - 2) // 2


def hash_tokenizer(seq2seq: Seq2SeqModel) -> str:
    """Compute the SHA-256 of everything that determines the tokens of a name."""
    content = [describe_tokenizer(seq2seq.tokenizer), seq2seq.end, longest_name(seq2seq)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _check_tokens(trie: FlatTrie, seq2seq: Seq2SeqModel) -> None:
    """Refuse tokens and lengths beyond the model's vocabulary and positions."""
    check_range("tokens", trie.tokens, 0, seq2seq.vocabulary_size - 1)
    if trie.depth > longest_name(seq2seq) + 1:
        raise ValueError(f"children: a name of {trie.depth} tokens, too long for the model")


def _is_for(
    manifest: dict[str, Any], kb: KnowledgeBase, seq2seq: Seq2SeqModel, config: NamesConfig
) -> bool:
    """Return whether a trie is of the names of this store, with this tokenizer."""
    recorded = (manifest["store"], manifest["tokenizer"], manifest["names"])
    names = json.loads(json.dumps(asdict(config)))
    return recorded == (store_fingerprint(kb), hash_tokenizer(seq2seq), names)


def _tokenize(
    seq2seq: Seq2SeqModel, texts: Sequence[str], progress: Progress
) -> tuple[Ints, Ints, int]:
    """Tokenize names; return the concatenated tokens, their ends, and the number truncated."""
    longest, n_cut = longest_name(seq2seq), 0
    parts, lengths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for start in range(0, len(texts), _CHUNK):
        names = seq2seq.batch_name_tokens(texts[start : start + _CHUNK])
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
