from biograft.models import EncoderSettings, ModelCard, render_card

SETTINGS = EncoderSettings(pooling="cls", max_length=32, lower=True)


def card(base, **more):
    return ModelCard(base_model=str(base), method="Trained", data={}, metrics={}, **more)


def test_the_licence_is_that_of_the_base_model(tmp_path):
    folder = tmp_path / "secret" / "base"
    folder.mkdir(parents=True)
    assert card(folder).licence == "other"
    (folder / "README.md").write_text("---\ntags: [x]\nlicense: mit\n---\nlicense: apache-2.0\n")
    text = render_card(card(folder), SETTINGS)
    assert '\nlicense: "mit"\n' in text
    assert '\nbase_model: "base"\n' in text
    assert "secret" not in text
    assert card("org/model").base_name == "org/model"


def test_sources_are_named_with_their_licences():
    sources = (
        {
            "path": "/home/me/hp.obo",
            "notes": ["licence: CC-BY", "other"],
            "files": [{"sha256": "ab" * 32}],
        },
    )
    text = render_card(card("org/model", sources=sources), SETTINGS)
    assert "- `hp.obo`, abababababab, licence: CC-BY\n" in text
    assert "/home/me" not in text
    assert "the first of the states" in text
    assert "lowercased" in text
