"""Linking of held-out mentions by the entity memory of KeBioLM, and by what else saw its text.

Queries are mentions of test documents whose concept was annotated in the text that the encoders
were pre-trained on. For the part ``unseen surface`` it was never annotated there under the words of
the mention. Lexical and dense search look up a mention among the surfaces that were: so every arm
knows the same names of the same entities.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from biograft.config import AtLeast, Choice, check_fields
from biograft.errors import ConfigError, InputError
from biograft.evaluation import (
    EvaluationConfig,
    LinkQuery,
    StoreIds,
    evaluate_linking,
    resolve_gold,
)
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.names import normalise
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker, build_index
from biograft.linking.dense import DenseIndex
from biograft.linking.dense.encoders import load_encoder
from biograft.linking.fusion import FusedSearch
from biograft.linking.index import DENSE
from biograft.progress import Progress
from biograft.text.shards import AnnotatedDocument, Shards
from biograft_lab.probing.memory_links import MemoryLinker, MentionInText
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.linking_sets import SETS
from biograft_lab.replication.pretrained_arms import (
    check_arms,
    check_same_start,
    each_arm,
    find_arm,
)
from biograft_lab.replication.protocols import PLAIN, open_lexical_index
from biograft_lab.replication.results import Row, pack_flags, pack_sizes
from biograft_lab.replication.runner import (
    ExperimentJob,
    check_names,
    missing_data,
    parse_settings,
    parse_variants,
)

MEMORY, DENSE_SEARCH, LEXICAL = "memory", "dense", "lexical"
SEEN, UNSEEN = "seen surface", "unseen surface"
Surfaces = Mapping[str, Mapping[str, str]]
"""Concept -> normal form -> surface, as annotated in a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLinkingSettings:
    """The store, the annotated text of pre-training (inputs), and the mentions of each part."""

    kb: str = "kb"
    corpus: str = "corpus"
    n_mentions: Annotated[int, AtLeast(1)] = 2000

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLinkingVariant:
    """A linker: an encoder's entity memory, its vectors of names, or lexical search."""

    links: Annotated[str, Choice(MEMORY, DENSE_SEARCH, LEXICAL)]
    encoder: str = ""

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.links == LEXICAL) == bool(self.encoder):
            raise ConfigError("links: all but 'lexical' need an encoder")


@dataclass(frozen=True, slots=True)
class HeldOutMentions:
    """Mentions to link, those of a document together, and whether their surface was seen."""

    queries: tuple[LinkQuery, ...]
    seen: tuple[bool, ...]

    def row(self, right: Sequence[bool]) -> Row:
        """Return accuracy and answers."""
        sizes = Counter(query.document for query in self.queries)
        parts = {SEEN: self.seen, UNSEEN: tuple(not seen for seen in self.seen)}
        return {
            "split": "test",
            "n": len(right),
            "acc@1": _percent(right),
            "accuracy": {
                name: _percent([r for r, is_in in zip(right, flags, strict=True) if is_in])
                for name, flags in parts.items()
            },
            "right": pack_flags(right),
            "documents": pack_sizes(sizes.values()),
            "parts": {name: pack_flags(flags) for name, flags in parts.items()},
        }


def _percent(right: Sequence[bool]) -> float:
    return 100 * sum(right) / max(1, len(right))


class MemoryLinking:
    """Runs experiments of kind ``memory_linking``."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings, sets, inputs and variants that are not known."""
        settings = parse_settings(experiment, MemoryLinkingSettings)
        check_names(
            "sets",
            experiment.sets,
            [name for name, each in SETS.items() if each.raw or each.format == "pubtator"],
        )
        check_names("settings", [settings.kb, settings.corpus], [*experiment.inputs])
        check_arms(experiment, filter(None, _encoders(experiment).values()))

    def small(self, experiment: Experiment) -> Experiment:
        """Return the experiment at the size of toy data."""
        return experiment.smaller({"n_mentions": 4}, {}, n_seeds=2)

    def run(self, job: ExperimentJob) -> None:
        """Link the mentions of every set by every arm."""
        results, encoders = job.results(), _encoders(job.experiment)
        check_same_start(job, {label: path for label, path in encoders.items() if path})
        settings = parse_settings(job.experiment, MemoryLinkingSettings)
        variants = parse_variants(job.experiment, MemoryLinkingVariant)
        surfaces = read_surfaces(Shards.open(job.input(settings.corpus)))
        kb = KnowledgeBase.open(job.input(settings.kb))
        sets = {
            name: read_mentions(name, job.data, kb, surfaces, settings.n_mentions)
            for name in job.experiment.sets
        }
        store = write_surfaces(surfaces, job.work / "surfaces")
        for label, seed in each_arm(job, encoders):
            for name, mentions in sets.items():
                key = {"set": name, "config": label, **({} if seed is None else {"seed": seed})}
                if results.has(key):
                    continue
                started, links = time.perf_counter(), variants[label].links
                folder = encoders[label] and find_arm(job, encoders[label], seed or 0)
                if links == MEMORY:
                    right = link_by_memory(Path(folder), mentions.queries)
                else:
                    index = job.work / f"dense-{label}{'' if seed is None else f'-{seed}'}"
                    search = _search(store, job.work, folder and Path(folder), index)
                    right = link_by_search(Linker(store, search, config=PLAIN), mentions.queries)
                seconds = round(time.perf_counter() - started, 1)
                job.add(results, key, {**mentions.row(right), "seconds": seconds})


def _encoders(experiment: Experiment) -> dict[str, str]:
    variants = parse_variants(experiment, MemoryLinkingVariant)
    return {label: variant.encoder for label, variant in variants.items()}


def _search(store: KnowledgeBase, work: Path, encoder: Path | str, index: Path) -> FusedSearch:
    """Open the search of the surfaces; build its index if needed."""
    if not encoder:
        return FusedSearch([open_lexical_index(work, store)])
    loaded = load_encoder(Path(encoder))
    if not index.exists():
        build_index(store, index, loaded, progress=Progress())
    return FusedSearch([DenseIndex.open(index / DENSE, store, loaded)])


def link_by_search(linker: Linker, queries: Sequence[LinkQuery]) -> list[bool]:
    """Link mentions by their words; return which are right."""
    found = evaluate_linking(linker, linker.kb, queries, "lenient", EvaluationConfig())
    return [bool(value == 1) for value in found.judgements.right[:, 0]]


def link_by_memory(encoder: Path, queries: Sequence[LinkQuery]) -> list[bool]:
    """Link mentions in their texts by an entity memory; return which are right."""
    places = [MentionInText(query.context, query.start or 0, query.end or 0) for query in queries]
    found = MemoryLinker.from_pretrained(encoder).link(places)
    return [concept in query.gold for concept, query in zip(found, queries, strict=True)]


def read_surfaces(documents: Iterable[AnnotatedDocument]) -> dict[str, dict[str, str]]:
    """Return the surfaces of each concept in annotated text."""
    surfaces: dict[str, dict[str, str]] = {}
    for document in documents:
        for span in document.spans:
            text = " ".join(document.text[span.start : span.end].split())
            surfaces.setdefault(span.concept, {}).setdefault(normalise(text), text)
    return surfaces


def write_surfaces(surfaces: Surfaces, folder: Path) -> KnowledgeBase:
    """Build, or open, a store whose names are the surfaces."""
    if not (folder / "kb").exists():
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f"{c}||{text}\n" for c, of in surfaces.items() for text in of.values()]
        file = folder / "surfaces.txt"
        file.write_text("".join(lines), encoding="utf-8")
        build_store(BuildConfig(sources=(SourceConfig(path=file, format="biosyn"),)), folder / "kb")
    return KnowledgeBase.open(folder / "kb")


def read_mentions(
    name: str, data: Path, kb: KnowledgeBase, surfaces: Surfaces, limit: int
) -> HeldOutMentions:
    """Read test mentions of one annotated concept; at most ``limit`` of each part, evenly spaced.

    Mentions of several concepts, and of concepts that the text does not have, are left out.
    """
    given = SETS[name]
    chosen = SETS[given.raw] if given.raw else given
    if not chosen.exists(data, "test"):
        raise missing_data(data / chosen.gold["test"])
    gold = chosen.read_gold(data, "test", with_texts=True)
    return choose_mentions(resolve_gold(gold.queries, StoreIds(kb)).queries, kb, surfaces, limit)


def choose_mentions(
    queries: Iterable[LinkQuery], kb: KnowledgeBase, surfaces: Surfaces, limit: int
) -> HeldOutMentions:
    """Choose the mentions that are asked, and tell whether their surface was seen."""
    parts: dict[bool, list[LinkQuery]] = {True: [], False: []}
    for query in queries:
        entities = frozenset(kb.ids_of(query.gold)) & surfaces.keys()
        if entities and query.context and not query.is_composite:
            form = normalise(query.mention)
            is_seen = any(form in surfaces[entity] for entity in entities)
            parts[is_seen].append(replace(query, gold=entities, needed=(entities,)))
    chosen = [(query, seen) for seen, given in parts.items() for query in _spaced(given, limit)]
    if not chosen:
        raise InputError("has no mention of a concept of the annotated text", path="test")
    chosen.sort(key=lambda pair: (pair[0].document, pair[0].start or 0))
    return HeldOutMentions(tuple(q for q, _ in chosen), tuple(seen for _, seen in chosen))


def _spaced(queries: Sequence[LinkQuery], limit: int) -> Collection[LinkQuery]:
    return queries[:: -(-len(queries) // limit)] if len(queries) > limit else queries
