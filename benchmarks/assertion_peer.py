"""Time negspacy or medspaCy on sentences with marked mentions; run by assertion_speed.py.

python assertion_peer.py negspacy|medspacy RUNS, in a Python that has it, with
[[text, [[start, end], ...]], ...] as JSON on stdin.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
from typing import Any


def main() -> None:
    """Mark, time, print one JSON object."""
    sentences, peer, n_runs = json.load(sys.stdin), sys.argv[1], int(sys.argv[2])
    spacy: Any = importlib.import_module("spacy")
    nlp = spacy.blank("en")
    sentencizer = nlp.add_pipe("sentencizer")
    component = _negspacy(nlp) if peer == "negspacy" else _medspacy(nlp)
    times: list[float] = []
    flags: list[list[list[str]]] = []
    for _ in range(n_runs):
        start, flags = time.process_time(), []
        for text, spans in sentences:
            doc = nlp.make_doc(text)
            marked = [doc.char_span(*span, label="X", alignment_mode="expand") for span in spans]
            doc.set_ents(spacy.util.filter_spans([span for span in marked if span is not None]))
            doc = component(sentencizer(doc))
            found = {token.i: _flags(entity) for entity in doc.ents for token in entity}
            flags.append([found.get(span.start, []) if span else [] for span in marked])
        times.append(time.process_time() - start)
    version = importlib.import_module("importlib.metadata").version
    print(
        json.dumps(
            {
                "versions": {name: version(name) for name in (peer, "spacy")},
                "sentences_per_second": len(sentences) / statistics.median(times),
                "flags": flags,
            }
        )
    )


def _negspacy(nlp: Any) -> Any:
    importlib.import_module("negspacy.negation")
    termsets: Any = importlib.import_module("negspacy.termsets")
    terms = termsets.termset("en_clinical").get_patterns()
    return nlp.add_pipe("negex", config={"neg_termset": terms})


def _medspacy(nlp: Any) -> Any:
    importlib.import_module("medspacy.context")
    return nlp.add_pipe("medspacy_context")


def _flags(entity: Any) -> list[str]:
    """Return those of the flags of an ``Assertion`` that the peer has, too."""
    said = entity._
    if said.has("negex"):
        return ["negated"] if said.negex else []
    names = {"negated": said.is_negated, "historical": said.is_historical}
    return [name for name, is_set in names.items() if is_set]


if __name__ == "__main__":
    main()
