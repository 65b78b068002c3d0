"""How often a generative linker is right on mentions held out, alone and beside a search.

Names are counted, as the paper does: the right concept among those of the first name, or of one
of the first five different names. Mentions without a gold concept are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Rows, Scores
from biograft.linking.config import LinkerConfig
from biograft.linking.fusion import FusedSearch, Gathered, gather_nothing
from biograft.linking.generative.config import GenerativeConfig
from biograft.linking.generative.examples import MentionNaming, TargetChooser, gather_mentions
from biograft.linking.generative.folder import (
    Description,
    Held,
    Mixing,
    fit_share,
    searched,
    write_folder,
)
from biograft.linking.generative.names import NameTrie, Selection, select_names
from biograft.linking.generative.ranker import GenerativeRanker
from biograft.linking.mentions import Forms
from biograft.linking.provenance import store_fingerprint
from biograft.linking.rankers import TrainedLinker
from biograft.linking.rerank.examples import GoldQuery
from biograft.nn.seq2seq import Namer
from biograft.objectives.name_examples import NamingBatches
from biograft.objectives.name_generation import NameLearning
from biograft.progress import Progress
from biograft.training import Task, train
from biograft.training.processes import join_processes

CUTOFFS = (1, 5)
_DEPTH = LinkerConfig.depth
"""Names that each generator of the search is asked for, as a linker asks."""
_AT_ONCE = 512


class _Part(NamedTuple):
    """The names of one part of a query, with both scores."""

    query: int
    rows: Rows
    scored: Gathered  # of this part alone
    right: npt.NDArray[np.bool_]


def measure(
    ranker: GenerativeRanker, search: FusedSearch | None, queries: Sequence[GoldQuery]
) -> dict[str, float]:
    """Give the recall at 1 and 5 names of mentions that have a gold concept."""
    asked = [query for query in queries if query.gold]
    used = search if ranker.needs_search else None
    hits = {k: np.ones(len(asked), np.bool_) for k in CUTOFFS}
    for part in _parts(ranker, used, asked):
        first = _first_right(ranker, part, ranker.mixing(part.scored)[0])
        for k in CUTOFFS:
            hits[k][part.query] &= first < k
    found = {f"recall@{k}": float(hits[k].mean()) if asked else 0.0 for k in CUTOFFS}
    return {"n": len(asked), **found}


def fit_mixing(
    ranker: GenerativeRanker, search: FusedSearch, queries: Sequence[GoldQuery]
) -> tuple[Mixing, dict[str, float]]:
    """Choose how much generation counts beside a search; give the accuracies, too."""
    asked = [query for query in queries if query.gold]
    rescore, weights = ranker.config.rescore, dict(search.weights)
    both = GenerativeRanker(
        ranker.kb, ranker.namer, ranker.names, ranker.config, Mixing(0.5, rescore, weights)
    )
    held = [
        Held(
            part.query,
            part.scored.scores[-1][0],
            both.mixing.search_scores(searched(part.scored))[0],
            part.right,
        )
        for part in _parts(both, search, asked)
    ]
    share, told = fit_share(held)
    return Mixing(share, rescore, weights if share < 1 else {}), {"generative_share": share, **told}


def _parts(
    ranker: GenerativeRanker, search: FusedSearch | None, queries: Sequence[GoldQuery]
) -> Iterator[_Part]:
    """Score the names of each part of each query."""
    asked = Forms(ranker.kb, abbreviations=True, composites=False).of_queries(queries)
    owners = [number for number, query in enumerate(queries) for _ in query.parts]
    gold = [ranker.kb.rows_of(query.gold) for query in queries]
    concepts = ranker.kb.table("names").column("concept").to_numpy()
    for start in range(0, len(asked), _AT_ONCE):
        chunk = asked[start : start + _AT_ONCE]
        texts, contexts = [form for form, _ in chunk], [context for _, context in chunk]
        gathered = search.gather(texts, _DEPTH) if search else gather_nothing(len(texts))
        scored = ranker.score(texts, gathered, contexts)
        for line in range(len(chunk)):
            there = scored.rows[line] >= 0
            own = Gathered(
                scored.generators,
                scored.rows[line : line + 1, there],
                scored.scores[:, line : line + 1, there],
                scored.ranks[:, line : line + 1, there],
            )
            query = owners[start + line]
            right = np.isin(concepts[own.rows[0]], gold[query])
            yield _Part(query, own.rows[0], own, right)


def _first_right(ranker: GenerativeRanker, part: _Part, scores: Scores) -> float:
    """Say how many different names stand before the first right one; infinite if none is."""
    before: set[int] = set()
    order = np.lexsort((part.rows, -scores))
    sequences = ranker.names.numbers[part.rows]
    # a name that cannot be generated stands for itself
    names = np.where(sequences >= 0, sequences, -1 - part.rows)
    best: float = float("inf")
    for place in order.tolist():
        if not np.isfinite(scores[place]):
            break
        name = int(names[place])
        if part.right[place]:
            best = min(best, len(before - {name}))
            break
        before.add(name)
    return best


MODEL = "model"
EVALUATED = 256
"""Mentions held out, at most, whose loss is told while training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """What is learnt from, and what is only looked at."""

    train: Sequence[GoldQuery]
    held_out: Sequence[GoldQuery] = ()
    search: FusedSearch | None = None
    """What generation is measured and mixed with on the mentions held out."""


def train_generative(
    kb: KnowledgeBase,
    mentions: Mentions,
    config: GenerativeConfig,
    out: str | Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> TrainedLinker:
    """Train in the folder ``out``, or go on where a run stopped there; write ``out/model``."""
    progress, run = progress or Progress(enabled=False), Path(out)
    _check(config, mentions)
    progress.start("names")
    selected = select_names(kb, config.names)
    chooser = TargetChooser(kb, selected, config.target, config.training.seed)
    data = gather_mentions(kb, chooser, mentions.train, config)
    if not data:
        raise ConfigError(
            f"training mentions: of {data.counts.given:,} given none is left to learn from; are "
            "their ids those of this store?"
        )
    held = gather_mentions(kb, chooser, mentions.held_out[:EVALUATED], config)
    progress.start("model")
    namer = _start(config, selected, data)
    provenance = {
        "kb": store_fingerprint(kb),
        "model": namer.fingerprint(),
        "search": str(mentions.search) if mentions.search else None,
        **data.provenance(),
    }
    task = _task(namer, data, held, config, provenance)
    trained = train(task, config.training, run, resume=resume, progress=progress)
    report: dict[str, Any] = {"mentions": asdict(data.counts)}
    if join_processes().is_main_process:
        names = NameTrie.build(kb, namer, config.names, progress)
        ranker = GenerativeRanker(kb, namer, names, config, _mixing(config, mentions.search))
        report |= {
            "n_names": names.trie.n_sequences,
            "n_names_cut": names.n_cut,
            "trie_bytes": names.nbytes,
        }
        if trained.finished:
            report |= _measure(ranker, mentions, progress)
        described = Description(
            config=config, mixing=ranker.mixing, report=report, provenance=provenance
        )
        write_folder(run / MODEL, names, described)
    return TrainedLinker(run, run / MODEL, trained, report)


def _check(config: GenerativeConfig, mentions: Mentions) -> None:
    if not config.model and config.new is None:
        raise ConfigError(
            "model: none named; give the folder or name of a BART or T5 (config.model, "
            "--encoder), or say how to make one (a table [config.new])"
        )
    if config.fit_share and not (mentions.held_out and mentions.search):
        raise ConfigError("fit_share: there is no mention held out to fit it on; give --dev")


def _start(config: GenerativeConfig, selected: Selection, data: MentionNaming) -> Namer:
    """Load the model to start from, or make one that knows how names and texts are written."""
    if config.model:
        return Namer.from_pretrained(
            config.model,
            max_source=config.max_source,
            max_target=config.max_target,
            dropout=config.dropout,
        )
    if config.new is None:
        raise ConfigError("model: none named")
    made = config.new.create(_texts(selected, data), config.training.seed)
    return Namer(
        made.model,
        made.tokenizer,
        made.name,
        max_source=config.max_source,
        max_target=config.max_target,
    )


def _texts(selected: Selection, data: MentionNaming) -> Iterator[str]:
    yield from selected.texts
    for example in data.examples:
        yield example.source
        yield example.prompt


def _task(
    namer: Namer,
    data: MentionNaming,
    held: MentionNaming,
    config: GenerativeConfig,
    provenance: Mapping[str, Any],
) -> Task[Any]:
    learning, processes = NameLearning(namer, config.objective.build()), join_processes()
    batches = NamingBatches(
        data,
        config.training.batch_size,
        seed=config.training.seed,
        rank=processes.process_index,
        world=processes.num_processes,
        bucket_batches=config.bucket_batches,
    )
    evaluate = None
    if held:
        size = config.training.batch_size
        shown = [learning.encode(held.examples[start : start + size])
                 for start in range(0, len(held), size)]  # fmt: skip
        evaluate = partial(learning.evaluate, shown, config.training.precision)
    return Task(
        model=learning.model,
        source=learning.source(batches),
        compute_loss=learning.loss,
        counts=learning.counts,
        evaluate=evaluate,
        described=asdict(config),
        provenance=provenance,
    )


def _mixing(config: GenerativeConfig, search: FusedSearch | None) -> Mixing:
    """Say how generation counts beside a search, if the share is given."""
    weights = dict(search.weights) if search is not None and config.share < 1 else {}
    return Mixing(config.share, config.rescore, weights)


def _measure(ranker: GenerativeRanker, mentions: Mentions, progress: Progress) -> dict[str, Any]:
    """Fit the share where that is asked for, and say what mentions held out come to."""
    queries, search = mentions.held_out, mentions.search
    if not queries:
        return {}
    progress.start("mentions held out")
    told: dict[str, Any] = {}
    if ranker.config.fit_share and search is not None:
        ranker.mixing, told["share"] = fit_mixing(ranker, search, queries)
    told["held_out"] = measure(ranker, search, queries)
    progress.finish()
    return told
