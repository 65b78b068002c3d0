"""Phrases against counts in plain Python; the table of phrases; the corpus reader."""

from __future__ import annotations

import math
import random
import tracemalloc
from collections import Counter
from dataclasses import replace

import pytest

from biograft.errors import ConfigError, FormatError
from biograft.text import Phrase, PhraseConfig, mine_phrases, read_phrases, write_phrases
from biograft.text.segmentation import phrases as counting
from biograft.text.segmentation.words import runs

ALL = PhraseConfig(min_count=2, max_length=4, min_cohesion=0.0, min_entropy=0.0)


def make_documents(seed=0):
    """Text of random characters in which one phrase is planted."""
    rng = random.Random(seed)
    characters = [chr(0x4E00 + k) for k in range(14)]
    documents = []
    for _ in range(120):
        text = "".join(rng.choices(characters, k=rng.randint(3, 12)))
        position = rng.randint(0, len(text))
        documents.append(
            text[:position] + "糖尿病" + text[position:] + rng.choice(["。", "", "，甲"])
        )
    return documents


def reference_statistics(documents, form):
    """Count, cohesion and entropies of a run, from the definition alone."""
    sequences = [[u.form for u in run] for text in documents for run in runs(text, "zh")]
    total = sum(map(len, sequences))

    def positions(wanted):
        n = len(wanted)
        return [
            (s, k) for s in sequences for k in range(len(s) - n + 1) if s[k : k + n] == list(wanted)
        ]

    occurrences = positions(form)
    p = {part: len(positions(part)) / total for part in {form[:k] for k in range(1, len(form) + 1)}}
    p |= {form[k:]: len(positions(form[k:])) / total for k in range(1, len(form))}
    cohesion = min(math.log(p[form] / (p[form[:k]] * p[form[k:]])) for k in range(1, len(form)))
    entropies = []
    for side in (-1, len(form)):
        beside = Counter()
        for number, (sequence, k) in enumerate(occurrences):
            inside = 0 <= k + side < len(sequence)
            beside[sequence[k + side] if inside else f"edge {number}"] += 1
        ratios = [n / len(occurrences) for n in beside.values()]
        entropies.append(-sum(ratio * math.log(ratio) for ratio in ratios))
    return len(occurrences), cohesion, *entropies


@pytest.mark.parametrize("chunk", [7, 1 << 22])
def test_statistics_match_plain_counting(chunk, monkeypatch):
    monkeypatch.setattr(counting, "_CHUNK", chunk)
    documents = make_documents()
    mined = mine_phrases(documents, ALL)
    assert len(mined.phrases) > 50
    for phrase in mined.phrases:
        count, cohesion, left, right = reference_statistics(documents, phrase.text)
        assert phrase.count == count == mined.count(list(phrase.text))
        assert phrase.cohesion == pytest.approx(cohesion)
        assert (phrase.left_entropy, phrase.right_entropy) == pytest.approx((left, right))


def test_every_frequent_run_is_counted():
    documents = make_documents()
    expected = Counter()
    for text in documents:
        for run in runs(text, "zh"):
            forms = [unit.form for unit in run]
            for n in range(1, 5):
                expected.update(tuple(forms[k : k + n]) for k in range(len(forms) - n + 1))
    mined = mine_phrases(documents, ALL)
    for form, count in expected.items():
        assert mined.count(form) == (count if count >= 2 else 0)
    assert mined.count("从未") == 0
    assert mined.count("糖" * 9) == 0


def many_words(n_documents=4000):
    """English text in which almost every second word occurs once, and three words are a phrase."""
    rng = random.Random(5)
    frequent = ["".join(rng.choices("abcdefgh", k=5)) for _ in range(50)]
    for number in range(n_documents):
        rare = [f"rare{number}x{k}" for k in range(10)]
        words = [
            word for pair in zip(rare, rng.choices(frequent, k=10), strict=True) for word in pair
        ]
        words[6:6] = ["chronic", "kidney", "disease"]
        yield " ".join(words) + "."


PHRASES = PhraseConfig(min_count=30, max_length=3, min_cohesion=1.0, min_entropy=0.5)


def test_memory_does_not_grow_with_the_text(monkeypatch):
    """All different words, and an index a position of the text, were held in memory."""
    monkeypatch.setattr(counting, "_CHUNK", 1 << 11)
    monkeypatch.setattr("biograft.text.segmentation.words.fold", str.lower)  # it has a cache
    bounds = {"max_units": 1000, "max_entries": 1000}
    peaks, found = [], []
    for n, config in (
        (1000, replace(PHRASES, **bounds)),
        (4000, replace(PHRASES, **bounds)),
        (4000, PHRASES),
    ):
        tracemalloc.start()
        try:
            found.append(mine_phrases(many_words(n), config, language="en"))
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    declared = 1000 * (100 + 200) + 50 * counting._CHUNK
    ids = 20 * 40_000  # counts and a position for each word that was ever numbered
    assert peaks[1] < declared + ids
    assert peaks[1] - peaks[0] < ids
    assert peaks[2] > 5 * peaks[1]
    assert found[1].pruned_units > 0
    assert found[1].pruned > 0
    assert found[2].pruned_units == found[2].pruned == 0
    assert "chronic kidney disease" in {phrase.text for phrase in found[1].phrases}


@pytest.mark.parametrize("max_units", [1, 5, 12, 60])
def test_counts_of_pruned_units_are_never_too_high(max_units):
    exact = mine_phrases(make_documents(), ALL)
    pruned = mine_phrases(make_documents(), replace(ALL, max_units=max_units))
    known = {phrase.text: phrase.count for phrase in exact.phrases}
    assert all(phrase.count <= known[phrase.text] for phrase in pruned.phrases)
    assert pruned.n_units == exact.n_units


@pytest.mark.parametrize("max_entries", [20, 60, 100])
def test_pruned_parts_count_as_often_as_the_whole(max_entries, monkeypatch):
    """Their count of 0 made the cohesion of a cut infinite, with a warning of numpy's."""
    monkeypatch.setattr(counting, "_CHUNK", 200)
    config = PhraseConfig(
        min_count=2, max_length=5, min_cohesion=0.0, min_entropy=0.0, max_entries=max_entries
    )
    mined = mine_phrases(make_documents(), config)
    assert mined.pruned > 0
    for phrase in mined.phrases:
        bounds = []
        for cut in range(1, len(phrase.text)):
            parts = (phrase.text[:cut], phrase.text[cut:])
            counts = [max(mined.count(part), phrase.count) for part in parts]
            bounds.append(math.log(phrase.count * mined.n_units / math.prod(counts)))
        assert phrase.cohesion == pytest.approx(min(bounds))


def test_a_single_neighbour_has_an_entropy_of_exactly_0():
    """Rounding made it less than 0, so that a threshold of 0 dropped such phrases."""
    documents = [f"甲乙丙{chr(0x4E00 + k)}" for k in range(7)] * 7
    mined = mine_phrases(documents, ALL)
    assert {phrase.text: phrase.right_entropy for phrase in mined.phrases}["甲乙"] == 0
    assert min(phrase.left_entropy for phrase in mined.phrases) >= 0


def planted(rng, n_phrases=60):
    """Documents of random characters with planted phrases of rare characters, and the phrases."""
    common = [chr(0x4E00 + k) for k in range(25)]
    phrases = [
        "".join(rng.sample([chr(0x5E00 + k) for k in range(150)], 3)) for _ in range(n_phrases)
    ]
    documents = []
    for _ in range(1500):
        words = rng.choices(common, k=8) + rng.choices(phrases, k=2)
        rng.shuffle(words)
        documents.append("".join(words))
    return documents, phrases


def test_the_quality_of_planted_phrases_is_learned_from_names():
    """Phrases were ranked by fixed statistics alone, with nothing that known names teach."""
    documents, phrases = planted(random.Random(3))
    names, held_out = phrases[:30], set(phrases[30:])
    config = PhraseConfig(min_count=5, max_length=4, min_cohesion=0.0, min_entropy=0.0)
    mined = mine_phrases(documents, config, names=[*names, "没有的名"])
    quality = {phrase.text: phrase.quality for phrase in mined.phrases}
    assert all(0 <= value <= 1 for value in quality.values())
    good = [quality[text] for text in held_out]
    bad = [quality[text] for text in quality if text not in phrases]
    assert len(bad) > 200
    wins = sum(g > b for g in good for b in bad) / (len(good) * len(bad))
    assert wins > 0.97
    chosen = {
        p.text
        for p in mine_phrases(
            documents,
            PhraseConfig(
                min_count=5, max_length=4, min_cohesion=0.0, min_entropy=0.0, min_quality=0.6
            ),
            names=names,
        ).phrases
    }
    assert len(chosen & held_out) > 0.9 * len(held_out)
    assert len(chosen - set(phrases)) < 0.2 * len(chosen)
    again = mine_phrases(documents, config, names=[*names, "没有的名"])
    assert again.phrases == mined.phrases


def test_without_names_there_is_no_quality():
    documents = make_documents()
    assert {phrase.quality for phrase in mine_phrases(documents, ALL).phrases} == {None}
    with pytest.raises(ConfigError, match="min_quality: needs at least 10 names"):
        mine_phrases(documents, PhraseConfig(min_quality=0.5), names=["糖尿病"])


def test_phrases_round_trip(tmp_path):
    phrases = [Phrase("糖尿病", 12, 4.5, 1.25, 2.0, 0.875), Phrase("肝炎", 9, 3.125, 2.0, 1.5)]
    path = tmp_path / "phrases.tsv"
    write_phrases(phrases, path)
    assert read_phrases(path) == phrases
    path.write_text("# removed by hand\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert read_phrases(path) == phrases


def test_a_malformed_line_of_phrases_is_reported(write):
    path = write("phrases.tsv", "糖尿病\t12\t4.5\t1\t2\t3\t\n肝炎\tmany\n")
    with pytest.raises(FormatError, match=r"phrases.tsv:2: expected 7 columns"):
        read_phrases(path)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"min_count": 1}, "min_count: expected at least 2"),
        ({"min_quality": 1.5}, "min_quality: expected a number from 0 to 1, found 1.5"),
    ],
)
def test_settings_are_checked(values, message):
    with pytest.raises(ConfigError, match=message):
        PhraseConfig(**values)
