"""Time negspacy on sentences with marked mentions; run by assertion_speed.py in another Python.

python negspacy_sentences.py RUNS, with [[text, [[start, end], ...]], ...] as JSON on stdin.
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
    sentences, n_runs = json.load(sys.stdin), int(sys.argv[1])
    spacy: Any = importlib.import_module("spacy")
    importlib.import_module("negspacy.negation")
    termsets: Any = importlib.import_module("negspacy.termsets")
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    terms = termsets.termset("en_clinical").get_patterns()
    negex = nlp.add_pipe("negex", config={"neg_termset": terms})
    sentencizer = nlp.get_pipe("sentencizer")
    times: list[float] = []
    negated: list[list[bool]] = []
    for _ in range(n_runs):
        start, negated = time.process_time(), []
        for text, spans in sentences:
            doc = nlp.make_doc(text)
            marked = [doc.char_span(*span, label="X", alignment_mode="expand") for span in spans]
            doc.set_ents(spacy.util.filter_spans([span for span in marked if span is not None]))
            doc = negex(sentencizer(doc))
            found = {token.i for entity in doc.ents if entity._.negex for token in entity}
            negated.append([bool(span) and span.start in found for span in marked])
        times.append(time.process_time() - start)
    seconds = statistics.median(times)
    print(
        json.dumps(
            {
                "versions": {"spacy": spacy.__version__},
                "sentences_per_second": len(sentences) / seconds,
                "negated": negated,
            }
        )
    )


if __name__ == "__main__":
    main()
