import json
import shutil

import numpy as np
import pyarrow as pa
import pytest
import torch
from array_damage import DAMAGES, damage as damage_array, put
from manifests import reseal
from one_writer import held_elsewhere

from biograft.errors import ConfigError, OutputError, StoreError
from biograft.linking import STORAGES, DenseConfig, DenseIndex
from biograft.linking.dense import index as building
from biograft.models import TextEncoder

QUERIES = ["heart attack", "FLU", "cold of the airways", "", "  ", "unheard of", "flu"]


@pytest.fixture
def index(make_kb, encoder, tmp_path):
    return DenseIndex.build(make_kb(), encoder, tmp_path / "index")


def plain_search(kb, encoder, texts, k, languages=()):
    """Score every name with every text, one by one, in 64 bits."""
    rows = [row for row in range(kb.n_names) if not languages or kb.name(row).language in languages]
    vectors = {row: encoder.encode([kb.name(row).text])[0].astype(float) for row in rows}
    found = []
    for text in texts:
        query = encoder.encode([text])[0].astype(float)
        scores = {row: np.float32(query @ vectors[row]).item() for row in rows}
        best = sorted(rows, key=lambda row: (-round(scores[row], 5), row))[:k]
        found.append([(row, scores[row]) for row in best] if text.strip() else [])
    return found


def pairs(hits):
    return [
        [(row, score) for row, score in zip(*query, strict=True) if row >= 0]
        for query in zip(hits.rows.tolist(), hits.scores.tolist(), strict=True)
    ]


def agree(hits, expected):
    found = pairs(hits)
    assert [[row for row, _ in one] for one in found] == [[row for row, _ in e] for e in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose([s for _, s in one], [s for _, s in other], atol=1e-5)


def same_answers(one, other, k=4):
    a, b = one.search(QUERIES, k), other.search(QUERIES, k)
    np.testing.assert_array_equal(a.rows, b.rows)
    np.testing.assert_allclose(a.scores, b.scores, atol=1e-5)


def stretch(encoder):
    """Scale the vectors of an encoder by their last number, so that their norms differ."""
    pool = encoder._pool
    encoder._pool = lambda states, mask: pool(states, mask) * (2 + pool(states, mask)[:, -1:])


class TestSearch:
    @pytest.mark.parametrize("k", [1, 3, 40])
    def test_equals_comparing_with_every_name(self, index, encoder, k):
        agree(index.search(QUERIES, k), plain_search(index.kb, encoder, QUERIES, k))

    def test_names_of_equal_text_are_tied_and_in_the_order_of_rows(self, index):
        hits = index.search(["flu", "Heart attack"], 3)
        names = [[index.kb.name(row).text for row in rows] for rows in hits.rows]
        assert (names[0][:2], names[1][:2]) == (["flu", "FLU"], ["heart attack", "Heart Attack"])
        assert (hits.scores[:, 0] == hits.scores[:, 1]).all()
        assert (hits.rows[:, 0] < hits.rows[:, 1]).all()
        np.testing.assert_array_equal(index.search(["flu"], 1).rows, hits.rows[:1, :1])

    def test_an_empty_text_finds_nothing(self, index):
        hits = index.search(["", " \t", "flu"], 2)
        assert hits.rows[:2].tolist() == [[-1, -1]] * 2
        assert np.isneginf(hits.scores[:2]).all()
        assert (hits.rows[2] >= 0).all()
        assert (hits.rows.dtype, hits.scores.dtype) == (np.int64, np.float32)

    def test_no_texts(self, index):
        assert index.search([], 5).rows.shape == (0, 5)
        assert index.search(["", ""], 5).rows.tolist() == [[-1] * 5] * 2

    @pytest.mark.parametrize("storage", list(STORAGES))
    def test_smaller_storage_is_near(self, index, encoder, tmp_path, storage):
        config = DenseConfig(storage=storage)
        small = DenseIndex.build(index.kb, encoder, tmp_path / storage, config)
        found, exact = small.search(QUERIES, 13), index.search(QUERIES, 13)
        for row in (0, 1, 2, 5):
            a = dict(zip(found.rows[row].tolist(), found.scores[row].tolist(), strict=True))
            b = dict(zip(exact.rows[row].tolist(), exact.scores[row].tolist(), strict=True))
            assert a.keys() == b.keys()
            assert all(abs(a[name] - b[name]) < 0.02 for name in a)

    def test_only_some_languages(self, make_kb, encoder, tmp_path):
        config = DenseConfig(languages=("zh", "fr"))
        index = DenseIndex.build(make_kb(), encoder, tmp_path / "index", config)
        assert (len(index), index.n_names) == (2, 2)
        agree(index.search(QUERIES, 5), plain_search(index.kb, encoder, QUERIES, 5, ("zh", "fr")))

    def test_dot_keeps_the_length_of_vectors(self, make_kb, encoder, tmp_path):
        config = DenseConfig(similarity="dot")
        index = DenseIndex.build(make_kb(), encoder, tmp_path / "index", config)
        stretch(encoder)
        index = DenseIndex.build(index.kb, encoder, tmp_path / "stretched", config)
        vectors = encoder.encode(["flu", "common cold"], normalize=False)
        hits = index.search_vectors(vectors[:1], index.n_names)
        scores = {index.kb.name(r).text: s for r, s in pairs(hits)[0]}
        assert scores["flu"] == pytest.approx(vectors[0] @ vectors[0], rel=1e-5)
        assert scores["common cold"] == pytest.approx(vectors[1] @ vectors[0], rel=1e-5)
        by_text = index.search(["flu"], index.n_names)
        np.testing.assert_array_equal(by_text.rows, hits.rows)
        names = index.kb.table("names")["text"].to_pylist()
        largest = np.linalg.norm(encoder.encode(names, normalize=False), axis=1).max()
        scale = largest * np.linalg.norm(vectors[0])
        np.testing.assert_allclose(by_text.scores, hits.scores / scale, rtol=1e-5)
        assert np.abs(index.search(QUERIES, 5).scores[2]).max() <= 1

    def test_an_index_of_inner_products_also_searches_by_cosine(self, make_kb, encoder, tmp_path):
        stretch(encoder)
        kb = make_kb()
        cosine = DenseIndex.build(kb, encoder, tmp_path / "cosine")
        dot = DenseIndex.build(kb, encoder, tmp_path / "dot", DenseConfig(similarity="dot"))
        assert (dot.search(QUERIES, 9).rows != cosine.search(QUERIES, 9).rows).any()
        by_cosine = DenseIndex.open(dot.folder, kb, similarity="cosine")
        same_answers(by_cosine, cosine, 9)
        assert (cosine.name, dot.name, by_cosine.name) == ("dense", "dense-dot", "dense")
        with pytest.raises(ConfigError, match=r"holds vectors of length 1, so it has no search by"):
            DenseIndex.open(cosine.folder, kb, similarity="dot")
        with pytest.raises(ConfigError, match="similarity: expected one of cosine, dot"):
            DenseIndex.open(cosine.folder, kb, similarity="l2")

    def test_approximate(self, index, encoder, tmp_path):
        pytest.importorskip("faiss")
        config = DenseConfig(approximate=True)
        graph = DenseIndex.build(index.kb, encoder, tmp_path / "graph", config)
        same_answers(graph, index)
        same_answers(DenseIndex.open(tmp_path / "graph", index.kb), index)

    def test_one_concept_of_one_name(self, make_kb, encoder, tmp_path):
        index = DenseIndex.build(make_kb([["flu"]]), encoder, tmp_path / "index")
        assert index.search(["cold"], 3).rows.tolist() == [[0, -1, -1]]

    @pytest.mark.parametrize(
        ("vectors", "message"),
        [
            (np.full((2, 32), np.nan), "query vectors: row 0 holds NaN or infinity"),
            (np.full((2, 32), np.inf), "query vectors: row 0 holds NaN or infinity"),
            (np.zeros((2, 31)), r"query vectors: expected \(queries, 32\), found \(2, 31\)"),
            (np.zeros(32), r"query vectors: expected \(queries, 32\), found \(32,\)"),
        ],
    )
    def test_nonsense_vectors_are_refused(self, index, vectors, message):
        with pytest.raises(ConfigError, match=message):
            index.search_vectors(vectors, 2)

    def test_k_is_checked(self, index):
        with pytest.raises(ConfigError, match="k: expected at least 1, found 0"):
            index.search(["flu"], 0)


def test_vectors_of_names(index, encoder):
    rows = np.array([3, 0, 5, 3])
    expected = encoder.encode([index.kb.name(row).text for row in rows])
    np.testing.assert_allclose(index.vectors_of(rows), expected, atol=1e-5)
    assert index.vectors_of([]).shape == (0, 32)


def test_names_left_out_have_zero_vectors(make_kb, encoder, tmp_path):
    config = DenseConfig(languages=("zh",))
    index = DenseIndex.build(make_kb(), encoder, tmp_path / "index", config)
    norms = np.linalg.norm(index.vectors_of(np.arange(index.kb.n_names)), axis=1)
    languages = [index.kb.name(row).language for row in range(index.kb.n_names)]
    assert [norm > 0.5 for norm in norms] == [language == "zh" for language in languages]


class TestBuild:
    def test_equal_texts_are_encoded_once(self, make_kb, encoder, tmp_path, monkeypatch):
        seen = watch(monkeypatch)
        index = DenseIndex.build(make_kb(), encoder, tmp_path / "index")
        assert len(seen) == len(set(seen)) == len(index) == 11
        assert index.n_names == index.kb.n_names == 13

    def test_manifest_says_where_it_came_from(self, index, encoder):
        manifest = json.loads((index.folder / "manifest.json").read_text())
        assert (manifest["format"], manifest["version"]) == ("biograft-dense-index", 1)
        assert manifest["encoder"]["fingerprint"] == encoder.fingerprint()
        assert (manifest["n_texts"], manifest["n_names"]) == (11, 13)
        files = {p.relative_to(index.folder).as_posix() for p in index.folder.rglob("*.*")}
        assert {"encoder/model.safetensors", "vectors.npy"} < set(manifest["files"]) < files

    def test_an_index_moves_with_its_encoder(self, index, encoder, tmp_path):
        shutil.move(index.folder, tmp_path / "moved")
        shutil.rmtree(tmp_path / "tiny")
        same_answers(DenseIndex.open(tmp_path / "moved", index.kb), index)

    def test_nothing_else_is_left_behind(self, index, tmp_path):
        assert not [p for p in tmp_path.iterdir() if "index" in p.name and p != index.folder]

    def test_nothing_is_replaced_unasked(self, index, encoder, monkeypatch):
        seen = watch(monkeypatch)
        with pytest.raises(OutputError, match="exists already"):
            DenseIndex.build(index.kb, encoder, index.folder)
        assert seen == []
        DenseIndex.build(index.kb, encoder, index.folder, overwrite=True)
        with pytest.raises(OutputError, match="not a dense index, so it is not replaced"):
            DenseIndex.build(index.kb, encoder, index.kb.folder, overwrite=True)


def watch(monkeypatch, *, fail_after=None):
    """Note the texts that are encoded; after so many shards, be interrupted."""
    seen, plain, calls = [], TextEncoder.encode, 0

    def encode(self, texts, **options):
        nonlocal calls
        calls += 1
        if fail_after is not None and calls > fail_after:
            raise KeyboardInterrupt
        seen.extend(texts)
        return plain(self, texts, **options)

    monkeypatch.setattr(TextEncoder, "encode", encode)
    return seen


class TestResume:
    @pytest.fixture
    def interrupted(self, make_kb, encoder, tmp_path, monkeypatch):
        """Stop a build after two shards of three texts."""
        kb = make_kb()
        monkeypatch.setattr(building, "SHARD", 3)
        with monkeypatch.context() as patch:
            seen = watch(patch, fail_after=2)
            with pytest.raises(KeyboardInterrupt):
                DenseIndex.build(kb, encoder, tmp_path / "index")
        assert len(seen) == 6
        assert not (tmp_path / "index").exists()
        return kb

    def test_goes_on_where_it_stopped(self, interrupted, encoder, tmp_path, monkeypatch):
        seen = watch(monkeypatch)
        index = DenseIndex.build(interrupted, encoder, tmp_path / "index")
        assert len(seen) == 5
        assert not (tmp_path / "index.partial").exists()
        same_answers(index, DenseIndex.build(interrupted, encoder, tmp_path / "whole"))

    @pytest.mark.parametrize("change", ["store", "encoder", "config", "files"])
    def test_starts_afresh_where_something_has_changed(
        self, interrupted, make_kb, encoder, tmp_path, monkeypatch, change
    ):
        kb, config = interrupted, DenseConfig()
        if change == "store":
            kb = make_kb([["flu"], ["cold"], ["heart attack"], ["airways"]])
        elif change == "encoder":
            with torch.no_grad():
                encoder.model.embeddings.LayerNorm.bias += 0.1
        elif change == "config":
            config = DenseConfig(storage="int8")
        else:
            (tmp_path / "index.partial" / "index" / "vectors.npy").write_bytes(b"")
        seen = watch(monkeypatch)
        index = DenseIndex.build(kb, encoder, tmp_path / "index", config)
        assert len(seen) == len(index)

    def test_a_build_that_could_not_be_put_in_place_is_not_lost(
        self, make_kb, encoder, tmp_path, monkeypatch
    ):
        kb = make_kb()

        def refuse(*_, **__):
            raise OutputError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(building, "new_folder", refuse)
            with pytest.raises(OutputError):
                DenseIndex.build(kb, encoder, tmp_path / "index")
        seen = watch(monkeypatch)
        DenseIndex.build(kb, encoder, tmp_path / "index").verify()
        assert seen == []


NOW = [["heart attack", "HEART ATTACK"], ["influenza", "new flu"], ["cold"], ["airways"]]


class TestUpdate:
    @pytest.mark.parametrize("storage", list(STORAGES))
    def test_equals_a_fresh_build(self, make_kb, encoder, tmp_path, monkeypatch, storage):
        config = DenseConfig(storage=storage)
        DenseIndex.build(make_kb(), encoder, tmp_path / "index", config)
        kb = make_kb(NOW)
        with monkeypatch.context() as patch:
            seen = watch(patch)
            index = DenseIndex.update(tmp_path / "index", kb)
        assert sorted(seen) == ["airways", "new flu"]
        fresh = DenseIndex.build(kb, encoder, tmp_path / "fresh", config)
        assert (len(index), index.n_names) == (len(fresh), fresh.n_names) == (5, 6)
        rows = np.arange(5)
        step = 1 / 127 if storage == "int8" else 1e-2 if storage == "bfloat16" else 1e-3
        np.testing.assert_allclose(index.vectors.take(rows), fresh.vectors.take(rows), atol=step)
        np.testing.assert_array_equal(index.search(QUERIES, 6).rows, fresh.search(QUERIES, 6).rows)
        DenseIndex.open(tmp_path / "index", kb, encoder).verify()

    def test_nothing_new_encodes_nothing(self, index, monkeypatch):
        before = index.search(QUERIES, 4)
        seen = watch(monkeypatch)
        again = DenseIndex.update(index.folder, index.kb)
        assert seen == []
        np.testing.assert_array_equal(again.search(QUERIES, 4).rows, before.rows)

    def test_another_encoder_is_refused(self, index, encoder):
        with torch.no_grad():
            encoder.model.embeddings.LayerNorm.bias += 0.1
        with pytest.raises(StoreError, match="was built with another encoder"):
            DenseIndex.update(index.folder, index.kb, encoder)


class TestOpen:
    def test_another_store_is_refused(self, index, make_kb):
        with pytest.raises(StoreError, match=r"another state of the knowledge base .* or update"):
            DenseIndex.open(index.folder, make_kb([["flu"]]))

    def test_an_equal_store_is_fine(self, index, make_kb):
        same_answers(DenseIndex.open(index.folder, make_kb()), index)

    def test_another_encoder_is_refused(self, index, encoder):
        with torch.no_grad():
            encoder.model.embeddings.LayerNorm.bias += 0.1
        with pytest.raises(StoreError, match=r"was built with another encoder .* again"):
            DenseIndex.open(index.folder, index.kb, encoder)

    def test_what_is_no_index_is_refused(self, index, tmp_path):
        with pytest.raises(StoreError, match="no such dense index; make one with `biograft index`"):
            DenseIndex.open(tmp_path / "nothing", index.kb)
        with pytest.raises(StoreError, match=r"holds no manifest.json, so it is no dense index"):
            DenseIndex.open(tmp_path, index.kb)
        with pytest.raises(StoreError, match="no dense index but 'biograft-kb'; make one"):
            DenseIndex.open(index.kb.folder, index.kb)

    @pytest.mark.parametrize(
        "name",
        [
            "vectors.npy",
            "name_rows.npy",
            "name_starts.npy",
            "texts.arrow",
            "encoder/model.safetensors",
        ],
    )
    @pytest.mark.parametrize("damage", ["cut", "gone"])
    def test_missing_and_cut_off_files_are_named(self, index, name, damage):
        path = index.folder / name
        content = path.read_bytes()
        path.unlink()
        if damage == "cut":
            path.write_bytes(content[:-4])
        with pytest.raises(
            StoreError, match=rf"{name}: damaged \(expected .* run `biograft index`"
        ):
            DenseIndex.open(index.folder, index.kb)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"version": 9}, "dense index of version 9, this biograft reads version 1"),
            ({"n_texts": 10}, "damaged: its files do not belong together"),
            ({"dim": 31}, "damaged: its files do not belong together"),
        ],
    )
    def test_a_manifest_of_other_content(self, index, changes, message):
        path = index.folder / "manifest.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
        reseal(path)
        with pytest.raises(StoreError, match=message):
            DenseIndex.open(index.folder, index.kb)

    @pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "biograft-dense-index"}'])
    def test_a_damaged_manifest(self, index, content):
        (index.folder / "manifest.json").write_text(content)
        with pytest.raises(StoreError, match=r"manifest.json|dense index of version None"):
            DenseIndex.open(index.folder, index.kb)

    @pytest.mark.parametrize("how", DAMAGES)
    @pytest.mark.parametrize("name", ["name_starts", "name_rows", "vectors"])
    def test_arrays_out_of_order(self, index, name, how):
        """Guards: rows that the store does not have were a traceback when they were found."""
        if name == "vectors" and how in ("beyond", "below"):
            pytest.skip("a vector may hold any number")
        damage_array(index.folder, name, how)
        with pytest.raises(StoreError, match="damaged"):
            DenseIndex.open(index.folder, index.kb)

    def test_names_that_go_back_and_forth(self, index):
        """Guards: only the last place was looked at."""
        starts = np.load(index.folder / "name_starts.npy")
        starts[1] = starts[-1] + 1
        put(index.folder, "name_starts", starts)
        with pytest.raises(StoreError, match="damaged"):
            DenseIndex.open(index.folder, index.kb)

    def test_texts_that_begin_elsewhere(self, index, encoder):
        """Guards: pyarrow trusts where a text begins, and reads memory that is not the file's."""
        path = index.folder / "texts.arrow"
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all().combine_chunks()
            offsets = np.frombuffer(table["text"].chunk(0).buffers()[1], np.int64)
            content, known = path.read_bytes(), offsets.tobytes()
        place = content.index(known)
        wrong = np.full_like(offsets, 1 << 40).tobytes()
        path.write_bytes(content[:place] + wrong + content[place + len(known) :])
        with pytest.raises(StoreError, match=r"texts\.arrow: damaged"):
            DenseIndex.update(index.folder, index.kb, encoder)

    def test_a_manifest_without_a_part(self, index):
        path = index.folder / "manifest.json"
        content = json.loads(path.read_text())
        del content["largest_norm"]
        path.write_text(json.dumps(content))
        with pytest.raises(StoreError, match=r"damaged \(largest_norm is missing\)"):
            DenseIndex.open(index.folder, index.kb)

    def test_changed_bytes_are_found_on_request(self, index):
        path = index.folder / "vectors.npy"
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        with pytest.raises(StoreError, match=r"vectors.npy: damaged"):
            DenseIndex.open(index.folder, index.kb).verify()


class TestScore:
    @pytest.mark.parametrize("similarity", ["cosine", "dot"])
    def test_chosen_names_score_as_in_a_search(self, make_kb, encoder, tmp_path, similarity):
        kb = make_kb()
        index = DenseIndex.build(kb, encoder, tmp_path / "S", DenseConfig(similarity=similarity))
        hits = index.search(QUERIES, kb.n_names)
        index.search(["something else"], 1)
        np.testing.assert_array_equal(index.score(QUERIES, hits.rows), hits.scores)

    def test_names_that_the_index_does_not_hold_score_nothing(self, make_kb, encoder, tmp_path):
        kb = make_kb()
        index = DenseIndex.build(kb, encoder, tmp_path / "S", DenseConfig(languages=("fr",)))
        rows = np.array([[*range(kb.n_names), -1]])
        scores = index.score(["heart"], rows)
        held = [kb.name(row).language == "fr" for row in range(kb.n_names)]
        assert np.isfinite(scores[0]).tolist() == [*held, False]


def test_another_build_of_the_same_folder_is_refused(make_kb, encoder, tmp_path):
    """What the one had encoded was the other's to remove and to write into."""
    kb = make_kb()
    with held_elsewhere(tmp_path / "I"), pytest.raises(OutputError):
        DenseIndex.build(kb, encoder, tmp_path / "I")
    assert not (tmp_path / "I.partial").exists()
    DenseIndex.build(kb, encoder, tmp_path / "I").verify()
