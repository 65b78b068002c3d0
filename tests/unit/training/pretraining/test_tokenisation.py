"""Segments of long mentions: their labels on tokens, in packed, split and joined sequences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from annotated_texts import annotate
from generative_store import store_in
from tiny_models import tiny_tokenizer
from tiny_tokenizers import byte_tokenizer, unigram_tokenizer

from biograft.text import (
    AnnotatedDocument,
    HeadSegmenter,
    Segmentation,
    SegmentationConfig,
    UnigramVocabulary,
    build_segmentation,
)
from biograft.training.objectives import HEAD_OFFSET, IGNORED, SEGMENT_ENDS
from biograft.training.pretraining import (
    AnnotatedTextConfig,
    TextSequences,
    open_packed,
)

NAMES = [
    ["急性肝炎", "急肝"],
    ["慢性肝炎", "慢肝"],
    ["急性肾炎", "急肾"],
    ["慢性肾炎", "慢肾"],
    ["慢性活动性肝炎", "活动肝"],
]
CONCEPTS = [
    {"id": f"D{row}", "name": first, "names": {"zh": [first, second]}, "type": "病"}
    for row, (first, second) in enumerate(NAMES)
] + [
    {"id": f"P{row}", "name": name, "names": {"zh": [name]}, "type": "词"}
    for row, name in enumerate(["急性", "慢性", "肝炎", "肾炎"])
]
KNOWN = {name: f"D{row}" for row, names in enumerate(NAMES) for name in names}
TEXTS = [
    "患者有急性肝炎病史。服药后好转，血压正常，无急肾。",
    "诊断为慢性活动性肝炎。又有慢肾，需要住院。",
    "没有什么。一切正常。",
    "慢性肾炎与慢性肝炎，急肝。复查后出院。",
]


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    return store_in(tmp_path_factory.mktemp("store"), CONCEPTS)


@pytest.fixture(scope="module")
def segmentation(kb, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("segments")
    corpus = folder / "corpus.txt"
    names = [first for first, _ in NAMES]
    lines = [f"{a}患者有{b}症状" for a in names for b in ("甲", "乙", "丙", "丁")]
    corpus.write_text("\n".join(lines), encoding="utf-8")
    build_segmentation(kb, [corpus], folder / "out", SegmentationConfig(word_segmenter="unigram"))
    return folder / "out"


@pytest.fixture(scope="module")
def chinese():
    return tiny_tokenizer([*TEXTS, *(name for names in NAMES for name in names)])


@pytest.fixture
def packed(shards, chinese, kb, segmentation):
    folder = shards([annotate(text, KNOWN) for text in TEXTS])

    def make(**config):
        chosen = AnnotatedTextConfig(shards=folder, segmentation=segmentation, **config)
        return open_packed(chosen, chinese, kb=kb)

    return make


def check_labels(example, tokenizer, segmentation):
    """Compare the labels of mentions with their segmentation; return the number of long ones."""
    segmenter = Segmentation.open(segmentation)
    text = tokenizer.convert_ids_to_tokens(example.tokens)
    inside = np.zeros(len(text), bool)
    n_long = 0
    for (first, last, _), head in zip(
        example.mentions.tolist(), example.mention_labels[HEAD_OFFSET].tolist(), strict=True
    ):
        name = "".join(text[first : last + 1])
        found = segmenter.segment(name)
        ends = example.token_labels[SEGMENT_ENDS][first : last + 1].tolist()
        if not found.is_long:
            assert head == IGNORED
            assert set(ends) == {IGNORED}
            continue
        n_long += 1
        inside[first : last + 1] = True
        assert "".join(text[first + head : last + 1]) == found.cut(found.head)
        wanted = {end - 1 for _, end in found.segments}
        assert ends == [int(position in wanted) for position in range(len(name))]
    assert (example.token_labels[SEGMENT_ENDS][~inside] == IGNORED).all()
    return n_long


@pytest.mark.parametrize("pack", [True, False])
@pytest.mark.parametrize("max_length", [12, 20, 200])
def test_labels_are_at_the_tokens_of_their_segments(
    packed, chinese, segmentation, pack, max_length
):
    text = packed(pack=pack, max_length=max_length)
    n_long = sum(check_labels(text.example(n), chinese, segmentation) for n in range(len(text)))
    assert n_long == 4 if max_length > 12 else n_long <= 4


def test_random_next_segments_keep_their_labels(packed, chinese, segmentation):
    text = packed(pack=False, two_segments=True, max_length=64)
    batches = TextSequences(text, random_next_probability=1.0)
    examples = [batches.example(n, epoch) for n in range(len(text)) for epoch in range(4)]
    assert any(not example.labels["follows"] for example in examples)
    assert sum(check_labels(example, chinese, segmentation) for example in examples) > 8


def test_segments_that_share_a_token_are_not_labelled(shards, kb, segmentation):
    folder = shards([annotate("急性肝炎", KNOWN)])
    config = AnnotatedTextConfig(shards=folder, segmentation=segmentation, pack=False)
    for words, n_shared in (["急性", "肝炎"], 0), (["性肝"], 1):
        text = open_packed(config, byte_tokenizer(words), kb=kb)
        assert text.counts["n_without_segments"] == n_shared
        ends = text.example(0).token_labels[SEGMENT_ENDS]
        assert (set(ends.tolist()) == {IGNORED}) == bool(n_shared)


def test_a_head_is_labelled_where_nothing_follows_it(
    shards, chinese, kb, segmentation, monkeypatch
):
    segmenter = HeadSegmenter(UnigramVocabulary({"wall": 3.0}, "en"))
    monkeypatch.setattr(Segmentation, "segment", lambda self, text: segmenter.segment(text))
    names = {"acute infarction of wall": "D0", "infarction, acute": "D1", "acute infarction": "D2"}
    documents = [annotate(name, {name: concept}) for name, concept in names.items()]
    config = AnnotatedTextConfig(shards=shards(documents), segmentation=segmentation, pack=False)
    text = open_packed(config, tiny_tokenizer([*names, ","]), kb=kb)
    found = [text.example(number) for number in range(3)]
    ends = [example.token_labels[SEGMENT_ENDS][1:-1].tolist() for example in found]
    assert ends == [[1, 1, 0, 1], [1, 0, 1], [1, 1]]  # acute | infarction | of wall
    heads = [example.mention_labels[HEAD_OFFSET].tolist() for example in found]
    assert heads == [[IGNORED], [IGNORED], [1]]
    assert text.counts["n_without_head"] == 2


TEXT = "acute cough, 糖尿病。"
PIECES = ["▁ac", "ute", "▁cough", "糖尿"]
TOKENIZERS = {
    "xlm-r": lambda: unigram_tokenizer("xlm-r", [*PIECES, ",", "病", "。"]),
    "deberta-v3": lambda: unigram_tokenizer("deberta-v3", [*PIECES, ",", "病", "。"]),
    "bytes": lambda: byte_tokenizer(["ute", " cough", "糖尿病"]),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_words_end_at_punctuation_and_chinese_characters(shards, name):
    tokenizer = TOKENIZERS[name]()
    config = AnnotatedTextConfig(shards=shards([AnnotatedDocument("one", TEXT)]), pack=False)
    example = open_packed(config, tokenizer).example(0)
    tokens, numbers = example.tokens[1:-1].tolist(), example.words[1:-1].tolist()
    encoding = tokenizer(TEXT, add_special_tokens=False, return_offsets_mapping=True)
    assert tokens == encoding["input_ids"]
    words = {}
    for (start, end), number in zip(encoding["offset_mapping"], numbers, strict=True):
        if TEXT[start:end].strip():
            words.setdefault(number, set()).update(range(start, end))
    texts = ["".join(TEXT[k] for k in sorted(offsets)).strip() for offsets in words.values()]
    assert texts[:3] == ["acute", "cough", ","]
    assert all(len(text) <= 3 for text in texts[3:])
    assert "".join(dict.fromkeys("".join(texts[3:]))) == "糖尿病。"
    assert sorted(words) == list(words)
