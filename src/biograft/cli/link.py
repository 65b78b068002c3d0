"""``biograft link``: entity linking of texts, files and standard input."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.options import (
    REJECTED,
    Engine,
    Json,
    Kb,
    Overwrite,
    Quiet,
    Resume,
    is_given,
    open_kb,
    open_linker,
    refuse_input_as_output,
    report_inputs,
)
from biograft.errors import ConfigError, InputError
from biograft.language import READER
from biograft.linking.config import LinkerConfig, LinkerFiles, OutputConfig
from biograft.linking.outputs.registry import OUTPUTS, output_of_ending
from biograft.progress import Progress
from biograft.text.documents import Document, Mention
from biograft.text.input_config import TABLE, TEXT, InputConfig

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase
    from biograft.linking import LinkedDocument
    from biograft.linking.choice import ChoiceReview
    from biograft.linking.outputs.unfinished import UnfinishedOutput
    from biograft.text.inputs import Inputs

_STDIN = "-"
_FILE_SUFFIXES = (
    *(".txt", ".md", ".gz", ".zip", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".xml"),
    *(".pubtator", ".conll", ".ann", ".xlsx", ".parquet", ".html", ".htm", ".docx", ".pdf"),
)
"""An argument without whitespace that ends so must be a file."""


def link(
    context: typer.Context,
    inputs: Annotated[list[str], typer.Argument(metavar="TEXT|-|FILE...")],
    kb: Kb,
    files: LinkerFiles,
    reading: InputConfig,
    linker: LinkerConfig,
    output: OutputConfig,
    terms: Annotated[bool, "--terms"] = False,
    mapping_set: Annotated[Path | None, "SET"] = None,
    llm_url: Annotated[str, "URL"] = "",
    llm_model: Annotated[str, "NAME"] = "",
    llm_allow_remote: Annotated[bool, "--llm-allow-remote"] = False,
    engine: Engine = "local",
    workers: Annotated[int, typer.Option(metavar="N", min=1)] = 1,
    as_json: Json = False,
    to: Annotated[
        str,
        typer.Option(
            metavar="|".join(OUTPUTS),
            help="Format of the output; default: by the ending of OUT, else table.",
        ),
    ] = "",
    out: Annotated[Path | None, "-o", "--out", "OUT"] = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    quiet: Quiet = False,
) -> None:
    """Find mentions in text, and link them to concepts.

    Files may be plain text, any format of `biograft corpus formats`, or tables; each is recognised
    by its content. Of annotated files the given mentions are linked, elsewhere the names that the
    text contains; with --ner a trained model finds the mentions. Each mention in text is said
    to be present, absent, possible, historical, hypothetical, or of the family.

    A mention that equals a name has the candidates of that name only, unless -k is given. The exit
    status is 1 if records or files were left out. Where files are linked to OUT, what is written
    stays in a hidden folder beside it when the command is stopped; --resume continues it.

    Args:
        inputs: A text, '-' for standard input, files, folders or zip archives.
        terms: Treat each line, or row of a table, as one term to link.
        mapping_set: Report the ids that this mapping set (SSSOM) maps concepts to.
        llm_url: Let a language model choose among the candidates of doubtful mentions: an
            OpenAI-compatible endpoint on this machine, such as http://127.0.0.1:8080/v1.
        llm_model: With --llm-url: the name of the model.
        llm_allow_remote: With --llm-url: allow sending mentions and the text around them to
            another machine.
        workers: Processes that link; give an INDEX, too.
        out: Output file, or folder for brat; default: stdout.
    """
    from biograft.linking.outputs import write_linked
    from biograft.linking.outputs.unfinished import unfinished_output
    from biograft.linking.plans import made_of

    if terms and (files.detector is not None or linker.mentions is not None):
        other = "--ner" if files.detector is not None else "--mentions"
        raise ConfigError(f"--terms: takes each line as a mention; leave {other} out")
    texts = LinkInputs(inputs, reading, terms)
    to = _choose_output(to, out, as_json=as_json)
    refuse_input_as_output(out, *texts.files(), mapping_set)
    progress = Progress(enabled=not quiet)
    base = open_kb(kb)
    review = _open_review(base, llm_url, llm_model, allow_remote=llm_allow_remote)
    progress.start("open")
    settings = replace(linker, assertions=linker.assertions and not terms)
    opened = open_linker(base, files, settings, quiet=quiet)
    mapped = None
    if mapping_set is not None:
        from biograft.mapping import MappedFindings, MappingSet

        mapped = MappedFindings(MappingSet.read(mapping_set), base)

    def pipe(documents: Iterable[Document]) -> Iterable[LinkedDocument]:
        linked = opened.pipe(documents, n_process=workers, engine=engine)
        linked = linked if review is None else review.apply(linked)
        return linked if mapped is None else mapped.apply(linked)

    output = replace(output, terms=terms, all_candidates=is_given(context, "k"))
    if to == "table" and not output.name_language:
        output = replace(output, name_language=READER.language)
    if out is None:
        if resume:
            raise ConfigError("--resume: name the file, or folder, to go on with (-o)")
        losses = _print_linked(_counted(pipe(texts.documents()), texts, progress), base, to, output)
    else:
        plan = (
            OUTPUTS.load(to).resumable
            and texts.can_be_read_again
            and made_of(
                base,
                {**vars(files), **vars(settings), "mapping_set": mapping_set},
                reading,
                map(Path, inputs),
                settings=vars(settings),
                output=[to, vars(output)],
                llm=[llm_url, llm_model],
            )
        )
        with unfinished_output(out, plan or None, resume=resume, overwrite=overwrite) as work:
            linked = _counted(work.link(texts.documents(), pipe), texts, progress, work)
            losses = write_linked(linked, out, to, base, work=work, **vars(output))
    if mapped is not None:
        losses += mapped.losses
    for kind, n in losses.most_common():
        typer.echo(f"lost        {n:,}  {kind}", err=True)
    if out is not None:
        typer.echo(f"written     {out} ({to})", err=True)
    if review is not None:
        _report_review(review)
    if texts.report():
        raise typer.Exit(REJECTED)


def _counted(
    linked: Iterable[LinkedDocument],
    texts: LinkInputs,
    progress: Progress,
    work: UnfinishedOutput | None = None,
) -> Iterator[LinkedDocument]:
    """Count the documents; their text is never shown."""
    n_before = work.n_written if work is not None else 0
    progress.start("link")
    for n, document in enumerate(linked, 1):
        share = texts.shares.popleft() if texts.shares else None
        if n == n_before:
            progress.start("link", share or 0.0)  # what an earlier run did takes no time
        progress.advance(1, share)
        yield document
    progress.finish()


# ---- inputs


@dataclass
class LinkInputs:
    """Documents to link; with ``terms`` each line or row is one mention."""

    given: Sequence[str]
    config: InputConfig
    terms: bool = False
    read: list[Inputs] = field(default_factory=list)
    shares: deque[float] = field(default_factory=deque)
    """The part that is read up to each of the documents that were given last, if it is known."""

    def __post_init__(self) -> None:
        if self.config.column and self.given and not any(map(_is_file, self.given)):
            raise ConfigError("--column: is for tables, and a text was given; name a file instead")

    def files(self) -> list[str]:
        """Return those of the inputs that are files or folders."""
        return [given for given in self.given if given != _STDIN and _is_file(given)]

    @property
    def can_be_read_again(self) -> bool:
        """Whether all inputs are files or folders."""
        return len(self.files()) == len(self.given)

    def documents(self) -> Iterator[Document]:
        """Read the documents in order; only files are recognised, a text is taken as it is."""
        if self.can_be_read_again:
            yield from self._of_files(self.given)
            return
        for number, given in enumerate(self.given, 1):
            if _is_file(given):
                yield from self._of_files([given])
            elif self.terms:
                lines = (line for line in enumerate(given.splitlines(), 1) if line[1].strip())
                yield from (_term(Document(f"text {number}:{n}", line)) for n, line in lines)
            else:
                yield Document(f"text {number}", given)

    def _of_files(self, given: Sequence[str]) -> Iterator[Document]:
        """Read files; note how far each document is, where all of the inputs are on disk."""
        from biograft.text.inputs import Inputs, n_bytes
        from biograft.text.virtual_files import is_zip

        paths = list(map(Path, given))
        known = self.can_be_read_again and not any(map(is_zip, paths))
        total = sum(map(n_bytes, paths)) if known else 0
        config = replace(self.config, lines=self.terms)
        inputs = Inputs(given, config, n_read=0.0 if total else None)
        self.read.append(inputs)
        for document in self._terms(inputs) if self.terms else inputs:
            if inputs.n_read is not None:
                self.shares.append(inputs.n_read / total)
            yield document

    def _terms(self, inputs: Inputs) -> Iterator[Document]:
        for file in inputs.files():
            if file.form not in (TEXT, TABLE):
                raise ConfigError(
                    f"--terms: is for plain lines and tables; {file.path} is recognised as "
                    f"{file.form}"
                )
            yield from map(_term, inputs.read(file))

    def report(self) -> bool:
        """Report what was left out; return whether anything was."""
        reported = [report_inputs(inputs) for inputs in self.read]  # all of them
        return any(reported)


def _is_file(given: str) -> bool:
    """Return True if an argument names a file, a folder or standard input; else it is a text."""
    if given == _STDIN:
        return True
    if not given.strip():
        return False
    try:
        exists = Path(given).exists()
    except (OSError, ValueError):  # too long, or with characters that no file name has: a text
        return False
    if not exists and given.endswith(_FILE_SUFFIXES) and not any(map(str.isspace, given)):
        raise InputError("does not exist", path=given, remedy="check the path")
    return exists


def _term(document: Document) -> Document:
    """Make the whole text the one mention of a document."""
    text = document.text
    return replace(document, mentions=(Mention(0, len(text), text),))


# ---- the language model


def _open_review(
    base: KnowledgeBase, url: str, model: str, *, allow_remote: bool
) -> ChoiceReview | None:
    """Return the review by a language model that the options ask for, or None."""
    if not url:
        if model or allow_remote:
            given = "--llm-model" if model else "--llm-allow-remote"
            raise ConfigError(f"{given}: needs --llm-url")
        return None
    if not model:
        raise ConfigError("--llm-url: needs the name of a model (--llm-model)")
    from biograft.linking.choice import ChoiceReview, LlmChooser, LlmConfig

    config = LlmConfig(url=url, model=model, allow_remote=allow_remote)
    return ChoiceReview(base, LlmChooser(config))


def _report_review(review: ChoiceReview) -> None:
    """Print on stderr how many mentions the model was asked about, and the results."""
    counts = dict(review.counts)
    asked = counts.pop("asked", 0)
    rest = ", ".join(f"{n:,} {what}" for what, n in counts.items())
    typer.echo(f"llm         {asked:,} mentions asked about{': ' if rest else ''}{rest}", err=True)


# ---- outputs


def _choose_output(to: str, out: Path | None, *, as_json: bool) -> str:
    """Return the name of the output; refuse options that contradict each other."""
    if as_json and to not in ("", "jsonl"):
        raise ConfigError(f"--json: is the same as --to jsonl; leave it out, or --to {to}")
    name = to or ("jsonl" if as_json else "")
    name = name or (output_of_ending(out) if out is not None else "") or "table"
    output = OUTPUTS.load(name)
    if out is None and output.chunks is None:
        raise ConfigError(f"--to {name}: is no text; name the {output.needs} to write (-o)")
    return name


def _print_linked(
    linked: Iterable[LinkedDocument], base: KnowledgeBase, to: str, config: OutputConfig
) -> Counter[str]:
    """Print linked documents; return the counts of what was lost."""
    from biograft.linking.outputs import link_chunks
    from biograft.linking.outputs.output import encoded

    losses: Counter[str] = Counter()
    # to a file or a program, data go as they are; a terminal shows control characters
    out_stream = sys.stdout if sys.stdout.isatty() else getattr(sys.stdout, "raw", sys.stdout)
    for chunk in link_chunks(linked, to, base, losses, **vars(config)):
        out_stream.write(encoded(chunk).decode())
    return losses
