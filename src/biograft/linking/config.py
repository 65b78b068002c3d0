"""Configurations of a linker, of its files, and of the outputs of what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypedDict

from biograft.config import AtLeast, Choice, Config, Doc, Option, Range
from biograft.kb.config import NameLanguage, ValueSetOption
from biograft.linking.dense.config import SIMILARITIES, Languages
from biograft.text.mention_text import PROMPTS

SEARCHES = ("lexical", "dense", "lexical+dense")
"""Kinds of search over the names of a store."""


DETECTIONS = ("names", "model", "both")
"""Ways to find mentions in text."""


OVERLAPS = ("longest", "all")
"""Choice of names that overlap in text."""


MENTIONS = ("given", "find", "both")
"""Handling of mentions that documents have."""


def _read_stop_words(file: str) -> tuple[str, ...]:
    from biograft.text.name_rules import read_stop_words

    return read_stop_words(Path(file)) if file else ()


Index = Annotated[Path | None, Option("Index to search; default: lexical search.", metavar="INDEX")]
StopWords = Annotated[
    tuple[str, ...],
    Option(
        "Names that are no mentions in text, a file with one a line.",
        "--stop-file",
        "FILE",
        _read_stop_words,
    ),
]


@dataclass(frozen=True, kw_only=True)
class LinkerFiles(Config):
    """The index and the trained parts of a linker, each a file or folder."""

    index: Index = None
    model: Annotated[
        Path | None,
        Option("Trained ranker or re-ranker, or a generative linker.", metavar="MODEL"),
    ] = None
    calibration: Annotated[
        Path | None,
        Option(
            "Maps scores to probabilities, with the NIL threshold; default: that of the index.",
            metavar="FILE",
        ),
    ] = None
    detector: Annotated[
        Path | None,
        Option(
            "Trained model that finds the mentions: a run of `biograft finetune ner`.",
            "--ner",
            "RUN",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class LinkerConfig(Config):
    """Settings of a linker."""

    k: Annotated[int, AtLeast(1), Option("Candidates per mention.", "-k", "N")] = 5
    depth: Annotated[int, AtLeast(1), Doc("Names retrieved by each search.")] = 64
    threshold: Annotated[
        float | None,
        Range(),
        Option(
            "Answer NIL below this probability (without calibration: this score); 0 disables NIL; "
            "default: that of the calibration, else of the search.",
            metavar="P",
        ),
    ] = None
    search: Annotated[
        str | None,
        Choice(*SEARCHES),
        Option(
            "Kind of search; default: lexical for names found in text, all that the index has for "
            "terms and given mentions."
        ),
    ] = None
    lexical_weight: Annotated[
        float | None,
        Range(min=0, max=1),
        Option(
            "Weight of lexical search, 0 to 1, dense search has the rest; default: as learned "
            "with the encoder, else 0.5.",
            metavar="W",
        ),
    ] = None
    similarity: Annotated[
        str | None,
        Choice(*SIMILARITIES),
        Option("Similarity of dense search: cosine, or inner product; default: that of the index."),
    ] = None
    prompt: Annotated[
        str | None,
        Choice(*PROMPTS),
        Option(
            "Prompt of a generative linker: its mention, none, or the left context; default: that "
            "it was trained with."
        ),
    ] = None
    mentions: Annotated[
        str | None,
        Choice(*MENTIONS),
        Option(
            "Link the mentions that annotated files have, find mentions in their texts instead, or "
            "both: those found count where they overlap none given. Default: given where a "
            "document has some, else find."
        ),
    ] = None
    detection: Annotated[
        str | None,
        Choice(*DETECTIONS),
        Option(
            "Find mentions by the names of KB, by --ner, or by both: then names count where they "
            "overlap nothing that the model finds. Default: model with --ner, else names."
        ),
    ] = None
    mention_types: Annotated[
        tuple[str, ...],
        Option("Link only mentions of these types (with --ner).", metavar="Disease,..."),
    ] = ()
    types: Annotated[
        tuple[str, ...],
        Option("Concepts of these semantic types only (code or label).", metavar="T,..."),
    ] = ()
    sources: Annotated[
        tuple[str, ...],
        Option("Concepts with a name from these vocabularies only.", metavar="S,..."),
    ] = ()
    value_set: ValueSetOption = ""
    """Value set to which answers must belong; empty: any concept."""
    languages: Languages = ()
    """Languages of the names to search; empty: all."""
    misspelt: Annotated[
        bool, Option("Also find misspelt names of KB in text; their scores are lower.")
    ] = True
    reworded: Annotated[
        bool,
        Option(
            "Also find names of KB in other words in text, as renal anomalies for abnormality of "
            "the kidney; their scores are lower."
        ),
    ] = False
    overlaps: Annotated[
        str,
        Choice(*OVERLAPS),
        Option(
            "Of names that overlap in text, the longest, or all; of those inside a longer one only "
            "broader concepts, where KB has a hierarchy."
        ),
    ] = "longest"
    abbreviations: Annotated[bool, Option("Expand abbreviations that the document defines.")] = True
    appositions: Annotated[
        bool,
        Option(
            "Look up a mention that is no name by the name it stands beside in brackets, as in "
            "phlorizin (P)."
        ),
    ] = True
    composites: Annotated[bool, Option("Split composite mentions into their parts.")] = True
    short_forms: Annotated[
        bool,
        Option(
            "Read clinical short forms (HTN) and words (febrile), leave out what is no finding "
            "(headings, flu vaccine, stroke unit), and accept names in capitals only where the "
            "document supports them."
        ),
    ] = True
    coordinations: Annotated[
        bool, Option("Find coordinated names in text, as in left and right atrial enlargement.")
    ] = True
    qualifiers: Annotated[
        bool,
        Option(
            "Also find concepts in text that only qualify others, such as left and severe. They "
            "are found anyway where --types or --value-set chooses them."
        ),
    ] = False
    assertions: Annotated[
        bool,
        Option("Compute the assertion status of mentions in text (absent, possible, ...)."),
    ] = True
    assertion_rules: Annotated[
        Path | None,
        Option(
            "Assertion rules of your own, TOML; with the key extends they are added to the shipped "
            "ones.",
            metavar="FILE",
        ),
    ] = None
    stop_words: StopWords = ()
    """Names that are no mentions in text."""
    extra_steps: Annotated[
        tuple[str, ...],
        Option(
            "Steps of installed packages that are added to those of the linker.",
            "--steps",
            "NAME,...",
        ),
    ] = ()
    explain: Annotated[bool, Option("Show why the first candidate of each mention came first.")] = (
        False
    )


class LinkerSettings(TypedDict, total=False):
    """Keywords of a linker: the fields of :class:`LinkerConfig`, which describes them."""

    k: int
    depth: int
    threshold: float | None
    search: str | None
    lexical_weight: float | None
    similarity: str | None
    prompt: str | None
    mentions: str | None
    detection: str | None
    mention_types: tuple[str, ...]
    types: tuple[str, ...]
    sources: tuple[str, ...]
    value_set: str
    languages: tuple[str, ...]
    misspelt: bool
    reworded: bool
    overlaps: str
    abbreviations: bool
    appositions: bool
    composites: bool
    short_forms: bool
    coordinations: bool
    qualifiers: bool
    assertions: bool
    assertion_rules: Path | None
    stop_words: tuple[str, ...]
    extra_steps: tuple[str, ...]
    explain: bool


@dataclass(frozen=True, kw_only=True)
class OutputConfig(Config):
    """Options of an output of findings."""

    prefer: Annotated[
        tuple[str, ...],
        Option(
            "Report ids of these vocabularies, in order of preference; default: the concept's own "
            "id.",
            metavar="MSH,...",
        ),
    ] = ()
    name_language: NameLanguage = ""
    all_ids: Annotated[bool, Option("Report all ids of each concept, too (ids).")] = False
    all_candidates: Annotated[
        bool, Doc("All candidates of a mention that equals a name, not only those of that name.")
    ] = False
    terms: Annotated[bool, Doc("Each document is one term: a table shows all its candidates.")] = (
        False
    )
    include_text: Annotated[
        bool,
        Option(
            "fhir: add the text of each document; omop: fill snippet with the text around each "
            "finding. Without it they have only the text of the mentions."
        ),
    ] = False
