"""Learned forms: what people marked in notes, in these words, or left unmarked.

An index may hold them (``INDEX/learned``): forms, each in any section or in one, with the concept
that they mean there, or none, and how often that was right. In running text a learned form is a
mention, whatever the names of the store are; the longest of overlapping mentions stays. A form
without a concept is no mention. Files with learned forms hold words of notes: they are for their
owner only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from biograft.artifacts import ArtifactKind, new_folder, sole_writer
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
        seen = f"{self.n_right} of {self.n_seen} times in {self.n_documents} documents"
        return f"marked so {seen}{where}"


def save_forms(forms: Sequence[LearnedForm], folder: Path, source: str) -> None:
    """Write forms to a folder, for its owner only.

    Args:
        forms: The forms.
        folder: A folder that is being made.
        source: Where they were learned.
    """
    folder.chmod(0o700)
    values = [[getattr(each, name) for name in LearnedForm.__slots__] for each in forms]
    LEARNED.write(folder, {"forms": values, "source": source})
    (folder / LEARNED.file).chmod(0o600)


def read_forms(folder: Path) -> list[LearnedForm]:
    """Read the learned forms of an index.

    Args:
        folder: Their folder.
    """
    try:
        return [LearnedForm(*values) for values in LEARNED.read(folder)["forms"]]
    except TypeError as error:
        raise LEARNED.damaged(folder / LEARNED.file, repr(error)) from error


def forms_of(index: Path) -> list[LearnedForm]:
    """Return the forms that an index learned from annotated text.

    Args:
        index: Folder of the index.
    """
    folder = index / LEARNED_FORMS
    return read_forms(folder) if folder.is_dir() else []


def remove_form(index: Path, form: str) -> int:
    """Remove a form from an index, in whatever case; return the number of entries.

    Args:
        index: Folder of the index.
        form: The form.
    """
    known = forms_of(index)
    kept = [each for each in known if each.form.lower() != form.lower()]
    if len(kept) == len(known):
        raise ConfigError(f"--forget-form: {index} has learned no form {form!r}; see --list")
    source = LEARNED.read(index / LEARNED_FORMS)["source"]
    with sole_writer(index), new_folder(index / LEARNED_FORMS, overwrite=True) as work:
        save_forms(kept, work, source)
    return len(known) - len(kept)


def exported_forms(index: Path) -> list[LearnedForm]:
    """Return the forms that stand in so many documents that they may leave the index.

    Args:
        index: Folder of the index.
    """
    return [each for each in forms_of(index) if each.n_documents >= MIN_DOCUMENTS]
