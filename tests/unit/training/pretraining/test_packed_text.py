"""Annotated text packed on disk: nothing lost in silence, found again, refused when it differs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from annotated_texts import TEXTS
from array_damage import DAMAGES, damage
from tiny_models import tiny_tokenizer

from biograft.errors import ConfigError, StoreError
from biograft.progress import Progress
from biograft.text import AnnotatedDocument, LinkedSpan, Shards
from biograft.training.objectives import SPECIAL
from biograft.training.pretraining import AnnotatedTextConfig, PackedText, open_packed

LOSSES = ("n_low_score", "n_without_token", "n_overlapping", "n_cut", "n_beyond")


def packed(shards, tokenizer, **options):
    return open_packed(AnnotatedTextConfig(shards=shards, **options), tokenizer)


def words_of(text, tokenizer, mention):
    """A mention of an example as text, its tokens joined."""
    pieces = tokenizer.convert_ids_to_tokens(text.tokens[mention[0] : mention[1] + 1])
    return "".join(f"{'' if piece.startswith('##') else ' '}{piece}" for piece in pieces).replace(
        "##", ""
    )


def spelled(text):
    """A mention as the tokenizer spells it: in lower case, Chinese characters apart."""
    return "".join(text.lower().split())


@pytest.mark.parametrize("pack", [True, False])
@pytest.mark.parametrize("max_length", [12, 64])
def test_every_span_is_a_mention_with_its_words_or_is_counted(shards, tokenizer, pack, max_length):
    folder = shards()
    text = packed(folder, tokenizer, pack=pack, max_length=max_length)
    counts = text.counts
    assert counts["n_spans"] == sum(len(document.spans) for document in Shards.open(folder))
    assert counts["n_spans"] == counts["n_mentions"] + sum(counts[name] for name in LOSSES)
    found = []
    for number in range(len(text)):
        example = text.example(number)
        assert len(example.tokens) <= max_length
        assert (example.mentions[1:, 0] > example.mentions[:-1, 1]).all()
        found += [
            (spelled(words_of(example, tokenizer, mention)), text.entities[mention[2]])
            for mention in example.mentions
        ]
    expected = [
        (spelled(document.text[span.start : span.end]), span.concept)
        for document in Shards.open(folder)
        for span in document.spans
    ]
    assert len(found) == counts["n_mentions"]
    if counts["n_cut"]:
        assert max_length == 12
        assert set(found) <= set(expected)
    else:
        assert found == expected


@pytest.mark.parametrize("pack", [True, False])
@pytest.mark.parametrize("max_length", [9, 33])
def test_no_token_is_lost_and_special_ones_stand_where_they_should(
    shards, tokenizer, pack, max_length
):
    folder = shards()
    text = packed(folder, tokenizer, pack=pack, max_length=max_length)
    tokens = []
    for number in range(len(text)):
        example = text.example(number)
        assert example.tokens[0] == tokenizer.cls_token_id
        assert example.tokens[-1] == tokenizer.sep_token_id
        special = np.isin(example.tokens, tokenizer.all_special_ids)
        assert (special == (example.words == SPECIAL)).all()
        assert not example.segments.any()
        ordinary = example.words[~special]
        assert ordinary[0] == 0
        assert set(np.diff(ordinary)) <= {0, 1}
        tokens += example.tokens[~special].tolist()
    whole = [tokenizer(d.text, add_special_tokens=False)["input_ids"] for d in Shards.open(folder)]
    assert tokens == [token for document in whole for token in document]
    assert text.counts["n_tokens"] == len(tokens)
    assert text.counts["n_sequences"] == len(text)


def test_two_segments_are_of_one_document_and_tokens_left_out_are_counted(shards, tokenizer):
    folder = shards([*TEXTS, "cancer"])
    text = packed(folder, tokenizer, pack=False, two_segments=True, max_length=64)
    n_tokens = 0
    for number in range(len(text)):
        example = text.example(number)
        second = int(np.argmax(example.segments))
        assert example.tokens[second - 1] == tokenizer.sep_token_id
        assert (example.segments[second:] == 1).all()
        assert (example.tokens == tokenizer.sep_token_id).sum() == 2
        n_tokens += len(example.tokens) - 3
    counts = text.counts
    assert counts["n_tokens"] == n_tokens + counts["n_left_out_tokens"]
    first = text.example(1)
    before = tokenizer.convert_ids_to_tokens(int(first.tokens[np.argmax(first.segments) - 2]))
    assert before == "."  # the sentence's end
    assert counts["n_spans"] == counts["n_mentions"] + sum(counts[name] for name in LOSSES)


def test_the_best_scored_mentions_are_kept_in_their_order(shards, tokenizer):
    text = "diabetes cancer obesity fever"
    scores = {"diabetes": 0.7, "cancer": 0.9, "obesity": 0.5, "fever": 0.9}
    spans = [LinkedSpan(text.index(w), text.index(w) + len(w), w, s) for w, s in scores.items()]
    made = packed(shards([AnnotatedDocument("", text, tuple(spans))]), tokenizer, max_mentions=2)
    kept = [made.entities[row] for row in made.example(0).mentions[:, 2]]
    assert kept == ["cancer", "fever"]
    assert made.counts["n_beyond"] == 2
    unbounded = packed(made.folder.parent / "shards", tokenizer, max_mentions=0)
    assert len(unbounded.example(0).mentions) == 4
    scored = packed(made.folder.parent / "shards", tokenizer, min_score=0.6)
    assert scored.counts["n_low_score"] == 1


def test_spans_without_tokens_or_within_one_token_are_counted(shards):
    text = "abc \u200b abc"
    spans = (
        LinkedSpan(0, 1, "A", 0.5),
        LinkedSpan(1, 3, "B", 0.8),
        LinkedSpan(4, 5, "C", 0.9),
        LinkedSpan(6, 9, "D", 0.9),
    )
    made = packed(shards([AnnotatedDocument("", text, spans)]), tiny_tokenizer(["abc"]))
    assert [made.entities[row] for row in made.example(0).mentions[:, 2]] == ["B", "D"]
    assert made.counts["n_overlapping"] == made.counts["n_without_token"] == 1


def test_entities_go_by_frequency_and_rare_ones_are_mentions_without_a_row(shards, tokenizer):
    folder = shards()
    made = packed(folder, tokenizer)
    assert made.entities == ("D3", "D1", "D2", "D4", "D5", "D6", "D7")
    assert made.entity_counts.tolist() == [3, 2, 2, 1, 1, 1, 1]
    rare = packed(folder, tokenizer, min_count=2)
    assert rare.entities == ("D3", "D1", "D2")
    assert rare.counts["n_outside_table"] == 4
    assert rare.counts["n_mentions"] == made.counts["n_mentions"]
    rows = np.concatenate([rare.example(n).mentions[:, 2] for n in range(len(rare))])
    assert (rows == -1).sum() == 4


def test_entities_may_be_those_of_a_table_that_is_there(shards, tokenizer):
    config = AnnotatedTextConfig(shards=shards())
    made = open_packed(config, tokenizer, entities=["X", "D2", "D3"])
    assert made.entities == ("X", "D2", "D3")
    assert made.entity_counts.tolist() == [0, 2, 3]
    first = made.example(0).mentions
    assert first[:3, 2].tolist() == [-1, 1, 2]
    with pytest.raises(ConfigError, match="entities: an id occurs twice"):
        open_packed(config, tokenizer, entities=["X", "X"])


def test_what_is_packed_is_used_again_whatever_the_tokenizer_was_used_for(shards, tokenizer):
    folder = shards()
    first = packed(folder, tokenizer, max_length=32)
    written = (first.folder / "tokens.npy").stat().st_mtime_ns
    tokenizer("some text", padding="max_length", truncation=True, max_length=5)
    again = packed(folder, tokenizer, max_length=32)
    assert again.folder == first.folder
    assert (again.folder / "tokens.npy").stat().st_mtime_ns == written
    assert packed(folder, tokenizer, max_length=33).folder != first.folder
    assert packed(folder, tiny_tokenizer(["other"]), max_length=32).folder != first.folder


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_length": 16}, r"packed with different max_length \(expected 16, found 32\)"),
        ({"min_count": 2}, r"packed with different min_count \(expected 2, found 1\)"),
    ],
)
def test_a_cache_of_other_settings_is_refused(shards, tokenizer, tmp_path, change, message):
    config = AnnotatedTextConfig(shards=shards(), cache=tmp_path / "cache", max_length=32)
    open_packed(config, tokenizer)
    with pytest.raises(StoreError, match=message):
        open_packed(replace(config, **change), tokenizer)


def test_who_packs_later_waits_and_uses_what_the_first_packed(shards, tokenizer):
    config, others = AnnotatedTextConfig(shards=shards()), []

    class Meanwhile(Progress):
        def advance(self, rows, fraction=None):
            if not others:
                others.append(pool.submit(open_packed, config, tokenizer))

    with ThreadPoolExecutor() as pool:
        first = open_packed(config, tokenizer, progress=Meanwhile(enabled=False))
        packed_at = (first.folder / "tokens.npy").stat().st_mtime_ns
        (second,) = (other.result() for other in others)
    assert second.folder == first.folder
    assert (second.folder / "tokens.npy").stat().st_mtime_ns == packed_at
    assert sorted(path.name for path in first.folder.parent.iterdir()) == [
        "shards",
        first.folder.name,
    ]


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", ["tokens", "sequences"])
def test_damaged_arrays_are_refused(shards, tokenizer, name, how):
    """Guards: sequences of an array that is too short were shorter, and nobody was told."""
    if how in ("beyond", "below") and name != "sequences":
        return  # the layers of a model look at the range of tokens and entities
    made = packed(shards(), tokenizer)
    damage(made.folder, name, how)
    with pytest.raises(StoreError, match=r"damaged .* remove the folder") as caught:
        PackedText.open(made.folder)
    assert "\n" not in str(caught.value)
