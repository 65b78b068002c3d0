"""Evaluation of assertion status: counts, the gold format, its errors."""

from __future__ import annotations

import json

import pytest

from biograft.clinical import Assertion
from biograft.errors import FormatError
from biograft.evaluation import evaluate_assertions, read_assertions

NOTE = {
    "id": "1",
    "language": "en",
    "text": "No fever. Cough. Possible flu.",
    "mentions": [
        {"start": 3, "end": 8, "text": "fever", "status": ["negated"]},
        {"start": 10, "end": 15, "text": "Cough", "status": [], "concept": "Cough"},
        {"start": 26, "end": 29, "text": "flu", "status": ["uncertain"], "typo": True},
    ],
}


def write(path, *notes):
    path.write_text("".join(json.dumps(note) + "\n" for note in notes), encoding="utf-8")
    return path


class AllNegated:
    """A model of one method, in place of the rules."""

    def assert_status(self, text, spans):
        return [Assertion(negated=True, status="absent") for _ in spans]


def test_counts_of_a_model_that_is_wrong(tmp_path):
    notes = read_assertions(write(tmp_path / "gold.jsonl", NOTE))
    result = evaluate_assertions(notes, AllNegated())
    negated, uncertain = result.flags["negated"], result.flags["uncertain"]
    assert (negated.right, negated.wrong, negated.missed) == (1, 2, 0)
    assert (uncertain.right, uncertain.wrong, uncertain.missed) == (0, 0, 1)
    assert result.accuracy == pytest.approx(1 / 3)
    assert [mistake.text for mistake in result.mistakes] == ["Cough", "flu"]


def test_the_course_counts_where_the_gold_standard_marks_it(tmp_path):
    text = "The cough has resolved."
    mention = {"start": 4, "end": 9, "text": "cough", "status": []}
    note = {"id": "1", "text": text, "mentions": [mention]}
    result = evaluate_assertions(read_assertions(write(tmp_path / "a.jsonl", note)))
    assert (result.accuracy, "resolved" in result.flags) == (1.0, False)
    marked = {**note, "mentions": [mention | {"status": ["resolved"]}]}
    result = evaluate_assertions(read_assertions(write(tmp_path / "b.jsonl", marked, note)))
    assert (result.accuracy, result.flags["resolved"].right) == (0.5, 1)
    planned = {**note, "mentions": [mention | {"status": ["planned"]}]}
    (read,) = read_assertions(write(tmp_path / "c.jsonl", planned))
    assert read.mentions[0].flags == {"planned", "hypothetical"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"status": ["absent"]}, "unknown status 'absent'"),
        ({"end": 9}, "mention 'fever': the text from 3 to 9 is 'fever.'"),
        ({"flag": 1}, "unknown key 'flag' of a mention"),
    ],
)
def test_a_wrong_mention_is_reported_with_its_line(tmp_path, change, message):
    wrong = {**NOTE, "mentions": [{**NOTE["mentions"][0], **change}]}
    path = write(tmp_path / "gold.jsonl", NOTE, wrong)
    with pytest.raises(FormatError, match=message) as caught:
        list(read_assertions(path))
    assert caught.value.line == 2


@pytest.mark.parametrize("line", ["[]", '{"id": 1, "text": "x"}'])
def test_a_line_that_is_no_note(tmp_path, line):
    path = tmp_path / "gold.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(FormatError, match="not a text with assertions"):
        list(read_assertions(path))
