import pytest

from biograft.kb.names import language_code


@pytest.mark.parametrize(
    ("tags", "code"),
    [
        (("en", "ENG", "eng", "en-US", "en_GB", " En "), "en"),
        (("zh", "CHI", "zho", "zh-Hans", "zh_CN", "zh-Hant-TW"), "zh"),
        (("GER", "deu", "de-AT"), "de"),
        (("FRE", "fra"), "fr"),
        (("SCR", "hrv"), "hr"),
        (("BAQ", "eus"), "eu"),
        (("xx",), "xx"),
        (("",), ""),
    ],
)
def test_every_spelling_of_a_language_has_one_code(tags, code):
    assert {language_code(tag) for tag in tags} == {code}
    assert language_code(code) == code
