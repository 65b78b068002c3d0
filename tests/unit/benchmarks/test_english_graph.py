"""MeSH's rows of places and of chemical names become one row for each concept."""

from __future__ import annotations


def test_concepts_have_the_parents_and_types_of_all_their_places(script):
    places = [
        {"mesh_id": "D1", "mesh_name": "Acids", "mesh_tree_number": "D02"},
        {"mesh_id": "D2", "mesh_name": "Aspirin", "mesh_tree_number": "D02.455"},
        {"mesh_id": "D2", "mesh_name": "Aspirin", "mesh_tree_number": "D27.100"},
    ]
    chemicals = [
        {"mesh_id": "D2", "name": "Aspirin"},
        {"mesh_id": "D2", "name": "acetylsalicylic acid"},
        {"mesh_id": "D2", "name": "a|b"},
        {"mesh_id": "C9", "name": "bevonium"},
    ]
    rows = {row["id"]: row for row in script("english_graph").mesh_rows(places, chemicals)}
    assert list(rows) == ["C9", "D1", "D2"]
    assert rows["D2"] == {
        "id": "D2",
        "name": "Aspirin",
        "synonyms": "acetylsalicylic acid",
        "parents": "D1",
        "type": "D02|D27",
    }
    assert rows["C9"]["name"] == "bevonium"
    assert rows["D1"]["parents"] == ""
