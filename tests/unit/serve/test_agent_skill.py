"""A scripted model that invents codes follows the skill: none of what it invents is answered."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from generative_store import store_in

pytest.importorskip("pydantic", reason="the extra `mcp` is not installed")
from biograft.errors import ConfigError, InputError, NotFoundError
from biograft.kb import KnowledgeBase
from biograft.serve import ServiceEngine
from biograft.serve.agent_sets import ServedSets
from biograft.serve.agent_tools import TOOLS, ConceptTools, ToolCalls, ToolError

ROOT = Path(__file__).parents[3]
SKILL = (ROOT / "skills/ground-medical-codes/SKILL.md").read_text(encoding="utf-8")
KEPT = ("preferred", "synonym")


class ScriptedModel:
    """Writes codes from memory, and follows steps 2, 5 and 6 of the skill with them."""

    def __init__(self, calls: ToolCalls) -> None:
        self._ask = calls.call

    def answer(self, memory: list[tuple[str, str]]) -> dict[str, str]:
        """Return the codes that it answers with, by term."""
        codes = [{"id": code, "label": label} for code, label in memory]
        checked = self._ask("check", {"codes": codes})["codes"]
        kept = {each["label"]: each["id"] for each in checked if each["status"] in KEPT}
        retired = {
            each["label"]: each["replaced_by"][0]
            for each in checked
            if each["status"] == "retired" and each.get("replaced_by")
        }
        left = [label for _, label in memory if label not in kept and label not in retired]
        terms = self._ask("map_terms", {"terms": left})["terms"] if left else []
        changed = list(retired.values())
        changed += [each["concept"] for each in terms if each["concept"]]
        again = [{"id": each["id"], "label": each["label"]} for each in changed]
        for each in self._ask("check", {"codes": again})["codes"] if again else []:
            if each["status"] in KEPT:
                kept[each["label"]] = each["id"]
        return kept


@pytest.fixture(scope="module")
def tools(starter):
    return ToolCalls(ConceptTools(ServiceEngine.open(starter)))


def invented(kb, rows):
    """Wrong pairs of id and label: a changed digit, another concept's id, none at all."""
    for row, other in zip(rows, (*rows[7:], *rows[:7]), strict=True):
        code, label = kb.id_at(row), kb.name_at(row)
        yield code[:-1] + str((int(code[-1]) + 1) % 10), label
        yield kb.id_at(other), label
        yield code + "7", label
        yield code, f"{label} of unknown cause 7"
        yield f"HP:{code[1:]}", label


def test_nothing_that_a_model_invents_passes_the_check(tools, starter):
    kb = KnowledgeBase.open(starter)
    rows = [row for row in range(len(kb)) if kb.id_at(row)[-1].isdigit()][:120]
    named = {each: {name.text.casefold() for name in kb.names_at(each)} for each in range(len(kb))}
    wrong = [
        (code, label)
        for code, label in invented(kb, rows)
        if (row := kb.find_row(code)) is None or label.casefold() not in named[row]
    ]
    assert len(wrong) > 500
    for start in range(0, len(wrong), 200):
        part = [{"id": code, "label": label} for code, label in wrong[start : start + 200]]
        answer = tools.call("check", {"codes": part})
        assert not [each for each in answer["codes"] if each["status"] in (*KEPT, "no_label")]
        assert answer["n_wrong"] == len(part)


def test_right_codes_pass(tools, starter):
    kb = KnowledgeBase.open(starter)
    codes = [{"id": kb.id_at(row), "label": kb.name_at(row)} for row in range(100)]
    assert {each["status"] for each in tools.call("check", {"codes": codes})["codes"]} == {
        "preferred"
    }


CONCEPTS = [
    {
        "id": "HP:0001945",
        "name": "Fever",
        "names": [{"text": "Pyrexia"}],
        "ids": [{"id": "HP:0000057", "kind": "replaced"}],
    },
    {"id": "HP:0001250", "name": "Seizure", "relations": {"is-a": ["HP:0000707"]}},
    {"id": "HP:0002315", "name": "Headache", "relations": {"is-a": ["HP:0000707"]}},
    {"id": "HP:0000707", "name": "Abnormality of the nervous system"},
]
FROM_MEMORY = [
    ("HP:0001945", "Pyrexia"),  # right
    ("HP:0000057", "fever"),  # retired
    ("HP:9999999", "headache"),  # invented
    ("HP:0002315", "seizure"),  # another's
    ("HP:0001251", "toothache of a wombat"),  # invented, and no such concept
]


@pytest.fixture
def small(tmp_path):
    kb = store_in(tmp_path, CONCEPTS)
    (tmp_path / "to-icd.sssom.tsv").write_text(
        "#curie_map:\n#  HP: http://purl.obolibrary.org/obo/HP_\n"
        "#  ICD10: http://hl7.org/fhir/sid/icd-10/\n"
        "subject_id\tpredicate_id\tobject_id\tobject_label\tmapping_justification\t"
        "predicate_modifier\n"
        "HP:0001945\tskos:broadMatch\tICD10:R50-R69\tGeneral\tsemapv:LexicalMatching\t\n"
        "HP:0001945\tskos:exactMatch\tICD10:R50.9\tFever\tsemapv:ManualMappingCuration\t\n"
        "HP:0002315\tskos:exactMatch\tICD10:R50.9\t\tsemapv:LexicalMatching\tNot\n"
        "HP:0001250\tskos:exactMatch\tsssom:NoTermFound\t\tsemapv:ManualMappingCuration\t\n"
    )
    (tmp_path / "allowed.txt").write_text("HP:0001945\nHP:0001250\n")
    engine = ServiceEngine.open(kb)
    sets = ServedSets(engine.kb, [tmp_path / "to-icd.sssom.tsv"], [tmp_path / "allowed.txt"])
    return ToolCalls(ConceptTools(engine, sets))


def test_a_model_that_invents_codes_answers_with_none_of_them(small):
    answered = ScriptedModel(small).answer(FROM_MEMORY)
    assert answered == {
        "Pyrexia": "HP:0001945",
        "Fever": "HP:0001945",
        "Headache": "HP:0002315",
        "Seizure": "HP:0001250",
    }


def test_codes_are_translated_by_mapping_sets_alone(small):
    ids = ["HP:0001945", "HP:0000057", "HP:0001250", "HP:0002315", "HP:1"]
    fever, *others = small.call("translate", {"ids": ids})["codes"]
    first, second = fever["mappings"]
    assert first == {
        "id": "ICD10:R50.9",
        "label": "Fever",
        "relation": "exact",
        "decided": True,
        "mapping_set": "to-icd",
    }
    assert (second["relation"], second["decided"]) == ("broad", False)
    assert [each["mappings"] for each in others] == [[], [], [], []]
    back = small.call("translate", {"ids": ["ICD10:R50-R69", "ICD10:R50.9"], "reverse": True})
    found = [[(m["id"], m["label"], m["relation"]) for m in c["mappings"]] for c in back["codes"]]
    assert found == [[("HP:0001945", "Fever", "narrow")], [("HP:0001945", "Fever", "exact")]]
    with pytest.raises(ToolError, match="no mapping set is called 'to-icf'; did you mean 'to-icd'"):
        small.call("translate", {"ids": ids, "mapping_set": "to-icf"})


@pytest.mark.parametrize(
    ("value_set", "members"),
    [
        ("allowed", [True, True, False, False]),
        ("<< HP:0000707", [False, True, True, True]),
        ("^ allowed MINUS << HP:0000707", [True, False, False, False]),
    ],
)
def test_codes_of_a_value_set(small, value_set, members):
    ids = ["HP:0001945", "HP:0001250", "HP:0002315", "HP:0000707", "HP:9999999"]
    answer = small.call("in_value_set", {"value_set": value_set, "ids": ids})
    *known, unknown = answer["codes"]
    assert [each["member"] for each in known] == members
    assert (unknown["member"], "error" in unknown) == (False, True)
    n = sum(members)
    page = small.call("expand_value_set", {"value_set": value_set, "limit": 1, "offset": n - 1})
    assert (page["total"], len(page["concepts"])) == (n, 1)
    everything = small.call("expand_value_set", {"value_set": value_set})
    assert {each["id"] for each in everything["concepts"]} == {
        code for code, member in zip(ids, members, strict=False) if member
    }


def test_files_that_are_not_served_are_not_read(small, tmp_path):
    """An expression names files, and a model must not choose which are opened."""
    for named in ("denied", str(tmp_path / "allowed.txt"), f"^ {tmp_path / 'allowed.txt'}"):
        with pytest.raises(ToolError, match="no value set"):
            small.call("expand_value_set", {"value_set": named})


def test_sets_that_cannot_be_served_are_refused_at_the_start(starter, tmp_path):
    kb = KnowledgeBase.open(starter)
    with pytest.raises(InputError, match="does not exist"):
        ServedSets(kb, [tmp_path / "none.tsv"])
    files = [tmp_path / "allowed.txt", tmp_path / "allowed.json"]
    for file in files:
        file.write_text("{}")
    with pytest.raises(ConfigError, match="two files are called 'allowed'"):
        ServedSets(kb, (), files)
    with pytest.raises(NotFoundError, match="no mapping set is called 'none'"):
        list(ServedSets(kb).translations("X", "none", False))


def test_what_is_surest_of_several_mappings_comes_first(tmp_path):
    """Exact before close before broad; of one relation, what a person decided before the rest."""
    kb = store_in(tmp_path, CONCEPTS)
    given = [
        ("broad", "B1", "ManualMappingCuration"),
        ("close", "C1", "LexicalMatching"),
        ("exact", "E1", "LexicalMatching"),
        ("close", "C2", "ManualMappingCuration"),
        ("exact", "E2", "MappingReview"),
    ]
    (tmp_path / "all.sssom.tsv").write_text(
        "subject_id\tpredicate_id\tobject_id\tmapping_justification\n"
        + "".join(
            f"HP:0001945\tskos:{relation}Match\tICD10:{code}\tsemapv:{why}\n"
            for relation, code, why in given
        )
    )
    engine = ServiceEngine.open(kb)
    calls = ToolCalls(ConceptTools(engine, ServedSets(engine.kb, [tmp_path / "all.sssom.tsv"])))
    (asked,) = calls.call("translate", {"ids": ["HP:0001945"]})["codes"]
    found = [each["id"] for each in asked["mappings"]]
    assert found == [f"ICD10:{code}" for code in ("E2", "E1", "C2", "C1", "B1")]


def test_every_answer_names_store_and_version(small):
    asked = [
        ("search", {"text": "fever"}),
        ("check", {"codes": [{"id": "HP:1"}]}),
        ("translate", {"ids": ["HP:1"]}),
        ("expand_value_set", {"value_set": "allowed"}),
        ("versions", {}),
    ]
    for tool, arguments in asked:
        answer = small.call(tool, arguments)
        assert answer["store"]
        assert re.fullmatch(r"\S+ [0-9a-f]{12}", answer["version"])
    assert (answer["mapping_sets"], answer["value_sets"]) == (["to-icd"], ["allowed"])


def test_the_skill_and_llms_txt_name_what_there_is(small):
    words = set(re.findall(r"`([a-z_]+)`", SKILL))
    answered = json.dumps([each["description"] for each in small.described])
    fields = {"biograft", "concept", "flag", "status", "relation", "store", "version", "consider"}
    assert {"map_terms", "link_text", "check", "translate", "in_value_set", "versions"} <= words
    assert not [each for each in words - set(TOOLS) - fields if each not in answered]
    assert re.match(r"---\nname: ground-medical-codes\ndescription: .{50,1000}\n---\n", SKILL)
    index = (ROOT / "docs/llms.txt").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", index)
    assert len(links) > 10
    assert not [each for each in links if not (ROOT / "docs" / each).is_file()]
