"""The linker: forms, offsets, candidates with evidence, NIL, batches, the seam for rankers."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from biograft.errors import ConfigError, StoreError
from biograft.linking import (
    Calibration,
    CandidateBuilder,
    Linker,
    LinkerConfig,
    build_index,
    candidate_search,
    fit_calibration,
)
from biograft.text.documents import Document, Mention


@pytest.fixture
def linker(kb):
    return Linker.open(kb)


def answers(linked):
    text = linked.document.text
    for mention in linked.mentions:
        assert text[mention.start : mention.end] == mention.text
    return [(m.text, m.form, m.concept) for m in linked.mentions]


def test_names_are_found_and_linked(linker):
    linked = linker("After a heart attack: metformin for TYPE-2 diabetes. 患者有2型糖尿病。")
    assert answers(linked) == [
        ("heart attack", "heart attack", "D4"),
        ("metformin", "metformin", "D5"),
        ("TYPE-2 diabetes", "TYPE-2 diabetes", "D1"),
        ("2型糖尿病", "2型糖尿病", "D1"),
    ]


@pytest.mark.parametrize("text", ["", " ", "\n", "nothing of interest", "😀", "\x00", "\ud83d"])
def test_a_text_without_names_has_no_mention(linker, text):
    assert linker(text).mentions == ()


def test_abbreviations_stand_for_their_long_forms_in_their_own_document_only(kb, linker):
    first, second = linker.pipe(["breast cancer (BC). Two BCs; ABC.", "BC"])
    assert answers(first) == [
        ("breast cancer", "breast cancer", "D2"),
        ("BC", "breast cancer", "D2"),
        ("BCs", "breast cancer", "D2"),
    ]
    assert answers(second) == []
    plain = Linker.open(kb, abbreviations=False)
    assert answers(plain("breast cancer (BC). BC")) == [("breast cancer", "breast cancer", "D2")]


def given(text, *mentions):
    return Document(
        "1", text, tuple(Mention(text.index(m), text.index(m) + len(m), m) for m in mentions)
    )


def test_a_mention_is_the_long_form_of_its_abbreviation_elsewhere_in_the_document(kb, linker):
    document = given("HA and old heart attack, then heart attack", "HA", "heart attack")
    assert answers(linker(document))[0] == ("HA", "heart attack", "D4")
    # the letters of no other mention; a name of the store; not asked for
    assert answers(linker(given("HB, heart attack", "HB", "heart attack")))[0][1] == "HB"
    named = given("cold: cardiac old disorder", "cold", "cardiac old disorder")
    assert answers(linker(named))[0][1] == "cold"
    plain = Linker.open(kb, abbreviations=False)
    assert answers(plain(document))[0][1] == "HA"


def test_an_evaluation_uses_abbreviations_of_other_queries_of_the_document(kb):
    queries = [
        Query(("ha",), document="1"),
        Query(("heart attack",), document="1"),
        Query(("ha",), document="2"),
    ]
    first, _, other = Linker.open(kb).rank(queries, 1)
    assert first[0][0].concept == "D4"
    assert first[0][0].score == 1
    assert not other[0] or other[0][0].score < 1


def test_a_composite_mention_is_taken_apart_with_the_same_offsets(kb, linker):
    text = "In breast and ovarian cancer"
    document = Document("1", text, (Mention(3, len(text), text[3:]),))
    linked = linker(document)
    assert [(m.start, m.end, m.form, m.concept) for m in linked.mentions] == [
        (3, 28, "breast cancer", "D2"),
        (3, 28, "ovarian cancer", "D3"),
    ]
    (whole,) = Linker.open(kb, composites=False)(document).mentions
    assert whole.form == "breast and ovarian cancer"


def test_parts_need_not_be_names_if_the_search_finds_them_better(kb, linker):
    """Only mentions with a part that is a name were split."""
    assert linker.split(["breast cancers and ovarian cancers", "cold"]) == [
        ("breast cancers", "ovarian cancers"),
        ("cold",),
    ]
    whole = Linker.open(kb, composites=False).split(["breast cancers and ovarian cancers"])
    assert whole == [("breast cancers and ovarian cancers",)]


def test_each_concept_once_by_its_best_name_with_evidence(linker):
    ((first, second, *_),) = linker.link_mentions(["cold"], k=3)
    assert [(c.concept, c.name, c.score) for c in (first, second)] == [
        ("D6", "Cold", 1.0),
        ("D7", "cold", 1.0),
    ]
    assert first.concept_name == "Cold"
    (evidence,) = first.evidence
    assert (evidence.generator, evidence.rank, evidence.score) == ("lexical", 1, 1.0)
    (found,) = linker.link_mentions(["diabetes"], k=10)
    concepts = [candidate.concept for candidate in found]
    assert len(set(concepts)) == len(concepts)


def test_what_is_remembered_does_not_change_what_is_answered(kb, linker, monkeypatch):
    texts = ["cold", "breast cancer", "heart attak"]
    fresh = linker.link_mentions(texts)
    monkeypatch.setattr(candidate_search, "_CACHE_SIZE", 1)
    assert linker.link_mentions([*texts, "diabetes"])[:3] == fresh == linker.link_mentions(texts)
    assert linker.link_mentions(texts, k=1) == [found[:1] for found in fresh]


def test_below_the_threshold_the_answer_is_nil_and_the_candidates_stay(kb):
    linker = Linker.open(kb, threshold=0.9)
    document = Document("1", "hart atack", (Mention(0, 10, "hart atack"),))
    (mention,) = linker(document).mentions
    assert mention.concept is None
    assert mention.candidates[0].concept == "D4"
    assert linker("heart attack").mentions[0].concept == "D4"


def test_a_calibration_gives_probabilities_and_may_carry_the_threshold(kb, tmp_path):
    plain = Linker.open(kb)
    line = Calibration("isotonic", ((0.0, 0.0), (1.0, 0.5)), 2, plain.score_source, threshold=0.45)
    line.save(tmp_path / "c.json")
    linker = Linker.open(kb, calibration=tmp_path / "c.json")
    ((first, *_),) = linker.link_mentions(["heart attack"])
    assert first.probability == pytest.approx(0.5)
    assert linker("heart attack").mentions[0].concept == "D4"
    document = Document("1", "hart atack", (Mention(0, 10, "hart atack"),))
    assert linker(document).mentions[0].concept is None
    assert (
        Linker.open(kb, calibration=tmp_path / "c.json", threshold=0.1)(document)
        .mentions[0]
        .concept
    )
    fit_calibration([0.1, 0.9], [0, 1], search="dense*1").save(tmp_path / "d.json")
    with pytest.raises(StoreError, match=r"fitted to the scores of dense\*1"):
        Linker.open(kb, calibration=tmp_path / "d.json")


def test_the_calibration_in_the_index_is_used(kb, tmp_path):
    build_index(kb, tmp_path / "I")
    assert Linker.open(kb, tmp_path / "I").calibration is None
    fit_calibration([0.1, 0.9], [0, 1], search="lexical*1").save(tmp_path / "I/calibration.json")
    ((first, *_),) = Linker.open(kb, tmp_path / "I").link_mentions(["cold"])
    assert first.probability == 1.0


def test_batches_and_generators_of_documents(linker):
    texts = (f"{n} cold" for n in range(7))
    linked = linker.pipe(texts, batch_size=3)
    assert [document.document.text for document in linked] == [f"{n} cold" for n in range(7)]
    with pytest.raises(ConfigError, match="batch_size"):
        next(linker.pipe(["a"], batch_size=0))


def test_documents_come_as_they_are_ready(linker):
    def texts():
        yield from ["cold"] * 2
        raise RuntimeError("more was read than was needed")

    assert answers(next(linker.pipe(texts(), batch_size=2))) == [("cold", "cold", "D6")]


@dataclass(frozen=True)
class Query:
    parts: tuple[str, ...]
    document: str = ""
    context: str = ""
    start: int | None = None
    end: int | None = None


def test_an_evaluation_gets_names_as_they_are_ranked(kb, linker):
    queries = [Query(("cold", "breast cancer")), Query(()), Query(("type 2 diabetes",))]
    ranked = Linker.open(kb).rank(queries, 4)
    assert [len(parts) for parts in ranked] == [2, 0, 1]
    hits = linker.search.search(["cold", "breast cancer", "type 2 diabetes"], 4)
    for line, candidates in enumerate([*ranked[0], *ranked[2]]):
        names = [kb.name(int(row)).text for row in hits.rows[line] if row >= 0]
        assert [candidate.name for candidate in candidates] == names
    assert [c.concept for c in ranked[2][0]].count("D1") > 1


class Backwards:
    """A ranker that turns the search's order round, and remembers its queries."""

    name = "backwards"

    def __init__(self, linker, *, uses_context):
        self.linker, self.uses_context, self.requests = linker, uses_context, []

    def rank_candidates(self, texts, pool, contexts):
        self.requests += list(zip(texts, contexts, strict=True))
        scores = -pool.scores[0]
        return CandidateBuilder(self.linker.kb).by_name(pool, scores, 100)


@pytest.mark.parametrize("uses_context", [True, False])
def test_a_ranker_ranks_the_candidate_pool(kb, linker, uses_context):
    ranker = Backwards(linker, uses_context=uses_context)
    backwards = Linker(kb, linker.search, ranker=ranker)
    first, second = backwards("cold, cold").mentions
    assert first.candidates[-1].concept in {"D6", "D7"}
    assert len({c.concept for c in first.candidates}) == len(first.candidates)
    assert first.candidates == second.candidates
    positions = [context[1:] for _, context in ranker.requests]
    assert positions == ([(0, 4), (6, 10)] if uses_context else [(0, 0)])
    assert backwards.score_source == "lexical*1 backwards"


def test_what_cannot_be_opened(kb, store_of, tmp_path):
    with pytest.raises(ConfigError, match="unknown key 'treshold'; did you mean 'threshold'"):
        Linker.open(kb, treshold=1)
    with pytest.raises(ConfigError, match="threshold: expected a number, found nan"):
        Linker.open(kb, threshold=float("nan"))
    for wrong in (5, -0.1):  # formerly accepted, although scores are from 0 to 1
        with pytest.raises(ConfigError, match="threshold: expected a score from 0 to 1, found"):
            Linker.open(kb, threshold=wrong)
    with pytest.raises(ConfigError, match="k: expected at least 1"):
        LinkerConfig(k=0)
    with pytest.raises(ConfigError, match="k: expected at least 1, found 0"):
        Linker.open(kb).link_mentions(["a"], k=0)
    with pytest.raises(StoreError, match="no such index"):
        Linker.open(kb, tmp_path / "none")
    with pytest.raises(StoreError, match=r"none: not a trained linker \(no manifest"):
        Linker.open(kb, model=tmp_path / "none")
    (tmp_path / "M").mkdir()
    (tmp_path / "M" / "manifest.json").write_text(json.dumps({"format": "other"}))
    with pytest.raises(StoreError, match="not a trained linker but 'other'; known"):
        Linker.open(kb, model=tmp_path / "M")
    build_index(kb, tmp_path / "I")
    other = store_of([{"id": "X", "name": "other"}], "other")
    with pytest.raises(StoreError, match="another state of the knowledge base"):
        Linker.open(other, tmp_path / "I")
    with pytest.raises(ConfigError, match="holds names in all languages"):
        Linker.open(kb, tmp_path / "I", languages=("zh",))


def test_a_linker_of_one_language(kb):
    linker = Linker.open(kb, languages=("zh",))
    assert answers(linker("cold; 二甲双胍")) == [("二甲双胍", "二甲双胍", "D5")]
    assert linker.link_mentions(["heart attack"]) == [[]]


def test_a_store_of_one_concept_and_one_without_names(store_of):
    one = Linker.open(store_of([{"id": "A", "name": "flu"}], "one"))
    assert answers(one("The flu.")) == [("flu", "flu", "A")]
    empty = Linker.open(store_of([{"id": "A"}], "empty"))
    assert empty.link_mentions(["flu", ""]) == [[], []]
    assert empty("flu").mentions == ()


@pytest.mark.parametrize(
    "written",
    ["2型糖尿病", "Ⅱ型糖尿病", "II型糖尿病", "二型糖尿病", "２型糖尿病", "2型糖 尿病"],
)
def test_chinese_is_linked_however_it_is_written(linker, written):
    """Numbers in any signs, full width, a blank too much."""
    text = f"患者有{written}"
    linked = linker(Document("1", text, (Mention(3, len(text), written),)))
    assert linked.mentions[0].candidates[0].concept == "D1"


@pytest.mark.parametrize("written", ["二甲双胍", "二甲雙胍"])
def test_traditional_chinese_is_found_and_linked(linker, written):
    assert answers(linker(f"患者服用{written}片")) == [(written, written, "D5")]


def test_latin_within_chinese_is_found(store_of):
    concept = {"id": "X1", "name": "EB病毒感染", "names": {"zh": ["EBV感染"]}, "type": "disease"}
    linker = Linker.open(store_of([concept], "mixed"))
    for written in ("EBV感染", "ＥＢＶ感染", "ebv感染", "EB病毒感染", "ＥＢ病毒感染"):
        assert answers(linker(f"考虑{written}可能")) == [(written, written, "X1")], written


@pytest.mark.parametrize("row", [None, float("nan"), 3, ["flu"]])
def test_rows_that_are_no_text_are_named(linker, row):
    """`link_mentions` failed with a traceback on None and NaN, as empty table cells are read."""
    with pytest.raises(ConfigError, match="mentions: row 1: expected a text"):
        linker.link_mentions(["cold", row])
    with pytest.raises(ConfigError, match="documents: row 1: expected a text or Document"):
        list(linker.pipe(["cold", row]))


def test_one_text_in_place_of_a_list_is_refused(linker):
    """`link_mentions("hart atack")` linked ten mentions of one character each."""
    with pytest.raises(ConfigError, match="expected a list of texts, found the text 'hart atack'"):
        linker.link_mentions("hart atack")
    with pytest.raises(ConfigError, match=r"call linker\(text\)"):
        list(linker.pipe("hart atack"))


def test_repr_shows_store_scores_and_threshold(kb):
    text = repr(Linker.open(kb, threshold=0.5))
    assert text == (
        f"Linker(kb={str(kb.folder)!r}, scores='lexical*1', calibrated=False, threshold=0.5)"
    )


def test_a_ranker_is_fitted_and_loaded_again(kb, tmp_path):
    text = "A sugar illness or a cold."
    document = Document("1", text, (Mention(2, 15, "sugar illness", ("D1",)),))
    examples = [document, ("heart atack", "D4"), ("ovary cancer", "D3"), ("breast cancers", "D2")]
    overrides = ["config.epochs=2", "config.folds=2", "config.ensemble=1"]
    linker = Linker.fit(kb, examples, tmp_path / "run", overrides=overrides, k=2)
    ((first, *_),) = linker.link_mentions(["sugar illness"])
    assert (first.concept, linker.config.k) == ("D1", 2)  # the mention is a name of the grown store
    again = Linker.from_pretrained(tmp_path / "run", k=2)
    assert again.link_mentions(["sugar illness"]) == linker.link_mentions(["sugar illness"])
    assert "ranker" in repr(again)
    with pytest.raises(ConfigError, match="has no knowledge base of its own"):
        Linker.from_pretrained(tmp_path / "run" / "model")
    of_model = Linker.from_pretrained(tmp_path / "run" / "model", tmp_path / "run" / "kb")
    assert of_model.link_mentions(["sugar illness"])[0][0].concept == "D1"


@pytest.mark.parametrize(
    ("recipe", "generator"), [("linker-encoder-biosyn", "dense-dot"), ("linker-encoder", "dense")]
)
def test_an_encoder_is_indexed_by_the_similarity_it_was_trained_for(
    kb, tiny_encoder, tmp_path, recipe, generator
):
    """Guards: an encoder trained by inner products was searched by cosines."""
    folder = tiny_encoder(kb.table("names").column("text").to_pylist())
    overrides = [f"encoder.name='{folder}'", "config.training.steps=1"]
    examples = [("sugar illness", "D1"), ("heart atack", "D4")]
    linker = Linker.fit(kb, examples, tmp_path / "run", recipe=recipe, overrides=overrides)
    assert {g.name for g in linker.search.generators} == {"lexical", generator}
