from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from manifests import reseal

from biograft.errors import ConfigError, StoreError
from biograft.linking import (
    Candidate,
    Context,
    ContextReranker,
    Linker,
    MentionCandidates,
    SearchRanker,
    load_context_reranker,
)
from biograft.linking.rerank import Mix
from biograft.text.documents import Document, Mention


@pytest.fixture(scope="module")
def reranker(bench, trained):
    return load_context_reranker(trained / "model", bench.kb)


@pytest.fixture
def linker(bench, reranker):
    return Linker(bench.kb, bench.linker.search, ranker=reranker)


def candidates_of(text, candidates):
    start = text.index("cold")
    return MentionCandidates("cold", Context(text, start, start + 4), candidates)


CANDIDATES = [
    Candidate("TEMP", "Cold Temperature", "cold", 1.0),
    Candidate("ILL", "Cold", "Cold", 1.0),
    Candidate("HEAT", "Heat", "Heat", 0.2),
]


@pytest.mark.parametrize(
    ("text", "concept"),
    [("fever and cold with chills", "ILL"), ("wind and cold with snow", "TEMP")],
)
def test_the_linker_answers_by_context(linker, text, concept):
    start = text.index("cold")
    assert linker.score_source == "lexical*1 search+context"
    document = Document("", text, (Mention(start, start + 4, "cold"),))
    (mention,) = linker(document).mentions
    first = mention.candidates[0]
    assert mention.concept == first.concept == concept
    evidence = {each.generator: each for each in first.evidence}
    assert {"lexical", "context"} == set(evidence)
    assert evidence["context"].rank == 1
    assert first.probability > 0.5


def test_nil_is_likely_where_no_concept_fits(reranker):
    texts = ("war and cold with spies", "fever and cold with cough")
    found = reranker.rerank([candidates_of(text, CANDIDATES) for text in texts])
    assert found[0].nil > 0.5 > found[1].nil
    assert found[0].candidates[0].score < reranker.nil_below < found[1].candidates[0].score
    for each in found:
        total = sum(c.probability for c in each.candidates) + each.nil
        assert total == pytest.approx(1)


def test_scores_are_those_of_the_mix_and_fall(reranker, bench):
    text = "ice and cold with frost"
    (found,) = reranker.rerank([candidates_of(text, CANDIDATES)])
    scores = [candidate.score for candidate in found.candidates]
    assert scores == sorted(scores, reverse=True)
    (raw,) = reranker._reader.score([candidates_of(text, CANDIDATES)])
    mix = reranker.mix
    for candidate, x in zip(CANDIDATES, raw[:-1], strict=True):
        z = mix.ranker * (candidate.score - mix.mean) / mix.deviation + mix.context * x
        nil = mix.context * raw[-1] + mix.nil
        (same,) = [c for c in found.candidates if c.concept == candidate.concept]
        assert same.score == pytest.approx(z - nil)
        assert same.evidence[-1].score == pytest.approx(x - raw[-1])


def test_a_batch_gives_what_each_mention_gives_alone(reranker):
    texts = ("war and cold with spies", "fever and cold with cough", "cold", "a cold " * 30)
    mentions = [candidates_of(text, CANDIDATES[: k + 1]) for k, text in enumerate(texts[:3])]
    mentions += [candidates_of(texts[3], []), MentionCandidates("cold", Context(), CANDIDATES)]
    together = reranker.rerank(mentions)
    for mention, found in zip(mentions, together, strict=True):
        (alone,) = reranker.rerank([mention])
        assert [c.concept for c in alone.candidates] == [c.concept for c in found.candidates]
        assert [c.score for c in alone.candidates] == pytest.approx(
            [c.score for c in found.candidates], abs=1e-4
        )
    assert together[3] == ([], 1.0)
    assert reranker.rerank([]) == []


def test_candidates_behind_those_that_are_read_keep_their_order(reranker, bench, trained):
    reranker = ContextReranker(
        bench.kb,
        reranker.model,
        bench.config(n_candidates=1),
        mix=Mix(ranker=1.0),
        inner=reranker.inner,
    )
    again = Candidate("TEMP", "Cold Temperature", "Cold Temperature", 0.1)
    (found,) = reranker.rerank([candidates_of("wind and cold with snow", [*CANDIDATES, again])])
    order = [(c.concept, c.name) for c in found.candidates]
    assert order == [
        *(("TEMP", "cold"), ("TEMP", "Cold Temperature"), ("ILL", "Cold"), ("HEAT", "Heat"))
    ]
    scores = [candidate.score for candidate in found.candidates]
    assert scores == sorted(scores, reverse=True)
    assert [c.probability for c in found.candidates[2:]] == [0.0, 0.0]
    assert [bool(c.evidence) for c in found.candidates] == [True, True, False, False]
    assert found.candidates[0].probability == found.candidates[1].probability


def test_names_for_an_evaluation_and_concepts_for_a_text_agree(linker, bench):
    whole = linker.with_settings(k=20)
    for query in bench.queries[::7]:
        ((names,),) = linker.rank([query], 20)
        mention = Mention(query.start, query.end, query.parts[0])
        (linked,) = whole(Document("", query.context, (mention,))).mentions
        distinct = list(dict.fromkeys(candidate.concept for candidate in names))
        assert distinct == [candidate.concept for candidate in linked.candidates]


def test_the_first_ranking_is_that_of_the_search(bench):
    texts = ["cold", "heat", "coryza rhinitis"]
    pool = bench.linker.search.collect(texts, 64)
    ranked = SearchRanker(bench.kb, {"lexical": 1.0}).rank_candidates(texts, pool, [])
    queries = [type(bench.queries[0])("", frozenset(), parts=(text,)) for text in texts]
    assert ranked == [names for (names,) in bench.linker.rank(queries, 64)]


def test_a_search_of_another_kind_is_refused(bench):
    pool = bench.linker.search.collect(["cold"], 4)
    ranker = SearchRanker(bench.kb, {"dense": 1.0, "lexical": 1.0})
    with pytest.raises(StoreError, match="of dense and lexical, the index has lexical"):
        ranker.rank_candidates(["cold"], pool, [])


def test_an_inner_ranker_of_ones_own_ranks_first(bench, trained, reranker):
    class Turned(SearchRanker):
        def rank_candidates(self, texts, pool, contexts):
            return [each[::-1] for each in super().rank_candidates(texts, pool, contexts)]

    inner = Turned(bench.kb, {"lexical": 1.0})
    opened = ContextReranker.load(trained / "model", bench.kb, inner)
    assert opened.inner is inner
    pool = bench.linker.search.collect(["cold"], 64)
    assert opened.rank_candidates(["cold"], pool, [Context()])[0]


@pytest.fixture
def copy(trained, tmp_path):
    shutil.copytree(trained / "model", tmp_path / "copy")
    return tmp_path / "copy"


def test_a_folder_opened_again_answers_the_same(reranker, copy, bench):
    mentions = [candidates_of("fever and cold with cough", CANDIDATES)]
    assert ContextReranker.load(copy, bench.kb).rerank(mentions) == reranker.rerank(mentions)


def damage(folder, change):
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    reseal(folder / "manifest.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(format="biograft-ranker"), "no re-ranker but 'biograft-ranker'"),
        (lambda m: m.update(version=9), "re-ranker of version 9, this biograft reads version 1"),
        (lambda m: m.pop("mix"), r"manifest.json: damaged \(KeyError\('mix'\)"),
        (lambda m: m["mix"].update(ranker=-1), "manifest.json: damaged"),
        (lambda m: m["config"].update(max_length="x"), "max_length: expected int, found 'x'"),
    ],
)
def test_a_damaged_or_foreign_manifest_is_refused(copy, bench, change, message):
    damage(copy, change)
    with pytest.raises(StoreError, match=message):
        ContextReranker.load(copy, bench.kb)


def test_other_damage_is_refused(copy, bench, tmp_path):
    with pytest.raises(StoreError, match="no such re-ranker"):
        ContextReranker.load(tmp_path / "nothing", bench.kb)
    head = copy / "head.safetensors"
    head.write_bytes(head.read_bytes()[:-1])
    with pytest.raises(StoreError, match=r"head.safetensors: damaged \(expected"):
        ContextReranker.load(copy, bench.kb)
    head.unlink()
    with pytest.raises(StoreError, match=r"head.safetensors: damaged \(expected .* found no file"):
        ContextReranker.load(copy, bench.kb)
    (copy / "manifest.json").write_text("{")
    with pytest.raises(StoreError, match=r"manifest.json: damaged"):
        ContextReranker.load(copy, bench.kb)


def test_an_unknown_first_ranking_needs_a_ranker(copy, bench):
    damage(copy, lambda manifest: manifest.update(weights={}))
    with pytest.raises(ConfigError, match=r"give one \(inner\)"):
        ContextReranker.load(copy, bench.kb)
    assert ContextReranker.load(copy, bench.kb, SearchRanker(bench.kb, {"lexical": 1.0}))


def test_a_score_that_is_no_number_is_refused(copy, bench, reranker):
    nan = [Candidate("ILL", "Cold", "Cold", float("nan"))]
    with pytest.raises(StoreError, match="scores are not finite"):
        reranker.rerank([candidates_of("a cold", nan)])
    assert np.isfinite(reranker.rerank([candidates_of("a cold", CANDIDATES)])[0].nil)
