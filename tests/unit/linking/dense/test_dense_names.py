import pytest

from biograft.errors import ConfigError
from biograft.linking import collect_texts


def plain(kb, prepare, languages=()):
    """Group the names in the plainest way."""
    groups = {}
    for row in range(kb.n_names):
        name = kb.name(row)
        if not languages or name.language in languages:
            groups.setdefault(prepare(name.text), []).append(row)
    groups.pop("", None)
    return groups


@pytest.mark.parametrize("languages", [(), ("en",), ("zh", "fr")])
@pytest.mark.parametrize("prepare", [str.lower, str, lambda text: text[:1], lambda text: ""])
def test_equal_texts_are_one(make_kb, prepare, languages):
    kb = make_kb()
    names = collect_texts(kb, prepare, languages)
    grouped = {
        text: names.rows[names.starts[k] : names.starts[k + 1]].tolist()
        for k, text in enumerate(names.texts.to_pylist())
    }
    assert list(grouped.items()) == list(plain(kb, prepare, languages).items())


def test_an_unknown_language_is_refused(make_kb):
    with pytest.raises(ConfigError, match=r"languages: .* has no names in 'de'; known: en, fr, zh"):
        collect_texts(make_kb(), str, ("en", "de"))
