"""QuickUMLS with its own defaults, on a database of the names.

It wants a spaCy model and NLTK's stop words, which are downloads: a blank English pipeline and a
short list stand in for them, so that the time of the tagger is *not* counted against it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from worker import read_json

PACKAGES = ("quickumls",)
STOP_WORDS = "a an and are as at be by for from in is it of on or that the to was were with".split()


def build(work: Path, settings: dict[str, Any]) -> None:
    """Make the databases as its installer does."""
    install: Any = importlib.import_module("quickumls.install")
    folder = work / "quickumls"
    folder.mkdir()
    (folder / "database_backend.flag").write_text("unqlite")
    (folder / "language.flag").write_text("ENG")
    (folder / "lowercase.flag").write_text("")
    pairs = read_json(work, "names.json")
    terms = ((name.lower(), concept, {"T047"}, 1) for concept, name in pairs)
    places = (folder / "umls-simstring.db", folder / "cui-semtypes.db")
    install.parse_and_encode_ngrams(terms, *map(str, places), "unqlite")


def _open(folder: Path) -> Any:
    spacy: Any = importlib.import_module("spacy")
    corpus: Any = importlib.import_module("nltk.corpus")

    class StopWords:
        """Stands in for NLTK's list."""

        @staticmethod
        def words(_: str = "") -> list[str]:
            return STOP_WORDS

    corpus.stopwords = StopWords
    spacy.load = lambda _: spacy.blank("en")
    return importlib.import_module("quickumls").QuickUMLS(str(folder))


def open_text(work: Path, settings: dict[str, Any]) -> Callable[[str], Any]:
    """Return the best candidate of each span."""
    matcher = _open(work / "quickumls")
    return lambda text: [
        (best["start"], best["end"], best["cui"]) for best, *_ in matcher.match(text)
    ]
