"""What may be chosen of entity recognition."""

from __future__ import annotations

from dataclasses import dataclass, field

from biograft.errors import ConfigError
from biograft.tasks.config import TaskTraining

CHOICES = {
    "head": ("softmax", "crf", "spans"),
    "scheme": ("bio", "bioes"),
    "types": ("ignore", "keep"),
    "read": ("passages", "sentences", "documents"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NerConfig:
    """How entities are marked, what is read at once, and how the model is trained."""

    head: str = "softmax"
    """``softmax``: a tag for each word by itself; ``crf``: the best sequence of tags; ``spans``:
    every span by itself, so that entities may lie inside others."""
    scheme: str = "bio"
    """Tags of softmax and crf: ``bio``, or ``bioes`` with marks for last and single words."""
    types: str = "ignore"
    """``ignore``: all entities are of one type, as in BLURB; ``keep``: the types of the files."""
    read: str = "passages"
    """What is read by itself: the ``passages`` of the files (sentences of CoNLL, title and
    abstract), ``sentences`` of these, or whole ``documents``."""
    overlap: int = 64
    """Tokens that windows share where a text is longer than the encoder reads."""
    max_span: int = 64
    """Of ``spans``, the most words of an entity."""
    dropout: float = 0.1
    training: TaskTraining = field(default_factory=TaskTraining)

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise ConfigError(
                    f"{name}: expected one of {', '.join(known)}, found {getattr(self, name)!r}"
                )
        if self.overlap < 0:
            raise ConfigError(f"overlap: expected at least 0, found {self.overlap}")
        if self.max_span < 1:
            raise ConfigError(f"max_span: expected at least 1, found {self.max_span}")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout: expected a share below 1, found {self.dropout}")
