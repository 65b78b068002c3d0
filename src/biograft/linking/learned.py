"""Learned forms and status phrases: what people marked in notes, in these words, or left unmarked.

An index may hold them (``INDEX/learned``): forms, each in any section or in one, with the concept
that they mean there, or none, and how often that was right. In running text a learned form is a
mention, whatever the names of the store are; the longest of overlapping mentions stays. A form
without a concept is no mention. A status phrase is a rule of the assertion engine
(:mod:`biograft.clinical.rules`). The files hold words of notes: they are for their owner only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from biograft.artifacts import ArtifactKind, new_folder, open_arrays, save_arrays, sole_writer
from biograft.clinical.rules import LANGUAGES, AssertionRules, RuleEntry
from biograft.errors import ConfigError
from biograft.text.span_tagger import TAGGER_ARRAYS, SpanTagger

LEARNED = ArtifactKind(
    format="biograft-learned-forms",
    version=1,
    called="folder of learned forms",
    remedy="run `biograft learn` again",
    keys=("forms", "source"),
)
LEARNED_FORMS = "learned"
"""Folder of an index with what it learned from annotated text."""
FORMS, PHRASES, COUNTS, WEIGHTS = "forms", "phrases", "counts", "weights"
"""Keys of the file, the last two of a detector."""
APPROVED = "approved by a reviewer"
MIN_DOCUMENTS = 3
"""Documents that a form stands in, at least, to be written outside its index."""


@dataclass(frozen=True, slots=True)
class LearnedForm:
    """A form of notes, and what it means."""

    form: str
    concept: str
    """Empty: the form is no mention."""
    section: str = ""
    """Name of the section of a note where it means this; empty: everywhere."""
    n_right: int = 1
    """Number of times it was marked so, or left unmarked."""
    n_seen: int = 1
    """Number of times it was seen."""
    n_documents: int = 1
    """In how many documents; 0: a reviewer approved it."""

    @property
    def score(self) -> float:
        """Precision, with one right and one wrong case added; 1 if it was approved."""
        return (self.n_right + 1) / (self.n_seen + 2) if self.n_documents else 1.0

    @property
    def support(self) -> str:
        """Why it is believed, in words."""
        if not self.n_documents:
            return APPROVED
        where = f", section {self.section}" if self.section else ""
        return f"{_counted(self)}{where}"


@dataclass(frozen=True, slots=True)
class StatusPhrase:
    """Words beside findings whose status they say, or a trigger of the rules that says nothing."""

    phrase: str
    flag: str
    """Flag of the findings that it reaches; empty: triggers in it do not count."""
    language: str
    direction: str = "forward"
    scope: str = "list"
    """Direction and scope of the trigger (:mod:`biograft.clinical.rules`)."""
    n_right: int = 1
    """Number of times a finding beside it was marked so."""
    n_seen: int = 1
    """Number of times it stood beside a marked finding."""
    n_documents: int = 1

    @property
    def support(self) -> str:
        """Why it is believed, in words."""
        return _counted(self)

    @property
    def rule(self) -> RuleEntry:
        """The rule of the assertion engine that it is."""
        return RuleEntry(
            name=f"learned, {self.support}",
            kind="trigger" if self.flag else "ignore",
            phrases=(self.phrase,),
            flags=(self.flag,) if self.flag else (),
            direction=self.direction,
            scope=self.scope,
        )


def _counted(learned: LearnedForm | StatusPhrase) -> str:
    places = f"{learned.n_right} of {learned.n_seen} times"
    return f"marked so {places} in {learned.n_documents} documents"


def rules_with(
    phrases: Sequence[StatusPhrase], rules: str | Path | None = None
) -> list[AssertionRules]:
    """Return assertion rules with learned phrases, of each language that differs from the shipped.

    Args:
        phrases: The phrases.
        rules: File of rules that they are added to; default: the shipped ones.
    """
    own = [] if rules is None else [AssertionRules.load(rules)]
    made = []
    for language in LANGUAGES:
        base = next((each for each in own if each.language == language), None)
        learned = [each.rule for each in phrases if each.language == language]
        if learned:
            base = base or AssertionRules.shipped(language)
            base = base.with_rules(learned, "learned phrases")
        if base is not None:
            made.append(base)
    return made


@dataclass(frozen=True, slots=True)
class LearnedDetector:
    """Model that chooses mentions, learned from annotated text (:mod:`.mention_choice`)."""

    tagger: SpanTagger
    """Says how probable it is that a span is a mention."""
    forms: tuple[LearnedForm, ...]
    """Concepts that forms were marked with, with their counts, however rare."""
    weights: tuple[float, ...] = ()
    """Weights of what is known of a mention, the last that of a constant."""


_Learned = TypeVar("_Learned", LearnedForm, StatusPhrase)


def save_learned(
    folder: Path,
    source: str,
    forms: Sequence[LearnedForm],
    phrases: Sequence[StatusPhrase] = (),
    detector: LearnedDetector | None = None,
) -> None:
    """Write what was learned to a folder, for its owner only.

    Args:
        folder: A folder that is being made.
        source: Where it was learned.
        forms: Forms.
        phrases: Status phrases.
        detector: Detector of mentions.
    """
    folder.chmod(0o700)
    values: dict[str, Any] = {
        FORMS: list(map(astuple, forms)),
        PHRASES: list(map(astuple, phrases)),
    }
    if detector is not None:
        values |= {COUNTS: list(map(astuple, detector.forms)), WEIGHTS: detector.weights}
        save_arrays(folder, detector.tagger.arrays())
    LEARNED.write(folder, {**values, "source": source})
    for file in folder.iterdir():
        file.chmod(0o600)


def _read(index: Path, key: str, kind: type[_Learned]) -> list[_Learned]:
    folder = index / LEARNED_FORMS
    if not folder.is_dir():
        return []
    try:
        return [kind(*values) for values in LEARNED.read(folder).get(key, ())]
    except TypeError as error:
        raise LEARNED.damaged(folder / LEARNED.file, repr(error)) from error


def forms_of(index: Path) -> list[LearnedForm]:
    """Return the forms that an index learned from annotated text.

    Args:
        index: Folder of the index.
    """
    return _read(index, FORMS, LearnedForm)


def phrases_of(index: Path) -> list[StatusPhrase]:
    """Return the status phrases that an index learned from annotated text.

    Args:
        index: Folder of the index.
    """
    return _read(index, PHRASES, StatusPhrase)


def detector_of(index: Path) -> LearnedDetector | None:
    """Return the detector that an index learned from annotated text, if any.

    Args:
        index: Folder of the index.
    """
    folder, forms = index / LEARNED_FORMS, tuple(_read(index, COUNTS, LearnedForm))
    weights = LEARNED.read(folder).get(WEIGHTS) if folder.is_dir() else None
    if weights is None:
        return None
    try:
        tagger = SpanTagger.from_arrays(open_arrays(folder, TAGGER_ARRAYS))
        return LearnedDetector(tagger, forms, tuple(map(float, weights)))
    except (TypeError, ValueError, OSError) as error:
        raise LEARNED.damaged(folder, repr(error)) from error


def remove_form(index: Path, form: str) -> int:
    """Remove a form, or status phrase, in whatever case; return the number of entries.

    Args:
        index: Folder of the index.
        form: The form.
    """
    forms, phrases, words = forms_of(index), phrases_of(index), form.lower()
    detector = detector_of(index)
    counted = detector.forms if detector is not None else ()
    kept, others = (
        [each for each in own if each.form.lower() != words] for own in (forms, counted)
    )
    other = [each for each in phrases if each.phrase.lower() != words]
    n_removed = len(forms) + len(phrases) - len(kept) - len(other)
    n_removed = max(n_removed, len(counted) - len(others))
    if not n_removed:
        raise ConfigError(f"--forget-form: {index} has learned no form {form!r}; see --list")
    if detector is not None:
        detector = replace(detector, forms=tuple(others))
    source = LEARNED.read(index / LEARNED_FORMS)["source"]
    with sole_writer(index), new_folder(index / LEARNED_FORMS, overwrite=True) as work:
        save_learned(work, source, kept, other, detector)
    return n_removed


def exported(index: Path) -> list[LearnedForm | StatusPhrase]:
    """Return what stands in so many documents that it may leave the index.

    Args:
        index: Folder of the index.
    """
    learned: list[LearnedForm | StatusPhrase] = [*forms_of(index), *phrases_of(index)]
    return [each for each in learned if each.n_documents >= MIN_DOCUMENTS]
