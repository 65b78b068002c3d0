"""Encoders of dense search: what it needs of one, and the loader that knows their folders."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Protocol

from biograft.arrays import Float32s
from biograft.errors import ConfigError, MissingExtraError
from biograft.kb import KnowledgeBase
from biograft.linking.static import STATIC_ENCODER, StaticEncoder
from biograft.models.settings import EncoderSettings
from biograft.progress import Progress

SHIPPED = {"static-english": Path(__file__).parents[1] / "static_english"}
"""Encoders that come with biograft, by name."""
DEFAULT_ENCODER = "static-english"
MAX_DEFAULT_NAMES = 500_000
"""Stores with more names are searched lexically unless an encoder is asked for."""


class NameEncoder(Protocol):
    """Maps names to vectors: a :class:`TextEncoder`, or a :class:`StaticEncoder` without torch."""

    name: str
    settings: EncoderSettings
    origins: dict[str, str]
    """Origin of each setting."""
    folder: Path | None
    """The folder it was loaded from, if any."""

    @property
    def dim(self) -> int:
        """The dimension of the vectors."""

    def prepare(self, text: str) -> str:
        """Normalise a text; texts that are equal then have one vector."""

    def encode(
        self,
        texts: Sequence[str],
        *,
        prompt_name: str = "document",
        batch_size: int = 64,
        precision: str = "auto",
        normalize: bool = True,
        progress: Progress | None = None,
    ) -> Float32s:
        """Compute one vector for each text: (texts, dim).

        Args:
            texts: Names.
            prompt_name: The prompt before each: ``query`` or ``document``.
            batch_size: Number of names that are encoded at a time.
            precision: One of ``models.precision.PRECISIONS``.
            normalize: Scale each vector to length 1.
            progress: Progress to advance by each batch.
        """

    def fingerprint(self) -> str:
        """Compute the SHA-256 of everything that decides the vectors."""

    def save_pretrained(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Save the encoder, so that ``load_encoder`` loads it.

        Args:
            folder: Folder to write.
            overwrite: Replace a folder that exists.
        """


def load_encoder(
    name_or_folder: str | Path,
    *,
    pooling: str | None = None,
    max_length: int | None = None,
    lower: bool | None = None,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
    query_encoder: str | None = None,
    engine: str | None = None,
) -> NameEncoder:
    """Load an encoder: one of :data:`SHIPPED`, a static one, else a transformers model.

    All settings but the name are for transformers models only; None takes what its files say.

    Args:
        name_or_folder: Name in :data:`SHIPPED` or of a model, or a folder.
        pooling: One of ``biograft.models.POOLINGS``.
        max_length: Maximum number of tokens of a name.
        lower: Make names lower-case first.
        query_prompt: Text before each text that is searched for.
        document_prompt: Text before each name.
        query_encoder: Another encoder, for what is searched for.
        engine: ``torch``, or ``openvino`` for processors.
    """
    given: dict[str, Any] = {
        "pooling": pooling,
        "max_length": max_length,
        "lower": lower,
        "query_prompt": query_prompt,
        "document_prompt": document_prompt,
        "query_encoder": query_encoder,
    }
    folder = SHIPPED.get(str(name_or_folder), Path(name_or_folder))
    if STATIC_ENCODER.is_at(folder):
        for setting, value in {**given, "engine": engine}.items():
            if value is not None:
                raise ConfigError(
                    f"{setting}: {name_or_folder} is a static encoder, whose settings were fixed "
                    "by its training; leave it out"
                )
        encoder = StaticEncoder.from_pretrained(folder)
        encoder.name = str(name_or_folder)
        return encoder
    try:
        from biograft.models import TextEncoder
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "a transformers encoder") from error
    return TextEncoder.from_pretrained(name_or_folder, **given, engine=engine or "torch")


def default_encoder(kb: KnowledgeBase, languages: Collection[str] = ()) -> NameEncoder | None:
    """Return the encoder of an index for which none is named: the English one of biograft.

    None for a store without English names, or with so many names that vectors take much space.

    Args:
        kb: Knowledge base of the names.
        languages: Languages of the names to index; empty means all.
    """
    n_english = kb.info()["n_names_by_language"].get("en", 0)
    if not n_english or kb.n_names > MAX_DEFAULT_NAMES or (languages and "en" not in languages):
        return None
    return load_encoder(DEFAULT_ENCODER)
