"""The ranker: exact where beams are enough; batches, context, shared names, a search beside it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from generative_store import Query, query_in
from tiny_models import tiny_encoder_folder
from tiny_seq2seq import tiny_seq2seq

from biograft.errors import ConfigError
from biograft.linking import (
    Context,
    FusedSearch,
    GenerativeConfig,
    LexicalIndex,
    Linker,
    Mixing,
    NameFinder,
    NamesConfig,
    NameTrie,
    Seq2SeqLinker,
    empty_pool,
    needs_search,
)
from biograft.linking.generative import make_input
from biograft.models import BeamConfig, NewDecoder, Seq2SeqModel
from biograft.text import clean_name

TEXT = "She is cold. What is the heart attack of ovarian cancer?"
MENTIONS = [
    ("cold", Context(TEXT, 7, 11)),
    ("what is the heart attack", Context(TEXT, 13, 37)),  # holds 'is'
    ("is", Context(TEXT, 4, 6)),
    ("x", Context()),
]
TEXTS, CONTEXTS = [text for text, _ in MENTIONS], [context for _, context in MENTIONS]


@pytest.fixture
def ranker_of(named, seq2seq):
    def make(mixing=None, names=NamesConfig(), **config):  # noqa: B008 - frozen
        chosen = GenerativeConfig(names=names, **config)
        return Seq2SeqLinker(named, seq2seq, NameTrie.build(named, seq2seq, names), chosen, mixing)

    return make


@torch.no_grad()
def exact_scores(seq2seq, names, question):
    """Score every sequence of the trie by one pass of the model each, without any cache."""
    scores = {}
    source = torch.tensor(seq2seq.source_tokens([question.source]))
    prompt = seq2seq.tokens([question.prompt])[0]
    for sequence in range(names.trie.n_sequences):
        row = int(names.rows_of(sequence)[0])
        text = clean_name(names.kb.name(row).text, lower=names.config.lower)
        tokens = [*seq2seq.tokens([text])[0], seq2seq.end]
        given = torch.tensor([[seq2seq.start, *prompt, *tokens[:-1]]])
        logits = seq2seq.model(input_ids=source, decoder_input_ids=given).logits[0].double()
        own = logits.log_softmax(-1)[len(prompt) :]
        scores[sequence] = float(own[torch.arange(len(tokens)), tokens].mean())
    return scores


@pytest.mark.parametrize("prompt", ["mention", "none", "left"])
def test_with_as_many_beams_as_names_the_ranking_is_that_of_exhaustive_scores(
    ranker_of, seq2seq, prompt
):
    n = ranker_of().names.trie.n_sequences
    ranker = ranker_of(beam=BeamConfig(beams=n), prompt=prompt, batch=2)
    found = ranker.generate(TEXTS, CONTEXTS)
    for line, mention in enumerate(MENTIONS):
        exact = exact_scores(seq2seq, ranker.names, make_input(*mention, ranker.config))
        order = sorted(exact, key=lambda sequence: -exact[sequence])
        gap = np.diff([exact[s] for s in order])
        assert gap.max() < -1e-6, "two names score alike; draw another model"
        assert found.sequences[line].tolist() == order
        assert found.scores[line] == pytest.approx([exact[s] for s in order], abs=1e-4)
    candidates = ranker.rank_candidates(TEXTS, empty_pool(len(TEXTS)), CONTEXTS)
    for line, own in enumerate(candidates):
        assert len(own) == len(_concepts_by_name(ranker, found.sequences[line]))
        assert [c.score for c in own] == sorted((c.score for c in own), reverse=True)
        assert {round(c.score, 5) for c in own} == {
            round(float(s), 5) for s in np.exp(found.scores[line])
        }


def _concepts_by_name(ranker, sequences):
    concepts = ranker.kb.table("names").column("concept").to_numpy()
    return [(s, c) for s in sequences for c in {int(concepts[r]) for r in ranker.names.rows_of(s)}]


def test_context_and_company_change_nothing_of_what_others_get(ranker_of):
    ranker = ranker_of(batch=3)
    together = ranker.generate(TEXTS, CONTEXTS)
    for line in range(len(TEXTS)):
        alone = ranker.generate(TEXTS[line : line + 1], CONTEXTS[line : line + 1])
        assert alone.sequences[0].tolist() == together.sequences[line].tolist()
        assert alone.scores[0] == pytest.approx(together.scores[line], abs=1e-4)
    assert not np.allclose(
        ranker.generate(["cold"]).scores, ranker.generate(["cold"], CONTEXTS[:1]).scores
    )
    assert len(ranker.generate([]).sequences) == 0
    assert ranker.rank_candidates([], empty_pool(0), []) == []


def test_a_candidate_says_what_it_is(named, ranker_of):
    ranker = ranker_of(beam=BeamConfig(beams=100))
    (own,) = ranker.rank_candidates(["cold"], empty_pool(1), [])
    shared = [c for c in own if clean_name(c.name) == "mi"]
    # one name, two concepts: alike in score and rank, the lower row first
    assert [c.concept for c in shared] == ["D4", "D8"]
    assert shared[0].score == shared[1].score
    assert shared[0].evidence == shared[1].evidence
    assert own[0].evidence[0].rank == 1
    assert {len(c.evidence) for c in own} == {1}
    assert own[0].evidence[0].generator == "generative"
    assert own[0].evidence[0].score == own[0].score
    assert all(0 < c.score < 1 and c.probability is None for c in own)
    assert own[0].concept_name == named[own[0].concept].name
    # two names of one concept that are written alike are one
    assert sum(clean_name(c.name) == "breast cancer" for c in own) == 1


def test_fewer_beams_give_fewer_names(ranker_of):
    (own,) = ranker_of(beam=BeamConfig(beams=3)).rank_candidates(["cold"], empty_pool(1), [])
    assert {c.evidence[0].rank for c in own} == {1, 2, 3}


def test_prompts_too_long_for_the_model_are_cut_from_the_left(ranker_of):
    long = " ".join(["very"] * 80) + " cold"
    found = ranker_of().generate([long])
    assert (found.sequences >= 0).all()
    assert np.isfinite(found.scores).all()


def test_a_linker_needs_no_search(named, ranker_of):
    ranker = ranker_of()
    assert isinstance(ranker, NameFinder)
    assert not needs_search(ranker)
    linker = Linker(named, None, ranker=ranker)
    assert linker.search is None
    assert linker.score_source == "generative"
    (mention,) = linker("Had a heart attack.").mentions
    assert (mention.start, mention.end) == (6, 18)
    assert len({c.concept for c in mention.candidates}) == len(mention.candidates)
    queries = [query_in(TEXT, "cold", "D6"), Query(("cold", "is"))]
    ranked = linker.rank(queries, 5)
    assert [len(parts) for parts in ranked] == [1, 2]
    assert all(len(names) == 5 for parts in ranked for names in parts)


def test_names_of_some_languages_only(named, ranker_of):
    ranker = ranker_of(beam=BeamConfig(beams=100)).in_languages(("zh",))
    (own,) = ranker.rank_candidates(["cold"], empty_pool(1), [])
    assert sorted(c.name for c in own) == ["2型糖尿病", "二甲双胍"]


@pytest.mark.parametrize("selection", [{"types": ("finding",)}, {"sources": ("kb.jsonl",)}])
def test_names_of_some_kinds_score_what_they_score_among_all(ranker_of, selection):
    whole = ranker_of(beam=BeamConfig(beams=100))
    names = whole.names.restricted(**selection)
    some = Seq2SeqLinker(whole.kb, whole.seq2seq, names, whole.config, whole.mixing)
    (every,) = whole.rank_candidates(["cold"], empty_pool(1), [])
    (own,) = some.rank_candidates(["cold"], empty_pool(1), [])
    kept = {int(row) for row in some.names.rows}
    expected = [c for c in every if _row_of(whole.kb, c) in kept]
    assert [(c.concept, c.name) for c in own] == [(c.concept, c.name) for c in expected]
    assert [c.score for c in own] == pytest.approx([c.score for c in expected], abs=1e-5)


def test_each_mention_may_have_its_own_list_of_names(ranker_of):
    ranker = ranker_of(beam=BeamConfig(beams=100), batch=3)
    every = ranker.generate(TEXTS, CONTEXTS)
    lists = [[0, 3, 5], [], list(range(ranker.kb.n_names)), [7, -1, 7]]
    found = ranker.generate(TEXTS, CONTEXTS, lists)
    for line, own in enumerate(lists):
        kept = {int(ranker.names.numbers[row]) for row in own if row >= 0}
        pairs = zip(every.sequences[line].tolist(), every.scores[line].tolist(), strict=True)
        expected = [(s, score) for s, score in pairs if s in kept]
        n = len(expected)
        assert found.sequences[line, :n].tolist() == [s for s, _ in expected]
        assert found.scores[line, :n] == pytest.approx([x for _, x in expected], abs=1e-4)
        assert (found.sequences[line, n:] == -1).all()
    assert (ranker.generate(["x", "y"], (), [[], []]).sequences == -1).all()


# ---- beside a search


@pytest.fixture
def search(named):
    return FusedSearch([LexicalIndex.build(named)])


def by_name(candidates):
    return {(c.concept, c.name): c.score for c in candidates}


def test_scores_of_both_are_mixed(ranker_of, search):
    alone = ranker_of(beam=BeamConfig(beams=4))
    pool = search.collect(TEXTS, 6)
    generated = [by_name(own) for own in alone.rank_candidates(TEXTS, pool, CONTEXTS)]
    mixed = ranker_of(Mixing(0.3), beam=BeamConfig(beams=4))
    assert needs_search(mixed)
    assert mixed.name == "generative*0.3"
    fused = search.fuse(pool)
    for line, own in enumerate(mixed.rank_candidates(TEXTS, pool, CONTEXTS)):
        score_of = dict(zip(pool.rows[line].tolist(), fused[line], strict=True))
        for candidate in own:
            row = _row_of(alone.kb, candidate)
            expected = 0.3 * generated[line].get((candidate.concept, candidate.name), 0.0)
            expected += 0.7 * max(float(score_of.get(row, 0.0)), 0.0)
            assert candidate.score == pytest.approx(expected, abs=1e-5)
        found = {row for row in score_of if row >= 0}
        assert {_row_of(alone.kb, c) for c in own} >= found
        assert set(generated[line]) <= set(by_name(own))


def _row_of(kb, candidate):
    concepts = kb.table("names").column("concept").to_pylist()
    (row,) = [
        row
        for row, concept in enumerate(concepts)
        if kb.id_at(concept) == candidate.concept and kb.name(row).text == candidate.name
    ]
    return row


def test_a_weight_of_zero_is_the_search(ranker_of, search, named):
    ranker = ranker_of(Mixing(0.0))
    texts = ["breast cancer", "heart attak"]
    ranked = Linker(named, search, ranker=ranker).rank([Query((text,)) for text in texts], 5)
    plain = Linker(named, search).rank([Query((text,)) for text in texts], 5)
    for own, expected in zip(ranked, plain, strict=True):
        good = [c for c in expected[0] if c.score > 0.1]
        assert [(c.concept, c.name) for c in own[0]][: len(good)] == [
            (c.concept, c.name) for c in good
        ]


def test_with_a_search_and_a_weight_of_one_only_what_was_generated_counts(ranker_of, search):
    ranker, texts = ranker_of(beam=BeamConfig(beams=100)), ["heart attack"]
    alone = ranker.rank_candidates(texts, empty_pool(1), [])
    beside = ranker.rank_candidates(texts, search.collect(texts, 2), [])
    for own, other in zip(alone[0], beside[0], strict=True):
        assert by_name([own]) == by_name([other])
    assert any(e.generator == "lexical" for c in beside[0] for e in c.evidence)


def test_names_that_the_search_found_first_can_be_scored_exactly(ranker_of, search, seq2seq):
    pool = search.collect(TEXTS, 6)
    ranker = ranker_of(Mixing(0.5, rescore=3), beam=BeamConfig(beams=1))
    scored = ranker.score(TEXTS, pool, CONTEXTS)
    fused = search.fuse(pool)
    for line, mention in enumerate(MENTIONS):
        exact = exact_scores(seq2seq, ranker.names, make_input(*mention, ranker.config))
        order = np.lexsort((pool.rows[line], -fused[line]))[:3]
        first = {int(pool.rows[line, position]) for position in order} - {-1}
        own = dict(zip(scored.rows[line].tolist(), scored.scores[-1, line].tolist(), strict=True))
        for row in first:
            expected = np.exp(exact[int(ranker.names.numbers[row])])
            assert own[row] == pytest.approx(expected, abs=1e-4)
        others = [score for row, score in own.items() if row not in first and row >= 0]
        assert sum(np.isfinite(others)) <= 3  # what the one beam wrote, in all its rows


@pytest.fixture
def on_encoder(named, tmp_path):
    """A linker with a decoder on an encoder, which ranks the first five names of a search."""
    texts = [*named.table("names").column("text").to_pylist(), TEXT, "start end is"]
    folder = tiny_encoder_folder(tmp_path / "encoder", texts)
    seq2seq = Seq2SeqModel.from_pretrained(folder, decoder=NewDecoder(max_length=48))
    with torch.no_grad():
        for weight in seq2seq.model.parameters():
            if weight.ndim == 2:
                weight.mul_(4)
    seq2seq.model.eval()
    config = GenerativeConfig(generate=False, rescore=5, batch=2)
    return Seq2SeqLinker(named, seq2seq, NameTrie.build(named, seq2seq), config)


def test_names_within_a_search_are_ranked_by_their_teacher_forced_scores(on_encoder, search, named):
    pool = search.collect(TEXTS, 8)
    fused = search.fuse(pool)
    assert needs_search(on_encoder)
    assert on_encoder.name == "generative@5"
    ranked = on_encoder.rank_candidates(TEXTS, pool, CONTEXTS)
    for line, (mention, own) in enumerate(zip(MENTIONS, ranked, strict=True)):
        exact = exact_scores(
            on_encoder.seq2seq, on_encoder.names, make_input(*mention, on_encoder.config)
        )
        order = np.lexsort((pool.rows[line], -fused[line]))[:5]
        first = {int(pool.rows[line, position]) for position in order} - {-1}
        sequences = {int(on_encoder.names.numbers[row]) for row in first}
        # a name that the search found under two concepts may be written alike and counts for both
        found = {_row_of(named, c) for c in own}
        assert found >= first
        assert {int(on_encoder.names.numbers[row]) for row in found} == sequences
        for candidate in own:
            score = exact[int(on_encoder.names.numbers[_row_of(named, candidate)])]
            assert candidate.score == pytest.approx(np.exp(score), rel=1e-4)
        assert [c.score for c in own] == sorted((c.score for c in own), reverse=True)
        evidence = [e for c in own for e in c.evidence if e.generator == "generative"]
        assert {e.rank for e in evidence} == set(range(1, len(sequences) + 1))


def test_a_linker_ranks_within_the_search_and_mixes_it_in(on_encoder, search, named):
    linker = Linker(named, search, ranker=on_encoder)
    (candidates,) = linker.link_mentions(["heart attak"])
    assert candidates[0].evidence
    with pytest.raises(ConfigError, match="search: none given"):
        Linker(named, None, ranker=on_encoder)
    on_encoder.mixing = Mixing(0.0, 5)
    (candidates,) = linker.link_mentions(["breast cancr"])
    assert candidates[0].concept == "D2"


def test_another_seed_is_another_model(named, seq2seq):
    texts = named.table("names").column("text").to_pylist()
    config = GenerativeConfig()
    found = [
        Seq2SeqLinker(named, n, NameTrie.build(named, n), config).generate(TEXTS).scores
        for n in (seq2seq, tiny_seq2seq(texts), tiny_seq2seq(texts, seed=1))
    ]
    assert np.allclose(found[0], found[1])
    assert not np.allclose(found[0], found[2])


def test_the_model_is_left_as_it_was(ranker_of, seq2seq):
    ranker = ranker_of()
    seq2seq.model.train()
    try:
        ranker.generate(["cold"])
        assert seq2seq.model.training
    finally:
        seq2seq.model.eval()
