"""A part for every entry point group of biograft, each as small as it can be."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from biograft import Document
from biograft.evaluation import LinkQuery
from biograft.kb.sources import Format, NameRecord, read_lines
from biograft.linking import CandidateBuilder, Output
from biograft.metrics import Measure
from biograft.models.knowledge import KnowledgeLayerConfig
from biograft.models.tasks import CLASSIFICATION
from biograft.text.formats import DocumentFormat
from biograft.text.tasks import ClassExample, TaskFormat
from biograft.training.linkers import LinkerKind, Outcome
from biograft.training.objectives import TextObjectiveConfig
from biograft.training.pretraining import PairStreamConfig


def rows(path, log):
    """Read lines such as `!D1!flu`."""
    log.opened(path)
    for number, line in read_lines(path, "utf-8"):
        log.read()
        yield number, line.strip().split("!")[1:]


def is_example(probe):
    """Return True if a file begins with the mark of this package."""
    return any(line.startswith("!") for line in probe.lines(1))


def read_source(config, log):
    """Read each line as a name."""
    for number, (concept, name) in rows(config.path, log):
        yield NameRecord(concept, name, line=number)


def read_documents(path, log):
    """Read each line as a document."""
    for _, (identifier, text) in rows(path, log):
        yield Document(identifier, text)


def read_examples(config, log):
    """Read each line as a text with its class."""
    for _, (label, text) in rows(config.path, log):
        yield ClassExample(text=text, labels=(label,))


def read_gold(path, config, log):
    """Read each line as a mention with its concept."""
    for _, (concept, mention) in rows(Path(path), log):
        yield LinkQuery(mention, gold=frozenset({concept}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleObjectiveConfig(TextObjectiveConfig):
    """An objective; its class is looked up when it is built."""

    implementation: ClassVar[str] = "example_package:nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleStreamConfig(PairStreamConfig):
    """A stream; its class is looked up when it is read."""

    implementation: ClassVar[str] = "example_package:ExamplePairs"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleLayerConfig(KnowledgeLayerConfig):
    """A knowledge layer; its class is looked up when it is built."""

    implementation: ClassVar[str] = "example_package:nothing"


class Ranker:
    """Gives every candidate the score of the search."""

    name = "example"
    uses_context = False

    def __init__(self, kb):
        self.builder = CandidateBuilder(kb)

    def rank_candidates(self, texts, pool, contexts):
        """Keep the order of the search."""
        return self.builder.by_concept(pool, pool.scores.max(axis=0), pool.rows.shape[1])


def load_ranker(folder, kb):
    """Load a trained folder, which holds nothing but its manifest."""
    return Ranker(kb)


def greet(name: str) -> None:
    """Greet by name."""
    import typer

    typer.echo(f"hello {name}")


SOURCE = Format(is_example, read_source)
DOCUMENTS = DocumentFormat(recognise=is_example, read=read_documents)
TASK_FILES = TaskFormat(kind="class", read=read_examples)
TASK = replace(CLASSIFICATION, metrics=("macro_f1", "f1"))
LINKER = LinkerKind(
    config=ExampleObjectiveConfig,
    encoder_key="",
    needs_encoder=False,
    takes=frozenset(),
    run=lambda recipe, data: Outcome(made={}, report={}),
)
MEASURE = Measure(of_all=lambda judged: 0.0)


def example_lines(documents, run):
    """Write each finding as a line such as `flu=D1`."""
    for linked in documents:
        for mention in linked.mentions:
            yield f"{mention.text}={mention.concept}\n"


OUTPUT = Output(chunks=example_lines, endings=(".example",))


class ExampleStep:
    """Take the concept of every mention away."""

    name = "example"

    def __init__(self, kb):
        """Keep nothing of the knowledge base."""

    def __call__(self, batch):
        """Answer NIL."""
        for state in batch:
            for mention in state.mentions:
                mention.concept = None
