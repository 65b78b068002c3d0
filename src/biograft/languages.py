"""Language codes: language tags of sources as ISO 639-1."""

from __future__ import annotations

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
