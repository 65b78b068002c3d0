"""The functions of the top-level package: annotate, finetune and evaluate in one call each.

They combine packages that do not know each other; ``pretrain`` is in :mod:`biograft.pretraining`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from biograft.annotation.config import AnnotationConfig
from biograft.annotation.runner import ExecutionConfig, annotate_corpus
from biograft.config import from_mapping
from biograft.errors import ConfigError
from biograft.evaluation import (
    EvaluationConfig,
    GoldConfig,
    LinkingResult,
    LinkQuery,
    StoreIds,
    TextIndex,
    evaluate_linking,
    read_gold,
    resolve_gold,
)
from biograft.kb import KnowledgeBase
from biograft.linking import Linker
from biograft.linking.recipes import (
    LinkerRecipe,
    LinkerTrainingData,
    Outcome,
    finetune as finetune_linker,
)
from biograft.progress import Progress
from biograft.recipes.recipe import Recipe, check_kind

if TYPE_CHECKING:
    from biograft.tasks import TaskRecipe, TaskResult


def annotate(
    kb: str | Path,
    texts: str | Path | Sequence[str | Path],
    out: str | Path,
    config: AnnotationConfig | None = None,
    execution: ExecutionConfig | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Annotate text files with the concepts of a knowledge base; return the manifest.

    >>> annotate("KB", "abstracts.txt.gz", "CORPUS")["mentions"]  # doctest: +SKIP
    48210
    """
    files = [texts] if isinstance(texts, str | Path) else texts
    return annotate_corpus(kb, files, out, config, execution, progress)


def finetune(
    recipe: str | Path | Recipe,
    out: str | Path,
    *,
    kb: KnowledgeBase | str | Path | None = None,
    data: Mapping[str, Any] | None = None,
    index: str | Path | None = None,
    model: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Outcome | TaskResult:
    """Train a linker or a task model on labelled data, by a recipe, in the folder ``out``.

    ``data`` changes the table ``[data]`` of the recipe: files to ``train`` on, ``dev``, ``format``.
    Linkers need ``kb``; some use an ``index`` and a trained ``model``.

    >>> finetune("ner-cpu", "RUN", data={"train": ["train.txt"], "dev": ["dev.txt"]}).model
    ... # doctest: +SKIP
    PosixPath('RUN/model')
    >>> gold = {"train": ["train.concept"], "format": "biosyn"}
    >>> finetune("linker-ranker", "RUN", kb="KB", data=gold).made["model"]  # doctest: +SKIP
    PosixPath('RUN/model')
    """
    recipe = recipe if isinstance(recipe, Recipe) else Recipe.load(recipe)
    check_kind(recipe.name, recipe.kind, "linker", "task")
    progress = progress or Progress(enabled=False)
    if not isinstance(recipe, LinkerRecipe):
        for name, value in (("kb", kb), ("index", index), ("model", model)):
            if value is not None:
                raise ConfigError(f"{name}: a recipe of a task does not use it")
        return _finetune_task(recipe, data, Path(out), resume=resume, progress=progress)
    if kb is None:
        raise ConfigError(f"kb: recipe {recipe.name} trains a linker and needs a knowledge base")
    recipe, base = _with_data(recipe, data), open_kb(kb)
    table, texts = recipe.data, TextIndex.read(recipe.data.text)
    train = read_queries(base, table.train, table.format, table.types, texts)
    dev = read_queries(base, table.dev, table.format, table.types, texts)
    examples = LinkerTrainingData(
        kb=base,
        train=train.queries,
        dev=dev.queries or None,
        out=Path(out),
        index=None if index is None else Path(index),
        model=None if model is None else Path(model),
        resume=resume,
        progress=progress,
    )
    return finetune_linker(recipe, examples)


def _finetune_task(
    recipe: Recipe, data: Mapping[str, Any] | None, out: Path, *, resume: bool, progress: Progress
) -> TaskResult:
    from biograft.tasks import TASKS, TaskRecipe, TaskTrainingData, finetune_task

    if not isinstance(recipe, TaskRecipe):
        raise ConfigError(f"recipe {recipe.name}: expected a recipe of a linker or a task")
    recipe = _with_data(recipe, data)
    read, table = TASKS.load(recipe.task).read, recipe.data
    for split in ("train", "dev"):
        if not getattr(table, split):
            raise ConfigError(f"data.{split}: expected at least one file")
    examples = TaskTrainingData(
        train=read(table.train, "train", table),
        dev=read(table.dev, "dev", table),
        test=read(table.test, "test", table) if table.test else None,
        out=out,
        resume=resume,
        progress=progress,
    )
    return finetune_task(recipe, examples)


def evaluate(
    linker: Linker,
    gold: str | Path | Sequence[LinkQuery],
    form: str = "",
    *,
    scorer: str = "lenient",
    config: EvaluationConfig | None = None,
    progress: Progress | None = None,
) -> LinkingResult:
    """Evaluate a linker on a gold standard: a file of the format ``form``, or queries.

    >>> result = evaluate(Linker.open("KB"), "test.concept", "biosyn")  # doctest: +SKIP
    >>> result["acc@1"]  # doctest: +SKIP
    0.871
    """
    if isinstance(gold, str | Path):
        gold = read_gold(gold, form).queries
    return evaluate_linking(linker, linker.kb, gold, scorer, config, progress)


@dataclass(frozen=True, slots=True)
class GoldQueries:
    """The queries of gold files, the rows left out of each file, and the unknown gold ids."""

    queries: list[LinkQuery]
    rejected: Mapping[str, Mapping[str, int]]
    unknown: Collection[str]

    @property
    def n_without_text(self) -> int:
        """Number of queries whose text is not known."""
        return sum(not query.context for query in self.queries)


def read_queries(
    kb: KnowledgeBase,
    paths: Sequence[str],
    form: str,
    types: tuple[str, ...] = (),
    texts: TextIndex | None = None,
) -> GoldQueries:
    """Read gold files of one format as one, their ids spelled as in the knowledge base."""
    if paths and not form:
        raise ConfigError("format: name the format of the gold standards")
    config = GoldConfig(types=types, keep_nil=True)
    queries: list[LinkQuery] = []
    rejected: dict[str, Mapping[str, int]] = {}
    for path in paths:
        gold = read_gold(path, form, config, texts)
        rejected[path] = gold.log.rejected.counts
        queries += gold.queries
    resolved = resolve_gold(queries, StoreIds(kb))
    return GoldQueries(list(resolved.queries), rejected, resolved.unknown)


def open_kb(kb: KnowledgeBase | str | Path) -> KnowledgeBase:
    """Open a knowledge base that is not open yet."""
    return kb if isinstance(kb, KnowledgeBase) else KnowledgeBase.open(kb)


R = TypeVar("R", "LinkerRecipe", "TaskRecipe")


def _with_data(recipe: R, data: Mapping[str, Any] | None) -> R:
    """Return a recipe with other values in its table ``[data]``."""
    values = {**asdict(recipe.data), **(data or {})}
    return replace(recipe, data=from_mapping(type(recipe.data), values, "data."))
