"""Configuration of fine-tuning an encoder on labelled mentions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from biograft.config import Above, AtLeast, Choice, Config
from biograft.linking.lexical.index import LexicalConfig
from biograft.recipe import TrainingConfig
from biograft.training.objectives.configs import SynonymAlignmentConfig, SynonymMarginalConfig

LOSSES = ("marginal", "bank", "contrastive")


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneTraining(TrainingConfig):
    """Training with the defaults of BioSyn; a batch counts mentions."""

    epochs: Annotated[int, AtLeast(1)] = 10
    batch_size: Annotated[int, AtLeast(1)] = 16
    learning_rate: Annotated[float, Above(0)] = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneConfig(Config):
    """Settings of fine-tuning.

    ``marginal`` loss (BioSyn): each mention has ``k`` candidates, half of them by lexical search,
    half by the encoder, updated at the start of each epoch. If no gold name is among them, the one
    most similar to the mention is added (``missing_gold`` = ``add``), or the mention is skipped.

    ``refresh`` selects the names that the encoder searches: all (``full``), or the ``reachable``
    ones: the ``reach`` nearest to any mention by lexical search, all names of gold concepts, and
    the last candidates. With ``first_full`` the first epoch searches all names.

    ``bank`` loss: the marginal loss over all names, with the vectors computed at the start of the
    epoch; only mentions, and ``partners`` correct names of each, are encoded in a step. Lexical
    search only selects the ``reachable`` names. Mentions are names, too, but not for themselves.

    ``contrastive`` loss: pairs of a mention and another mention or name of its concept, with the
    other pairs of the batch as negatives; for data of many mentions and few names.

    ``exclude_own_mention`` excludes names equal to the mention from its candidates, so that a
    dictionary with the training mentions does not teach exact matching. ``distinct`` uses
    mentions with equal text and concepts once per epoch.
    """

    loss: Annotated[str, Choice(*LOSSES)] = "marginal"
    k: Annotated[int, AtLeast(2)] = 20
    refresh: Annotated[str, Choice("reachable", "full")] = "reachable"
    first_full: bool = True
    reach: Annotated[int, AtLeast(1)] = 100
    missing_gold: Annotated[str, Choice("add", "skip")] = "add"
    partners: Annotated[int, AtLeast(1)] = 1
    distinct: bool = True
    exclude_own_mention: bool = False
    encode_batch: Annotated[int, AtLeast(1)] = 64
    """Number of names of usual length encoded at once when candidates are updated."""
    lexical: LexicalConfig = field(default_factory=LexicalConfig)
    """Lexical search, and the languages of the names."""
    marginal: SynonymMarginalConfig = field(default_factory=SynonymMarginalConfig)
    contrastive: SynonymAlignmentConfig = field(default_factory=SynonymAlignmentConfig)
    training: FinetuneTraining = field(default_factory=FinetuneTraining)

    @property
    def similarity(self) -> str:
        """The similarity of vectors that the encoder is trained for."""
        return "cosine" if self.loss == "contrastive" else self.marginal.similarity
