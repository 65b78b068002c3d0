"""Decisions: what they must state, and their files in SSSOM TSV."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from biograft.errors import ConfigError, FormatError
from biograft.mapping import (
    RELATIONS,
    VERDICTS,
    Decision,
    MappingSet,
    concept_curie,
    concept_of,
    read_decisions,
)

DECISIONS = [
    Decision(
        term="hart atack",
        code="I 21",
        concept="D009203",
        name="Myocardial Infarction",
        relation="broad",
        verdict="approved",
        author="Ada",
        reviewer="orcid:0000-0002-1825-0097",
        time="2026-11-24T09:30:00Z",
        probability=0.75,
        frequency=12,
        context="unit: mg/dL",
    ),
    Decision(term="n/a", verdict="nil", author="Ada", comment='two\tlines,\n"quoted"'),
    Decision(term="flu", concept="E11 9", name="x", verdict="rejected", time="2026-11-24"),
    Decision(term="感冒", concept="HP:0001250", verdict="proposed", probability=0.5),
]


def test_a_file_of_another_tool_is_read(tmp_path):
    path = tmp_path / "m.tsv"
    path.write_text(
        "# curie_map:\n#   HP: http://purl.obolibrary.org/obo/HP_\n# mapping_date: 2020-05-30\n"
        "# object_source_version: 2024-01\n"
        "subject_id\tpredicate_id\tobject_id\tmapping_justification\treviewer_id\tother\n"
        "FOOD:1\tskos:exactMatch\tHP:0009124\tsemapv:LexicalMatching\torcid:1\tx\n"
        "FOOD:2\toboInOwl:hasDbXref\tsssom:NoTermFound\tsemapv:LexicalMatching\t\tx\n",
        "utf-8",
    )
    first, second = read_decisions(path)
    assert (first.code, first.concept, first.verdict) == ("FOOD:1", "HP:0009124", "approved")
    assert (first.time, first.store) == ("2020-05-30", "2024-01")
    assert (second.relation, second.verdict, second.concept) == ("related", "proposed", "")


def test_metadata_beside_the_file_is_read(tmp_path):
    MappingSet.of_decisions(DECISIONS, source="lab").write(tmp_path / "all.tsv")
    lines = (tmp_path / "all.tsv").read_text("utf-8").splitlines(keepends=True)
    beside = [line[1:] for line in lines if line.startswith("#")]
    (tmp_path / "x.sssom.yml").write_text("".join(beside), "utf-8")
    (tmp_path / "x.sssom.tsv").write_text("".join(lines[len(beside) :]), "utf-8")
    assert MappingSet.read(tmp_path / "x.sssom.tsv").source == "lab"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("#a\nsubject_id\tx\n", "names and values"),
        ("subject_id\tpredicate_id\tobject_id\nA:1\tx\tB:1\n", ":1: .*_justific"),
        ("#a: [\nsubject_id\tx\n", "YAML"),
        (
            "subject_id\tpredicate_id\tobject_id\tmapping_justification\tconfidence\n"
            "A:1\tskos:exactMatch\tB:1\tsemapv:LexicalMatching\t1.5\n",
            ":2: confidence: expected a number from 0 to 1",
        ),
        (
            "subject_id\tpredicate_id\tobject_id\tmapping_justification\n"
            "A:1\tskos:exactMatch\tB:1\n",
            ":2: 3 cells, expected 4",
        ),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, text, problem):
    path = tmp_path / "d.tsv"
    path.write_text(text, "utf-8")
    with pytest.raises(FormatError, match=problem):
        read_decisions(path)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"term": " "}, "term or a code"),
        ({"time": "2026-02-30"}, "time"),
        ({"comment": "a\0b"}, "comment"),
        ({"verdict": "maybe"}, "verdict"),
        ({"verdict": "approved"}, "concept: expected an id"),
        ({"verdict": "nil", "concept": "D1"}, "concept: expected none"),
        ({"reviewer": "Bo"}, "reviewer"),
        ({"time": "2026-02-03T10:00:00"}, "time"),
        ({"name": "a\nb"}, "name: .* one line"),
    ],
)
def test_a_decision_is_checked(fields, problem):
    with pytest.raises(ConfigError, match=problem):
        Decision(**{"term": "flu"} | fields)


TEXT = "aZ5 é中\u2028\U0001f600\"'|#=%:;,/\\"
LINE = st.text(TEXT, max_size=6).map(str.strip)


@st.composite
def decisions(draw):
    verdict = draw(st.sampled_from(VERDICTS))
    concept = draw(LINE.filter(bool)) if verdict in ("approved", "rejected") else ""
    comment = draw(st.text(f"{TEXT}\n\t", max_size=6)).strip()
    return Decision(
        term=draw(LINE.filter(bool)),
        code=draw(LINE),
        context=draw(LINE),
        concept=concept_of(concept_curie(concept)),
        name=draw(LINE),
        relation=draw(st.sampled_from(RELATIONS)),
        verdict=verdict,
        author=draw(LINE),
        reviewer="" if verdict == "proposed" else draw(LINE),
        time=draw(st.sampled_from(["", "2026-01-31", "2026-01-31T23:59:59Z"])),
        comment=comment,
        probability=draw(st.none() | st.floats(0, 1)),
        store=draw(LINE),
        frequency=draw(st.integers(1, 99)),
    )


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])  # of a busy machine
@given(st.lists(decisions(), max_size=4))
def test_any_decisions_are_read_as_written(tmp_path_factory, written):
    path = tmp_path_factory.mktemp("sssom") / "d.tsv"
    MappingSet.of_decisions(written).write(path)
    assert read_decisions(path) == written
