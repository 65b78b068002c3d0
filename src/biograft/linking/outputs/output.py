"""Outputs: writers of linked documents, what they report, and the one way to write any of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from biograft.artifacts import new_file
from biograft.config import from_mapping
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.kb.vocabularies import (
    canonical_id,
    vocabulary_name,
    vocabulary_of,
)
from biograft.linking.candidates import Candidate, LinkedDocument, LinkedMention
from biograft.linking.config import OutputConfig
from biograft.linking.outputs.registry import OUTPUTS

if TYPE_CHECKING:
    from biograft.linking.outputs.unfinished import UnfinishedOutput

Documents: TypeAlias = Iterable[LinkedDocument]
_NAME = re.compile(r"\w[\w.-]*")
_CACHE_SIZE = 1 << 16


class ConceptIds:
    """The ids of concepts: those of preferred vocabularies where a concept has one, and all.

    Args:
        kb: Knowledge base of the concepts.
        prefer: Names of vocabularies, the preferred first.

    >>> ConceptIds(kb, ["MSH"]).chosen("C0011860")  # doctest: +SKIP
    'D003924'
    """

    def __init__(self, kb: KnowledgeBase, prefer: Iterable[str] = ()) -> None:
        for name in prefer:
            if not _NAME.fullmatch(name.strip()):
                raise ConfigError(
                    f"prefer: expected names of vocabularies such as MSH, found {name!r}"
                )
        self.prefer = tuple(map(vocabulary_name, prefer))
        self._kb = kb
        self._vocabularies = lru_cache(_CACHE_SIZE)(self._read)

    def vocabulary(self, identifier: str) -> str:
        """Return the vocabulary of an id, such as MESH; empty if it is not known.

        Args:
            identifier: An id of a concept.
        """
        return vocabulary_of(identifier) or self._kb.vocabulary

    def all(self, concept: str) -> tuple[str, ...]:
        """Return all ids of a concept, its own first, in the spelling of canonical ids.

        Args:
            concept: The own id of a concept.
        """
        return tuple(self._vocabularies(concept))

    def all_of(self, candidate: Candidate) -> tuple[str, ...]:
        """Return all ids of a candidate, and those of the concept that it stands for.

        Args:
            candidate: A candidate, whose concept may be the object of a mapping set.
        """
        own = candidate.ids[-1] if candidate.ids else candidate.concept
        return tuple(dict.fromkeys((*candidate.ids, *self.all(own))))

    def chosen(self, concept: str) -> str:
        """Return the id of the first preferred vocabulary that has one, else the own id.

        Args:
            concept: The own id of a concept.
        """
        return self.preferred(concept) or concept

    def preferred(self, concept: str) -> str | None:
        """Return the id of the first preferred vocabulary that has one; None if none has.

        Args:
            concept: The own id of a concept.
        """
        ids = self._vocabularies(concept) if self.prefer else {}
        found = (each for name in self.prefer for each, own in ids.items() if own == name)
        return next(found, None)

    def _read(self, concept: str) -> dict[str, str]:
        """Return the ids of a concept, its own first, each with its vocabulary."""
        row = self._kb.find_row(concept)
        others = () if row is None else self._kb.concept_at(row).ids
        ids = {concept: self.vocabulary(concept)}
        for other in others:  # with their prefixes, which canonical ids may lack
            ids.setdefault(canonical_id(other.id), self.vocabulary(other.id))
        return ids


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRun:
    """One use of an output: its settings, and counts of what it could not hold."""

    kb: KnowledgeBase
    """Knowledge base of the answers."""
    ids: ConceptIds
    """Ids in the form that is written."""
    config: OutputConfig = field(default_factory=OutputConfig)
    """Settings of the output."""
    losses: Counter[str] = field(default_factory=Counter)
    """Number of items that the format could not hold, by reason."""
    time: datetime = field(default_factory=lambda: datetime.now(UTC))
    """When the documents are linked."""
    state: dict[str, Any] = field(default_factory=dict)
    """Facts of the mentions written so far: JSON values, kept by a run that may
    be killed (:mod:`biograft.linking.outputs.unfinished`). Documents that a run before has written
    come again without their mentions, while ``replayed`` is true."""
    work: UnfinishedOutput | None = None
    """Output that an interrupted run left; None: a new one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """An output; text is made in chunks, other content is written to a file or folder."""

    chunks: Callable[[Documents, OutputRun], Iterator[str]] | None = None
    """Yields the text of documents in chunks; None for an output that is no text."""
    write: Callable[[Documents, OutputRun, Path, bool], None] | None = None
    """Writes to a path; the last argument allows overwriting."""
    needs: str = ""
    """Kind of path that ``write`` needs: a file, or a folder."""
    media_type: str = ""
    """Media type of an answer of the service; empty: the service does not offer it."""
    endings: tuple[str, ...] = ()
    """Endings of files that are written so where no format is named."""
    resumable: bool = False
    """Whether it can go on behind the documents that a killed run has written: all it knows of
    their mentions is in the ``state`` of the run."""
    holds_text: bool = False
    """Whether it holds the whole text of the documents, beside that of the mentions."""


def storable(value: Any) -> Any:
    """Return a value that Arrow can hold: halves of surrogate pairs in a text become escapes.

    Args:
        value: A text, or any other value.
    """
    return encoded(value).decode() if isinstance(value, str) else value


def encoded(text: str) -> bytes:
    """Encode as UTF-8; halves of surrogate pairs, which it cannot hold, become escapes.

    Args:
        text: The text.
    """
    return text.encode("utf-8", "backslashreplace")


def write_linked(
    documents: Iterable[LinkedDocument],
    path: str | Path,
    to: str,
    kb: KnowledgeBase,
    *,
    overwrite: bool = False,
    work: UnfinishedOutput | None = None,
    **settings: Any,
) -> Counter[str]:
    """Write linked documents to a file or folder; return the counts of what could not be held.

    Documents are written one after the other; a failure leaves nothing, without ``work``.

    Args:
        documents: Linked documents.
        path: File, or folder, to write.
        to: Name of an output, such as ``csv`` or ``fhir``.
        kb: Knowledge base they were linked to.
        overwrite: Replace what exists.
        work: Where it is written until it is complete.
        settings: Fields of :class:`OutputConfig`.

    >>> write_linked(linker.pipe(texts), "findings.csv", "csv", linker.kb)  # doctest: +SKIP
    Counter()
    """
    output, run = OUTPUTS.load(to), new_run(kb, settings)
    path = Path(path)
    if work is not None:
        path, begun = work.path, datetime.fromisoformat(work.begun)
        run = replace(run, losses=work.losses, time=begun, state=work.state, work=work)
    documents = _counted(documents, run)
    if output.write is not None:
        output.write(documents, run, path, overwrite)
    elif output.chunks is not None:
        opened = work.open(path) if work is not None else new_file(path, overwrite=overwrite)
        with opened as file:
            for chunk in output.chunks(documents, run):
                if not run.state.get("replayed"):
                    file.write(encoded(chunk))
    return run.losses


def link_chunks(
    documents: Iterable[LinkedDocument],
    to: str,
    kb: KnowledgeBase,
    losses: Counter[str] | None = None,
    **settings: Any,
) -> Iterator[str]:
    """Give an output as text, piece by piece; ``losses`` counts what could not be held.

    Args:
        documents: Linked documents.
        to: Name of an output that is text, such as ``tsv``.
        kb: Knowledge base they were linked to.
        losses: Counts what could not be held, by reason.
        settings: Fields of :class:`OutputConfig`.

    >>> "".join(link_chunks(linker.pipe(texts), "tsv", linker.kb))  # doctest: +SKIP
    """
    output: Output = OUTPUTS.load(to)
    run = new_run(kb, settings, losses)
    if output.chunks is None:
        raise ConfigError(f"{to}: is no text; name the {output.needs} to write (-o)")
    return output.chunks(_counted(documents, run), run)


def new_run(
    kb: KnowledgeBase, settings: dict[str, Any], losses: Counter[str] | None = None
) -> OutputRun:
    """Check the settings of an output, which are the fields of :class:`OutputConfig`.

    Args:
        kb: The knowledge base of the findings.
        settings: Values by field.
        losses: Counts what an output cannot hold.

    Returns:
        The run.

    Raises:
        ConfigError: A setting is unknown or wrong.
    """
    config = from_mapping(OutputConfig, settings)
    return OutputRun(
        kb=kb,
        ids=ConceptIds(kb, config.prefer),
        config=config,
        losses=Counter() if losses is None else losses,
    )


def _counted(documents: Documents, run: OutputRun) -> Iterator[LinkedDocument]:
    """Count the findings whose concept has no id of a preferred vocabulary; pass all on."""
    ids = run.ids
    reason = f"findings whose concept has no id of {', '.join(ids.prefer)}: its own id is given"
    for linked in documents:
        found = [mention.concept for mention in linked.mentions if mention.concept is not None]
        if ids.prefer and (n := sum(ids.preferred(concept) is None for concept in found)):
            run.losses[reason] += n
        yield linked


def reported(documents: Documents, run: OutputRun) -> Iterator[LinkedDocument]:
    """Yield documents as they are reported: with the ids and the candidates asked for.

    Args:
        documents: The linked documents.
        run: The settings, and the ids of concepts.
    """
    ids, all_ids, language = run.ids, run.config.all_ids, run.config.name_language
    for linked in documents:
        mentions = []
        for mention in linked.mentions:
            shown = mention if run.config.all_candidates else without_dissimilar(mention)
            if language:
                named = tuple(each.named(run.kb, language) for each in shown.candidates)
                shown = replace(shown, candidates=named)
            if ids.prefer or all_ids:
                candidates = tuple(
                    replace(
                        each,
                        concept=ids.chosen(each.concept),
                        tied=tuple(map(ids.chosen, each.tied)),
                        ids=ids.all_of(each) if all_ids else each.ids,
                    )
                    for each in shown.candidates
                )
                concept = None if mention.concept is None else ids.chosen(mention.concept)
                shown = replace(shown, candidates=candidates, concept=concept)
            mentions.append(shown)
        yield replace(linked, mentions=tuple(mentions))


def without_dissimilar(mention: LinkedMention) -> LinkedMention:
    """Keep only candidates with the name of the first one, if the mention equals that name.

    Readers have no use for names that are only similar. Concepts that share the name
    stay.

    Args:
        mention: The mention.
    """
    form, candidates = mention.form.casefold(), mention.candidates
    if len(candidates) < 2 or candidates[0].name.casefold() != form:
        return mention
    equal = tuple(candidate for candidate in candidates if candidate.name.casefold() == form)
    return replace(mention, candidates=equal)
