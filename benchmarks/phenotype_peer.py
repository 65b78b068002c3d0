"""Time one tool that finds phenotypes in texts; run by phenotype_speed.py.

python phenotype_peer.py biograft|fasthpocr|spacy INDEX SETTINGS TEXTS, in a Python that has it.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Find = Callable[[list[str]], int]


def _biograft(folder: str, settings: dict[str, Any]) -> Find:
    linking: Any = importlib.import_module("biograft.linking")
    kb, index = Path(folder) / "kb", Path(folder) / "index"
    linker = linking.Linker.open(kb, index, k=1, mentions="find", **settings)
    return lambda texts: sum(len(linked.mentions) for linked in linker.pipe(texts))


def _fasthpocr(index: str, _: dict[str, Any]) -> Find:
    annotator = importlib.import_module("FastHPOCR.HPOAnnotator").HPOAnnotator(index)
    return lambda texts: sum(len(annotator.annotate(text)) for text in texts)


def _spacy(names: str, _: dict[str, Any]) -> Find:
    nlp: Any = importlib.import_module("spacy").blank("en")
    matcher: Any = importlib.import_module("spacy.matcher").PhraseMatcher(nlp.vocab, attr="LOWER")
    matcher.add("HPO", list(map(nlp.make_doc, json.loads(Path(names).read_text()))))
    return lambda texts: sum(len(matcher(nlp.make_doc(text))) for text in texts)


_TOOLS = {"biograft": _biograft, "fasthpocr": _fasthpocr, "spacy": _spacy}


def main() -> None:
    """Open, find, print one JSON object."""
    tool, index, settings, file = sys.argv[1:]
    texts = json.loads(Path(file).read_text())
    find = _TOOLS[tool](index, json.loads(settings))
    started = time.process_time()
    n_found = find(texts)
    done = time.process_time()
    print(json.dumps({"process": done, "search": done - started, "found": n_found}))


if __name__ == "__main__":
    main()
