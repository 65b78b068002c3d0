"""Answers limited to types and vocabularies, and explanations of the first candidate."""

import json

import pytest

from biograft.errors import ConfigError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker, table
from biograft.text.documents import Document, Mention

DISEASES = [
    {"id": "D6", "name": "Common Cold", "names": ["cold"], "type": "disease"},
    {"id": "AF", "name": "Atrial Fibrillation", "type": "disease"},
    {"id": "X1", "name": "Cold Agglutinin Disease", "type": "disease"},
]
FINDINGS = [
    {"id": "D7", "name": "Cold", "type": "finding"},
    {"id": "D8", "name": "cold floor", "type": "finding"},
]


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choice")
    sources = []
    for name, concepts in (("diseases", DISEASES), ("findings", FINDINGS)):
        path = folder / f"{name}.jsonl"
        path.write_text("\n".join(map(json.dumps, concepts)))
        sources.append(SourceConfig(path=path, format="jsonl"))
    build_store(BuildConfig(sources=tuple(sources)), folder / "kb")
    return KnowledgeBase.open(folder / "kb")


def concepts(kb, text, **settings):
    linker = Linker.open(kb, assertions=False, **settings)
    return [(mention.text, mention.concept) for mention in linker(text).mentions]


def test_the_next_right_concept_wins(kb):
    assert concepts(kb, "A cold.") == [("cold", "D7")]
    assert concepts(kb, "A cold.", types=("Disease",)) == [("cold", "D6")]
    (found,) = Linker.open(kb, types=("disease",)).link_mentions(["cold floor"])
    assert {candidate.concept for candidate in found} <= {"D6", "AF", "X1"}


def test_a_name_of_another_type_hides_none(kb):
    assert concepts(kb, "cold floor") == [("cold floor", "D8")]
    assert concepts(kb, "cold floor", types=("disease",)) == [("cold", "D6")]


def test_vocabularies(kb):
    assert len(kb.sources) == 2
    (source,) = [name for name in kb.sources if "disease" in name]
    assert concepts(kb, "A cold.", sources=(source,)) == [("cold", "D6")]
    assert concepts(kb, "A cold.", sources=(source,), types=("finding",)) == []


def test_a_value_set(kb):
    assert concepts(kb, "A cold.", value_set="* MINUS D7") == [("cold", "D6")]
    assert concepts(kb, "cold floor", value_set="D6 OR D7") == [("cold", "D7")]
    with pytest.raises(ConfigError, match="column 1: no concept"):
        Linker.open(kb, value_set="D600")


def test_more_names_are_searched_where_none_is_wanted(kb):
    document = Document("", "cold", (Mention(0, 4, "cold"),))
    linker = Linker.open(kb, types=("disease",), depth=1, k=1, assertions=False)
    assert linker(document).mentions[0].concept == "D6"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"types": ("diseas",)}, "types: the store has no 'diseas'; did you mean 'disease'?"),
        ({"sources": ("XXXX",)}, "sources: the store has no 'XXXX'; known: "),
    ],
)
def test_unknown_types_and_sources_are_refused_in_one_line(kb, settings, message):
    with pytest.raises(ConfigError) as error:
        Linker.open(kb, **settings)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


class TestExplanation:
    @pytest.fixture
    def mentions(self, kb):
        linker = Linker.open(kb, assertions=False, explain=True, types=("disease", "finding"))
        return linker("Atrial fibrillation (AF) and colds. AF.")

    def test_definitions_and_scores(self, mentions):
        *_, last = mentions.mentions
        explanation = last.explanation
        assert (explanation.form, explanation.defined_at) == ("Atrial fibrillation", (0, 19))
        (score,) = explanation.scores
        assert (score.generator, score.weight, score.score) == ("lexical", 1.0, 1.0)
        assert (explanation.name_kind, explanation.threshold) == ("preferred", 0.55)
        assert explanation.limits == ("disease", "finding")

    def test_the_order_of_concepts_with_one_name(self, kb):
        (mention,) = Linker.open(kb, assertions=False, explain=True)("cold").mentions
        assert mention.explanation.order == "kind of its name; D6 has the same score"

    def test_json_and_table(self, kb, mentions):
        first = mentions.to_json()["mentions"][0]
        assert json.loads(json.dumps(first))["explanation"]["match"].endswith("as looked up")
        plain = Linker.open(kb, assertions=False)("Atrial fibrillation")
        assert "explanation" not in plain.to_json()["mentions"][0]
        assert "    NIL: below 0.55" in table(mentions)
        assert not any(line.startswith("    ") for line in table(plain))
