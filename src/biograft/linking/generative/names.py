"""Which names of a store may be generated, and how they are written.

A name is generated as it is learnt: in small letters, signs as blanks. Names of a store that are
written alike so are one text, which may be a name of several concepts.
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

from biograft.arrays import check_ends, check_length, check_range, open_array
from biograft.artifacts import Kind, file_sizes, new_folder
from biograft.corpus.mention_text import clean_name
from biograft.errors import ConfigError, nearest
from biograft.kb import KnowledgeBase
from biograft.kb.assembly import shared_to_drop
from biograft.kb.concepts import close_types
from biograft.linking.generative.config import NamesConfig
from biograft.linking.provenance import store_fingerprint
from biograft.nn.generation import FlatTrie
from biograft.nn.pretrained import describe_tokenizer
from biograft.nn.seq2seq import Namer
from biograft.progress import Progress

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Selection:
    """The texts that may be generated, and the names of the store that each stands for."""

    texts: tuple[str, ...]
    """Distinct, in the order in which the store has them."""
    numbers: Ints
    """The text of each row of the table of names; -1 of a row that is left out."""
    concepts: Ints
    """The concept of each row."""

    @property
    def lengths(self) -> Ints:
        """How many characters each text has."""
        return np.fromiter(map(len, self.texts), np.int64, len(self.texts))


def select_names(kb: KnowledgeBase, config: NamesConfig) -> Selection:
    """Choose the names of a store, and write them as they are generated."""
    concepts = kb.table("names").column("concept").to_numpy().astype(np.int64)
    texts, numbers = _write_names(kb, config, wanted_rows(kb, config))
    if config.shared == "fewest":
        _keep_in_one_concept(numbers, concepts)
    if config.per_concept != "all":
        _keep_one_a_concept(numbers, concepts, texts, config)
    if not (numbers >= 0).any():
        raise ConfigError(
            f"names: none of the {kb.n_names:,} names of {kb.folder} is left; ask for more types, "
            "languages or sources"
        )
    return _renumber(texts, numbers, concepts)


def wanted_rows(kb: KnowledgeBase, config: NamesConfig) -> Flags:
    """Say which rows of the table of names are of the types, languages and sources asked for."""
    table = kb.table("names")
    wanted = np.ones(table.num_rows, np.bool_)
    for column, known in (("language", kb.languages), ("source", kb.sources)):
        names = getattr(config, f"{column}s")
        if names:
            places = [_place(f"{column}s", name, known) for name in names]
            wanted &= np.isin(table.column(column).to_numpy(), places)
    if config.types:
        wanted &= _of_types(kb, config.types)[table.column("concept").to_numpy()]
    return wanted


def _of_types(kb: KnowledgeBase, types: tuple[str, ...]) -> Flags:
    """Say which concepts are of some types, given by code or label, or of types below those."""
    codes = {kind.label: kind.code for kind in kb.types if kind.label}
    known = [kind.code for kind in kb.types]
    wanted = tuple(known[_place("types", codes.get(name, name), known)] for name in types)
    below = close_types({kind.code: kind.tree for kind in kb.types}, wanted)
    places = [place for place, code in enumerate(known) if code in below]
    table, flags = kb.table("types"), np.zeros(len(kb), np.bool_)
    chosen = np.isin(table.column("type").to_numpy(), places)
    flags[table.column("concept").to_numpy()[chosen]] = True
    return flags


def _place(field: str, name: str, known: list[str]) -> int:
    if name not in known:
        raise ConfigError(f"{field}: no name of the store is of {name!r}; {nearest(name, known)}")
    return known.index(name)


def _write_names(kb: KnowledgeBase, config: NamesConfig, wanted: Flags) -> tuple[list[str], Ints]:
    """Write the wanted names; give the distinct texts, and the text of each row."""
    places: dict[str, int] = {}
    numbers = np.full(len(wanted), -1, np.int64)
    row = 0
    for chunk in kb.table("names").column("text").iterchunks():
        for name in chunk.to_pylist():
            if wanted[row] and (text := clean_name(name, lower=config.lower)):
                numbers[row] = places.setdefault(text, len(places))
            row += 1
    return list(places), numbers


def _keep_in_one_concept(numbers: Ints, concepts: Ints) -> None:
    """Leave a text to the concept that has the fewest; none is left without a name by that."""
    kept = np.flatnonzero(numbers >= 0)
    rows, keys = concepts[kept].astype(np.uint32), numbers[kept].astype(np.uint64)
    numbers[kept[shared_to_drop(rows, keys)]] = -1


def _keep_one_a_concept(
    numbers: Ints, concepts: Ints, texts: list[str], config: NamesConfig
) -> None:
    """Leave each concept one name: its shortest, or one drawn by the seed."""
    kept = np.flatnonzero(numbers >= 0)
    if config.per_concept == "shortest":
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        order = np.lexsort((kept, lengths[numbers[kept]], concepts[kept]))
    else:
        drawn = np.random.default_rng(config.seed).random(len(numbers))
        order = np.lexsort((drawn[kept], concepts[kept]))
    _, first = np.unique(concepts[kept[order]], return_index=True)
    chosen = kept[order[first]]
    text_of = numbers[chosen]
    numbers[:] = -1
    numbers[chosen] = text_of


def _renumber(texts: list[str], numbers: Ints, concepts: Ints) -> Selection:
    """Number the texts that are left anew, in their order."""
    left = np.unique(numbers[numbers >= 0])
    places = np.full(len(texts) + 1, -1, np.int64)  # the last is for rows left out
    places[left] = np.arange(len(left))
    return Selection(tuple(texts[place] for place in left.tolist()), places[numbers], concepts)


NAME_TRIE = Kind(
    format="biograft-name-trie",
    version=1,
    called="trie of names",
    remedy="remove the folder, it is made again for the store at hand",
    keys=("store", "tokenizer", "names", "n_cut"),
)
_ARRAYS: dict[str, type[np.generic]] = {
    "numbers": np.int32,
    "rows": np.uint32,
    "starts": np.int64,
}
_AT_ONCE = 1 << 16
"""Names tokenised at once: lists of tokens take many times the room of an array."""


class Forest(NamedTuple):
    """One trie for some mentions, each of which may be given the names of its own list only."""

    trie: FlatTrie
    roots: Ints  # (mentions,): the node at which the names of each begin
    numbers: Ints  # (sequences of the forest,): their numbers in the trie of all names


@dataclass(frozen=True, slots=True)
class NameTrie:
    """The names of a store that may be generated; equal ones are one sequence of tokens."""

    kb: KnowledgeBase
    namer: Namer
    config: NamesConfig
    trie: FlatTrie
    numbers: npt.NDArray[np.integer[Any]]
    """The sequence of each row of the table of names; -1 of a row that is left out."""
    rows: npt.NDArray[np.integer[Any]]
    starts: Ints
    """Where the rows of each sequence begin in ``rows``."""
    n_cut: int
    """How many names are longer than what the model can write, and stand there cut."""

    @classmethod
    def build(
        cls,
        kb: KnowledgeBase,
        namer: Namer,
        config: NamesConfig | None = None,
        progress: Progress | None = None,
    ) -> NameTrie:
        """Make the trie of a store's names."""
        config, progress = config or NamesConfig(), progress or Progress(enabled=False)
        progress.start("names")
        selected = select_names(kb, config)
        progress.start("trie")
        tokens, ends, n_cut = _write_all(namer, selected.texts, progress)
        trie, of_text = FlatTrie.build(tokens, ends)
        of_text = np.append(of_text, -1)  # the text -1 is that of rows left out
        progress.finish()
        return cls._of(kb, namer, config, trie, of_text[selected.numbers], n_cut)

    @classmethod
    def _of(
        cls,
        kb: KnowledgeBase,
        namer: Namer,
        config: NamesConfig,
        trie: FlatTrie,
        numbers: Ints,
        n_cut: int,
    ) -> NameTrie:
        kept = np.flatnonzero(numbers >= 0)
        order = np.argsort(numbers[kept], kind="stable")
        starts = np.zeros(trie.n_sequences + 1, np.int64)
        np.cumsum(np.bincount(numbers[kept], minlength=trie.n_sequences), out=starts[1:])
        rows = kept[order].astype(np.uint32)
        return cls(kb, namer, config, trie, numbers.astype(np.int32), rows, starts, n_cut)

    @property
    def nbytes(self) -> int:
        """How much memory, or disk, all arrays take."""
        arrays = (self.numbers, self.rows, self.starts)
        return self.trie.nbytes + sum(int(array.nbytes) for array in arrays)

    def rows_of(self, sequence: int) -> Ints:
        """Give the rows of the store's names that a sequence stands for, ascending."""
        found = self.rows[int(self.starts[sequence]) : int(self.starts[sequence + 1])]
        return found.astype(np.int64)

    def tokens_of(self, rows: Sequence[int]) -> list[list[int]]:
        """Give the tokens of some of the store's names as they are generated, without the end."""
        lower = self.config.lower
        texts = [clean_name(self.kb.name(row).text, lower=lower) for row in rows]
        longest = longest_name(self.namer)
        return [tokens[:longest] for tokens in self.namer.names_tokens(texts)]

    def restricted(self, **asked: tuple[str, ...]) -> NameTrie:
        """Keep the names of some types, languages or sources; see :class:`NamesConfig`."""
        config = replace(self.config, **asked)  # type: ignore[arg-type]
        numbers = np.where(wanted_rows(self.kb, config), self.numbers, -1)
        keep = np.zeros(self.trie.n_sequences, np.bool_)
        keep[numbers[numbers >= 0]] = True
        trie, kept = self.trie.subset(keep)
        places = np.full(len(keep) + 1, -1, np.int64)
        places[kept] = np.arange(len(kept))
        return self._of(self.kb, self.namer, config, trie, places[numbers], self.n_cut)

    def for_candidates(self, lists: Sequence[Sequence[int]]) -> Forest:
        """Let each mention be given the names of its list of rows only; others are passed over."""
        own = [sorted({row for row in rows if row >= 0 and self.numbers[row] >= 0})
               for rows in lists]  # fmt: skip
        written = iter(self.tokens_of([row for rows in own for row in rows]))
        sequences = [[mention, *next(written), self.namer.end]
                     for mention, rows in enumerate(own) for _ in rows]  # fmt: skip
        # every mention has its node, though it may have no name
        tokens, lengths = _flatten([*sequences, *([mention] for mention in range(len(own)))])
        trie, numbers = FlatTrie.build(tokens, np.cumsum(lengths))
        first, _ = trie.children(np.zeros(len(own), np.int64))
        known = np.full(trie.n_sequences, -1, np.int64)
        known[numbers[: len(sequences)]] = [self.numbers[row] for rows in own for row in rows]
        return Forest(trie, first + np.arange(len(own)), known)

    def save(self, folder: Path, *, overwrite: bool = False) -> None:
        """Write the trie to a folder."""
        with new_folder(folder, overwrite=overwrite) as work:
            self.trie.save(work)
            for name in _ARRAYS:
                np.save(work / f"{name}.npy", getattr(self, name), allow_pickle=False)
            content = {
                "store": store_fingerprint(self.kb),
                "tokenizer": hash_tokenizer(self.namer),
                "names": asdict(self.config),
                "n_names": len(self.rows),
                "n_sequences": self.trie.n_sequences,
                "n_nodes": self.trie.n_nodes,
                "n_cut": self.n_cut,
                "files": file_sizes(work),
            }
            NAME_TRIE.write(work, content)

    @classmethod
    def open(cls, folder: Path, kb: KnowledgeBase, namer: Namer, config: NamesConfig) -> NameTrie:
        """Map a trie into memory, or make one in memory if this is one of other names."""
        manifest = NAME_TRIE.read(folder)
        NAME_TRIE.check_files(folder, manifest)
        if not _is_for(manifest, kb, namer, config):
            return cls.build(kb, namer, config)
        trie = FlatTrie.open(folder)
        try:
            _check_tokens(trie, namer)
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
        return cls(kb, namer, config, trie, numbers, rows, starts, int(manifest["n_cut"]))


def longest_name(namer: Namer) -> int:
    """Say how many tokens of a name are written at most; the prompt has as many."""
    return (namer.max_target - 2) // 2


def hash_tokenizer(namer: Namer) -> str:
    """Compute the SHA-256 of what decides the tokens of a name."""
    told = [describe_tokenizer(namer.tokenizer), namer.end, longest_name(namer)]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _check_tokens(trie: FlatTrie, namer: Namer) -> None:
    """Refuse tokens and lengths that the model cannot write: it would look beyond its tables."""
    check_range("tokens", trie.tokens, 0, namer.model.config.vocab_size - 1)
    if trie.depth > longest_name(namer) + 1:
        raise ValueError(f"children: a name of {trie.depth} tokens, more than the model writes")


def _is_for(manifest: dict[str, Any], kb: KnowledgeBase, namer: Namer, config: NamesConfig) -> bool:
    """Whether a trie is of the names of this store, written by this tokenizer."""
    told = (manifest["store"], manifest["tokenizer"], manifest["names"])
    names = json.loads(json.dumps(asdict(config)))
    return told == (store_fingerprint(kb), hash_tokenizer(namer), names)


def _write_all(namer: Namer, texts: Sequence[str], progress: Progress) -> tuple[Ints, Ints, int]:
    """Write names with their ends, one after the other; say where each ends, how many are cut."""
    longest, n_cut = longest_name(namer), 0
    parts, lengths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for start in range(0, len(texts), _AT_ONCE):
        written = namer.names_tokens(texts[start : start + _AT_ONCE])
        n_cut += sum(len(tokens) > longest for tokens in written)
        tokens, own = _flatten([[*tokens[:longest], namer.end] for tokens in written])
        parts.append(tokens)
        lengths.append(own)
        progress.advance(len(written), (start + len(written)) / len(texts))
    return np.concatenate(parts), np.cumsum(np.concatenate(lengths)), n_cut


def _flatten(sequences: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Put sequences of tokens one after the other; give how long each is, too."""
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    flat = (token for sequence in sequences for token in sequence)
    return np.fromiter(flat, np.int64, int(lengths.sum())), lengths
