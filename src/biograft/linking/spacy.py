"""spaCy: the pipeline component ``biograft``, which links the text or the entities of a ``Doc``.

>>> nlp = spacy.blank("en")  # doctest: +SKIP
>>> nlp.add_pipe("biograft", config={"kb": "KB"})  # doctest: +SKIP
>>> [(ent.text, ent.kb_id_, ent._.status) for ent in nlp("No fever.").ents]  # doctest: +SKIP
[('fever', 'D005334', 'absent')]

The annotations of this file are no strings: spaCy reads them to check the configuration.
"""

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

try:
    from spacy.language import Language
    from spacy.tokens import Doc, Span
    from spacy.util import filter_spans
except ModuleNotFoundError as error:
    from biograft.errors import MissingExtraError

    raise MissingExtraError("spacy", "the spaCy component") from error

from biograft.artifacts import new_file
from biograft.clinical import Assertion, RuleAssertions
from biograft.config import Choice, Config
from biograft.errors import ConfigError, StoreError
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking import LinkedMention, Linker
from biograft.text.documents import Document, Mention

SPANS = "biograft"
"""The group of spans with all mentions (``doc.spans``), and the extension with what is known."""
_FILE = "biograft.json"
_UNTYPED = "CONCEPT"


@dataclass(frozen=True, kw_only=True)
class SpacyConfig(Config):
    """The options of the component, as in ``nlp.add_pipe("biograft", config={...})``."""

    kb: str
    """Folder of the knowledge base."""
    index: str | None = None
    model: str | None = None
    calibration: str | None = None
    detector: str | None = None
    settings: dict[str, Any] | None = None
    """Options of the linker, the fields of ``LinkerConfig``: ``{"threshold": 0.5}``."""
    reads: Annotated[str, Choice("text", "ents")] = "text"
    """Find mentions in the ``text``, or link the ``ents`` that other components have found."""
    set_ents: bool = True
    """Whether linked mentions become entities of the document."""
    overwrite_ents: bool = False
    """Whether they replace other entities that they overlap; else those stay."""
    alignment_mode: Annotated[str, Choice("expand", "strict", "contract")] = "expand"
    """Alignment of a mention that ends within a token, as in ``Doc.char_span``."""
    label: str | None = None
    """Label of the entities; None: the semantic type of the concept."""


class SpacyLinker:
    """The component: sets entities, the span group ``biograft``, and extensions of spans.

    Args:
        config: Options of the component.
        name: Its name in the pipeline.
    """

    def __init__(self, config: SpacyConfig, name: str = "biograft") -> None:
        self.config, self.name = config, name
        settings = dict(config.settings or {})
        if config.reads == "ents":
            settings.setdefault("mentions", "given")
        self.linker = Linker.open(
            config.kb, config.index, config.model, config.calibration, config.detector, **settings
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Open the files again in another process."""
        return SpacyLinker, (self.config, self.name)

    def __call__(self, doc: Doc) -> Doc:
        """Link one document."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 32) -> Iterator[Doc]:
        """Link a stream of documents, a batch at a time.

        Args:
            stream: Documents of spaCy.
            batch_size: Number of documents that are linked at a time.
        """
        waiting = iter(stream)
        while docs := list(islice(waiting, batch_size)):
            documents = [self._document(doc) for doc in docs]
            wanted = [d for d in documents if self.config.reads == "text" or d.mentions]
            linked = self.linker.pipe(wanted)
            for doc, document in zip(docs, documents, strict=True):
                asked = self.config.reads == "text" or document.mentions
                yield self._annotate(doc, next(linked).mentions if asked else ())

    def _document(self, doc: Doc) -> Document:
        if self.config.reads == "text":
            return Document("", doc.text)
        given = (Mention(e.start_char, e.end_char, e.text, type=e.label_) for e in doc.ents)
        return Document("", doc.text, tuple(given))

    def _annotate(self, doc: Doc, mentions: Sequence[LinkedMention]) -> Doc:
        spans = []
        for mention in mentions:
            span = self._span(doc, mention)
            if span is None:
                continue
            spans.append(span)
            known = span._.get(SPANS) or {}
            span._.set(SPANS, {span.kb_id_: _finding(mention), **known})
        doc.spans[SPANS] = spans
        if self.config.set_ents:
            linked = [span for span in spans if span.kb_id_]
            doc.set_ents(
                _linked_ents(doc, linked)
                if self.config.reads == "ents"
                else self._merged_ents(doc, linked)
            )
        return doc

    def _span(self, doc: Doc, mention: LinkedMention) -> Span | None:
        """Return the tokens of a mention; None where they are not whole, as the options want."""
        label = self.config.label or next(iter(mention.types), _UNTYPED)
        if self.config.reads == "ents":
            own = (
                e for e in doc.ents if (e.start_char, e.end_char) == (mention.start, mention.end)
            )
            label = next((e.label_ for e in own), label)
        return doc.char_span(
            mention.start,
            mention.end,
            label=label,
            kb_id=mention.concept or "",
            alignment_mode=self.config.alignment_mode,
        )

    def _merged_ents(self, doc: Doc, linked: list[Span]) -> list[Span]:
        """Return entities of others and ours; where they overlap, those that are to stay."""
        first, second = (linked, doc.ents) if self.config.overwrite_ents else (doc.ents, linked)
        taken = {token.i for span in first for token in span}
        free = [span for span in second if not any(token.i in taken for token in span)]
        return filter_spans([*first, *free])

    # ---- saving: paths, not copies

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the options and a hash of the store; the store itself stays where it is.

        Args:
            path: Folder to write.
            exclude: Ignored; spaCy passes it.
        """
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        with new_file(folder / _FILE, overwrite=True) as file:
            file.write(self.to_bytes())

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "SpacyLinker":
        """Compare the store with the one that the pipeline was saved with.

        Args:
            path: Folder that ``to_disk`` wrote.
            exclude: Ignored; spaCy passes it.
        """
        return self.from_bytes((Path(path) / _FILE).read_bytes())

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the options and a hash of the store."""
        saved = {"options": asdict(self.config), "store": store_fingerprint(self.linker.kb)}
        return json.dumps(saved).encode()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "SpacyLinker":
        """Warn if the store is not the one that the pipeline was saved with.

        Args:
            data: What ``to_bytes`` returned.
            exclude: Ignored; spaCy passes it.
        """
        try:
            saved = str(json.loads(data)["store"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StoreError(f"{self.name}: {_FILE} is damaged; save the pipeline again") from error
        if saved != store_fingerprint(self.linker.kb):
            warnings.warn(
                f"{self.config.kb}: is not the knowledge base that the pipeline was saved with",
                stacklevel=2,
            )
        return self


def _finding(mention: LinkedMention) -> dict[str, Any]:
    """Return what is known of a mention, as plain values that a ``DocBin`` can hold."""
    return {
        "start": mention.start,
        "end": mention.end,
        "form": mention.form,
        "concepts": [
            {
                "id": each.concept,
                "name": each.concept_name,
                "score": float(each.score),
                "probability": None if each.probability is None else float(each.probability),
            }
            for each in mention.candidates
        ],
        **(_said(mention.assertion) if mention.assertion else {}),
        "measurements": [each.text for each in mention.measurements],
    }


def _said(assertion: Assertion) -> dict[str, Any]:
    """Return what the text says, as plain values."""
    triggers = [trigger._asdict() for trigger in assertion.triggers]
    known = {"status": assertion.status, "section": assertion.section}
    return {**known, "axes": assertion.axes, "triggers": triggers}


def _linked_ents(doc: Doc, linked: list[Span]) -> list[Span]:
    """Return the entities of a document with the ids of their concepts."""
    ids: dict[tuple[int, int], str] = {}
    for span in linked:
        ids.setdefault((span.start, span.end), span.kb_id_)
    return [
        Span(
            doc,
            ent.start,
            ent.end,
            label=ent.label_,
            kb_id=ids.get((ent.start, ent.end), ent.kb_id_),
            span_id=ent.id_,
        )
        for ent in doc.ents
    ]


def _known(span: Span, key: str) -> Any:
    """Return what is known of a span: of its concept, else of any at its place."""
    found = span._.get(SPANS) or {}
    finding = found.get(span.kb_id_) or next(iter(found.values()), None)
    return None if finding is None else finding.get(key)


def _concepts(span: Span) -> Any:
    return list(_known(span, "concepts") or ())  # a DocBin makes tuples of lists


def _status(span: Span) -> Any:
    return _known(span, "status")


def _axes(span: Span) -> Any:
    return _known(span, "axes")


def _section(span: Span) -> Any:
    return _known(span, "section")


def _measurements(span: Span) -> Any:
    return list(_known(span, "measurements") or ())


def _add_extensions() -> None:
    """Add the extensions of spans; one that another package has taken is left to it."""
    if not Span.has_extension(SPANS):
        Span.set_extension(SPANS, default=None)
    getters = {
        "concepts": _concepts,
        "status": _status,
        "axes": _axes,
        "section": _section,
        "measurements": _measurements,
    }
    for name, getter in getters.items():
        if not Span.has_extension(name):
            Span.set_extension(name, getter=getter)


_add_extensions()


@Language.factory(
    "biograft",
    assigns=["doc.ents", "doc.spans", "span._.concepts", "span._.status", "span._.axes"],
    default_config={"kb": "", **{k: v for k, v in asdict(SpacyConfig(kb="")).items() if k != "kb"}},
)
def make_biograft(
    nlp: Language,
    name: str,
    kb: str,
    index: str | None,
    model: str | None,
    calibration: str | None,
    detector: str | None,
    settings: dict[str, Any] | None,
    reads: str,
    set_ents: bool,
    overwrite_ents: bool,
    alignment_mode: str,
    label: str | None,
) -> SpacyLinker:
    """Make the component, by ``nlp.add_pipe("biograft", config={"kb": PATH})``.

    Args:
        nlp: Pipeline of spaCy.
        name: Name of the component in it.
        kb: Folder of the knowledge base.
        index: Folder of an index; default: a lexical one is built in memory.
        model: Folder of a trained linker.
        calibration: File of a calibration.
        detector: Folder of a trained model of named entity recognition.
        settings: Fields of :class:`LinkerConfig`.
        reads: ``text`` finds mentions, ``ents`` links the entities of the document.
        set_ents: Write mentions to ``doc.ents``.
        overwrite_ents: Replace entities that overlap with mentions.
        alignment_mode: Fit of mentions to tokens, as for ``Doc.char_span``.
        label: Label of the entities; default: the type of the concept.
    """
    if not kb:
        raise ConfigError('kb: missing; nlp.add_pipe("biograft", config={"kb": PATH})')
    config = SpacyConfig(
        kb=kb,
        index=index,
        model=model,
        calibration=calibration,
        detector=detector,
        settings=settings,
        reads=reads,
        set_ents=set_ents,
        overwrite_ents=overwrite_ents,
        alignment_mode=alignment_mode,
        label=label,
    )
    return SpacyLinker(config, name)


class SpacyAssertions:
    """The component ``biograft_assertions``: status and axes of entities; needs no store.

    Args:
        language: Language of the rules; None: by the script around each entity.
        rules: File of rules.
    """

    def __init__(self, language: str | None = None, rules: str | None = None) -> None:
        self.model = RuleAssertions(language, rules)

    def __call__(self, doc: Doc) -> Doc:
        """Set ``status``, ``axes``, ``section`` of the entities."""
        spans = [(ent.start_char, ent.end_char) for ent in doc.ents]
        for ent, said in zip(doc.ents, self.model.assert_status(doc.text, spans), strict=True):
            known = ent._.get(SPANS) or {}
            finding = {**known.get(ent.kb_id_, {}), **_said(said)}
            ent._.set(SPANS, {**known, ent.kb_id_: finding})
        return doc


@Language.factory(
    "biograft_assertions",
    requires=["doc.ents"],
    assigns=["span._.status", "span._.axes"],
    default_config={"language": None, "rules": None},
)
def make_assertions(
    nlp: Language, name: str, language: str | None, rules: str | None
) -> SpacyAssertions:
    """Make the component, by ``nlp.add_pipe("biograft_assertions")``.

    Args:
        nlp: Pipeline of spaCy.
        name: Name of the component in it.
        language: Language of the rules, "en" or "zh"; default: by the script around each entity.
        rules: File of rules; with the key ``extends`` they are added to the shipped ones.
    """
    return SpacyAssertions(language, rules)
