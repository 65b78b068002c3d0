"""Settings of corpus annotation: names, score threshold, number of spans, cleaning."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from biograft.config import AtLeast, Choice, Config, Option, Range
from biograft.errors import ConfigError
from biograft.kb.names import language_code
from biograft.linking.config import MENTIONS, Index, StopWords
from biograft.text.cleaning import CleaningConfig


@dataclass(frozen=True, kw_only=True)
class AnnotationConfig(Config):
    """The settings that determine the spans, unlike those of the execution (engine, workers)."""

    mentions: Annotated[
        str,
        Choice(*MENTIONS),
        Option(
            "Find names in the texts, take the mentions of annotated files by their concept ids, "
            "or both (names count where they overlap no given mention); given and both need "
            "--no-clean."
        ),
    ] = "find"
    language: Annotated[
        str, Option("Only names in this language.", metavar="en", parse=language_code)
    ] = ""
    threshold: Annotated[
        float,
        Range(min=0, max=1),
        Option(
            "Drop spans that score below this. Names score 1 or 0.99 (normal form); long forms of "
            "abbreviations and a calibrated --index score less. It finds no text that is only "
            "similar to a name.",
            metavar="P",
        ),
    ] = 0.85
    max_spans: Annotated[
        int,
        AtLeast(0),
        Option(
            "Maximum spans per document: the best-scored, of these the longest, of these the "
            "first; KeBioLM has 50 per sequence; 0: all.",
            metavar="N",
        ),
    ] = 0
    index: Index = None
    """Index that disambiguates and ranks; None: names of the knowledge base alone."""
    abbreviations: Annotated[
        bool, Option("Link abbreviations that the document defines by their long form.")
    ] = True
    stop_words: StopWords = ()
    """Names that are no mentions in text."""
    cleaning: CleaningConfig | None = field(default_factory=CleaningConfig)
    """Cleaning of the text; None leaves it unchanged."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mentions != "find" and self.cleaning is not None:
            raise ConfigError(
                f"mentions: {self.mentions!r} needs the text as it is, since cleaning moves "
                "offsets; leave cleaning out (--no-clean)"
            )

    @property
    def threshold_matters(self) -> bool:
        """Whether the threshold can drop a span; else all are names, which score 0.99 or 1."""
        from biograft.linking.lexical.index import NORMALISED

        return self.abbreviations or self.index is not None or self.threshold > NORMALISED

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of names, as arguments of a linker."""
        return (self.language,) if self.language else ()

    def to_json(self) -> dict[str, Any]:
        """Return all settings as plain values."""
        return {
            **asdict(self),
            "index": str(self.index) if self.index else None,
            "stop_words": list(self.stop_words),
        }
