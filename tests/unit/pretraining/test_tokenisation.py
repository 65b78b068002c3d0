"""Segments of long mentions: their labels on tokens, in packed, split and joined sequences."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from annotated_texts import annotate
from generative_store import store_in
from tiny_models import tiny_tokenizer
from tiny_tokenizers import byte_tokenizer, unigram_tokenizer

from biograft.corpus import (
    AnnotatedDocument,
    HeadSegmenter,
    Segmentation,
    SegmentationConfig,
    UnigramVocabulary,
    build_segmentation,
)
from biograft.corpus.segmentation.heads import SegmentedEntity
from biograft.errors import ConfigError
from biograft.objectives import CONSISTENT, HEAD_OFFSET, IGNORED, SEGMENT_ENDS, collate
from biograft.pretraining import (
    AnnotatedTextConfig,
    DocumentTokenizer,
    SubstitutionConfig,
    open_packed,
)
from biograft.pretraining.substitution import IndexedDocument
from biograft.pretraining.text_batches import join_random_next
from biograft.pretraining.tokenisation import PackingCounts, SegmentFinder

NAMES = [["急性肝炎", "急肝"], ["慢性肝炎", "慢肝"], ["急性肾炎", "急肾"], ["慢性肾炎", "慢肾"],
         ["慢性活动性肝炎", "活动肝"]]  # fmt: skip
CONCEPTS = [
    {"id": f"D{row}", "name": first, "names": {"zh": [first, second]}, "type": "病"}
    for row, (first, second) in enumerate(NAMES)
] + [{"id": f"P{row}", "name": name, "names": {"zh": [name]}, "type": "词"}
     for row, name in enumerate(["急性", "慢性", "肝炎", "肾炎"])]  # fmt: skip
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
    examples = [text.example(number) for number in range(len(text))]
    n_long = 0
    for one in examples:
        for other in examples:
            n_long += check_labels(join_random_next(one, other, 64), chinese, segmentation)
    assert n_long > 8


def test_batches_list_the_labels(packed):
    text = packed(pack=False, substitution=SubstitutionConfig(probability=1.0))
    examples = [text.example(number) for number in range(len(text))]
    batch = collate(examples, text.padding)
    assert len(batch.mention_labels[HEAD_OFFSET]) == len(batch.mentions)
    assert batch.token_labels[SEGMENT_ENDS].shape == batch.tokens.shape
    sizes = [len(example.mentions) for example in examples]
    assert batch.mention_labels[CONSISTENT].tolist() == [
        label for e in examples for label in e.mention_labels[CONSISTENT].tolist()
    ]
    assert sum(sizes) == len(batch.mentions)


def test_copies_follow_the_originals(packed, chinese, segmentation):
    substitution = SubstitutionConfig(probability=1.0, same_type_probability=0.0)
    text = packed(pack=False, substitution=substitution)
    assert text.documents.tolist() == [0, 1, 2, 3, 0, 1, 3]
    originals, copies = (
        np.concatenate([text.example(n).mention_labels[CONSISTENT] for n in numbers])
        for numbers in (range(4), range(4, 7))
    )
    assert set(originals.tolist()) == {IGNORED}
    assert {0, 1} <= set(copies.tolist())
    assert all(check_labels(text.example(n), chinese, segmentation) >= 0 for n in range(7))


def test_other_settings_have_another_folder(packed, shards, chinese, kb, segmentation):
    text = packed(pack=False)
    assert packed(pack=False).folder == text.folder
    assert packed(pack=False, substitution=SubstitutionConfig()).folder != text.folder
    one = packed(pack=False, substitution=SubstitutionConfig(seed=1)).folder
    assert packed(pack=False, substitution=SubstitutionConfig(seed=2)).folder != one


def test_packed_text_states_the_version_of_its_labels(packed):
    made_from = packed(pack=False, substitution=SubstitutionConfig()).manifest["made_from"]
    assert (made_from["segments_version"], made_from["substitution_version"]) == (3, 3)
    assert "substitution_version" not in packed(pack=False).manifest["made_from"]


def test_a_document_and_its_copies_are_not_packed(packed):
    with pytest.raises(ConfigError, match=r"substitution: .* held out together.*set pack = false"):
        packed(substitution=SubstitutionConfig())


def test_names_are_taken_from_a_store(shards, chinese):
    config = AnnotatedTextConfig(
        shards=shards(TEXTS), pack=False, substitution=SubstitutionConfig()
    )
    with pytest.raises(ConfigError, match=r"stream\.substitution: .*--kb"):
        open_packed(config, chinese)


def test_segments_that_share_a_token_are_not_labelled():
    class Halves:
        def segment(self, text):
            middle = len(text) // 2
            parts = ((0, middle), (middle, len(text)))
            return SegmentedEntity(text, parts, *parts)

    finder, counts = SegmentFinder(Halves()), PackingCounts()
    of_characters = np.array([[0, 1], [1, 2], [2, 3], [3, 4]])
    found = finder.label("abcd", of_characters, np.array([[0, 3]]), [(0, 4)], counts)
    assert found.head_offsets.tolist() == [2]
    assert found.ends.tolist() == [0, 1, 0, 1]
    of_subwords = np.array([[0, 1], [1, 3], [3, 4]])
    assert (counts.n_without_segments, counts.n_without_head) == (0, 0)
    found = finder.label("abcd", of_subwords, np.array([[0, 2]]), [(0, 4)], counts)
    assert found.head_offsets.tolist() == [IGNORED]
    assert set(found.ends.tolist()) == {IGNORED}
    assert (counts.n_without_segments, counts.n_without_head) == (1, 0)


HEAD_FIRST = HeadSegmenter(UnigramVocabulary({"wall": 3.0}, "en"))
BRACKET = SegmentedEntity("甲乙（丙）", ((0, 1), (1, 2), (3, 4)), (0, 1), (1, 2))


class Known:
    def segment(self, text):
        return BRACKET if text == BRACKET.text else HEAD_FIRST.segment(text)


@pytest.mark.parametrize(
    ("name", "ends", "head"),
    [
        ("acute infarction of wall", [1, 1, 0, 1], None),  # acute | infarction | of wall
        ("infarction, acute", [1, 0, 1], None),
        ("甲乙（丙）", [1, 1, 0, 0, 1], None),  # 甲 | 乙 | 丙）
        ("acute infarction", [1, 1], 1),
    ],
)
def test_segments_are_labelled_whatever_follows_the_head(name, ends, head):
    tokens = re.findall(r"[a-z]+|[^a-z ]", name)
    starts = [name.index(token) for token in tokens]
    offsets = np.array([[s, s + len(t)] for s, t in zip(starts, tokens, strict=True)])
    counts = PackingCounts()
    mentions = np.array([[0, len(tokens) - 1]])
    found = SegmentFinder(Known()).label(name, offsets, mentions, [(0, len(name))], counts)
    assert found.ends.tolist() == ends
    assert found.head_offsets.tolist() == [IGNORED if head is None else head]
    assert (counts.n_without_segments, counts.n_without_head) == (0, int(head is None))


TEXT = "acute cough, 糖尿病。"
PIECES = ["▁ac", "ute", "▁cough", "糖尿"]
TOKENIZERS = {
    "xlm-r": lambda: unigram_tokenizer("xlm-r", [*PIECES, ",", "病", "。"]),
    "deberta-v3": lambda: unigram_tokenizer("deberta-v3", [*PIECES, ",", "病", "。"]),
    "bytes": lambda: byte_tokenizer(["ute", " cough", "糖尿病"]),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_words_end_at_punctuation_and_chinese_characters(name):
    tokenizer = TOKENIZERS[name]()
    document = IndexedDocument(0, AnnotatedDocument("one", TEXT))
    [found] = DocumentTokenizer(tokenizer, {}, 0.0).tokenise([document], PackingCounts())
    encoding = tokenizer(TEXT, add_special_tokens=False, return_offsets_mapping=True)
    assert found.tokens.tolist() == encoding["input_ids"]
    words = {}
    for (start, end), number in zip(encoding["offset_mapping"], found.words.tolist(), strict=True):
        if TEXT[start:end].strip():
            words.setdefault(number, set()).update(range(start, end))
    texts = ["".join(TEXT[k] for k in sorted(offsets)).strip() for offsets in words.values()]
    assert texts[:3] == ["acute", "cough", ","]
    assert all(len(text) <= 3 for text in texts[3:])
    assert "".join(dict.fromkeys("".join(texts[3:]))) == "糖尿病。"
    assert sorted(words) == list(words)


def test_an_empty_text_has_no_words():
    document = IndexedDocument(0, AnnotatedDocument("none", ""))
    tokenizer = TOKENIZERS["xlm-r"]()
    [found] = DocumentTokenizer(tokenizer, {}, 0.0).tokenise([document], PackingCounts())
    assert found.words.tolist() == []
