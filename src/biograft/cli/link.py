"""``biograft link``: entity linking of texts, files and standard input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.link_inputs import LinkInputs
from biograft.cli.link_llm import LlmAllowRemote, LlmModel, LlmUrl, open_review, report_review
from biograft.cli.link_output import (
    AllIds,
    IncludeText,
    OutputFile,
    Prefer,
    To,
    choose_output,
    write_output,
)
from biograft.cli.options import (
    REJECTED,
    Calibration,
    Column,
    ConceptSources,
    ConceptTypes,
    Detection,
    Encoding,
    Engine,
    IdColumn,
    Index,
    InputFormat,
    Json,
    Kb,
    Languages,
    LexicalWeight,
    MentionTypes,
    Misspelt,
    Model,
    Ner,
    NoAbbreviations,
    NoAppositions,
    NoAssertions,
    NoComposites,
    NoCoordinations,
    NoShortForms,
    Overwrite,
    Quiet,
    Search,
    Sheet,
    Similarity,
    SkipErrors,
    StopFile,
    Threshold,
    note_without_index,
    refuse_input_as_output,
    split_languages,
    split_list,
    stop_words_of,
)
from biograft.errors import ConfigError
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.linking import LinkedDocument


def link(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT|-|FILE...",
            help="A text, '-' for standard input, files, folders or zip archives.",
        ),
    ],
    kb: Kb,
    index: Index = None,
    model: Model = None,
    calibration: Calibration = None,
    form: InputFormat = "",
    encoding: Encoding = "utf-8",
    column: Column = "",
    id_column: IdColumn = "",
    sheet: Sheet = "",
    mentions: Annotated[
        str | None,
        typer.Option(
            "--mentions",
            metavar="given|find|both",
            help="Link the mentions that annotated files have, find mentions in their texts "
            "instead, or both. Default: given where a document has some, else find.",
        ),
    ] = None,
    terms: Annotated[
        bool,
        typer.Option("--terms", help="Treat each line, or row of a table, as one term to link."),
    ] = False,
    skip_errors: SkipErrors = False,
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            metavar="N",
            min=1,
            help="Candidates per mention; default: 5, or only those with that name if the "
            "mention equals a name.",
        ),
    ] = None,
    threshold: Threshold = None,
    search: Search = None,
    lexical_weight: LexicalWeight = None,
    similarity: Similarity = None,
    ner: Ner = None,
    detection: Detection = None,
    mention_types: MentionTypes = "",
    misspelt: Misspelt = True,
    no_abbreviations: NoAbbreviations = False,
    no_appositions: NoAppositions = False,
    no_composites: NoComposites = False,
    no_short_forms: NoShortForms = False,
    no_coordinations: NoCoordinations = False,
    no_assertions: NoAssertions = False,
    types: ConceptTypes = "",
    sources: ConceptSources = "",
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show why the first candidate of each mention came first."),
    ] = False,
    lang: Languages = "",
    stop_file: StopFile = None,
    llm_url: LlmUrl = "",
    llm_model: LlmModel = "",
    llm_allow_remote: LlmAllowRemote = False,
    engine: Engine = "local",
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, help="Processes that link; give an INDEX, too.")
    ] = 1,
    as_json: Json = False,
    to: To = "",
    out: OutputFile = None,
    prefer: Prefer = "",
    all_ids: AllIds = False,
    include_text: IncludeText = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Find mentions in text, and link them to concepts.

    Files may be plain text, any format of `biograft corpus formats`, or tables; each is recognised
    by its content. Of annotated files the given mentions are linked, elsewhere the names that the
    text contains; with --ner a trained model finds the mentions. Each mention in text is said
    to be present, absent, possible, historical, hypothetical, or of the family. The exit status is
    1 if records or files were left out.
    """
    from biograft.kb import KnowledgeBase
    from biograft.linking import Linker

    if terms and (ner is not None or mentions is not None):
        other = "--ner" if ner is not None else "--mentions"
        raise ConfigError(f"--terms: takes each line as a mention; leave {other} out")
    reading: dict[str, str | bool] = {
        "format": form, "encoding": encoding, "column": column, "id_column": id_column,
        "sheet": sheet, "skip_errors": skip_errors,
    }  # fmt: skip
    texts = LinkInputs(inputs, reading, terms)
    to = choose_output(to, out, as_json=as_json)
    refuse_input_as_output(out, *texts.files())
    progress = Progress(enabled=not quiet)
    base = KnowledgeBase.open(kb)
    review = open_review(base, llm_url, llm_model, allow_remote=llm_allow_remote)
    note_without_index(base, index, quiet=quiet)
    progress.start("open")
    linker = Linker.open(
        base, index, model, calibration, ner,
        **({} if k is None else {"k": k}), threshold=threshold,
        detection=detection, mention_types=split_list(mention_types),
        search=search, lexical_weight=lexical_weight, similarity=similarity,
        misspelt=misspelt, abbreviations=not no_abbreviations, appositions=not no_appositions,
        composites=not no_composites, assertions=not (no_assertions or terms), mentions=mentions,
        short_forms=not no_short_forms, coordinations=not no_coordinations,
        types=split_list(types), sources=split_list(sources), explain=explain,
        languages=split_languages(lang), stop_words=stop_words_of(stop_file),
    )  # fmt: skip
    linked = linker.pipe(texts.documents(), n_process=workers, engine=engine)
    linked = _counted(linked if review is None else review.apply(linked), progress)
    write_output(
        linked, base, to, out,
        overwrite=overwrite, terms=terms, all_candidates=k is not None,
        prefer=split_list(prefer), all_ids=all_ids, include_text=include_text,
    )  # fmt: skip
    if review is not None:
        report_review(review)
    if texts.report():
        raise typer.Exit(REJECTED)


def _counted(linked: Iterable[LinkedDocument], progress: Progress) -> Iterator[LinkedDocument]:
    """Count the documents; their text is never shown."""
    progress.start("link")
    for document in linked:
        progress.advance(1)
        yield document
    progress.finish()
