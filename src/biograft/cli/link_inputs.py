"""The inputs of ``biograft link``: texts, files, folders and standard input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from biograft.cli.options import report_inputs
from biograft.documents import Document, Mention
from biograft.errors import ConfigError, InputError

if TYPE_CHECKING:
    from biograft.corpus.inputs import InputConfig, Inputs

_STDIN = "-"
_FILE_SUFFIXES = (
    *(".txt", ".md", ".gz", ".zip", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".xml"),
    *(".pubtator", ".conll", ".ann", ".xlsx", ".parquet", ".html", ".htm", ".docx", ".pdf"),
)
"""An argument without whitespace that ends so must be a file."""


@dataclass
class LinkInputs:
    """Documents to link; with ``terms`` each line or row is one mention."""

    given: Sequence[str]
    config: dict[str, str | bool]
    """The fields of :class:`~biograft.corpus.inputs.InputConfig` that options set."""
    terms: bool = False
    read: list[Inputs] = field(default_factory=list)

    def __post_init__(self) -> None:
        if any(value and value != "utf-8" for value in self.config.values()):
            _input_config(self.config)  # refuse what is wrong before the linker is opened
        if self.config.get("column") and self.given and not any(map(_is_file, self.given)):
            raise ConfigError("--column: is for tables, and a text was given; name a file instead")

    def files(self) -> list[str]:
        """Return those of the inputs that are files or folders."""
        return [given for given in self.given if given != _STDIN and _is_file(given)]

    def documents(self) -> Iterator[Document]:
        """Read the documents in order; only files are recognised, a text is taken as it is."""
        for number, given in enumerate(self.given, 1):
            if _is_file(given):
                yield from self._of_file(given)
            elif self.terms:
                lines = (line for line in enumerate(given.splitlines(), 1) if line[1].strip())
                yield from (_term(Document(f"text {number}:{n}", line)) for n, line in lines)
            else:
                yield Document(f"text {number}", given)

    def _of_file(self, given: str) -> Iterator[Document]:
        from biograft.corpus.inputs import TABLE, TEXT, Inputs, read_input

        inputs = Inputs([given], replace(_input_config(self.config), lines=self.terms))
        self.read.append(inputs)
        if not self.terms:
            yield from inputs
            return
        for file in inputs.files():
            if file.form not in (TEXT, TABLE):
                raise ConfigError(
                    f"--terms: is for plain lines and tables; {file.path} is recognised as "
                    f"{file.form}"
                )
            yield from map(_term, read_input(file, inputs.log))

    def report(self) -> bool:
        """Report what was left out; return whether anything was."""
        reported = [report_inputs(inputs) for inputs in self.read]  # all of them
        return any(reported)


def _input_config(values: dict[str, str | bool]) -> InputConfig:
    from biograft.config import from_mapping
    from biograft.corpus.inputs import InputConfig

    return from_mapping(InputConfig, values)


def _is_file(given: str) -> bool:
    """Whether an argument names a file, a folder or standard input; else it is a text."""
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
