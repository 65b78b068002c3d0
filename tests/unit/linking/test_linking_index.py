"""The folder of an index: whole or not at all, updated, refused when it is another's."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from one_writer import elsewhere, held_elsewhere

from biograft.errors import ConfigError, OutputError, StoreError
from biograft.linking import (
    INDEX,
    WEIGHTS,
    DenseConfig,
    IndexConfig,
    LexicalConfig,
    LexicalIndex,
    Linker,
    LinkerConfig,
    build_index,
    fit_calibration,
    open_index,
    read_weights,
    update_index,
    write_weights,
)
from biograft.linking.dense.config import DENSE_INDEX
from biograft.linking.index import are_weights
from biograft.models import TextEncoder
from biograft.text import NAMES_INDEX, NamesIndex
from biograft.text.documents import Document, Mention

pytest.importorskip("torch")


@pytest.fixture
def encoder(kb, tiny_encoder):
    from biograft.models import TextEncoder

    return TextEncoder.from_pretrained(tiny_encoder(kb.table("names").column("text").to_pylist()))


def test_a_lexical_index(kb, tmp_path):
    manifest = build_index(kb, tmp_path / "I")
    assert manifest["parts"] == ["lexical"]
    assert {path.name for path in (tmp_path / "I").iterdir()} == {
        "manifest.json",
        "lexical",
        "names",
    }
    assert [g.name for g in open_index(kb, tmp_path / "I").search.generators] == ["lexical"]


def test_an_index_finds_names_in_text_without_building_anything(kb, tmp_path, monkeypatch):
    """The automaton of names was built anew in every process."""
    built = NamesIndex.from_store(kb)
    build_index(kb, tmp_path / "I")
    linker = Linker.open(kb, tmp_path / "I", stop_words=("Heart Attack",))
    monkeypatch.setattr(NamesIndex, "from_store", None)
    text = "Breast cancers and a heart attack; 二甲双胍."
    assert linker.names.find(text) == built.find(text) != []
    assert all(isinstance(array.base, np.memmap) for array in linker.names.arrays)
    found = {mention.text for mention in linker(text).mentions}
    assert found == {match.text for match in built.find(text)} - {"heart attack"}


def test_a_names_index_of_other_languages_finds_only_those(kb, tmp_path):
    config = IndexConfig(lexical=LexicalConfig(languages=("zh",)))
    build_index(kb, tmp_path / "I", config=config)
    names = open_index(kb, tmp_path / "I").names
    assert [match.text for match in names.find("heart attack 二甲双胍")] == ["二甲双胍"]


@pytest.mark.parametrize("update", [False, True])
def test_the_names_of_another_store_are_refused(kb, tmp_path, update):
    folder = tmp_path / "I"
    build_index(kb, folder)
    manifest = NAMES_INDEX.read(folder / "names")
    manifest["made_from"] = "another"
    (folder / "names" / "manifest.json").write_text(json.dumps(manifest))
    if update:
        update_index(kb, folder)
        assert open_index(kb, folder).names.n_names > 0
    else:
        with pytest.raises(StoreError, match="built from other names"):
            open_index(kb, folder)


def test_a_lexical_and_dense_index(kb, encoder, tmp_path):
    config = IndexConfig(lexical=LexicalConfig(languages=("en",), steps="case"))
    build_index(kb, tmp_path / "I", encoder, config)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("I")) == ["I"]
    opened = open_index(kb, tmp_path / "I", LinkerConfig(lexical_weight=0.25))
    assert str(opened.search) == "dense*0.75+lexical*0.25"
    assert opened.languages == ("en",)
    linker = Linker(kb, opened.search)
    ((first, *_),) = linker.link_mentions(["heart attack"])
    assert [(e.generator, e.rank) for e in first.evidence] == [("lexical", 1), ("dense", 1)]
    assert first.evidence[1].score == pytest.approx(1, abs=1e-5)


def write_learned(encoder, weight):
    write_weights(encoder.folder, weight, {})


def search_of(kb, folder, **settings):
    return str(open_index(kb, folder, LinkerConfig(**settings)).search)


def test_the_weights_of_the_encoder_are_those_of_the_index(kb, encoder, tmp_path):
    assert build_index(kb, tmp_path / "alike", encoder)["weights"] is None
    assert search_of(kb, tmp_path / "alike") == "dense*0.5+lexical*0.5"
    write_learned(encoder, 0.25)
    manifest = build_index(kb, tmp_path / "I", encoder)
    assert manifest["weights"] == {"dense": 1.0, "lexical": 0.25}
    assert search_of(kb, tmp_path / "I") == "dense*0.8+lexical*0.2"
    assert Linker.open(kb, tmp_path / "I").score_source == "dense*0.8+lexical*0.2"
    assert search_of(kb, tmp_path / "I", lexical_weight=0.5) == "dense*0.5+lexical*0.5"
    assert build_index(kb, tmp_path / "letters")["weights"] is None


def test_an_update_keeps_the_weights_or_takes_those_of_the_encoder(kb, encoder, tmp_path):
    write_learned(encoder, 1 / 3)
    build_index(kb, tmp_path / "I", encoder)
    (encoder.folder / WEIGHTS.file).unlink()
    for given in (None, encoder):
        update_index(kb, tmp_path / "I", given)
        assert search_of(kb, tmp_path / "I") == "dense*0.75+lexical*0.25"
    write_learned(encoder, 1.0)
    update_index(kb, tmp_path / "I", encoder)
    assert search_of(kb, tmp_path / "I") == "dense*0.5+lexical*0.5"


def test_a_calibration_belongs_to_the_weights(kb, encoder, tmp_path):
    write_learned(encoder, 0.25)
    build_index(kb, tmp_path / "I", encoder)
    calibration = fit_calibration([0.1, 0.9], [0, 1], search="dense*0.5+lexical*0.5")
    calibration.save(tmp_path / "I" / "calibration.json")
    with pytest.raises(StoreError, match=r"this linker's are those of dense\*0.8\+lexical\*0.2"):
        Linker.open(kb, tmp_path / "I")


def test_names_found_in_text_are_searched_lexically_by_default(kb, encoder, tmp_path):
    """They were searched by vectors, too, for 3.7 times the processor time and no better score."""
    build_index(kb, tmp_path / "I", encoder)
    text, lexical, both = "Breast cancers were found.", {"lexical"}, {"lexical", "dense"}
    given = Document("", text, (Mention(0, 14, text[:14]),))

    def searched(candidates):
        return {each.generator for candidate in candidates for each in candidate.evidence}

    def searched_for(linker, document):
        return searched(linker(document).mentions[0].candidates)

    linker = Linker.open(kb, tmp_path / "I")
    assert searched_for(linker, text) == lexical
    assert searched_for(linker, given) == both
    assert searched(linker.link_mentions(["breast canzer"])[0]) == both
    finding = linker.with_settings(mentions="find")
    assert searched_for(finding, given) == lexical
    together = list(linker.pipe([text, given, text]))
    assert together == [*linker.pipe([text]), *linker.pipe([given]), *linker.pipe([text])]
    explained = linker.with_settings(explain=True)(text).mentions[0].explanation
    assert [each.generator for each in explained.scores] == ["lexical"]
    for settings in (
        {"search": "lexical+dense"},
        {"lexical_weight": 0.4},
        {"similarity": "cosine"},
    ):
        named = Linker.open(kb, tmp_path / "I", **settings)
        assert searched_for(named, text) == both
    fit_calibration([0.2, 0.9], [0, 1], search=linker.score_source).save(
        tmp_path / "I/calibration.json"
    )
    calibrated = Linker.open(kb, tmp_path / "I")
    assert searched_for(calibrated, text) == both
    assert calibrated(text).mentions[0].candidates[0].probability is not None


@pytest.mark.parametrize("search", ["lexical", "dense"])
def test_one_kind_of_search_alone(kb, encoder, tmp_path, search):
    """Guards: an index with vectors always fused both, whatever the protocol asked for."""
    write_learned(encoder, 0.25)
    build_index(kb, tmp_path / "I", encoder)
    opened = open_index(kb, tmp_path / "I", LinkerConfig(search=search))
    assert str(opened.search) == f"{search}*1"
    texts = ["heart atack", "метформин"]
    (generator,) = [g for g in open_index(kb, tmp_path / "I").search.generators if g.name == search]
    expected, hits = generator.search(texts, 5), opened.search.search(texts, 5)
    assert hits.rows.tolist() == expected.rows.tolist()
    assert hits.scores.tolist() == expected.scores.tolist()
    assert search_of(kb, tmp_path / "I", search="lexical+dense") == "dense*0.8+lexical*0.2"


def test_weights_and_kinds_hold_for_inner_products(kb, encoder, tmp_path):
    build_index(kb, tmp_path / "I", encoder, IndexConfig(dense=DenseConfig(similarity="dot")))
    assert search_of(kb, tmp_path / "I", search="dense") == "dense-dot*1"
    assert search_of(kb, tmp_path / "I", lexical_weight=0.2) == "dense-dot*0.8+lexical*0.2"
    cosine = {"similarity": "cosine", "lexical_weight": 0.2}
    assert search_of(kb, tmp_path / "I", **cosine) == "dense*0.8+lexical*0.2"


def test_a_chosen_search_has_the_calibration_of_its_scores_or_none(kb, encoder, tmp_path):
    build_index(kb, tmp_path / "I", encoder)
    calibration = fit_calibration([0.1, 0.9], [0, 1], search="dense*0.5+lexical*0.5")
    calibration.save(tmp_path / "I" / "calibration.json")
    for settings in ({}, {"search": "lexical+dense"}, {"lexical_weight": 0.5}):
        assert Linker.open(kb, tmp_path / "I", **settings).calibration == calibration
    for settings in ({"search": "dense"}, {"search": "lexical"}, {"lexical_weight": 0.4}):
        assert Linker.open(kb, tmp_path / "I", **settings).calibration is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"search": "dense"}, "search: .* has no vectors to search"),
        ({"search": "lexical+dense"}, "search: .* has no vectors to search"),
        ({"search": "fuzzy"}, "search: expected one of lexical, dense, lexical\\+dense"),
        ({"lexical_weight": 0.5}, "lexical_weight: .* found lexical search alone"),
        ({"lexical_weight": 1.5}, "lexical_weight: expected .* found 1.5"),
        ({"similarity": "dot"}, "similarity: applies to dense search"),
    ],
)
def test_choices_that_an_index_does_not_have_are_refused(kb, tmp_path, settings, message):
    build_index(kb, tmp_path / "I")
    for index in (tmp_path / "I", None):
        with pytest.raises(ConfigError, match=message) as refused:
            Linker.open(kb, index, **settings)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("settings", [{"similarity": "dot"}, {"lexical_weight": 0.5}])
def test_choices_of_dense_search_are_refused_beside_lexical_alone(kb, encoder, tmp_path, settings):
    build_index(kb, tmp_path / "I", encoder)
    with pytest.raises(ConfigError, match="found lexical search alone"):
        open_index(kb, tmp_path / "I", LinkerConfig(search="lexical", **settings))


@pytest.mark.parametrize(
    "weights", [3, [], {}, {"dense": 1}, {"dense": 1, "lexical": -1}, {"dense": 0, "lexical": 0}]
)
def test_damaged_weights_are_refused(kb, encoder, tmp_path, weights):
    WEIGHTS.write(encoder.folder, {"weights": weights, "similarity": "cosine"})
    with pytest.raises(StoreError, match=r"biograft_lexical_weight\.json: damaged \(weights are"):
        build_index(kb, tmp_path / "I", encoder)
    assert not (tmp_path / "I").exists()
    (encoder.folder / WEIGHTS.file).unlink()
    manifest = build_index(kb, tmp_path / "I", encoder)
    INDEX.write(tmp_path / "I", manifest | {"weights": weights}, overwrite=True)
    with pytest.raises(StoreError, match=r"manifest\.json: damaged \(weights are"):
        open_index(kb, tmp_path / "I")


def test_another_script_is_for_the_vectors(kb, encoder, tmp_path):
    build_index(kb, tmp_path / "I", encoder)
    linker = Linker.open(kb, tmp_path / "I", k=3)
    ((*found,),) = linker.link_mentions(["метформин"])
    assert {e.generator for candidate in found for e in candidate.evidence} == {"dense"}


def test_a_mention_longer_than_the_encoder_reads(kb, encoder, tmp_path):
    build_index(kb, tmp_path / "I", encoder)
    linker = Linker.open(kb, tmp_path / "I")
    ((first, *_),) = linker.link_mentions(["heart attack " * 3000])
    assert first.concept == "D4"


def test_an_update_leaves_an_index_alone_whose_store_has_not_changed(kb, tmp_path):
    build_index(kb, tmp_path / "I")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "I").rglob("*")}
    assert update_index(kb, tmp_path / "I")["n_names"] == kb.n_names
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "I").rglob("*")} == before
    (tmp_path / "I" / "names" / "manifest.json").unlink()
    update_index(kb, tmp_path / "I")
    assert open_index(kb, tmp_path / "I").names.n_names > 0


def test_an_update_encodes_only_what_is_new(kb, encoder, store_of, tmp_path):
    build_index(kb, tmp_path / "I", encoder, IndexConfig(lexical=LexicalConfig(steps="case")))
    (tmp_path / "I" / "calibration.json").write_text("{}")
    changed = store_of([{"id": "D4", "name": "heart attack"}, {"id": "N", "name": "new"}], "new")
    with pytest.raises(StoreError, match="--update"):
        open_index(changed, tmp_path / "I")
    encoded = []
    original = encoder.encode
    encoder.encode = lambda texts, **options: encoded.extend(texts) or original(texts, **options)
    update_index(changed, tmp_path / "I", encoder)
    assert encoded == ["new"]
    assert not (tmp_path / "I" / "calibration.json").exists()
    linker = Linker.open(changed, tmp_path / "I")
    assert [c[0].concept for c in linker.link_mentions(["new", "heart attack"])] == ["N", "D4"]
    assert LexicalIndex.config_of(tmp_path / "I" / "lexical").steps == "case"
    assert not (tmp_path / "I.dense").exists()


def test_a_failed_build_leaves_the_old_index_and_is_taken_up_again(kb, encoder, tmp_path):
    build_index(kb, tmp_path / "I")
    before = (tmp_path / "I" / "manifest.json").read_text()
    original = encoder.encode

    def interrupted(texts, **options):
        raise KeyboardInterrupt

    encoder.encode = interrupted
    with pytest.raises(KeyboardInterrupt):
        build_index(kb, tmp_path / "I", encoder, overwrite=True)
    assert (tmp_path / "I" / "manifest.json").read_text() == before
    encoder.encode = original
    build_index(kb, tmp_path / "I", encoder, overwrite=True)
    assert INDEX.read(tmp_path / "I")["parts"] == ["lexical", "dense"]
    assert sorted(path.name for path in tmp_path.glob("I*")) == ["I"]


def test_what_is_there_is_kept(kb, tmp_path):
    build_index(kb, tmp_path / "I")
    with pytest.raises(OutputError, match="exists already"):
        build_index(kb, tmp_path / "I")
    build_index(kb, tmp_path / "I", overwrite=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(OutputError, match="not an index, so it is not replaced"):
        build_index(kb, tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine" / "letter.txt").exists()


def test_vectors_of_another_encoder_or_damaged(kb, encoder, tiny_encoder, tmp_path):
    from biograft.models import TextEncoder

    build_index(kb, tmp_path / "I", encoder)
    shutil.rmtree(tmp_path / "tiny")
    other = TextEncoder.from_pretrained(tiny_encoder(["heart"], seed=7))
    with pytest.raises(StoreError, match="another encoder"):
        update_index(kb, tmp_path / "I", other)
    assert not list(tmp_path.glob(".I.*"))
    open_index(kb, tmp_path / "I")
    (tmp_path / "I" / "dense" / "vectors.npy").write_bytes(b"cut")
    with pytest.raises(StoreError, match=r"vectors\.npy: damaged"):
        open_index(kb, tmp_path / "I")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "damaged"),
        ("[]", "states no format, so it is no index"),
        (json.dumps({"format": "biograft-dense-index"}), "no index but 'biograft-dense-index'"),
        (
            json.dumps({"format": "biograft-index", "version": 9}),
            "index of version 9, this biograft reads version 2; update biograft",
        ),
        (json.dumps({"format": "biograft-index", "version": 2}), "damaged"),
    ],
)
def test_manifests_that_are_none(kb, tmp_path, content, message):
    build_index(kb, tmp_path / "I")
    (tmp_path / "I" / "manifest.json").write_text(content)
    with pytest.raises(StoreError, match=message):
        open_index(kb, tmp_path / "I")
    build_index(kb, tmp_path / "I", overwrite=True)


DOT = IndexConfig(dense=DenseConfig(similarity="dot"))


def test_inner_products_are_fused_in_range_and_under_their_own_name(kb, encoder, tmp_path):
    build_index(kb, tmp_path / "I", encoder, DOT)
    linker = Linker.open(kb, tmp_path / "I")
    assert linker.score_source == "dense-dot*0.5+lexical*0.5"
    found = linker.link_mentions(["hart attack", "heart attack", "метформин"])
    scores = [e.score for answers in found for c in answers for e in c.evidence]
    assert scores
    assert max(map(abs, scores)) <= 1
    assert found[1][0].score == 1
    assert Linker.open(kb, tmp_path / "I", similarity="cosine").score_source == (
        "dense*0.5+lexical*0.5"
    )


def test_what_is_fitted_to_cosines_is_refused_for_inner_products(kb, encoder, tmp_path):
    build_index(kb, tmp_path / "I", encoder, DOT)
    fit_calibration([0.1, 0.9], [0, 1], search="dense*0.5+lexical*0.5").save(tmp_path / "C")
    with pytest.raises(StoreError, match=r"this linker's are those of dense-dot\*0.5"):
        Linker.open(kb, tmp_path / "I", calibration=tmp_path / "C")
    write_learned(encoder, 0.25)
    with pytest.raises(ConfigError, match="brings a lexical weight learned with cosine, found dot"):
        build_index(kb, tmp_path / "J", encoder, DOT)


def test_an_update_drops_a_calibration_of_inner_products_with_another_norm(kb, encoder, tmp_path):
    build_index(kb, tmp_path / "I", encoder, DOT)
    source = Linker.open(kb, tmp_path / "I").score_source
    fit_calibration([0.1, 0.9], [0, 1], search=source).save(tmp_path / "I" / "calibration.json")
    update_index(kb, tmp_path / "I")
    assert (tmp_path / "I" / "calibration.json").exists()
    manifest = DENSE_INDEX.read(tmp_path / "I" / "dense")
    changed = manifest | {"largest_norm": 2 * manifest["largest_norm"]}
    DENSE_INDEX.write(tmp_path / "I" / "dense", changed, overwrite=True)
    update_index(kb, tmp_path / "I", encoder)
    assert not (tmp_path / "I" / "calibration.json").exists()


def test_a_similarity_needs_vectors(kb, tmp_path):
    build_index(kb, tmp_path / "I")
    for index in (None, tmp_path / "I"):
        with pytest.raises(ConfigError, match="similarity: applies to dense search"):
            Linker.open(kb, index, similarity="dot")


def test_what_cannot_be_updated(kb, encoder, tmp_path):
    build_index(kb, tmp_path / "I")
    with pytest.raises(ConfigError, match="has no vectors to update"):
        update_index(kb, tmp_path / "I", encoder)


def test_two_encoders_do_not_meet_in_one_index(kb, tiny_encoder, encoder, tmp_path):
    """Both wrote vectors to one place: the index had those of one, and the encoder of the other."""
    other = TextEncoder.from_pretrained(tiny_encoder(["flu"], hidden=32))
    encode, ended = encoder.encode, []

    def meanwhile(texts, **options):
        ended.append(elsewhere(lambda: build_index(kb, tmp_path / "I", other)))
        return encode(texts, **options)

    encoder.encode = meanwhile
    build_index(kb, tmp_path / "I", encoder)
    encoder.encode = encode
    assert ended
    assert all(isinstance(error, OutputError) for error in ended)
    dense = open_index(kb, tmp_path / "I").search.generators[1]
    dense.verify()
    assert dense.encoder.fingerprint() == encoder.fingerprint()
    assert sorted(path.name for path in tmp_path.glob("*I*")) == ["I"]
    for name in ("I", "being built"):
        with held_elsewhere(tmp_path / name), pytest.raises(OutputError):
            update_index(kb, tmp_path / name)


@pytest.mark.parametrize(("learned", "weight"), [(0.4, 0.4), (-0.2, 0.0)])
def test_weights_round_trip(tmp_path, learned, weight):
    assert read_weights(tmp_path) is None
    write_weights(tmp_path, learned, {"provenance": {"kb": "x"}})
    assert read_weights(tmp_path) == {"dense": 1.0, "lexical": weight}
    content = WEIGHTS.read(tmp_path)
    assert (content["format"], content["learned"]) == (
        "biograft-lexical-weight",
        {"lexical": learned},
    )
    assert content["provenance"] == {"kb": "x"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"biograft_lexical_weight\.json: damaged"),
        ("{}", "states no format"),
        ('{"format": "biograft-lexical-weight", "version": 2}', r"damaged \(weights is missing\)"),
        (
            '{"format": "biograft-lexical-weight", "version": 2, '
            '"weights": {"dense": NaN, "lexical": 1}, "similarity": "cosine"}',
            r"damaged \(weights are {'dense': nan",
        ),
    ],
)
def test_a_damaged_file_is_reported_in_one_line(tmp_path, text, message):
    (tmp_path / WEIGHTS.file).write_text(text)
    with pytest.raises(StoreError, match=message) as caught:
        read_weights(tmp_path)
    assert str(caught.value).endswith("or remove the file: both searches weigh the same then")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [1, 1],
        {"a": 1},
        {"a": 1, "b": 1, "c": 1},
        {"a": True, "b": 1},
        {"a": "1", "b": 1},
        {"a": float("inf"), "b": 1},
        {"a": -1, "b": 2},
        {"a": 0, "b": 0.0},
    ],
)
def test_invalid_weights(value):
    assert not are_weights(value, ["a", "b"])
    assert are_weights({"a": 0, "b": 0.5}, ["a", "b"])
