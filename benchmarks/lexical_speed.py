"""Speed of lexical search, against scikit-learn and scispaCy."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import TfidfVectorizer
from synthetic_names import make_mentions, make_names
from timing import interleave, on_one_core

from biograft.evaluation import read_gold
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking.lexical import LexicalIndex

K = 30
NAMES_PER_CONCEPT = 4
_BATCH = 256
_NCBI = "entity_linking/ncbi_disease/biosyn"
WARM_UP = 8
"""Mentions searched before timing, because compiled loops are loaded at first use."""


class Vocabulary(NamedTuple):
    """What is searched, and for what."""

    source: Path
    """A BioSyn dictionary of the names."""
    mentions: list[str]
    origins: list[str]
    """The name that each mention was made from; empty where mentions are real."""


class SklearnSearch:
    """The plain way: tf-idf of character trigrams, product with all names, the k best of each row.

    ``search`` is what is usually written: the product filled up with zeros, the k best of all
    names. ``search_sparse`` takes the k best from the names that share a trigram, row by row.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(3, 3))
        # turned once, so that a product reads only the columns of the mention's own trigrams
        self.names = self.vectorizer.fit_transform(names).T.tocsr()

    def search_sparse(self, mentions: Sequence[str], k: int) -> npt.NDArray[np.int64]:
        """Find the k nearest names of each mention: (mentions, k), -1 where there are fewer."""
        rows = np.full((len(mentions), k), -1, np.int64)
        for start in range(0, len(mentions), _BATCH):
            scores = self.vectorizer.transform(mentions[start : start + _BATCH]) @ self.names
            for n in range(scores.shape[0]):
                inside = slice(scores.indptr[n], scores.indptr[n + 1])
                rows[start + n, :] = _best(scores.indices[inside], scores.data[inside], k)
        return rows

    def search(self, mentions: Sequence[str], k: int) -> npt.NDArray[np.int64]:
        """Find the k nearest names of each mention: (mentions, k), in no order."""
        rows = np.empty((len(mentions), k), np.int64)
        for start in range(0, len(mentions), _BATCH):
            scores = self.vectorizer.transform(mentions[start : start + _BATCH]) @ self.names
            rows[start : start + _BATCH] = np.argpartition(-scores.toarray(), k, axis=1)[:, :k]
        return rows


def _best(rows: npt.NDArray[Any], scores: npt.NDArray[Any], k: int) -> npt.NDArray[np.int64]:
    if len(scores) > k:
        chosen = np.argpartition(-scores, k)[:k]
        rows, scores = rows[chosen], scores[chosen]
    best = np.full(k, -1, np.int64)
    best[: len(rows)] = rows[np.argsort(-scores)]
    return best


def compare_lexical(options: dict[str, Any]) -> dict[str, Any]:
    """Search synthetic names with biograft and with scikit-learn."""
    with tempfile.TemporaryDirectory(dir=options["folder"]) as folder:
        return _compare(synthetic_names(Path(folder), options), Path(folder), options["runs"])


def compare_on_ncbi(options: dict[str, Any]) -> dict[str, Any]:
    """Search the NCBI dictionary for the mentions of the corpus, if the files are there."""
    if not _has_ncbi(options):
        return {"skipped": f"{_NCBI} is not in the folder of real data (--data)"}
    with tempfile.TemporaryDirectory(dir=options["folder"]) as folder:
        return _compare(_ncbi(options), Path(folder), options["runs"])


def measure_scispacy(options: dict[str, Any]) -> dict[str, Any]:
    """Search with scispaCy's generator, by another interpreter, the NCBI names if there."""
    if not options["scispacy_python"]:
        return {"skipped": "not measured: no --scispacy-python given"}
    with tempfile.TemporaryDirectory(dir=options["folder"]) as folder:
        real = _has_ncbi(options)
        vocabulary = _ncbi(options) if real else synthetic_names(Path(folder), options)
        base = build_biosyn_store(vocabulary.source, Path(folder))
        concepts = [
            {
                "concept_id": concept.id,
                "canonical_name": concept.name,
                "aliases": [name.text for name in concept.names],
                "types": [],
            }
            for concept in base
        ]
        lines = "".join(json.dumps(concept) + "\n" for concept in concepts)
        (Path(folder) / "kb.jsonl").write_text(lines, encoding="utf-8")
        mentions = json.dumps(vocabulary.mentions)
        (Path(folder) / "mentions.json").write_text(mentions, encoding="utf-8")
        script = Path(__file__).with_name("scispacy_candidates.py")
        command = [options["scispacy_python"], str(script), folder, str(K), str(options["runs"])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return {"skipped": f"not measured: {done.stderr.strip().splitlines()[-1]}"}
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return {"vocabulary": "NCBI" if real else "synthetic", **result}


def _compare(vocabulary: Vocabulary, folder: Path, n_runs: int) -> dict[str, Any]:
    base = build_biosyn_store(vocabulary.source, folder)
    names: list[str] = base.table("names")["text"].to_pylist()
    index, ours = _build_index(base, folder / "index")
    start = time.perf_counter()
    plain = SklearnSearch(names)
    seconds_to_fit = time.perf_counter() - start
    mentions = vocabulary.mentions
    some = mentions[: max(1, len(mentions) // 4)]  # the slowest way
    index.search(mentions[:WARM_UP], K)
    fast, sparse, slow = interleave(
        n_runs,
        lambda: index.search(mentions, K),
        lambda: plain.search_sparse(mentions, K),
        lambda: plain.search(some, K),
    )
    plain_rate = len(some) / slow.seconds
    result = {
        **ours,
        "n_names": len(names),
        "n_mentions": len(mentions),
        "k": K,
        "mentions_per_second": len(mentions) / fast.seconds,
        "sklearn_mentions_per_second": plain_rate,
        "sklearn_sparse_mentions_per_second": len(mentions) / sparse.seconds,
        "sklearn_fit_seconds": seconds_to_fit,
        "over_sklearn": len(mentions) / fast.seconds / plain_rate,
        "over_sklearn_sparse": sparse.seconds / fast.seconds,
        "over_sklearn_on_one_core": None,
    }
    with on_one_core() as pinned:
        if pinned:
            (alone,) = interleave(n_runs, lambda: index.search(mentions, K))
            result["over_sklearn_on_one_core"] = len(mentions) / alone.seconds / plain_rate
    if vocabulary.origins:
        result["found"] = _recall(names, fast.result.rows, vocabulary.origins)
        result["sklearn_found"] = _recall(names, sparse.result, vocabulary.origins)
    return result


def _recall(names: Sequence[str], rows: npt.NDArray[np.int64], origins: Sequence[str]) -> float:
    """Return the fraction of mentions whose original name is among the results."""
    pairs = zip(rows.tolist(), origins, strict=True)
    hits = sum(any(names[row] == origin for row in top if row >= 0) for top, origin in pairs)
    return hits / len(origins)


def _build_index(base: KnowledgeBase, folder: Path) -> tuple[LexicalIndex, dict[str, Any]]:
    start = time.perf_counter()
    LexicalIndex.build(base).save(folder)
    seconds = time.perf_counter() - start
    n_bytes = sum(file.stat().st_size for file in folder.iterdir())
    return LexicalIndex.open(folder, base), {"build_seconds": seconds, "index_bytes": n_bytes}


def build_biosyn_store(source: Path, folder: Path) -> KnowledgeBase:
    """Build a store of a BioSyn dictionary."""
    config = BuildConfig(sources=(SourceConfig(path=source, format="biosyn"),))
    build_store(config, folder / "kb")
    return KnowledgeBase.open(folder / "kb")


def synthetic_names(folder: Path, options: dict[str, Any]) -> Vocabulary:
    """Write synthetic names as a dictionary, and make mentions of them."""
    names = make_names(options["names"])
    source = folder / "dictionary.txt"
    with source.open("w", encoding="utf-8") as file:
        file.writelines(
            f"D{row // NAMES_PER_CONCEPT:07}||{name}\n" for row, name in enumerate(names)
        )
    return Vocabulary(source, *make_mentions(names, options["mentions"]))


def _has_ncbi(options: dict[str, Any]) -> bool:
    return (Path(options["data"]) / _NCBI).is_dir()


def _ncbi(options: dict[str, Any]) -> Vocabulary:
    """Take the dictionary and the distinct mentions of the train split."""
    folder = Path(options["data"]) / _NCBI
    gold = read_gold(f"{folder / 'concept_files.tar.gz'}::processed_train", "biosyn")
    mentions = list(dict.fromkeys(query.mention for query in gold.queries))
    return Vocabulary(folder / "train_dictionary.txt.gz", mentions, [])
