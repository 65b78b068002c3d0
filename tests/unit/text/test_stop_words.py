"""Names that are ordinary words in text."""

from __future__ import annotations

from biograft.text import (
    NamesIndex,
    StopWordConfig,
    propose_stop_words,
    read_stop_words,
    write_stop_words,
)

NAMES = ["lead", "IMPACTS", "fever", "present", "trap", "heart attack"]
TEXTS = [
    "This may lead to fever. They present with fever.",
    "Injuries could lead to harm, and a trap impacts others; fever",
    "Who may present? Impacts of lead and a trap; heart attack.",
]


def test_names_are_proposed_by_their_use_in_text():
    config = StopWordConfig(min_count=2)
    proposed = propose_stop_words(NamesIndex.build(NAMES), NAMES.__getitem__, TEXTS, config)
    counts = {each.name: (each.n, each.n_lower, each.n_verbs, each.why) for each in proposed}
    assert counts == {
        "lead": (3, 3, 2, "listed"),
        "present": (2, 2, 2, "verb"),
        "trap": (2, 2, 0, "listed"),
        "impacts": (2, 1, 0, "capitals"),
    }
    assert proposed[0].name == "lead"


def test_the_file_is_one_of_stop_words(tmp_path):
    words = propose_stop_words(
        NamesIndex.build(NAMES), NAMES.__getitem__, TEXTS, StopWordConfig(min_count=3)
    )
    write_stop_words(words, tmp_path / "stop.tsv")
    first, second = (tmp_path / "stop.tsv").read_text().splitlines()
    assert first.startswith("# ")
    assert second == "lead\t3\t3\t2\tlisted"
    assert read_stop_words(tmp_path / "stop.tsv") == ("lead",)
