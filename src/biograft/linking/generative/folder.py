"""The folder of a generative linker: its files, and the manifest that is written last.

=================  ==================================================================
``model/``         the encoder-decoder, which transformers loads as any other
``trie/``          the names of the store that it was trained with
``manifest.json``  what it reads, how it is mixed with a search, how it was trained
=================  ==================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from biograft.config import from_mapping
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.linking.generative.config import GenerativeConfig
from biograft.linking.generative.mixing import Mixing
from biograft.linking.generative.names import NAME_TRIE, NameTrie
from biograft.linking.rankers import GENERATIVE
from biograft.manifests import Kind, file_sizes
from biograft.nn.seq2seq import Namer
from biograft.runs import new_folder

MODEL, TRIE = "model", "trie"
GENERATIVE_LINKER = Kind(
    format=GENERATIVE,
    version=1,
    called="generative linker",
    remedy="train the linker again",
    keys=("config", "mixing", "report", "provenance"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """All of a generative linker but its weights and its names."""

    config: GenerativeConfig
    mixing: Mixing
    report: Mapping[str, Any]
    provenance: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What lies in a folder, ready for a store."""

    namer: Namer
    names: NameTrie
    config: GenerativeConfig
    mixing: Mixing


def write_folder(folder: Path, names: NameTrie, described: Description) -> None:
    """Write a linker, replacing an earlier one of the same run."""
    with new_folder(folder, overwrite=True) as work:
        names.namer.save(work / MODEL)
        sizes = file_sizes(work)  # without the trie, which can be made again
        names.save(work / TRIE)
        GENERATIVE_LINKER.write(work, {**asdict(described), "files": sizes})


def read_description(folder: Path) -> Description:
    """Read what a linker is, refusing what is none, of another version or not whole."""
    manifest = GENERATIVE_LINKER.read(folder)
    GENERATIVE_LINKER.check_files(folder, manifest)
    try:
        return Description(
            config=from_mapping(GenerativeConfig, manifest["config"], "config."),
            mixing=Mixing(**manifest["mixing"]),
            report=dict(manifest["report"]),
            provenance=dict(manifest["provenance"]),
        )
    except (ConfigError, TypeError, ValueError) as error:
        raise GENERATIVE_LINKER.damaged(folder / GENERATIVE_LINKER.file, repr(error)) from error


def open_folder(folder: Path, kb: KnowledgeBase) -> Opened:
    """Open a linker for a store, which need not be the one it was trained with.

    A folder of an encoder-decoder alone, as pre-training or an import leaves it, is read as the
    paper reads.
    """
    if not GENERATIVE_LINKER.is_at(folder):
        config = GenerativeConfig()
        namer = Namer.from_pretrained(folder)
        names = NameTrie.build(kb, namer, config.names)
        return Opened(namer=namer, names=names, config=config, mixing=Mixing())
    described = read_description(folder)
    config = described.config
    namer = Namer.from_pretrained(
        folder / MODEL, max_source=config.max_source, max_target=config.max_target
    )
    if NAME_TRIE.is_at(folder / TRIE):
        names = NameTrie.open(folder / TRIE, kb, namer, config.names)
    else:
        names = NameTrie.build(kb, namer, config.names)
    return Opened(namer=namer, names=names, config=config, mixing=described.mixing)
