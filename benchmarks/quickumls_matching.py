"""Time QuickUMLS 1.4 on names and text; run by annotation_speed.py with another interpreter.

python quickumls_matching.py FOLDER RUNS, where FOLDER holds names.txt and text.txt, a line each.

It wants a spaCy model and NLTK's stop words, which are downloads: a blank English pipeline and a
short list stand in for them, so that the time of the tagger is *not* counted against it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

STOP_WORDS = "a an and are as at be by for from in is it of on or that the to was were with".split()
NAMES_PER_CONCEPT = 4


def main() -> None:
    """Index, match, print one JSON object."""
    folder, n_runs = Path(sys.argv[1]), int(sys.argv[2])
    with contextlib.redirect_stdout(sys.stderr):  # it warns on standard output
        result = measure(folder, n_runs)
    print(json.dumps(result))


def measure(folder: Path, n_runs: int) -> dict[str, Any]:
    """Make the databases as its installer does, and match with the settings that it comes with."""
    names = (folder / "names.txt").read_text(encoding="utf-8").splitlines()
    lines = (folder / "text.txt").read_text(encoding="utf-8").splitlines()
    start = time.perf_counter()
    _install(names, folder / "quickumls")
    build_seconds = time.perf_counter() - start
    matcher = _open(folder / "quickumls")
    times, n_spans = [], 0
    for _ in range(n_runs):
        begun = time.process_time()
        n_spans = sum(len(matcher.match(line)) for line in lines)
        times.append(time.process_time() - begun)
    megabytes = sum(len(line.encode()) + 1 for line in lines) / 1e6
    return {
        "text_mb": megabytes,
        "build_seconds": build_seconds,
        "mb_per_second": megabytes / statistics.median(times),
        "n_spans": n_spans,
    }


def _install(names: list[str], folder: Path) -> None:
    install: Any = importlib.import_module("quickumls.install")
    folder.mkdir()
    (folder / "database_backend.flag").write_text("unqlite")
    (folder / "language.flag").write_text("ENG")
    (folder / "lowercase.flag").write_text("")
    terms = (
        (name.lower(), f"C{n // NAMES_PER_CONCEPT:07}", {"T047"}, 1) for n, name in enumerate(names)
    )
    places = (folder / "umls-simstring.db", folder / "cui-semtypes.db")
    install.parse_and_encode_ngrams(terms, *map(str, places), "unqlite")


def _open(folder: Path) -> Any:
    spacy: Any = importlib.import_module("spacy")
    corpus: Any = importlib.import_module("nltk.corpus")

    class StopWords:
        """What QuickUMLS asks of NLTK's list."""

        @staticmethod
        def words(_: str = "") -> list[str]:
            return STOP_WORDS

    corpus.stopwords = StopWords
    spacy.load = lambda _: spacy.blank("en")
    return importlib.import_module("quickumls").QuickUMLS(str(folder))


if __name__ == "__main__":
    main()
