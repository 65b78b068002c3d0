"""Artefacts on disk as readers of bytes: one file of a small one is replaced, then it is opened.

The manifest is made to fit what was replaced, as somebody would who made the file on purpose.
"""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from manifests import reseal
from reader_seeds import bundle
from reader_targets import _MARKER, Reader, check_texts

from biograft.artifacts import CHECKSUM, MANIFEST, describe_files
from biograft.text.documents import Document

_MAX_SEED = 1 << 15
"""Larger files are not replaced."""
_CONCEPTS: list[dict[str, Any]] = [
    {
        "id": "D1",
        "name": "Diabetes Mellitus, Type 2",
        "names": {"en": ["type 2 diabetes", "T2DM"], "zh": ["2型糖尿病"]},
        "type": "disease",
        "definition": "Too much sugar.",
        "relations": {"is-a": ["D3"]},
    },
    {"id": "D2", "name": "Heart Attack", "names": ["myocardial infarction"], "xrefs": ["X:1"]},
    {"id": "D3", "name": "Disease"},
]


def _build_store(folder: Path) -> None:
    from biograft.kb import BuildConfig, build_store
    from biograft.kb.sources import SourceConfig

    source = folder.with_name("kb.jsonl")
    source.write_text("".join(json.dumps(each) + "\n" for each in _CONCEPTS), encoding="utf-8")
    build_store(BuildConfig(sources=(SourceConfig(path=source, format="jsonl"),)), folder)


@functools.cache
def _store(place: Path) -> Any:
    """Return a store that stays as it is."""
    from biograft.kb import KnowledgeBase

    if not (place / "sound-store").exists():
        _build_store(place / "sound-store")
    return KnowledgeBase.open(place / "sound-store")


def _use_store(folder: Path) -> None:
    from biograft.kb import KnowledgeBase

    kb = KnowledgeBase.open(folder)
    for concept in kb:
        str(concept)
    kb.find_row("D1")
    kb.find("heart attack")


def _build_index(folder: Path) -> None:
    from biograft.linking.dense.encoders import load_encoder
    from biograft.linking.index import build_index

    build_index(_store(folder.parent), folder, load_encoder("static-english"))


def _use_index(folder: Path) -> None:
    from biograft.linking import Linker

    linker = Linker.open(_store(folder.parent), index=folder)
    list(linker.pipe([Document("1", "No hart atack, type 2 diabetes.")]))


def _build_shards(folder: Path) -> None:
    from biograft.text.shards import (
        SHARDS,
        AnnotatedDocument,
        LinkedSpan,
        shard_path,
        write_shard,
    )

    folder.mkdir()
    document = AnnotatedDocument("1", "lung cancer 肺癌", (LinkedSpan(0, 11, "D1", 1.0),), "en")
    write_shard(shard_path(folder, 0), [document], {"n": 1})
    content = {"n_shards": 1, "n_documents": 1, "files": describe_files(folder)}
    SHARDS.write(folder, content)


def _use_shards(folder: Path) -> None:
    from biograft.text.shards import Shards

    check_texts(list(Shards.open(folder)))


def _build_trie(folder: Path) -> None:
    from biograft.text.trie import FlatTrie

    folder.mkdir()
    tokens = np.array([1, 2, 1, 3], np.int64)
    FlatTrie.build(tokens, np.array([2, 4], np.int64))[0].save(folder)


def _use_trie(folder: Path) -> None:
    from biograft.text.trie import FlatTrie

    trie = FlatTrie.open(folder)
    trie.child(trie.root, 1)
    trie.subset(np.ones(trie.n_sequences, np.bool_))


def _build_neighbours(folder: Path) -> None:
    from biograft.graph import PeprConfig
    from biograft.graph.neighbours import build_neighbours

    build_neighbours(_store(folder.parent), folder, PeprConfig())


def _use_neighbours(folder: Path) -> None:
    from biograft.graph.neighbours import NeighbourTable

    table = NeighbourTable.open(folder, _store(folder.parent))
    table.gather(np.arange(len(table)), 2)


def _build_embeddings(folder: Path) -> None:
    from biograft.graph.config import ModelConfig
    from biograft.graph.embedding.embeddings import EMBEDDINGS, write_tensors

    folder.mkdir()
    model = ModelConfig(kind="transe", dim=2)
    arrays = {"entity": np.ones((3, 2), np.float32), "relation": np.ones((1, 2), np.float32)}
    write_tensors(folder / "embeddings.safetensors", arrays)
    ids = {"entities": ["a", "b", "c"], "relations": ["r"]}
    (folder / "ids.json").write_text(json.dumps(ids), encoding="utf-8")
    content = {
        "kb": "",
        "graph": {},
        "recipe": {"model": asdict(model)},
        "n_entities": 3,
        "n_relations": 1,
        "files": describe_files(folder),
    }
    EMBEDDINGS.write(folder, content)


def _use_embeddings(folder: Path) -> None:
    from biograft.graph.embedding import Embeddings

    embeddings = Embeddings.open(folder)
    check_texts([embeddings.entity_ids, embeddings.relation_names])


def _build_ranker(folder: Path) -> None:
    from biograft.linking.supervised import MentionMemory, Network, TrainedRanker, feature_names
    from biograft.linking.trained_configs import RankerConfig

    kb, n = _store(folder.parent), len(feature_names(["lexical"]))
    shapes = ((n,), (n,), (1, 2, n), (1, 2), (1, 2))
    network = Network(*(np.ones(shape, np.float32) for shape in shapes))
    memory = {"texts": {"flu": [1, {"D1": 1}]}, "concepts": {"D1": 1}}
    ranker = TrainedRanker(kb, network, MentionMemory.from_json(memory, kb), ["lexical"])
    ranker.save(folder, RankerConfig(), {})


def _use_ranker(folder: Path) -> None:
    from biograft.linking.rankers import load_ranker

    load_ranker(folder, _store(folder.parent))


def _build_settings(folder: Path) -> None:
    """Write small files that stand for themselves."""
    from biograft.evaluation.comparison import ANSWERS
    from biograft.linking.calibration import Calibration
    from biograft.linking.index import write_weights
    from biograft.linking.reviewed import REVIEWED
    from biograft.models.settings import EncoderSettings, write_settings

    folder.mkdir()
    Calibration("isotonic", ((0.0, 0.0), (1.0, 1.0))).save(folder / "calibration.json")
    write_weights(folder, 0.5, {})
    write_settings(folder, EncoderSettings(pooling="cls", max_length=25, lower=True))
    query = {"document": "1", "start": 0, "end": 3, "mention": "flu", "gold": ["D1"]}
    answers = {"scorer": "strict", "queries": [{**query, "answers": [], "metrics": {"acc@1": 1.0}}]}
    ANSWERS.write(folder / "answers.json", answers)
    (folder / "reviewed").mkdir()
    decided = {"approved": {"flu": ["D1"]}, "rejected": {"x": ["D2"]}, "nil": ["y"]}
    REVIEWED.write(folder / "reviewed", {**decided, "weight": 0.5, "weights": None})
    (folder / "modules.json").write_text(
        '[{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},'
        '{"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]'
    )
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 25}')
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    (folder / "config.json").write_text('{"_name_or_path": "a/SapBERT"}')


def _use_settings(folder: Path) -> None:
    from biograft.evaluation.comparison import ScoredQueries
    from biograft.linking.calibration import Calibration
    from biograft.linking.index import read_weights
    from biograft.linking.reviewed import ReviewedNames
    from biograft.models.settings import _read_sentence_transformers, find_family, find_settings

    Calibration.load(folder / "calibration.json")([0.5])
    read_weights(folder)
    find_settings(folder)
    _read_sentence_transformers(folder)
    find_family("x", folder)
    ScoredQueries.load(folder / "answers.json")
    reviewed = ReviewedNames.open(folder / "reviewed", _store(folder.parent))
    reviewed.apply(["flu"], [[]], 3)


class _Artefact:
    """A sound artefact, of which one file is another for the time of a reading."""

    def __init__(
        self, name: str, build: Callable[[Path], None], use: Callable[[Path], None]
    ) -> None:
        self._name, self._build, self._use = name, build, use
        self._made: dict[Path, dict[str, bytes]] = {}

    def files(self, place: Path) -> dict[str, bytes]:
        """Return the small files of the artefact, by name; build it where it is not there."""
        if place not in self._made:
            folder = place / self._name
            shutil.rmtree(folder, ignore_errors=True)
            self._build(folder)
            paths = [path for path in folder.rglob("*") if path.is_file()]
            small = [path for path in sorted(paths) if path.stat().st_size <= _MAX_SEED]
            for path in sorted(small, key=lambda each: -len(each.parts)):
                if path.suffix == ".json":
                    _without_checksum(path)
                if path.name == MANIFEST:
                    reseal(path)
            self._made[place] = {
                path.relative_to(folder).as_posix().replace("/", "--"): path.read_bytes()
                for path in small
            }
        return self._made[place]

    def __call__(self, place: Path, data: bytes) -> None:
        sound, folder = self.files(place), place / self._name
        _, *parts = _MARKER.split(data, maxsplit=1)
        name = parts[0].decode() if parts else ""
        if name not in sound:
            return
        path = folder / name.replace("--", "/")
        before = {each: each.read_bytes() for each in (path, *_manifests(path, folder))}
        path.unlink()  # what has it mapped keeps the file that was there
        path.write_bytes(parts[1].removesuffix(b"\n"))
        try:
            for each in _manifests(path, folder):
                reseal(each)
            self._use(folder)
        finally:
            for each, content in before.items():
                each.unlink()
                each.write_bytes(content)


def _manifests(path: Path, folder: Path) -> list[Path]:
    """Return the manifests above a file that may list it, the nearest first."""
    above = [each for each in path.parents if each == folder or folder in each.parents]
    found = [each / MANIFEST for each in above]
    return [each for each in found if each != path and each.is_file()]


def _without_checksum(path: Path) -> None:
    content = json.loads(path.read_bytes())
    if isinstance(content, dict) and CHECKSUM in content:
        del content[CHECKSUM]
        path.write_text(json.dumps(content), encoding="utf-8")


_ARTEFACTS: dict[str, tuple[Callable[[Path], None], Callable[[Path], None]]] = {
    "store": (_build_store, _use_store),
    "index": (_build_index, _use_index),
    "ranker": (_build_ranker, _use_ranker),
    "shards": (_build_shards, _use_shards),
    "trie": (_build_trie, _use_trie),
    "neighbours": (_build_neighbours, _use_neighbours),
    "embeddings": (_build_embeddings, _use_embeddings),
    "settings": (_build_settings, _use_settings),
}


def artefacts() -> dict[str, Reader]:
    """Return the readers of artefacts; their seeds are made when a folder is known."""
    return {
        f"artefact-{name}": Reader(_Artefact(name, *steps), ())
        for name, steps in _ARTEFACTS.items()
    }


def seeds_of(reader: Reader, place: Path) -> tuple[bytes, ...]:
    """Return the valid inputs of a reader, which for an artefact are its files."""
    if isinstance(reader.read, _Artefact):
        files = reader.read.files(place)
        return tuple(bundle({name: content}) for name, content in files.items())
    return reader.seeds
