"""Language codes: language tags of sources as ISO 639-1, and languages by their script."""

from __future__ import annotations

import re

from biograft.text import HAN_CHARACTER

_THREE_LETTERS = {
    "ara": "ar", "baq": "eu", "bul": "bg", "chi": "zh", "cze": "cs", "dan": "da", "dut": "nl",
    "eng": "en", "est": "et", "fin": "fi", "fre": "fr", "ger": "de", "gre": "el", "heb": "he",
    "hun": "hu", "ita": "it", "jpn": "ja", "kor": "ko", "lav": "lv", "nor": "no", "pol": "pl",
    "por": "pt", "rus": "ru", "scr": "hr", "spa": "es", "swe": "sv", "tur": "tr", "ukr": "uk",
    "zho": "zh", "deu": "de", "fra": "fr", "nld": "nl", "ces": "cs", "ell": "el", "eus": "eu",
    "hrv": "hr", "fas": "fa", "per": "fa", "rum": "ro", "ron": "ro", "slo": "sk", "slk": "sk",
}  # fmt: skip


def language_code(tag: str) -> str:
    """Convert a language tag of any kind (``ENG``, ``en-US``, ``zh_CN``) into ISO 639-1.

    >>> [language_code(tag) for tag in ("ENG", "zh-Hans", "de")]
    ['en', 'zh', 'de']
    """
    primary = tag.strip().lower().replace("_", "-").split("-")[0]
    return _THREE_LETTERS.get(primary, primary)


def language_codes(tags: str) -> tuple[str, ...]:
    """Convert comma-separated language tags into ISO 639-1.

    Args:
        tags: Such as ``ENG, zh-CN``; empty items are dropped.

    >>> language_codes("ENG, zh-CN")
    ('en', 'zh')
    """
    return tuple(language_code(tag) for tag in tags.split(",") if tag.strip())


_KANA = re.compile("[\u3040-\u30ff]")


def language_of_script(text: str) -> str:
    """Return the language of a name of which nothing is said: Chinese, Japanese, else English.

    >>> [language_of_script(name) for name in ("2型糖尿病", "アレルギー", "diabetes")]
    ['zh', 'ja', 'en']
    """
    if _KANA.search(text):
        return "ja"
    return "zh" if HAN_CHARACTER.search(text) else "en"
