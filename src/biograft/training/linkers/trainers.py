"""Training of each kind of linker: ranker, encoders, re-ranker and generative linker."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from biograft.errors import ConfigError, MissingExtraError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.config import LinkerConfig
from biograft.linking.dense import DenseConfig, DenseIndex
from biograft.linking.dense.encoders import NameEncoder, load_encoder
from biograft.linking.generative.config import GenerativeConfig
from biograft.linking.index import (
    IndexConfig,
    OpenedIndex,
    build_index,
    open_index,
    open_search,
    update_index,
    write_weights,
)
from biograft.linking.lexical import LexicalConfig
from biograft.linking.linker import Linker
from biograft.linking.queries import LabelledMention, check_not_names, check_texts
from biograft.linking.rerank.config import RerankConfig
from biograft.linking.search_weights import fit_lexical_weight
from biograft.linking.static.config import StaticConfig
from biograft.linking.supervised.config import RankerConfig
from biograft.training.linkers import FinetuneConfig
from biograft.training.linkers.recipes import (
    LinkerKind,
    LinkerRecipe,
    LinkerTrainingData,
    Outcome,
    label_mentions,
)
from biograft.training.pretraining.recipe import EncoderConfig
from biograft.training.run_folder import check_run, start_run


def run_encoder(recipe: LinkerRecipe, data: LinkerTrainingData) -> Outcome:
    """Fine-tune an encoder into ``out/encoder``, with its lexical weight where there is one.

    The weight is fitted on ``data.dev``, else learned by the loss, or there is none.
    """
    try:
        from biograft.training.linkers import finetune_encoder
        from biograft.training.processes import join_processes
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "fine-tuning an encoder") from error

    if recipe.encoder is None:
        raise ConfigError(f"recipe {recipe.name}: missing key 'encoder.name'")
    if data.dev is not None:
        _check_dev(data, recipe.config)
    processes = join_processes()  # so that each loads the encoder onto its own device
    encoder = recipe.encoder.load()
    result = finetune_encoder(
        data.kb,
        encoder,
        label_mentions(data.train, data.kb),
        recipe.config,
        data.out,
        resume=data.resume,
        progress=data.progress,
    )
    report = {k: v for k, v in result.to_json().items() if k not in ("run", "encoder", "finished")}
    finished = result.training.finished
    if data.dev is not None and finished and processes.is_main_process:
        report |= _fit_lexical_weight(data, encoder, recipe.config)
    return Outcome(made={"encoder": result.encoder}, report=report, finished=finished)


def _check_dev(data: LinkerTrainingData, config: FinetuneConfig) -> None:
    """Refuse, before training, what a lexical weight cannot be fitted on."""
    if config.similarity != "cosine":
        raise ConfigError(
            "dev: the lexical weight fitted on it stands beside cosines, and this recipe trains "
            f"for {config.similarity}; leave --dev out"
        )
    check_not_names(data.kb, [query for query in data.dev or () if query.gold])


def _fit_lexical_weight(
    data: LinkerTrainingData, encoder: NameEncoder, config: FinetuneConfig
) -> dict[str, Any]:
    """Fit the weight of lexical search on held-out mentions and write it beside the encoder."""
    data.progress.start("lexical weight")
    index = data.out / "index-dev"
    index_config = IndexConfig(lexical=config.lexical)
    build_index(data.kb, index, encoder, index_config, overwrite=True, progress=data.progress)
    search = open_index(data.kb, index, LinkerConfig(lexical_weight=0.5)).search
    fitted = fit_lexical_weight(data.kb, search, data.dev or ())
    folder = data.out / "encoder"
    write_weights(folder, fitted.beside_dense, {"fitted": fitted.to_json()})
    shutil.rmtree(index)
    return {"lexical_weight": fitted.beside_dense, "dev": fitted.to_json()}


ENCODER = LinkerKind(
    config=FinetuneConfig,
    encoder_key="encoder.name",
    needs_encoder=True,
    takes=frozenset({"dev"}),
    run=run_encoder,
)


def run_static(recipe: LinkerRecipe, data: LinkerTrainingData) -> Outcome:
    """Distil an encoder without torch into ``out/encoder``; ``out/teacher`` indexes the teacher."""
    try:
        from biograft.training.linkers import distil_encoder
        from biograft.training.processes import refuse_several
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "distilling an encoder") from error
    refuse_several(f"recipe {recipe.name}")
    config: StaticConfig = recipe.config
    if (data.index is None) == (recipe.encoder is None):
        raise ConfigError("encoder: name the teacher, or an index with its vectors, not both")
    provenance = {"kb": store_fingerprint(data.kb), "index": str(data.index or "")}
    (check_run if data.resume else start_run)(data.out, recipe.to_json(), provenance)
    folder, languages = data.index or data.out / "teacher", config.languages
    if data.index is None and recipe.encoder is not None and not folder.exists():
        dense = DenseConfig(storage="float16", languages=languages)
        described = IndexConfig(lexical=LexicalConfig(languages=languages), dense=dense)
        build_index(data.kb, folder, recipe.encoder.load(), described, progress=data.progress)
    generators = open_search(data.kb, folder, LinkerConfig(languages=languages)).search.generators
    teacher = next((part for part in generators if isinstance(part, DenseIndex)), None)
    if teacher is None:
        raise ConfigError(f"index: {folder} has no vectors; make one with an encoder")
    texts = [part for query in data.train for part in query.parts]
    result = distil_encoder(
        teacher, texts, config, data.out, resume=data.resume, progress=data.progress
    )
    finished = result.training.finished
    return Outcome(made={"encoder": result.encoder}, report=result.to_json(), finished=finished)


STATIC = LinkerKind(
    config=StaticConfig,
    encoder_key="encoder.name",
    needs_encoder=False,
    takes=frozenset({"index"}),
    run=run_static,
    needs_train=False,
)


def run_generative(recipe: LinkerRecipe, data: LinkerTrainingData) -> Outcome:
    """Train a generative linker into ``out/model``; the index is for its weight in the mix."""
    try:
        from biograft.training.linkers import Mentions, train_generative
        from biograft.training.processes import join_processes
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "training a generative linker") from error
    config: GenerativeConfig = recipe.config
    searches = config.fit_weight or config.generation_weight < 1 or not config.generate
    if data.index is not None and not searches:
        raise ConfigError(
            "index: generation alone does not search an index; leave it out, or set "
            "config.fit_weight=true"
        )
    join_processes()  # before the encoder of the index is loaded
    data.progress.start("index")
    names = LinkerConfig(languages=config.names.languages)
    opened = open_search(data.kb, data.index, names) if searches else None
    mentions = Mentions(
        train=data.train,
        held_out=data.dev or (),
        search=opened.search if opened else None,
    )
    result = train_generative(
        data.kb,
        mentions,
        config,
        data.out,
        resume=data.resume,
        progress=data.progress,
    )
    return Outcome.of_linker(result)


GENERATIVE = LinkerKind(
    config=GenerativeConfig,
    encoder_key="config.model",
    needs_encoder=False,
    takes=frozenset({"dev", "index"}),
    run=run_generative,
)


def run_ranker(recipe: LinkerRecipe, data: LinkerTrainingData) -> Outcome:
    """Train a ranker into ``out/kb``, ``out/index`` and ``out/model``; finished parts are kept."""
    try:
        from biograft.linking.supervised import TrainedRanker
        from biograft.training.linkers import grow_store, train_network
        from biograft.training.processes import refuse_several
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "training a ranker") from error
    refuse_several(f"recipe {recipe.name}")
    if data.index is not None and recipe.encoder is not None:
        raise ConfigError("encoder: the index brings its own; leave one of the two out")
    mentions, known, out = label_mentions(data.train), label_mentions(data.known), data.out
    encoder = _load_encoder(recipe.encoder) if recipe.encoder else None
    provenance = {
        "kb": store_fingerprint(data.kb),
        "mentions": _fingerprint(mentions),
        "known": _fingerprint(known),
        "encoder": encoder.fingerprint() if encoder else None,
        "index": str(data.index) if data.index else None,
    }
    (check_run if data.resume else start_run)(out, recipe.to_json(), provenance)
    data.progress.start("knowledge base")
    if not (out / "kb").exists():
        grow_store(data.kb, [*known, *mentions], out / "kb")
    kb = KnowledgeBase.open(out / "kb")
    opened = _index(kb, data, encoder)
    trained = train_network(kb, opened.search, mentions, recipe.config, data.progress, known)
    generators = [generator.name for generator in opened.search.generators]
    ranker = TrainedRanker(kb, trained.network, trained.memory, generators)
    ranker.save(out / "model", recipe.config, trained.report, overwrite=True)
    made = {name: out / name for name in ("kb", "index", "model")}
    return Outcome(made=made, report=trained.report)


def _load_encoder(config: EncoderConfig) -> NameEncoder:
    """Load any encoder of dense search, a static one too."""
    settings = asdict(config)
    return load_encoder(settings.pop("name"), **settings)


def _index(kb: KnowledgeBase, data: LinkerTrainingData, encoder: NameEncoder | None) -> OpenedIndex:
    """Build the index of the extended store; vectors of the given index are reused."""
    folder = data.out / "index"
    if folder.exists():
        return open_index(kb, folder)
    if data.index is None:
        build_index(kb, folder, encoder, progress=data.progress)
        return open_index(kb, folder)
    open_index(data.kb, data.index)  # refuses that of another store
    work = folder.with_name("index.copied")
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(data.index, work)
    update_index(kb, work, progress=data.progress)
    work.rename(folder)
    return open_index(kb, folder)


def _fingerprint(mentions: Sequence[LabelledMention]) -> str:
    digest = hashlib.sha256()
    for mention in mentions:
        values = (mention.text, sorted(mention.concepts), mention.document)
        digest.update(repr(values).encode())
    return digest.hexdigest()


RANKER = LinkerKind(
    config=RankerConfig,
    encoder_key="encoder.name",
    needs_encoder=False,
    takes=frozenset({"dev", "index", "known"}),
    run=run_ranker,
)


def run_rerank(recipe: LinkerRecipe, data: LinkerTrainingData) -> Outcome:
    """Train a re-ranker into ``out/model``, on candidates of the index and the given model."""
    try:
        from biograft.training.linkers import collect_examples, train_reranker
        from biograft.training.processes import join_processes
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "training a re-ranker") from error
    if recipe.config.context_characters:
        remedy = "give --text, the documents of the gold, or set config.context_characters=0"
        check_texts(data.train, "training mentions", remedy)
        check_texts(data.dev or (), "held-out mentions", remedy)
    join_processes()  # before the linker's encoder is loaded
    data.progress.start("candidates")
    linker = Linker.open(data.kb, data.index, data.model)
    examples = collect_examples(data.kb, linker, data.train, recipe.config, data.dev)
    result = train_reranker(
        examples,
        recipe.config,
        data.out,
        ranker=data.model,
        resume=data.resume,
        progress=data.progress,
    )
    return Outcome.of_linker(result)


RERANKER = LinkerKind(
    config=RerankConfig,
    encoder_key="config.encoder",
    needs_encoder=False,
    takes=frozenset({"dev", "index", "model"}),
    run=run_rerank,
)
