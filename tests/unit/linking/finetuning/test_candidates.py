"""Candidates against their definition, mention by mention."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from biograft.linking.queries import LabelledMention
from biograft.text import normalise


def mention(text, *concepts):
    return LabelledMention(text, frozenset(concepts))


def expected(finder, clinic, place, k, add):
    """Half by letters, the rest by cosine, gold behind: by plain sorting of everything."""
    names, lesson = finder.lessons.names, finder.lessons.lessons[place]
    every = list(range(len(names)))
    letters = finder._lexical.score([lesson.text], names.first_rows[None])[0]
    rows = names.first_rows
    by_letters = sorted((t for t in every if letters[t] > 0), key=lambda t: (-letters[t], rows[t]))
    vectors = finder._encoder.encode(names.take(np.arange(len(names))), precision="fp32")
    query = finder._encoder.encode([lesson.text], precision="fp32")[0].astype(np.float64)
    cosines = [np.float32(np.dot(query, vector)) for vector in vectors.astype(np.float64)]
    by_encoder = sorted(every, key=lambda t: (-cosines[t], t))
    chosen = by_letters[: k // 2]
    chosen += [t for t in by_encoder if t not in chosen][: k - len(chosen)]
    found = any(t in lesson.gold for t in chosen)
    if not found and add:
        chosen[-1] = min(lesson.gold, key=lambda t: (-max(letters[t], 0), t))
    return chosen, found


@pytest.mark.parametrize("missing_gold", ["add", "skip"])
@pytest.mark.parametrize("k", [2, 5, 6])
def test_candidates_are_those_of_the_definition(clinic, k, missing_gold):
    finder = clinic.finder(k=k, reach=20, refresh="full", missing_gold=missing_gold)
    candidates = finder.find(None)
    for place, lesson in enumerate(finder.lessons.lessons):
        chosen, found = expected(finder, clinic, place, k, missing_gold == "add")
        assert candidates.texts[place].tolist() == chosen
        assert bool(candidates.found[place]) == found
        assert candidates.gold[place].tolist() == [text in lesson.gold for text in chosen]
    assert candidates.gold.any(1).all() == (missing_gold == "add")
    assert not candidates.found.all()


def test_lexical_scores_are_those_of_the_index(clinic):
    finder = clinic.finder()
    candidates = finder.find(None)
    rows = finder.lessons.names.first_rows[candidates.texts]
    again = finder._lexical.score([lesson.text for lesson in finder.lessons.lessons], rows)
    np.testing.assert_array_equal(candidates.lexical, np.where(np.isfinite(again), again, 0))
    assert candidates.lexical.max() > 0.3


def test_gold_is_never_among_the_negatives(clinic):
    finder = clinic.finder(k=8)
    candidates = finder.find(None)
    concepts = clinic.kb.table("names").column("concept").to_pylist()
    texts = [clinic.kb.name(row).text.lower() for row in range(clinic.kb.n_names)]
    for place, lesson in enumerate(finder.lessons.lessons):
        right = {t for t, c in zip(texts, concepts, strict=True) if c in lesson.concepts}
        for number, is_gold in zip(candidates.texts[place], candidates.gold[place], strict=True):
            if number >= 0:
                assert bool(is_gold) == (finder.lessons.names.text(int(number)) in right)


def test_a_store_smaller_than_k_leaves_places_empty(clinic):
    finder = clinic.finder(k=40)
    candidates = finder.find(None)
    n_texts = len(finder.lessons.names)
    assert (candidates.texts >= 0).sum(1).tolist() == [n_texts] * len(finder.lessons)
    assert not candidates.gold[candidates.texts < 0].any()
    assert not candidates.lexical[candidates.texts < 0].any()


def test_the_mention_itself_is_withheld_on_request(store_of, clinic):
    kb = store_of(
        [{"id": "A", "name": "abdominal pain", "names": ["Belly-Ache"]},
         {"id": "B", "name": "belly ache", "names": ["navel pain"]},
         {"id": "C", "name": "fatigue"}], "own"
    )  # fmt: skip
    mentions = [mention("belly ache", "A"), mention("tired", "C")]
    for exclude in (False, True):
        finder = clinic.finder(mentions, kb=kb, k=5, exclude_own_mention=exclude)
        found = finder.find(None)
        names = [finder.lessons.names.text(int(t)) for t in found.texts[0] if t >= 0]
        own = [name for name in names if normalise(name) == "belly ache"]
        assert len(own) == (0 if exclude else 2)
        assert len(names) == (3 if exclude else 5)
        assert found.gold[0].any()


def test_the_encoder_looks_among_all_names_or_those_in_reach(clinic):
    full = clinic.finder(refresh="full")
    everything = list(range(len(full.lessons.names)))
    assert full.pool(None).tolist() == everything
    assert full.pool(full.find(None)).tolist() == everything
    some = [mention("sore muscles", "C2")]
    near = clinic.finder(some, reach=2, k=4, first_full=False)
    by_letters = set(near._by_letters[0])
    gold = near.lessons.lessons[0].gold
    assert set(near.pool(None).tolist()) == by_letters | gold
    assert len(near.pool(None)) < len(everything)
    first = clinic.finder(some, reach=2, k=4, first_full=True)
    assert first.pool(None).tolist() == everything
    last = first.find(None)
    assert set(first.pool(last).tolist()) == by_letters | gold | set(last.texts[0].tolist())


def test_candidates_follow_the_encoder(clinic):
    encoder = clinic.load()
    finder = clinic.finder(encoder=encoder, refresh="full")
    before, again = finder.find(None), finder.find(None)
    np.testing.assert_array_equal(before.texts, again.texts)
    np.testing.assert_array_equal(before.lexical, again.lexical)
    generator = torch.Generator().manual_seed(5)
    for weight in encoder.model.parameters():
        weight.data += 0.3 * torch.randn(weight.shape, generator=generator)
    after = finder.find(before)
    assert (before.texts != after.texts).any()
    for line, first, second in zip(finder._by_letters, before.texts, after.texts, strict=True):
        n_by_letters = min(len(line), 3)
        assert first[:n_by_letters].tolist() == second[:n_by_letters].tolist() == line[:3]
