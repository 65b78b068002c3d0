"""Learned forms and status phrases: what people marked in notes, in these words, or left unmarked.

An index may hold them (``INDEX/learned``): forms, each in any section or in one, with the concept
that they mean there, or none, and how often that was right. In running text a learned form is a
mention, whatever the names of the store are; the longest of overlapping mentions stays. A form
without a concept is no mention. A status phrase is a rule of the assertion engine
(:mod:`biograft.clinical.rules`). The files hold words of notes: they are for their owner only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, TypeVar

from biograft.artifacts import ArtifactKind, new_folder, sole_writer
from biograft.clinical.rules import LANGUAGES, AssertionRules
from biograft.errors import ConfigError

LEARNED = ArtifactKind(
    format="biograft-learned-forms",
    version=1,
    called="folder of learned forms",
    remedy="run `biograft learn` again",
    keys=("forms", "source"),
)
LEARNED_FORMS = "learned"
"""Folder of an index with what it learned from annotated text."""
FORMS, PHRASES = "forms", "phrases"
"""Keys of the file."""
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
    """How often it was marked so, or left unmarked."""
    n_seen: int = 1
    """How often it was seen."""
    n_documents: int = 1
    """In how many documents; 0: a reviewer approved it."""

    @property
    def score(self) -> float:
        """How often it is right, with one right and one wrong case added; 1 if it was approved."""
        return (self.n_right + 1) / (self.n_seen + 2) if self.n_documents else 1.0

    @property
    def support(self) -> str:
        """Why it is believed, in words."""
        if not self.n_documents:
            return "approved by a reviewer"
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
    """How often a finding beside it was marked so."""
    n_seen: int = 1
    """How often it stood beside a marked finding."""
    n_documents: int = 1

    @property
    def support(self) -> str:
        """Why it is believed, in words."""
        return _counted(self)

    @property
    def rule(self) -> dict[str, Any]:
        """The rule of the assertion engine that it is, as a file of rules has it."""
        values: dict[str, Any] = {"name": f"learned, {self.support}", "phrases": [self.phrase]}
        if not self.flag:
            return values | {"kind": "ignore"}
        trigger = {"kind": "trigger", "direction": self.direction, "scope": self.scope}
        return values | trigger | {"flags": [self.flag]}


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
        tables = [each.rule for each in phrases if each.language == language]
        if tables:
            base = base or AssertionRules.shipped(language)
            base = AssertionRules({"rule": tables}, "learned phrases", base)
        if base is not None:
            made.append(base)
    return made


_Learned = TypeVar("_Learned", LearnedForm, StatusPhrase)


def save_learned(
    folder: Path, source: str, forms: Sequence[LearnedForm], phrases: Sequence[StatusPhrase] = ()
) -> None:
    """Write what was learned to a folder, for its owner only.

    Args:
        folder: A folder that is being made.
        source: Where it was learned.
        forms: Forms.
        phrases: Status phrases.
    """
    folder.chmod(0o700)
    values = {FORMS: list(map(astuple, forms)), PHRASES: list(map(astuple, phrases))}
    LEARNED.write(folder, {**values, "source": source})
    (folder / LEARNED.file).chmod(0o600)


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


def remove_form(index: Path, form: str) -> int:
    """Remove a form, or status phrase, in whatever case; return the number of entries.

    Args:
        index: Folder of the index.
        form: The form.
    """
    forms, phrases, words = forms_of(index), phrases_of(index), form.lower()
    kept = [each for each in forms if each.form.lower() != words]
    other = [each for each in phrases if each.phrase.lower() != words]
    n_removed = len(forms) + len(phrases) - len(kept) - len(other)
    if not n_removed:
        raise ConfigError(f"--forget-form: {index} has learned no form {form!r}; see --list")
    source = LEARNED.read(index / LEARNED_FORMS)["source"]
    with sole_writer(index), new_folder(index / LEARNED_FORMS, overwrite=True) as work:
        save_learned(work, source, kept, other)
    return n_removed


def exported(index: Path) -> list[LearnedForm | StatusPhrase]:
    """Return what stands in so many documents that it may leave the index.

    Args:
        index: Folder of the index.
    """
    learned: list[LearnedForm | StatusPhrase] = [*forms_of(index), *phrases_of(index)]
    return [each for each in learned if each.n_documents >= MIN_DOCUMENTS]
