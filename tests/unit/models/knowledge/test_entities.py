"""The entities of a table on disk, and where its vectors come from."""

import numpy as np
import pytest

from biograft.errors import ConfigError, FormatError, StoreError
from biograft.graph import Embeddings, GraphRecipe, embed_graph
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.models import TableEntity, entity_table, read_entities, write_entities


def test_a_file_of_another_table_is_refused(tmp_path):
    write_entities(tmp_path, [TableEntity("C1")])
    with pytest.raises(StoreError, match=r"names 1 entities, and the table .* has 2 rows"):
        read_entities(tmp_path, 2)


@pytest.mark.parametrize("line", ["C1", "[1]", '{"name": "a"}', '{"id": 3}'])
def test_a_damaged_line_is_named(tmp_path, line):
    (tmp_path / "entities.jsonl").write_text('{"id": "C1"}\n' + line + "\n")
    with pytest.raises(FormatError, match=r"entities.jsonl:2: expected an object with id"):
        read_entities(tmp_path, 2)


def test_sampled_vectors_have_about_unit_length_and_are_reproducible():
    table = entity_table([f"C{n}" for n in range(500)], dim=100, seed=3)
    assert table.n_random == 500
    assert np.linalg.norm(table.vectors, axis=1).mean() == pytest.approx(1, abs=0.05)
    assert np.array_equal(table.vectors, entity_table(["x"] * 500, dim=100, seed=3).vectors)
    assert not np.array_equal(table.vectors, entity_table(["x"] * 500, dim=100, seed=4).vectors)


@pytest.fixture
def embedded(tmp_path, write):
    """A small store, its graph embedded."""
    path = write("a.tsv", "head\trelation\ttail\na\tr\tb\nb\tr\tc\nc\tr\td\n")
    build_store(BuildConfig(sources=(SourceConfig(path=path),)), tmp_path / "kb")
    recipe = GraphRecipe.load("transe", ["model.dim=8", "training.epochs=2"])
    return embed_graph(KnowledgeBase.open(tmp_path / "kb"), recipe, tmp_path / "vectors").folder


def test_vectors_are_taken_by_id_and_missing_ones_are_sampled(embedded):
    embeddings = Embeddings.open(embedded)
    ids = embeddings.entity_ids
    table = entity_table([ids[3], "unknown", ids[0]], embedded, seed=1)
    assert table.n_random == 1
    np.testing.assert_array_equal(table.vectors[[0, 2]], embeddings.tables.entity[[3, 0]])
    assert 0.1 < np.linalg.norm(table.vectors[1]) < 10


def test_vectors_of_another_store_are_refused(embedded):
    with pytest.raises(ConfigError, match="has vectors of none of the 2 entities"):
        entity_table(["X:1", "X:2"], embedded)
