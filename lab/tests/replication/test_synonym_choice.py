"""Two-way choice: which places are taken, and how an encoder chooses."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tiny_models import tiny_encoder_folder
from toy_mentions import write_toy_mentions

from biograft.kb import KnowledgeBase
from biograft_lab.replication.synonym_choice import (
    SynonymChoiceSettings,
    find_places,
    measure,
)


@pytest.fixture
def toy(tmp_path):
    kb, texts = write_toy_mentions(tmp_path)
    return KnowledgeBase.open(kb), texts.read_text("utf-8").splitlines()


def test_a_place_offers_a_synonym_and_another_entity_of_equal_length(toy):
    base, texts = toy
    places = find_places(base, texts, SynonymChoiceSettings(window=9))
    assert len(places) == 20
    for place in places:
        names = {name.text for name in base[place.entity].names}
        assert {place.mention, place.synonym} == names
        assert place.other not in names
        assert len(place.other) == len(place.synonym)
        assert any(place.before + place.mention + place.after in text for text in texts)
        assert max(len(place.before), len(place.after)) <= 9
    entities = [place.entity for place in places]
    assert entities == sorted(entities, key=entities.index)


def test_texts_that_name_the_entity_again_and_repeated_texts_are_left_out(toy):
    base, texts = toy
    again = "因为胃炎症来医院看医生，说是胃部发炎。"
    assert not find_places(base, [again], SynonymChoiceSettings())
    assert find_places(base, texts + texts, SynonymChoiceSettings()) == find_places(
        base, texts, SynonymChoiceSettings()
    )
    one = find_places(base, texts, SynonymChoiceSettings(max_of_entity=1))
    assert set(Counter(place.entity for place in one).values()) == {1}


@pytest.mark.long
def test_every_arm_answers_at_every_place_with_every_seed(smoke_rows):
    rows = smoke_rows("embert-consistency")
    seeds = Counter((row["set"], row["config"]) for row in rows)
    assert seeds["probe", "start"] == 1
    assert seeds["probe", "EMBERT"] == 2
    for row in rows:
        assert len(row["right"]) == row["n"] == sum(map(int, row["documents"].split())) == 20
        assert row["acc@1"] == pytest.approx(100 * row["right"].count("1") / 20)
    answers = {row["right"] for row in rows if row["set"] == "probe"}
    assert len(answers) > 1  # encoders of other seeds answer otherwise


def test_a_name_that_is_the_mention_changes_no_state_outside_of_it(toy, tmp_path):
    """So it is chosen: the synonym is what the margins favour."""
    base, texts = toy
    places = [
        replace(place, synonym=place.mention)
        for place in find_places(base, texts, SynonymChoiceSettings())
    ]
    encoder = tiny_encoder_folder(tmp_path / "encoder", texts)
    found = measure(encoder, places, ["cosine", "probe"])
    assert (found["cosine"] > 0).all()
    assert found.keys() == {"cosine", "probe"}
