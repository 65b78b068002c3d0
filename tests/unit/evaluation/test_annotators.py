"""Agreement of annotators: kappa beside scikit-learn, F1 by hand, what is paired and refused."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from biograft.cli import app
from biograft.errors import ConfigError
from biograft.evaluation import compare_annotators
from biograft.metrics import Counts, cohen_kappa
from biograft.text.documents import Document, Mention
from biograft.text.formats import write_documents

TEXT = "No fever, cough and asthma."


def mention(text: str, concepts: str = "", status: str = "") -> Mention:
    start = TEXT.index(text)
    attributes = (("status", status),) if status else ()
    ids = tuple(concepts.split())
    return Mention(start, start + len(text), text, ids, attributes=attributes)


FIRST = Document(
    "1",
    TEXT,
    (mention("fever", "D1", "absent"), mention("cough", "D2"), mention("asthma", "MESH:D3")),
)
SECOND = Document("1", TEXT, (mention("fever", "D1"), mention("asthma", "D3"), mention("No")))


def kappa_by_table(first: Sequence[int], second: Sequence[int]) -> float:
    """Cohen's kappa from the table of counts, in plain loops."""
    labels = sorted({*first, *second})
    table = [[0] * len(labels) for _ in labels]
    for a, b in zip(first, second, strict=True):
        table[labels.index(a)][labels.index(b)] += 1
    n = len(first)
    observed = sum(table[k][k] for k in range(len(labels))) / n
    chance = sum(sum(table[k]) * sum(row[k] for row in table) / n**2 for k in range(len(labels)))
    return (observed - chance) / (1 - chance)


def random_labels() -> list[tuple[list[int], list[int]]]:
    rng = random.Random(7)
    pairs = []
    for _ in range(300):
        n, kinds = rng.randint(2, 40), rng.randint(2, 5)
        first = [rng.randrange(kinds) for _ in range(n)]
        second = [a if rng.random() < 0.6 else rng.randrange(kinds) for a in first]
        if len({*first, *second}) > 1:
            pairs.append((first, second))
    return pairs


def test_kappa_is_that_of_a_table_of_counts():
    for first, second in random_labels():
        pairs = list(zip(first, second, strict=True))
        assert cohen_kappa(pairs) == pytest.approx(kappa_by_table(first, second))


def test_two_annotators_by_hand():
    found = compare_annotators([FIRST], [SECOND])
    assert found.scores["spans"].counts == Counts(2, 1, 1)
    assert found.scores["mentions"].counts == Counts(2, 0, 1)
    assert (found.n_both, found.concepts, found.statuses) == (2, 1.0, 0.0)
    assert [(each.text, each.first, each.second) for each in found.differences] == [
        ("No", None, ("", "present")),
        ("fever", ("D1", "absent"), ("D1", "present")),
        ("cough", ("D2", "present"), None),
    ]
    other = compare_annotators([SECOND], [FIRST])
    for level, score in found.scores.items():
        assert score.counts.f1 == other.scores[level].counts.f1
    assert (other.concepts, other.statuses) == (found.concepts, found.statuses)


def test_documents_are_paired_by_their_ids():
    more = replace(FIRST, id="2", text="Asthma.", mentions=())
    found = compare_annotators([FIRST, more], [SECOND])
    assert (found.n_documents, found.left_out) == (1, ("2",))
    with pytest.raises(ConfigError, match="no document in common"):
        compare_annotators([FIRST], [more])
    with pytest.raises(ConfigError, match="different texts"):
        compare_annotators([FIRST], [replace(more, id="1")])


def test_the_command_compares_files_of_any_formats(tmp_path):
    paths = [str(tmp_path / "first.xml"), str(tmp_path / "second.jsonl")]
    for document, path, form in ((FIRST, paths[0], "bioc-xml"), (SECOND, paths[1], "jsonl")):
        write_documents([document], path, form)
    run = CliRunner().invoke(app, ["evaluate", "agreement", *paths, "--json"])
    answer = json.loads(run.stdout)
    assert answer["spans"]["f1"] == 66.6667
    assert (answer["kappa"], answer["differences"]) == ({"concepts": 1.0, "statuses": 0.0}, 3)
    told = CliRunner().invoke(app, ["evaluate", "agreement", *paths, "--differences"]).stdout
    assert "kappa of statuses" in told
    assert "1, 10-15: cough: D2 present / not marked" in told
