"""The steps to a reviewed map of 500 messy terms: commands, key presses, and the machine's time.

Simulated: 500 phrases of patients (AskAPatient, train split; the dictionary has one name a concept)
are mapped and imported into a review. A scripted reviewer who knows the gold concepts approves all
suggestions that score at least 0.99 at once where all of a sample of them is right, and takes the
others one by one with the keys of the page: `a` where the suggestion is right, a digit and `a`
where the concept is among the candidates, else `o`, the first letters of its name until it is among
the hits of the search, arrows and Enter. Everything goes through the store that the page uses.

What a person needs to read and think is not measured; the minutes assume so many seconds a term
(`--look`, and `--search` where the concept has to be searched) and 0.28 s a key press, the time of
an average typist in the keystroke-level model of Card, Moran and Newell (1980).

    python benchmarks/review_steps.py --json
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from machine import describe_command, describe_commit
from review_learning import build_dictionary, read_phrases, review_term
from script_options import add_data, start_parser

from biograft.compute import describe_machine
from biograft.kb import KnowledgeBase
from biograft.kb.search import NameSuggestions
from biograft.linking import Linker, build_index
from biograft.linking.dense.encoders import default_encoder
from biograft.mapping import ReviewFilter, ReviewStore, SourceTerm, export_review, map_terms

_KEY_SECONDS = 0.28
_HITS = 12
"""Concepts that the page shows for what is typed."""
_SURE = 0.99


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Review the terms, and count what was done."""
    folder = options.data / "entity_linking" / "askapatient"
    gold, counts = read_phrases(folder, "train")
    texts = random.Random(options.seed).sample(sorted(gold), options.terms)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        kb = build_dictionary(folder, work)
        build_index(kb, work / "INDEX", default_encoder(kb, ()))
        started = time.process_time()
        linker = Linker.open(kb, work / "INDEX", k=5)
        mapped = map_terms(linker, [SourceTerm(text, frequency=counts[text]) for text in texts])
        terms = [review_term(each) for each in mapped]
        mapping_seconds = time.process_time() - started
        with ReviewStore.open(work / "review.db", create=True) as store:
            store.add_terms(terms, reviewer="scripted")
            started = time.process_time()
            done = _review(store, kb, gold)
            store_seconds = time.process_time() - started
            n_exported = export_review(store, work / "terms.sssom.tsv")
            items = store.items()
    n_right = sum(item.state.concept == gold[item.term.text] for item in items)
    thinking = options.look * (options.terms - done["in bulk"] - done["searched"])
    thinking += options.search * done["searched"] + options.look * done["sampled"]
    return {
        "n_terms": options.terms,
        "n_right": n_right,
        "n_exported": n_exported,
        "commands": 4,  # kb build, map, serve (review import), learn or export
        **{key.replace(" ", "_"): n for key, n in done.items()},
        "keys_a_term": round(done["keys"] / options.terms, 2),
        "mapping_cpu_seconds": round(mapping_seconds, 2),
        "store_cpu_seconds": round(store_seconds, 2),
        "assumed": {"look": options.look, "search": options.search, "key": _KEY_SECONDS},
        "minutes": round((thinking + _KEY_SECONDS * done["keys"]) / 60, 1),
        "minutes_term_by_term": round(_term_by_term(done, options) / 60, 1),
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("review_steps.py", sys.argv[1:]),
    }


def _review(store: ReviewStore, kb: KnowledgeBase, gold: dict[str, str]) -> Counter[str]:
    done: Counter[str] = Counter(dict.fromkeys(("in bulk", "sampled", "searched", "keys"), 0))
    sure = ReviewFilter(min_score=_SURE)
    sample = store.items(where=sure, limit=20)
    done["sampled"] = len(sample)
    if all(_suggested(item) == gold[item.term.text] for item in sample):
        bulk = store.decide_many("approve", reviewer="scripted", where=sure)
        done["in bulk"] = bulk.n_changed
        done["keys"] += len("0.99") + 3  # the filter, its button, the button of all, yes
    suggestions = NameSuggestions(kb)
    for item in store.items(where=ReviewFilter(waits_for="scripted")):
        wanted = gold[item.term.text]
        candidates = [each.concept for each in item.term.candidates]
        if _suggested(item) == wanted:
            done["suggestion right"] += 1
            done["keys"] += 1
        elif wanted in candidates:
            done["among the candidates"] += 1
            done["keys"] += 2
        else:
            done["searched"] += 1
            done["keys"] += _search(suggestions, kb, wanted)
        store.decide(item.id, "approve", reviewer="scripted", version=item.version, concept=wanted)
    return done


def _suggested(item: Any) -> str | None:
    return None if item.suggestion is None else item.suggestion.concept


def _search(suggestions: NameSuggestions, kb: KnowledgeBase, wanted: str) -> int:
    """Count the key presses until a concept is chosen in the search."""
    name = kb.name_at(kb.row(wanted))
    for typed in range(1, len(name) + 1):
        hits = [hit.concept for hit in suggestions.find(name[:typed], _HITS)]
        if wanted in hits:
            return 1 + typed + (hits.index(wanted) + 1) + 1
    return 1 + len(name) + _HITS


def _term_by_term(done: Counter[str], options: argparse.Namespace) -> float:
    """Return the seconds if every term is opened and approved by itself, two presses a term."""
    searched = done["searched"]
    typed = _KEY_SECONDS * (2 * options.terms + done["keys"])
    return float(options.look * (options.terms - searched) + options.search * searched + typed)


def main() -> None:
    """Measure, and print the result."""
    parser = start_parser(__doc__)
    add_data(parser)
    parser.add_argument("--terms", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--look", type=float, default=3.0, help="seconds to judge a term")
    parser.add_argument("--search", type=float, default=10.0, help="seconds if it is searched")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.terms = 60
    result = measure(options)
    print(json.dumps(result) if options.json else result)


if __name__ == "__main__":
    main()
