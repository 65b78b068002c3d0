"""Pre-training of an encoder-decoder to generate names from sentences about concepts (GenBioEL).

The sentences follow templates (Yuan et al. 2022, Table 1). A sentence joins the marked name of a
concept and what is known of it: definitions or other names. The template is sampled uniformly from
those of its kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import fingerprint
from biograft.models.seq2seq import Seq2SeqModel
from biograft.progress import Progress
from biograft.text.mention_text import END, PUNCTUATION, START, clean_name, clean_text, prompt_of
from biograft.training import TrainingResult
from biograft.training.batches import EpochOrder, OrderedBatches
from biograft.training.objectives.examples import Setting
from biograft.training.objectives.name_examples import NameExample
from biograft.training.objectives.name_generation import NameReader, SequenceBatch, name_batches
from biograft.training.pretraining.alignment import read_texts
from biograft.training.pretraining.recipe import NameTemplatesConfig, PretrainingRecipe, hold_out
from biograft.training.pretraining.stream import Stream


@dataclass(frozen=True, slots=True)
class Template:
    """A template: ``words`` between the name of a concept and what is known of it."""

    words: str
    name_first: bool

    def write(self, name: str, known: str) -> str:
        """Fill the template.

        Args:
            name: Name of the concept.
            known: What is known of it.
        """
        marked = f"{START} {name} {END}"
        first, last = (marked, known) if self.name_first else (known, marked)
        return f"{first} {self.words} {last}"


DEFINED = (
    Template("is defined as", name_first=True),
    Template("is described as", name_first=True),
    Template("are the definitions of", name_first=False),
    Template("describe", name_first=False),
)
"""Templates for concepts with a definition."""

SEVERAL = (
    Template("are the synonyms of", name_first=False),
    Template("indicate the same concept as", name_first=False),
    Template("has synonyms such as", name_first=True),
    Template("refers to the same concepts as", name_first=True),
)
"""Templates for concepts without a definition, with several names."""

SINGLE = (
    Template("is", name_first=False),
    Template("is the same as", name_first=False),
    Template("is", name_first=True),
    Template("is the same as", name_first=True),
)
"""Templates for concepts with nothing but one name."""


Rows = npt.NDArray[np.uint32]
Ends = npt.NDArray[np.int64]

_PUNCTUATION = rf"[{re.escape(PUNCTUATION)}\s]+"


@dataclass(frozen=True, slots=True)
class ConceptTexts:
    """Rows of the tables of names and of definitions, grouped by concept."""

    names: Rows
    name_ends: Ends
    """The end of the names of each concept; concepts without names are left out."""
    definitions: Rows
    definition_ends: Ends
    """The end of the definitions of the same concepts."""

    def of_name(self, index: int) -> int:
        """Return the index of the concept of a name."""
        return int(np.searchsorted(self.name_ends, index, side="right"))

    def names_of(self, concept: int) -> range:
        """Return the indices of a concept's names."""
        return _range(self.name_ends, concept)

    def definitions_of(self, concept: int) -> range:
        """Return the indices of a concept's definitions."""
        return _range(self.definition_ends, concept)


def group_texts(kb: KnowledgeBase, config: NameTemplatesConfig) -> ConceptTexts:
    """Group names and definitions in the configured languages; a concept has each text once.

    Args:
        kb: Knowledge base.
        config: Languages, and lowercasing.
    """
    names = read_texts(kb, "names", config.languages)
    names = _each_once(names, _cleaned(pl.col("text"), lower=config.lower))
    definitions = _each_once(
        read_texts(kb, "definitions", config.languages),
        _lowered(pl.col("text").str.strip_chars(), lower=config.lower),
    )
    concepts, name_ends = _ends(names["concept"].to_numpy())
    of_definitions = definitions["concept"].to_numpy()
    known = np.isin(of_definitions, concepts)
    return ConceptTexts(
        names["row"].to_numpy(),
        name_ends,
        definitions["row"].to_numpy()[known],
        np.searchsorted(of_definitions[known], concepts, side="right").astype(np.int64),
    )


def _each_once(texts: pl.DataFrame, written: pl.Expr) -> pl.DataFrame:
    """Keep the first of equal texts of a concept, and drop empty ones."""
    named = texts.select("row", "concept", text=written).filter(pl.col("text") != "")
    named = named.unique(["concept", "text"], keep="first", maintain_order=True)
    return named.select("row", "concept")


def _cleaned(text: pl.Expr, *, lower: bool) -> pl.Expr:
    """Normalise a column of names like ``clean_name``, to find equal ones."""
    cased = _lowered(text, lower=lower)
    cleaned = cased.str.replace_all(_PUNCTUATION, " ").str.strip_chars()
    return pl.when(cleaned == "").then(cased.str.strip_chars()).otherwise(cleaned)


def _lowered(text: pl.Expr, *, lower: bool) -> pl.Expr:
    return text.str.to_lowercase() if lower else text


def _ends(concepts: Rows) -> tuple[Rows, Ends]:
    """Return the concepts, ascending, and the end of the rows of each."""
    distinct, counts = np.unique(concepts, return_counts=True)
    return distinct, np.cumsum(counts, dtype=np.int64)


def _range(ends: Ends, row: int) -> range:
    return range(int(ends[row - 1]) if row else 0, int(ends[row]))


@dataclass(frozen=True, slots=True)
class TemplateCounts:
    """Counts of the training data."""

    n_names: int
    """Names of all concepts, each text once in a concept: one example each."""
    n_concepts: int
    n_defined: int
    """Concepts with a definition."""
    n_several: int
    """Concepts without one, with several names."""
    n_single: int
    """Concepts with nothing but one name."""
    n_definitions: int

    def to_json(self) -> dict[str, int]:
        """Return the counts as plain values."""
        return asdict(self)


class NameTemplates:
    """Examples of name generation, built on access: the target of an example is one name.

    The mention is another name of the concept, sampled; an only name is both. The sentence is
    sampled anew each epoch.

    Args:
        kb: Knowledge base of the names.
        config: Settings of the stream.
    """

    def __init__(self, kb: KnowledgeBase, config: NameTemplatesConfig | None = None) -> None:
        self.kb, self.config = kb, config or NameTemplatesConfig()
        self.concept_texts = group_texts(kb, self.config)
        if not len(self.concept_texts.names):
            raise ConfigError("stream: the knowledge base has no name to learn")
        self._definitions = kb.table("definitions").column("text")
        self.counts = self._count()

    def __len__(self) -> int:
        return len(self.concept_texts.names)

    def example(self, epoch: int, index: int) -> NameExample:
        """Return an example as it is in an epoch."""
        rng = np.random.default_rng([self.config.seed, epoch, 1 + index])
        concept = self.concept_texts.of_name(index)
        others = [name for name in self.concept_texts.names_of(concept) if name != index]
        mention = others[int(rng.integers(len(others)))] if others else index
        definitions = self.concept_texts.definitions_of(concept)
        templates = DEFINED if definitions else SEVERAL if others else SINGLE
        template = templates[int(rng.integers(len(templates)))]
        if definitions:
            known = self._define(definitions, template, rng)
        else:
            unused = [name for name in others if name != mention]
            known = self._list(unused or [index], rng)  # of two names, the other is the target
        mention_text = self._name(mention)
        return NameExample(
            source=template.write(mention_text, known),
            prompt=prompt_of(mention_text) if self.config.prompt else "",
            target=self._name(index),
        )

    def texts(self, max_examples: int) -> Iterator[str]:
        """Iterate over the texts of the first epoch, to train a tokenizer.

        At most ``max_examples`` examples are used, evenly spaced.
        """
        for index in np.linspace(0, len(self) - 1, min(max_examples, len(self)), dtype=np.int64):
            example = self.example(0, int(index))
            yield example.source
            yield f"{example.prompt} {example.target}".strip()

    def about(self) -> str:
        """Return a line on the names."""
        counts = self.counts
        return (
            f"{counts.n_names:,} names of {counts.n_concepts:,} concepts: {counts.n_defined:,} "
            f"with a definition, {counts.n_several:,} with several names, {counts.n_single:,} with "
            "one"
        )

    def _list(self, names: list[int], rng: np.random.Generator) -> str:
        """Join some of the names, sampled."""
        n_chosen = min(self.config.max_synonyms, len(names))
        chosen = rng.choice(names, n_chosen, replace=False)
        return ", ".join(self._name(int(index)) for index in chosen)

    def _define(self, indices: range, template: Template, rng: np.random.Generator) -> str:
        """Join some of the definitions, sampled; of long ones the words nearest the mention."""
        n_chosen = min(self.config.max_definitions, len(indices))
        chosen = rng.choice(np.array(indices), n_chosen, replace=False)
        words = " ".join(self._definition(int(index)) for index in chosen).split()
        n_words = self.config.definition_words
        return " ".join(words[:n_words] if template.name_first else words[-n_words:])

    def _name(self, index: int) -> str:
        text = self.kb.name(int(self.concept_texts.names[index])).text
        return clean_name(text, lower=self.config.lower)

    def _definition(self, index: int) -> str:
        text = self._definitions[int(self.concept_texts.definitions[index])].as_py()
        return clean_text(text, lower=self.config.lower)

    def _count(self) -> TemplateCounts:
        n_names = np.diff(self.concept_texts.name_ends, prepend=0)
        defined = np.diff(self.concept_texts.definition_ends, prepend=0) > 0
        several = ~defined & (n_names > 1)
        return TemplateCounts(
            n_names=len(self),
            n_concepts=len(n_names),
            n_defined=int(defined.sum()),
            n_several=int(several.sum()),
            n_single=int((~defined & ~several).sum()),
            n_definitions=len(self.concept_texts.definitions),
        )


_TOKENIZER_EXAMPLES = 200_000
"""The maximum number of examples that a new tokenizer is trained on."""


class NameStream(Stream):
    """Sentences about concepts, from which an encoder-decoder generates names."""

    def open(self, progress: Progress) -> None:
        """Open the sentences and the model."""
        recipe, config, kb = self.recipe, self.recipe.stream, self.kb
        if kb is None:
            raise ConfigError(
                f"recipe {recipe.name}: needs the names of a knowledge base; give --kb"
            )
        progress.start("names")
        self.examples: NameTemplates = config.part(kb, config)
        progress.start("model")
        self.seq2seq = load_or_create_model(recipe, self.examples)
        self.setting = Setting(width=self.seq2seq.model.get_decoder().config.hidden_size, kb=kb)
        self.rows, self._held_out = hold_out(np.arange(len(self.examples)), recipe.training.seed)
        self.about, counts = self.examples.about(), self.examples.counts.to_json()
        self.counts = {"names": counts}
        self.provenance = {
            "kb": fingerprint(kb, ("names", "definitions"), [kb.languages]),
            "encoder": self.seq2seq.fingerprint(),
            "names": counts,
        }

    def reader(self) -> NameReader:
        """Return the model; also choose the objective that encodes the examples."""
        encoder: Any = next(each for each in self.objectives.values() if hasattr(each, "encode"))
        self._batches = name_batches(self.seq2seq, encoder, self.examples)
        self.lengths = self._batches.lengths
        return NameReader(self.seq2seq, self.objectives)

    def batch(self, epoch: int, indices: Sequence[int]) -> SequenceBatch:
        """Return some examples as tensors."""
        return self._batches.batch(epoch, indices)

    def held_out(self, size: int) -> list[SequenceBatch]:
        """Return the names that are held out."""
        if not len(self._held_out):
            return []
        order = EpochOrder(self._held_out, size, self.recipe.training.seed)
        return list(OrderedBatches(order, self.batch).batches(0))

    def save(self, trained: TrainingResult) -> None:
        """Write the model."""
        self.seq2seq.save_pretrained(self.run / "encoder", overwrite=True)


def load_or_create_model(recipe: PretrainingRecipe, templates: NameTemplates) -> Seq2SeqModel:
    """Load the model of a recipe, or create the new one that it describes.

    Args:
        recipe: The recipe.
        templates: Sentences that a new tokenizer is learned from.
    """
    if recipe.new is not None:
        created: Seq2SeqModel = recipe.new.create(
            templates.texts(_TOKENIZER_EXAMPLES), recipe.training.seed
        )
        return created
    config = recipe.encoder
    return Seq2SeqModel.from_pretrained(
        config.name,
        max_source=config.max_length,
        dropout=config.dropout,
        decoder=config.decoder,
        lora=config.lora,
    )
