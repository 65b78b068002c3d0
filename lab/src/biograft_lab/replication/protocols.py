"""Protocols of entity linking: what a linker is given, and how its answers are judged.

A :class:`LinkingTask` is one split of a set by one protocol. Its :meth:`~LinkingTask.measure` makes
the row of results of any linker, with a paired test against lexical search by the same protocol, so
that rows of several experiments can stand in one table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from biograft.config import check_choice
from biograft.errors import ConfigError
from biograft.evaluation import (
    TEXT_FORMATS,
    EvaluationConfig,
    Gold,
    LinkingResult,
    LinkQuery,
    ScoredQueries,
    StoreIds,
    TextResult,
    compare,
    drop_queries,
    evaluate_linking,
    evaluate_text,
    find_mistakes,
    read_gold_texts,
    resolve_gold,
    save_answers,
    score_reachable,
)
from biograft.evaluation.analysis import count_causes
from biograft.kb import KnowledgeBase
from biograft.linking import Linker, build_index
from biograft.linking.config import LinkerConfig
from biograft.linking.fusion import FusedSearch
from biograft.linking.index import LEXICAL
from biograft.linking.lexical import LexicalIndex
from biograft.linking.queries import is_name_of
from biograft.metrics import Counts, paired_counts
from biograft.progress import Progress
from biograft.text.documents import Document
from biograft_lab.replication.linking_dictionaries import IDS, NAMES, ONTOLOGY, PUBLISHED
from biograft_lab.replication.linking_sets import SETS, LinkingSet
from biograft_lab.replication.results import Row, pack_flags, pack_sizes, read_result, write_result

NOT_A_NAME = "not a name"
"""The part of the queries whose mention is no name of its concept in the dictionary."""
METRICS = ("acc@1", "acc@5", "recall@30", "mrr")
COMPARED = ("acc@1", "acc@5", "mrr")
"""Metrics with a paired test against lexical search."""
PLAIN = LinkerConfig(appositions=False, misspelt=False, threshold=0.0)
"""The linker of the lexical floor: a mention is looked up without the mentions beside it, and is
never answered by NIL."""
LEVELS_COMPARED = {"f1": "mentions", "spans_f1": "spans", "documents_f1": "documents"}
"""F1 of raw text with a paired test, and its level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """The dictionary, the mentions and the scorer of a protocol."""

    title: str
    dictionary: str
    raw: bool = False
    """Mentions as annotated in the texts, not as their publishers edited them."""
    scorer: str = "lenient"
    text: bool = False
    """The linker finds the mentions itself."""
    whole: bool = False
    """A composite mention is right if the linker finds all its concepts and no other."""


PROTOCOLS = {
    "ontology": Protocol(title="ontology only", dictionary=ONTOLOGY),
    "published": Protocol(title="published, lenient", dictionary=PUBLISHED),
    "strict": Protocol(title="strict, one concept", dictionary=ONTOLOGY, raw=True, scorer="strict"),
    "text": Protocol(title="raw text", dictionary=PUBLISHED, raw=True, text=True),
    "sets": Protocol(
        title="all concepts", dictionary=PUBLISHED, raw=True, scorer="strict", whole=True
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingTask:
    """One split of a set by one protocol, with the protocol's dictionary unless one is named."""

    set: str
    protocol: str = "published"
    split: str = "test"
    dictionary: str = ""

    def __post_init__(self) -> None:
        check_choice("set", self.set, tuple(SETS))
        check_choice("protocol", self.protocol, tuple(PROTOCOLS))
        object.__setattr__(self, "dictionary", self.dictionary or self.rules.dictionary)
        check_choice("dictionary", self.dictionary, tuple(self.chosen.dictionaries))
        if self.rules.text and self.chosen.format not in TEXT_FORMATS:
            raise ConfigError(f"{self.set}: has no texts with all mentions for protocol 'text'")

    @property
    def rules(self) -> Protocol:
        """The rules of the protocol."""
        return PROTOCOLS[self.protocol]

    @property
    def chosen(self) -> LinkingSet:
        """The set with the mentions of the protocol."""
        given = SETS[self.set]
        return SETS[given.raw] if self.rules.raw and given.raw else given

    @property
    def key(self) -> Row:
        """Key of the rows of this task, without the system."""
        return {
            "set": self.set,
            "protocol": self.protocol,
            "dictionary": self.dictionary,
            "split": self.split,
            "scorer": self.rules.scorer,
        }

    @property
    def floor(self) -> LinkingTask:
        """The task of the lexical floor: the same without names by cross-reference or more ids."""
        return replace(self, dictionary=self.dictionary.removesuffix(IDS).removesuffix(NAMES))

    def folder(self, work: Path) -> Path:
        """Return the folder of the store and of what is made from it."""
        return SETS[self.set].folder(work, self.split, self.dictionary)

    def open_store(self, data: Path, work: Path) -> KnowledgeBase:
        """Open the store of the dictionary, building it first if needed."""
        return SETS[self.set].open_store(data, self.split, work, self.dictionary)

    def read_queries(
        self, data: Path, kb: KnowledgeBase, *, with_texts: bool = False
    ) -> tuple[Gold, Sequence[LinkQuery]]:
        """Read the gold mentions, and return them with the queries that are judged.

        One concept: a mention is one query, and any of its gold concepts is right.
        """
        gold = self.chosen.read_gold(data, self.split, with_texts=with_texts)
        gold = drop_queries(gold, kb, self.chosen.drops)
        if self.rules.scorer != "strict" or self.rules.whole:
            return gold, gold.queries
        resolved = resolve_gold(gold.queries, StoreIds(kb)).queries
        return gold, [
            replace(q, parts=(q.mention,), needed=(q.gold,), gold_names=()) for q in resolved
        ]

    def measure(
        self,
        linker: Linker,
        data: Path,
        work: Path,
        *,
        is_floor: bool = False,
        with_texts: bool = False,
    ) -> Row:
        """Evaluate a linker of this task's store, and return its row of results.

        The row has n, metrics with intervals over documents, and the paired tests against lexical
        search (``against_lexical``), unless this is lexical search (``is_floor``).
        """
        if self.rules.text:
            return self._measure_text(linker, data, work, is_floor=is_floor)
        gold, queries = self.read_queries(data, linker.kb, with_texts=with_texts)
        config = EvaluationConfig(split_mentions=self.rules.whole)
        result = evaluate_linking(linker, linker.kb, queries, self.rules.scorer, config)
        row = {
            **metrics_of(result),
            "causes": _causes(result, linker.kb),
            "left_out": {**gold.log.rejected.counts, **gold.log.filtered},
            **answers_of(result, {NOT_A_NAME: [not _has_name(linker.kb, q) for q in queries]}),
        }
        return self._described(row, linker.kb) | self._against(result, data, work, is_floor)

    def _measure_text(self, linker: Linker, data: Path, work: Path, *, is_floor: bool) -> Row:
        documents = read_texts(self.chosen, self.split, data, self.chosen.config.types)
        result = evaluate_text(linker, documents, progress=Progress())
        row = self._described(text_metrics(result), linker.kb)
        file = self.floor._floor_file(work)
        counts = {level: [_cells(c) for c in of] for level, of in result.documents.items()}
        if is_floor:
            write_result(file, {"documents": counts})
            return row
        floor = self.floor
        if not file.exists():
            floor.measure(floor.open_lexical(data, work), data, work, is_floor=True)
        other = read_result(file)["documents"]
        tests = {
            name: _text_test(result.documents[level], [Counts(*cells) for cells in other[level]])
            for name, level in LEVELS_COMPARED.items()
        }
        return row | {"against_lexical": tests}

    def _against(self, result: LinkingResult, data: Path, work: Path, is_floor: bool) -> Row:
        """Compare with lexical search, whose answers are kept in the folder of work."""
        floor, file = self.floor, self.floor._floor_file(work)
        if is_floor:
            save_answers(result, file, overwrite=True)
            return {}
        if not file.exists():
            floor.measure(floor.open_lexical(data, work), data, work, is_floor=True)
        found = compare(result, ScoredQueries.load(file), COMPARED)
        return {"against_lexical": {each.metric: each.to_json() for each in found}}

    def _floor_file(self, work: Path) -> Path:
        parts = (self.set, self.protocol, self.dictionary, self.split)
        return work / "lexical-answers" / f"{'-'.join(parts)}.json"

    def open_lexical(self, data: Path, work: Path) -> Linker:
        """Open the linker of the lexical floor, building its index if needed."""
        kb = self.open_store(data, work)
        search = FusedSearch([open_lexical_index(self.folder(work), kb)])
        return Linker(kb, search, config=PLAIN)

    def _described(self, row: Row, kb: KnowledgeBase) -> Row:
        about = {"n_names": kb.n_names, "n_concepts": len(kb), "seeds": {"bootstrap": 0}}
        return {**row, **about, "note": self.chosen.note}


def read_texts(
    chosen: LinkingSet, split: str, data: Path, types: Sequence[str] = ()
) -> Sequence[Document]:
    """Read the documents of a split with their mentions of some types; no types: of all."""
    return read_gold_texts(data / chosen.gold[split], chosen.format, types=types).documents


def open_lexical_index(folder: Path, kb: KnowledgeBase) -> LexicalIndex:
    """Open the lexical index beside a store, building it if needed."""
    if not (folder / "lexical").exists():
        build_index(kb, folder / "lexical", progress=Progress())
    return LexicalIndex.open(folder / "lexical" / LEXICAL, kb)


def metrics_of(result: LinkingResult) -> Row:
    """Return the metrics of a row, in percent."""
    values = result.to_json()
    return {
        "n": result.n,
        **{name: values[name] for name in METRICS},
        "intervals": {name: values["intervals"][name] for name in METRICS},
        "coverage": round(100 * (1 - values["n_unreachable"] / result.n), 4),
        "reachable": score_reachable(result).to_json(),
        "n_documents": values["n_documents"],
        "n_unknown_gold": values["n_unknown_gold"],
    }


def text_metrics(result: TextResult) -> Row:
    """Return the metrics of raw text, in percent: F1 of spans with their concepts first."""
    values = result.to_json()
    levels = LEVELS_COMPARED.items()
    return {
        "n": result.n_mentions,
        **{name: values[level]["f1"] for name, level in levels},
        "intervals": {name: values[level]["intervals"]["f1"] for name, level in levels},
        "n_documents": result.n_documents,
        "n_unknown_gold": values["n_unknown_gold"],
        "levels": {level: values[level] for _, level in levels},
    }


def _has_name(kb: KnowledgeBase, query: LinkQuery) -> bool:
    """Return whether a mention, all its parts, is a name of its concept in a store."""
    return all(is_name_of(kb, part, query.gold) for part in query.parts)


def answers_of(result: LinkingResult, parts: Mapping[str, Any]) -> Row:
    """Return which queries are right at the first rank, and how many each document has.

    The queries of a document stand together; a tie that counts in part counts as wrong. ``parts``
    are flags of the queries, such as those whose mention is no name of its concept.
    """
    judged = result.judgements
    order = sorted(range(len(judged)), key=lambda row: str(judged.documents[row]))
    sizes = Counter(str(document) for document in judged.documents)
    return {
        "right": pack_flags(judged.right[row, 0] == 1 for row in order),
        "documents": pack_sizes(sizes[name] for name in sorted(sizes)),
        "parts": {part: pack_flags(flags[row] for row in order) for part, flags in parts.items()},
    }


def _causes(result: LinkingResult, kb: KnowledgeBase) -> dict[str, int]:
    counts: Mapping[Any, int] = count_causes(find_mistakes(result, kb))
    return {str(cause): n for cause, n in counts.items()}


def _cells(counts: Counts) -> list[int]:
    return [counts.right, counts.wrong, counts.missed]


def _text_test(of: Sequence[Counts], against: Sequence[Counts]) -> Row:
    difference, randomisation = paired_counts(of, against)
    bounds = (difference.interval.low, difference.interval.high)
    return {
        "difference": round(100 * difference.difference, 4),
        "interval": [round(100 * bound, 4) for bound in bounds],
        "bootstrap_p": difference.p,
        "randomisation_p": randomisation,
    }
