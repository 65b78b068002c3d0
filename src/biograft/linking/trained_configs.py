"""Settings of trained linkers: generative linker, re-ranker, static encoder, ranker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from biograft.config import Above, AtLeast, Choice, Config, Range, Ratio, Weight, check_fields
from biograft.errors import ConfigError
from biograft.models.adapters import LoraSettings
from biograft.models.generation.config import BeamConfig
from biograft.models.scratch_configs import NewDecoder, NewSeq2Seq
from biograft.recipe import SCHEDULES, TrainingConfig
from biograft.text.mention_text import PROMPTS
from biograft.training.objectives.configs import NameGenerationConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesConfig(Config):
    """Names of a knowledge base that may be generated.

    ``lower`` lower-cases names, mentions and contexts. A name of several concepts belongs to all
    of them or, with ``shared`` = ``fewest``, to the one with the fewest names. ``per_concept``
    keeps one name per concept: the shortest, or a random one by ``seed``.
    """

    lower: bool = True
    shared: Annotated[str, Choice("all", "fewest")] = "all"
    per_concept: Annotated[str, Choice("all", "shortest", "random")] = "all"
    types: tuple[str, ...] = ()
    """Semantic types, by code or label; empty means all."""
    languages: tuple[str, ...] = ()
    """Languages of the names; empty: all."""
    sources: tuple[str, ...] = ()
    """Vocabularies of the names; empty: all."""
    seed: Annotated[int, AtLeast(0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerativeTraining(TrainingConfig):
    """Training with the published settings that are the same for all data sets."""

    steps: Annotated[int, AtLeast(0)] = 20_000
    """Number of updates."""
    batch_size: Annotated[int, AtLeast(1)] = 8
    """Examples of an update."""
    learning_rate: Annotated[float, Above(0)] = 1e-5
    """Highest learning rate."""
    schedule: Annotated[str, Choice(*SCHEDULES)] = "linear"
    """Course of the learning rate after the warm-up."""
    clip: Annotated[float, AtLeast(0)] = 0.1
    """Bound on the norm of the gradient; 0: no bound."""
    seed: Annotated[int, AtLeast(0)] = 0
    """Seed of weights, order and dropout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerativeConfig(Config):
    """Settings of a generative linker.

    The score of a name is ``w * generation + (1 - w) * search``, where w is ``generation_weight``
    from 0 to 1. With 1 there is no search. ``fit_weight`` chooses w on held-out mentions. The first
    ``rescore`` names of the search are scored by the model, even if they were not generated;
    without ``generate`` only they are, and the model re-ranks the search.
    """

    model: str = ""
    """Folder or name of the encoder-decoder or causal model to start from, or of an encoder."""
    decoder: NewDecoder | None = None
    """The decoder to add if ``model`` is an encoder."""
    lora: LoraSettings | None = None
    """Train low-rank adapters in place of the weights of ``model``."""
    new: NewSeq2Seq | None = None
    """A model to build from scratch, if no ``model`` is given."""
    max_source: int | None = None
    """Maximum number of tokens of a text; None means the limit of the model."""
    max_target: int | None = None
    """Maximum number of tokens of a prompt and a name together."""
    dropout: float | None = None
    """Dropout, also of attention, instead of the model's own."""
    target: Annotated[str, Choice("similar", "shortest", "random")] = "similar"
    """The training target among the names of the correct concept: the one most ``similar`` to the
    mention by character n-grams, the ``shortest``, or a ``random`` one for each mention."""
    names: NamesConfig = field(default_factory=NamesConfig)
    """Names that may be generated."""
    prompt: Annotated[str, Choice(*PROMPTS)] = "mention"
    """Prompt the decoder with *mention is* or with nothing (``none``), or, as a BART that has only
    learned to restore texts, with the ``left`` context of the mention, which is then not marked."""
    context_words: Annotated[int, AtLeast(0)] = 384
    """Words around the mention that the model reads."""
    drop_overlapping: bool = False
    """Do not train on mentions that overlap others of their document."""
    bucket_batches: Annotated[int, AtLeast(0)] = 0
    """Group examples of similar length within this number of batches; 0: no grouping."""
    objective: NameGenerationConfig = field(default_factory=NameGenerationConfig)
    """Smoothing and penalties of the loss."""
    training: GenerativeTraining = field(default_factory=GenerativeTraining)
    """Length, batch and learning rate."""
    beam: BeamConfig = field(default_factory=BeamConfig)
    """Beams, and the score of a name."""
    batch: Annotated[int, AtLeast(1)] = 32
    """Number of mentions in a batch of generation; names that are rescored count as beams."""
    generation_weight: Ratio = 1.0
    fit_weight: bool = False
    rescore: Annotated[int, AtLeast(0)] = 0
    generate: bool = True
    """Search all names by beam; if not, names are ranked within the first of the search."""
    names_ratio: Annotated[float, Range(min=0, below=1)] = 0.0
    """Fraction of the training examples made from names of the store, as in pre-training."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.generate and not self.rescore:
            raise ConfigError(
                "generate: false ranks the first names of the search; set rescore to their number"
            )
        if self.generate and self.rescore and self.beam.renormalise:
            raise ConfigError(
                "rescore: rescored names have probabilities over the whole vocabulary, generated "
                "ones not; set rescore = 0 or beam.renormalise = false"
            )


MIN_LENGTH = 16
"""Minimum number of tokens of a pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankTraining(TrainingConfig):
    """Training of a re-ranker; an example is a mention with all its candidates."""

    epochs: Annotated[int, AtLeast(1)] = 3
    """Passes over the training mentions."""
    batch_size: Annotated[int, AtLeast(1)] = 16
    """Mentions of an update."""
    device_batch_size: Annotated[int, AtLeast(0)] = 4
    """Mentions of a forward pass; 0: all of the update."""
    schedule: Annotated[str, Choice(*SCHEDULES)] = "linear"
    """Course of the learning rate after the warm-up."""
    warmup_ratio: Ratio = 0.1
    """Share of the updates over which the learning rate rises."""
    clip: Annotated[float, AtLeast(0)] = 1.0
    """Bound on the norm of the gradient; 0: no bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankConfig(Config):
    """Settings of a re-ranker."""

    encoder: str
    """Folder or name of the encoder to start from."""
    reads: Annotated[str, Choice("pairs", "set")] = "pairs"
    """``pairs`` reads a mention with each candidate by itself, ``set`` with all at once."""
    pooling: str = "cls"
    """Pooling of the states of a pair: ``cls`` or ``mean``. In a set the last token of a candidate
    is scored; ``lasttoken`` says that the encoder is a decoder, which attends to what stands
    before."""
    n_candidates: Annotated[int, AtLeast(1)] = 16
    """Number of concepts of a mention that are re-ranked; those behind keep their order."""
    n_train_candidates: Annotated[int, AtLeast(0)] = 0
    """Candidates of a mention in each epoch of training: the correct ones and a random sample of
    the others; 0: all."""
    max_length: Annotated[int, AtLeast(MIN_LENGTH)] = 128
    """Maximum number of tokens of a pair, including special tokens; in a set of the mention and
    each candidate together."""
    context_characters: Annotated[int, AtLeast(0)] = 120
    """Characters of context on each side of a mention."""
    n_synonyms: Annotated[int, AtLeast(0)] = 2
    """Number of further names of a candidate in its text."""
    definition_characters: Annotated[int, AtLeast(0)] = 200
    """Maximum number of characters of a candidate's definition in its text."""
    nil_text: str = "none of these"
    """The text of NIL, scored like a candidate."""
    held_out: Annotated[float, Range(above=0, below=1)] = 0.1
    """Fraction of the documents on which the mix with the first ranking is fitted."""
    training: RerankTraining = field(default_factory=RerankTraining)
    """Length, batch and learning rate."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.nil_text.strip():
            raise ConfigError("nil_text: expected words, found none")


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticTraining(TrainingConfig):
    """Training with the defaults of distillation; a batch counts names."""

    epochs: Annotated[int, AtLeast(1)] = 20
    batch_size: Annotated[int, AtLeast(1)] = 1024
    learning_rate: Annotated[float, Above(0)] = 5e-3
    weight_decay: Annotated[float, AtLeast(0)] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticConfig(Config):
    """Settings of a static encoder and of its distillation.

    A name is the weighted mean of its tokens' vectors (``width`` numbers each), projected to the
    width of the teacher, plus a perceptron with ``hidden`` units. The tokens are the teacher's, and
    the words and pairs of Chinese characters of the training texts that it splits: those that occur
    in at least ``min_word_count`` texts, at most ``max_words`` of them.

    The loss is the cosine distance to the teacher's vector, plus ``similarity_weight`` times the
    divergence of the similarities in a batch from the teacher's, as distributions over the other
    names with ``temperature``; and ``gold_weight`` times the cross-entropy of the concepts of
    training mentions, among ``n_names`` names.
    """

    width: Annotated[int, AtLeast(1)] = 128
    hidden: Annotated[int, AtLeast(1)] = 512
    max_length: Annotated[int, AtLeast(1)] = 64
    """Maximum number of tokens of a name, words included; the rest is left out."""
    min_word_count: Annotated[int, AtLeast(1)] = 2
    max_words: Annotated[int, AtLeast(0)] = 50_000
    min_token_count: Annotated[int, AtLeast(0)] = 0
    """Tokens of several characters that fewer texts have are left out of the table."""
    languages: tuple[str, ...] = ()
    """Names in these languages only; none: all."""
    similarity_weight: Weight = 1.0
    temperature: Annotated[float, Above(0)] = 0.05
    gold_weight: Weight = 1.0
    n_mentions: Annotated[int, AtLeast(1)] = 256
    """Training mentions in a batch."""
    n_names: Annotated[int, AtLeast(1)] = 3000
    training: StaticTraining = field(default_factory=StaticTraining)
    """Length, batch and learning rate."""

    @property
    def similarity(self) -> str:
        """The similarity of vectors that the encoder is trained for."""
        return "cosine"


@dataclass(frozen=True, kw_only=True)
class RankerConfig(Config):
    """Settings of the network and its training."""

    n_names: Annotated[int, AtLeast(1)] = 80
    """Number of names retrieved from each generator for a mention."""
    folds: Annotated[int, AtLeast(2)] = 5
    """Number of folds of documents; features never count a mention's own fold."""
    hidden: Annotated[int, AtLeast(1)] = 16
    """Size of the hidden layer."""
    epochs: Annotated[int, AtLeast(1)] = 30
    """Passes over the training mentions."""
    batch_size: Annotated[int, AtLeast(1)] = 256
    """Mentions of an update."""
    learning_rate: Annotated[float, Range(min=0, below=1)] = 5e-3
    """Step size."""
    weight_decay: Annotated[float, Range(min=0, below=1)] = 1e-3
    """Decay of the weights in each update."""
    ensemble: Annotated[int, AtLeast(1)] = 3
    """Number of networks with different initial weights, whose scores are averaged."""
    seed: int = 0
    """Seed of weights and order."""
