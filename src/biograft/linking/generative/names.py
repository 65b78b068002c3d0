"""The names that may be generated, as a trie, and the rows of the store that each leads back to.

======================================  ====================================================
``tokens, children, ends`` (``.npy``)   the trie (:class:`~biograft.nn.generation.FlatTrie`)
``numbers.npy``                         sequence of each row of the store's names, -1 of none
``rows.npy``                            rows of each sequence; ``starts.npy`` says where its begin
``manifest.json``                       of which store and tokenizer, and which names
======================================  ====================================================
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

from biograft.arrays.files import check_ends, check_length, check_range, open_array
from biograft.corpus.mention_text import clean_name
from biograft.kb import KnowledgeBase
from biograft.linking.generative.config import NamesConfig
from biograft.linking.generative.selection import Ints, select_names, wanted_rows
from biograft.linking.provenance import store_fingerprint
from biograft.manifests import Kind, file_sizes
from biograft.nn.generation import FlatTrie
from biograft.nn.saving import describe_tokenizer
from biograft.nn.seq2seq import Namer
from biograft.progress import Progress
from biograft.runs import new_folder

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
