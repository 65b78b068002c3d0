"""Entity linking: :class:`Linker` maps a text, or mentions, to the concepts of a knowledge base.

A batch of documents passes through the steps of ``linking/steps.py``, in their order: detect,
expand, search, agree, decide, nest, assert, measure, explain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from biograft.arrays import Flags
from biograft.artifacts import MANIFEST, peek
from biograft.clinical import AssertionModel, RuleAssertions
from biograft.config import changed, check_choice
from biograft.errors import ConfigError, StoreError
from biograft.kb import KnowledgeBase, read_value_set
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.batches import (
    BATCH,
    ENGINES,
    check_mentions,
    link_in_processes,
    make_batches,
)
from biograft.linking.candidate_search import CandidateSearch, ConceptFilter
from biograft.linking.candidates import Candidate, Generator, LinkedDocument, Query
from biograft.linking.config import LinkerConfig, LinkerSettings
from biograft.linking.dense.config import GENERATORS
from biograft.linking.detection import (
    DictionaryDetector,
    GivenMentions,
    MentionDetector,
    MisspeltDetector,
    UnionDetector,
    open_detector,
)
from biograft.linking.forms import MentionForms
from biograft.linking.fusion import LEXICAL, FusedSearch
from biograft.linking.index import build_encoder_index, open_search
from biograft.linking.learned import LearnedDetector, LearnedForm, rules_with
from biograft.linking.learned_mentions import LearnedForms
from biograft.linking.lexicon import StoreLexicon
from biograft.linking.mention_choice import LOOKED_UP, ChooseMentions
from biograft.linking.nil import NilThreshold
from biograft.linking.overlaps import Nest, OverlapDetector
from biograft.linking.rankers import MODELS, CandidateRanker, load_ranker, needs_search
from biograft.linking.steps import (
    LINKER_STEPS,
    MODEL,
    NAME,
    AddMeasurements,
    Agree,
    Assert,
    Decide,
    Detect,
    DocumentState,
    Expand,
    Explain,
    NameRanking,
    NameRankings,
    Search,
    Step,
)
from biograft.progress import Progress
from biograft.recipe import Overrides, RecipeSource
from biograft.text import NamesIndex, NamesIndexConfig
from biograft.text.documents import Document

if TYPE_CHECKING:
    from biograft.linking.calibration import Calibration
    from biograft.linking.reviewed import ReviewedNames


class Linker:
    """Links mentions and texts to the concepts of a knowledge base.

    The task is also called entity linking, named entity disambiguation, concept normalisation and
    grounding.

    Args:
        kb: Knowledge base of the concepts.
        search: Finds candidates; None for a ranker that finds them by itself.
        detector: Finds mentions beside, or in place of, names; required if ``config.detection``
            says so.
        names: Index of the names found in texts; default: made on first use.
        ranker: Trained ranker, re-ranker or generative linker.
        calibration: Makes probabilities of scores.
        assertions: Decides about the status of mentions; default: rules.
        reviewed: Decisions of reviewers.
        learned: Forms that mean a concept in running text, or no mention.
        learned_detector: Chooses the mentions of running text by evidence.
        concepts: Flags of the concepts that are candidates; default: all.
        config: Settings.

    >>> linker = Linker.open("KB")  # doctest: +SKIP
    >>> linker("Type 2 diabetes (T2D) was found.").mentions[0].concept  # doctest: +SKIP
    'D003924'
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        search: Generator | None,
        *,
        detector: MentionDetector | None = None,
        names: NamesIndex | None = None,
        ranker: CandidateRanker | None = None,
        calibration: Calibration | None = None,
        assertions: AssertionModel | None = None,
        reviewed: ReviewedNames | None = None,
        learned: Sequence[LearnedForm] = (),
        learned_detector: LearnedDetector | None = None,
        concepts: Flags | None = None,
        config: LinkerConfig | None = None,
    ) -> None:
        self.kb, self.config = kb, config or LinkerConfig()
        self.learned, self.learned_detector, self.concepts = learned, learned_detector, concepts
        types, sources, value_set = self.config.types, self.config.sources, self.config.value_set
        limits = (*types, *sources, *filter(None, [value_set]))
        self.value_set = read_value_set(kb, value_set) if value_set else None
        """The members of the value set that candidates are of."""
        self._filter = None
        if limits or concepts is not None:
            self._filter = ConceptFilter(kb, types, sources, self.value_set, concepts)
        self.detector, self.ranker, self.calibration = detector, ranker, calibration
        self._opened_names = names
        self.assertions = assertions or RuleAssertions(rules=self.config.assertion_rules)
        """Decides about the status of mentions, where ``config.assertions`` asks for it."""
        self._reopen: Callable[[], Linker] | None = None
        whole = CandidateSearch(kb, search, ranker, calibration, self._filter, reviewed)
        lexical, self._ranking = self._lexical_alone(whole), self._make_ranking(whole)
        found = self._ranking
        if lexical is not None:
            found = self._make_ranking(
                CandidateSearch(kb, lexical, wanted=self._filter, reviewed=reviewed)
            )
        self._rankings = NameRankings(self._ranking, found)
        self.steps = list(self._make_steps(self._rankings, limits))
        """The steps that link a batch of documents, in their order."""
        for name in self.config.extra_steps:
            step = LINKER_STEPS.load(name)(kb)
            self.add_step(step, getattr(step, "after", "decide"))
        if (detector is None) != (self.detection == "names"):
            raise ConfigError(
                f"detection: {self.detection!r} "
                + ("needs a detector" if detector is None else "does not use the detector")
            )
        if calibration is not None and calibration.search not in ("", self.score_source):
            raise StoreError(
                f"the calibration was fitted to the scores of {calibration.search}, this linker's "
                f"are those of {self.score_source}; fit it again (or leave it out)"
            )
        if calibration is not None and calibration.store not in ("", store_fingerprint(kb)):
            raise StoreError(
                "the calibration was fitted with another knowledge base, or another state of it; "
                "leave it out, or fit it again with `biograft evaluate link --fit-calibration`"
            )

    @classmethod
    def open(
        cls,
        kb: KnowledgeBase | str | Path,
        index: str | Path | None = None,
        model: str | Path | None = None,
        calibration: str | Path | None = None,
        detector: str | Path | None = None,
        *,
        config: LinkerConfig | None = None,
        **settings: Unpack[LinkerSettings],
    ) -> Linker:
        """Open a linker for a knowledge base.

        Args:
            kb: The knowledge base, or its folder.
            index: Folder of an index; default: a lexical one is built in memory, unless the model
                needs no search.
            model: Folder of a trained ranker, re-ranker or generative linker.
            calibration: File of a calibration; default: that of the index, unless a model is given.
            detector: Folder of a trained model of named entity recognition.
            config: Settings of the linker.
            settings: Fields of :class:`LinkerConfig` to change.

        >>> Linker.open("KB", index="INDEX", threshold=0.5)  # doctest: +SKIP
        Linker(kb='KB', scores='dense*0.5+lexical*0.5', calibrated=True, threshold=0.5)
        """
        kb = KnowledgeBase.open(kb)
        config = changed(config or LinkerConfig(), settings)
        ranker = None
        if model is not None:
            ranker = load_ranker(model, kb, config.languages, config.prompt)
        opened = None
        if index is not None or needs_search(ranker):
            opened = open_search(kb, index, config)
        scale = opened.calibration if opened and model is None else None
        if calibration is not None:
            from biograft.linking.calibration import Calibration

            scale = Calibration.load(calibration)
        linker = cls(
            kb,
            opened.search if opened else None,
            detector=open_detector(detector, config),
            names=opened.names if opened else None,
            ranker=ranker,
            calibration=scale,
            assertions=(
                RuleAssertions(rules=rules_with(opened.phrases, config.assertion_rules))
                if opened and opened.phrases
                else None
            ),
            reviewed=opened.reviewed if opened else None,
            learned=opened.learned if opened else (),
            learned_detector=opened.learned_detector if opened else None,
            config=config,
        )
        paths = (index, model, calibration, detector)
        absolute = [None if path is None else Path(path).absolute() for path in paths]
        linker._reopen = partial(cls.open, kb.folder.absolute(), *absolute, config=config)
        return linker

    @classmethod
    def from_pretrained(
        cls,
        folder: str | Path,
        kb: KnowledgeBase | str | Path | None = None,
        index: str | Path | None = None,
        **settings: Unpack[LinkerSettings],
    ) -> Linker:
        """Load a trained linker from the folder of its run, or of its model.

        The run of a ranker holds its own store and index. Other models need ``kb``, and the
        index they were trained with.

        Args:
            folder: Folder of the run, or of its model.
            kb: Knowledge base, or its folder; default: that of the run, which only a ranker has.
            index: Folder of the index that it was trained with; default: that of the run.
            settings: Fields of :class:`LinkerConfig` to change.

        >>> Linker.from_pretrained("RUN")  # doctest: +SKIP
        Linker(kb='RUN/kb', scores='lexical*1 ranker', calibrated=False, threshold=None)
        """
        folder = Path(folder)
        model = folder if peek(folder / MANIFEST).get("format") in MODELS else folder / "model"
        if kb is None and (folder / "kb").is_dir():
            kb = folder / "kb"
            index = folder / "index" if index is None else index
        if kb is None:
            raise ConfigError(f"{folder}: has no knowledge base of its own; give one (kb)")
        return cls.open(kb, index, model, **settings)

    @classmethod
    def fit(
        cls,
        kb: KnowledgeBase | str | Path,
        examples: Any,
        out: str | Path,
        *,
        recipe: RecipeSource = "linker-ranker",
        overrides: Overrides = (),
        index: str | Path | None = None,
        progress: Progress | None = None,
        **settings: Unpack[LinkerSettings],
    ) -> Linker:
        """Train a linker on labelled examples in the folder ``out``, and open it.

        Args:
            kb: Knowledge base, or its folder.
            examples: Mentions with their concepts, or annotated documents: a list, a frame of
                pandas or polars, or a ``datasets.Dataset`` (``evaluation.to_queries``).
            out: Folder of the run.
            recipe: Recipe of a ranker, a re-ranker, a generative linker, or an encoder, whose index
                is built, too.
            overrides: Changes of the recipe, such as ``config.epochs=10``; also as a dictionary.
            index: Folder of the index whose candidates are learned from; default: lexical, in
                memory.
            progress: Progress of training.
            settings: Fields of :class:`LinkerConfig` of the linker that is opened.

        >>> linker = Linker.fit("KB", [("sugar disease", "D003920")], "RUN")  # doctest: +SKIP
        >>> linker.link_mentions(["sugar disease"])[0][0].concept  # doctest: +SKIP
        'D003920'
        """
        from biograft.evaluation.gold import to_queries
        from biograft.training.linkers.recipes import (
            LinkerRecipe,
            LinkerTrainingData,
            finetune,
        )  # it links, too

        kb, out = KnowledgeBase.open(kb), Path(out)
        progress = progress or Progress(enabled=False)
        loaded = LinkerRecipe.load(recipe, overrides)
        data = LinkerTrainingData(
            kb=kb,
            train=to_queries(examples, "examples"),
            out=out,
            index=None if index is None else Path(index),
            progress=progress,
        )
        made = finetune(loaded, data).made
        if "encoder" in made:
            folder = build_encoder_index(
                kb, out / "index", made["encoder"], progress, similarity=loaded.config.similarity
            )
            made = {"index": folder}
        return cls.open(made.get("kb", kb), made.get("index", index), made.get("model"), **settings)

    def with_settings(
        self, *, concepts: Flags | None = None, **settings: Unpack[LinkerSettings]
    ) -> Linker:
        """Return a linker with other settings, over the same store, search and models.

        Settings of the search itself (``search``, ``languages``, ``lexical_weight``,
        ``similarity``) belong to the opened index, and cannot be changed; nor can
        ``assertion_rules``, which are read then.

        Args:
            concepts: Flags of the concepts that are candidates; default: as it is.
            settings: Fields of :class:`LinkerConfig` to change.

        >>> linker.with_settings(k=20, assertions=False)  # doctest: +SKIP
        """
        opened = {"search", "languages", "lexical_weight", "similarity", "assertion_rules"}
        fixed = sorted(opened & settings.keys())
        if fixed:
            raise ConfigError(f"{fixed[0]}: is fixed when the index is opened; open another linker")
        return Linker(
            self.kb,
            self.search,
            detector=self.detector,
            names=self.names,
            ranker=self.ranker,
            calibration=self.calibration,
            assertions=self.assertions,
            reviewed=self.reviewed,
            learned=self.learned,
            learned_detector=self.learned_detector,
            concepts=self.concepts if concepts is None else concepts,
            config=changed(self.config, settings),
        )

    def _make_ranking(self, search: CandidateSearch) -> NameRanking:
        fused, config = search.fused, self.config
        forms = MentionForms(
            self.kb,
            abbreviations=config.abbreviations,
            composites=config.composites,
            similarity=search.score_best if fused else None,
            appositions=config.appositions,
        )
        generators = tuple(fused.weights) if fused else ()
        nil = NilThreshold(self.threshold, search.calibration, search.ranker, generators)
        nil.check(config.threshold)
        return NameRanking(search, forms, nil)

    def _make_steps(self, rankings: NameRankings, limits: tuple[str, ...]) -> Iterator[Step]:
        """Yield the steps that the settings ask for."""
        config = self.config
        lexicon = None
        if config.short_forms:
            lexicon = StoreLexicon(self.kb, misspelt=config.misspelt)
        take_given = self.detector is None and config.mentions != "find"
        origin = MODEL if self.detection == "model" else NAME
        yield Detect(lambda: self._detector, origin, take_given)
        unwanted = None if self._filter is None else self._filter.excludes
        yield Expand(rankings, lexicon, self.reviewed or (), unwanted)
        yield Search(rankings, config.k, config.depth)
        if lexicon is not None and self.ranker is None:
            yield Agree(self.kb, lexicon)
        yield Decide(rankings)
        if config.overlaps == "all":
            yield Nest(self.kb)
        if self.learned:
            wanted = None if self._filter is None else self._filter.concepts
            yield LearnedForms(self.kb, self.learned, nested=config.overlaps == "all", only=wanted)
        if self.learned_detector is not None and origin == NAME and config.overlaps == "longest":
            yield self.chooser(self.learned_detector)
        if config.assertions:
            yield Assert(self.assertions)
        yield AddMeasurements()
        if config.explain:
            yield Explain(self.kb, rankings, limits)

    def chooser(self, detector: LearnedDetector) -> ChooseMentions:
        """Return the step that chooses mentions by what was learned, and this linker's search.

        Args:
            detector: What was learned.
        """
        config, wanted = self.config, self._filter
        lexicon = StoreLexicon(self.kb) if config.short_forms else None
        unwanted, only = (wanted.excludes, wanted.concepts) if wanted else (None, None)
        steps = (
            Expand(self._rankings, lexicon, self.reviewed or (), unwanted),
            Search(self._rankings, LOOKED_UP, config.depth),
        )
        return ChooseMentions(self.kb, detector, steps, config.k, only)

    def add_step(self, step: Step, after: str = "decide") -> None:
        """Put a step of your own behind another one.

        Args:
            step: A callable with a ``name``, see :class:`~biograft.linking.steps.Step`.
            after: Name of the step before it.

        >>> linker.add_step(DropRareConcepts(), after="decide")  # doctest: +SKIP
        """
        names = [each.name for each in self.steps]
        check_choice("after", after, names)
        self.steps.insert(names.index(after) + 1, step)

    def _lexical_alone(self, search: CandidateSearch) -> Generator | None:
        """Return the lexical part of a search by default settings; None where it is to be whole."""
        config, fused = self.config, search.fused
        chosen = (config.search, config.lexical_weight, config.similarity) != (None, None, None)
        if chosen or fused is None or self.ranker is not None or self.calibration is not None:
            return None
        generators = {generator.name: generator for generator in fused.generators}
        lexical = generators.pop(LEXICAL, None)
        return lexical if generators and generators.keys() <= set(GENERATORS.values()) else None

    def __repr__(self) -> str:
        return (
            f"Linker(kb={str(self.kb.folder)!r}, scores={self.score_source!r}, "
            f"calibrated={self.calibration is not None}, threshold={self.threshold})"
        )

    @property
    def nil(self) -> NilThreshold:
        """Says which answers to terms and given mentions are NIL."""
        return self._ranking.nil

    @property
    def search(self) -> FusedSearch | None:
        """The search over the names of the store; None where the ranker needs none."""
        return self._ranking.search.fused

    def is_wanted(self, concept: str) -> bool:
        """Return whether a concept may be an answer: types, sources and value set allow it."""
        return self._ranking.search.is_wanted(concept)

    @property
    def reviewed(self) -> ReviewedNames | None:
        """Decisions of reviewers about terms, if the index learned them (`biograft learn`)."""
        return self._ranking.search.reviewed

    @cached_property
    def reader(self) -> Linker:
        """Reads terms as running text, to find names inside them."""
        return self.for_terms(mentions="find", assertions=True, explain=False, k=1, depth=LOOKED_UP)

    def for_terms(self, **settings: Unpack[LinkerSettings]) -> Linker:
        """Return a linker with other settings and without the steps that terms do not need.

        Args:
            settings: Settings, see :class:`LinkerConfig`.
        """
        linker, left_out = self.with_settings(**settings), (ChooseMentions, AddMeasurements)
        linker.steps = [step for step in linker.steps if not isinstance(step, left_out)]
        return linker

    @property
    def uses_context(self) -> bool:
        """Whether the trained ranker reads the text around a mention."""
        return self._ranking.search.uses_context

    @property
    def is_name(self) -> Callable[[str], bool]:
        """Says whether a text is a name of the store, but for case and punctuation."""
        return self._ranking.forms.is_name

    @property
    def score_source(self) -> str:
        """Generators with their weights, and the ranker, that score terms and given mentions.

        A calibration is only valid for the score source that it was fitted to.
        """
        return self._ranking.search.source

    @property
    def detection(self) -> str:
        """Detection of mentions: by ``names``, by the ``model``, or by ``both``."""
        if self.config.detection or self.detector is None:
            return self.config.detection or "names"
        with_names = self.config.mentions == "both" and isinstance(self.detector, GivenMentions)
        return "both" if with_names else "model"

    @property
    def threshold(self) -> float | None:
        """Answers below it are NIL: that of the configuration, else that of the calibration.

        Without either, ``nil.threshold_of`` gives a default for each text.
        """
        if self.config.threshold is not None or self.calibration is None:
            return self.config.threshold
        return self.calibration.threshold

    # ---- documents

    def __call__(self, text: str | Document) -> LinkedDocument:
        """Link one text.

        >>> linker("Patients with T2D.").to_json()["mentions"]  # doctest: +SKIP
        """
        if not isinstance(text, str | Document):
            raise ConfigError(
                f"text: expected one text or Document, found {type(text).__name__}; "
                "use linker.pipe(texts) for several"
            )
        return next(self.pipe([text]))

    def pipe(
        self,
        documents: Iterable[Document | str],
        batch_size: int = BATCH,
        n_process: int = 1,
        engine: str = "local",
    ) -> Iterator[LinkedDocument]:
        """Link a stream of documents, a batch at a time, in their order.

        A script that uses processes needs the usual ``if __name__ == "__main__":``.

        Args:
            documents: Documents or texts.
            batch_size: Number of documents that are linked at a time.
            n_process: Number of processes; each opens the linker again, so give it an index, which
                they share.
            engine: ``local``, or ``ray`` for actors of Ray.

        >>> for linked in linker.pipe(["flu", "no flu"]): ...  # doctest: +SKIP
        """
        for name, value in (("batch_size", batch_size), ("n_process", n_process)):
            if value < 1:
                raise ConfigError(f"{name}: expected at least 1, found {value}")
        check_choice("engine", engine, ENGINES)
        batches = make_batches(documents, batch_size)
        if n_process > 1 or engine != "local":
            yield from link_in_processes(self._reopen, batches, n_process, engine)
            return
        for batch in batches:
            for state in self.states(batch):
                yield state.result()

    def states(self, documents: Sequence[Document]) -> list[DocumentState]:
        """Link the documents of a batch; return all that the steps know of each.

        Args:
            documents: The documents.
        """
        batch = [DocumentState(document) for document in documents]
        for step in self.steps:
            step(batch)
        return batch

    @cached_property
    def _detector(self) -> MentionDetector:
        if self.detector is not None and self.detection == "model":
            return self.detector
        stop_rows = (row for word in self.config.stop_words for row in self.kb.name_rows(word))
        wanted = None if self._filter is None else self._filter.names
        limits = self.config.qualifiers or self.config.types or self.config.value_set
        concepts = self.kb.numbers("names", "concept")
        if not limits and self.kb.qualifiers.any():
            own = ~self.kb.qualifiers[concepts]
            wanted = own if wanted is None else wanted & own
        searched = self.names.without(stop_rows, only=wanted, whole_words=True)
        config, name_of = self.config, lambda row: self.kb.name(row).text
        nested = config.overlaps == "all"
        # each of the re-worded names in a coordination has a span of its own
        coordinations = config.coordinations and not (nested and config.reworded)
        names: MentionDetector = (
            MisspeltDetector(searched, name_of, concepts=concepts, coordinations=coordinations)
            if config.misspelt
            else DictionaryDetector(searched, coordinations=coordinations)
        )
        if nested or config.reworded:
            reworded = concepts if config.reworded else None
            names = OverlapDetector(names, searched, name_of, concepts=reworded, nested=nested)
        return names if self.detector is None else UnionDetector(self.detector, names)

    @cached_property
    def names(self) -> NamesIndex:
        """Finds the names of the store in text; without an index it is built on first use."""
        if self._opened_names is not None:
            return self._opened_names
        return NamesIndex.from_store(self.kb, NamesIndexConfig(languages=self.config.languages))

    # ---- mentions

    def link_mentions(self, texts: Sequence[str], k: int | None = None) -> list[list[Candidate]]:
        """Return the k best concepts of each text; every text is taken as one mention.

        Args:
            texts: Texts, each taken as one mention.
            k: Number of concepts of each; default: that of the settings.

        >>> [c.concept for c in linker.link_mentions(["hart atack"])[0]]  # doctest: +SKIP
        ['D009203', 'D006323']
        """
        texts = check_mentions(texts)
        k = self.config.k if k is None else k
        return list(map(list, self._ranking.search.find(texts, (), k, self.config.depth)))

    def rank(self, queries: Sequence[Query], k: int) -> list[list[list[Candidate]]]:
        """Return k candidates for each part of each query, one candidate per name.

        Published scores count names, not concepts. Abbreviations are expanded as in linking, by
        the text around a query, where it is known, and by the other queries of its document.

        Args:
            queries: Mentions with their parts and the text around them.
            k: Number of candidates.
        """
        forms = self._ranking.forms.of_queries(queries)
        texts, contexts = [form for form, _ in forms], [context for _, context in forms]
        search, depth = self._ranking.search, self.config.depth
        answers = iter(search.find(texts, contexts, k, depth, by_concept=False))
        return [[list(next(answers)) for _ in query.parts] for query in queries]

    def split(self, mentions: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the parts of each mention: itself, unless it is composite.

        >>> linker.split(["ovarian and breast cancer"])  # doctest: +SKIP
        [('ovarian cancer', 'breast cancer')]
        """
        return self._ranking.forms.split(check_mentions(mentions))
