"""The segmentation folder: build, open, damage; the command."""

from __future__ import annotations

import pytest
from array_damage import DAMAGES, damage

from biograft.errors import NotFoundError, StoreError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.text import Segmentation, SegmentationConfig, build_segmentation

NAMES = [
    "急性",
    "慢性",
    "肝炎",
    "肾炎",
    "急性肝炎",
    "慢性肝炎",
    "急性肾炎",
    "慢性肾炎",
    "慢性活动性肝炎",
]
UNIGRAM = SegmentationConfig(word_segmenter="unigram")


@pytest.fixture
def base(write, tmp_path):
    rows = "".join(f"C{k}\t{name}\tzh\n" for k, name in enumerate(NAMES))
    rows += "D1\tbreast cancer\ten\nD2\tlung cancer\ten\nD3\tskin cancer\ten\n"
    source = SourceConfig(path=write("names.tsv", f"id\tname\tlanguage\n{rows}"), format="table")
    build_store(BuildConfig(sources=(source,)), tmp_path / "kb")
    return KnowledgeBase.open(tmp_path / "kb")


@pytest.fixture
def text(write):
    lines = [f"{a}患者有{b}症状" for a in NAMES[4:] for b in ("甲", "乙", "丙", "丁")]
    return write("corpus.txt", "\n".join(lines))


def test_stored_names_equal_the_output_of_the_segmenter(base, text, tmp_path):
    manifest = build_segmentation(base, [text], tmp_path / "out", UNIGRAM)
    opened = Segmentation.open(tmp_path / "out")
    opened.check_store(base)
    texts = base.table("names").column("text").to_pylist()
    tags = base.table("names").column("language").to_pylist()
    for row, (name, tag) in enumerate(zip(texts, tags, strict=True)):
        if base.languages[tag] == "zh":
            assert opened.of_name(base, row) == opened.segment(name)
    assert manifest["n_long"] == len(opened) == 5
    assert manifest["texts"][0]["name"] == "corpus.txt"
    entity = opened.segment("慢性活动性肝炎")
    assert entity.cut(entity.head) == "肝炎"


def test_wrong_languages_stores_and_damaged_files_are_refused(base, text, tmp_path):
    with pytest.raises(NotFoundError, match="no name is in language 'de'"):
        build_segmentation(base, [text], tmp_path / "out", SegmentationConfig(language="de"))
    assert not (tmp_path / "out").exists()
    build_segmentation(base, [text], tmp_path / "out", UNIGRAM)
    with pytest.raises(StoreError, match="segmentation"):
        Segmentation.open(tmp_path / "kb")
    opened = Segmentation.open(tmp_path / "out")
    base.manifest["files"]["names.arrow"]["sha256"] = "another"
    with pytest.raises(StoreError, match="another knowledge base"):
        opened.check_store(base)
    (tmp_path / "out" / "segments.npy").write_bytes(b"cut")
    with pytest.raises(StoreError, match=r"segments.npy: damaged \(expected"):
        Segmentation.open(tmp_path / "out")


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", ["rows", "starts", "segments", "parts"])
def test_damaged_arrays_are_refused(base, text, tmp_path, name, how):
    """Guards: of arrays that do not fit together, other names had the segments of a name."""
    if how == "beyond" and name != "starts":
        return  # no row or character of that number is ever looked for
    build_segmentation(base, [text], tmp_path / "out", UNIGRAM)
    damage(tmp_path / "out", name, how)
    with pytest.raises(StoreError, match="damaged") as caught:
        Segmentation.open(tmp_path / "out")
    assert "\n" not in str(caught.value)
