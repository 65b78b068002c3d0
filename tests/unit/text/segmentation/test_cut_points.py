"""Cut points against counts by hand, and their editable file; the unigram vocabulary."""

from __future__ import annotations

import pytest

from biograft.errors import FormatError
from biograft.text import (
    CutPoint,
    UnigramVocabulary,
    find_cut_points,
    read_cut_points,
    write_cut_points,
)
from biograft.text.segmentation.words import runs

WORD_COUNTS = {"急性": 5.0, "慢性": 5.0, "肝炎": 5.0, "肾炎": 5.0, "病毒": 5.0}
NAMES = ["急性肝炎", "慢性肝炎", "慢性肾炎", "病毒急性肾炎"]


def grouped(names):
    return [run for name in names for run in runs(name, "zh")]


def cut_points(**options):
    return find_cut_points(grouped(NAMES), UnigramVocabulary(WORD_COUNTS, "zh"), **options)


def test_edges_are_counted_by_side():
    points = {point.character: point for point in cut_points()}
    # 急性|肝炎 慢性|肝炎 慢性|肾炎 病毒|急性|肾炎
    assert points["性"] == CutPoint("性", "after", 0, 4, 1.0)
    assert points["炎"] == CutPoint("炎", "after", 0, 4, 0.0)  # always last, so never a cut inside
    assert points["肝"] == CutPoint("肝", "before", 2, 0, 1.0)
    assert points["急"] == CutPoint("急", "before", 2, 0, 1.0)
    assert points["毒"] == CutPoint("毒", "after", 0, 1, 1.0)


def test_deleted_and_commented_lines_are_dropped(tmp_path):
    path = tmp_path / "cut_points.tsv"
    write_cut_points(cut_points(), path)
    lines = path.read_text(encoding="utf-8").splitlines()
    kept = [f"# {line}" if line.startswith("肝") else line for line in lines if line[0] != "急"]
    path.write_text("\n".join([*kept, "", "# reviewed"]), encoding="utf-8")
    left = {point.character for point in read_cut_points(path)}
    assert left == {point.character for point in cut_points()} - {"肝", "急"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("性后\tafter\t4\t0\t4\t1.0", "expected one character"),
        ("性\tafter\t4\tno\t4\t1.0", "expected one character"),
        ("急\tbefore\t2\t2\t0\t1.0", "is in the file already"),
    ],
)
def test_a_malformed_line_is_reported(write, line, message):
    path = write("points.tsv", f"# comment\n急\tbefore\t2\t2\t0\t1.0\n{line}\n")
    with pytest.raises(FormatError, match=rf"points.tsv:3: .*{message}"):
        read_cut_points(path)


def test_the_vocabulary_takes_the_most_probable_split():
    vocabulary = UnigramVocabulary(
        {"甲乙": 8.0, "丙丁": 8.0, "乙丙": 9.0, "甲": 1.0, "丁": 1.0}, "zh"
    )
    (run,) = runs("甲乙丙丁", "zh")
    segments = [[unit.form for unit in segment] for segment in vocabulary.split(run)]
    # total 27: 8/28 * 8/28 > 1/28 * 9/28 * 1/28
    assert segments == [["甲", "乙"], ["丙", "丁"]]
