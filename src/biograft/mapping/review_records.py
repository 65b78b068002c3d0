"""Records of a review: terms with what was suggested and decided, filters, events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from types import NoneType
from typing import Annotated, Any, TypeVar

from biograft.config import AtLeast, Choice, Config, Doc, Option, Range
from biograft.errors import ConfigError
from biograft.kb.names import fold_lines, name_fault, term_key

OPEN, PROPOSED, DISPUTED, REMOVED = "open", "proposed", "disputed", "removed"
APPROVE, REJECT, NO_CONCEPT, COMMENT, UNDO, ADD = (
    "approve",
    "reject",
    "nil",
    "comment",
    "undo",
    "add",
)
ACTIONS = (APPROVE, REJECT, NO_CONCEPT)
"""Actions of a reviewer: the concept is correct, it is wrong, there is none."""
STATUS_OF = {APPROVE: "approved", REJECT: "rejected", NO_CONCEPT: "nil"}
UNDECIDED = (OPEN, PROPOSED, DISPUTED)
"""Statuses of terms that need a decision, or a further one."""
STATUSES = (*UNDECIDED, *STATUS_OF.values(), REMOVED)
MAX_TEXT = 2000
"""Characters of a term, a comment or the name of a reviewer."""
_DOUBTFUL, _EXACT = {"ambiguous": 0.5, "short": 0.2, "translated": 0.2}, "exact"
"""Least doubt of flags, and the flag with hardly any."""
_MAX_ACRONYM = 5
TRANSLATED = "translated"
_CERTAIN = ("", _EXACT, TRANSLATED, "mapped", "wording")
"""Flags of terms that many others may be approved with: of names, and what they map to."""


def to_json(record: Any) -> dict[str, Any]:
    """Return a record, and those in it, as plain values."""
    return asdict(
        record,
        dict_factory=lambda pairs: {
            name: list(value) if isinstance(value, tuple) else value for name, value in pairs
        },
    )


_Record = TypeVar("_Record")
_KINDS: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "int | None": (int, NoneType),
    "str | None": (str, NoneType),
    "float | None": (float, int, NoneType),
}
"""Types of values by the annotations of fields."""


def checked(record: _Record) -> _Record:
    """Return a record of a database, which holds values of any type whatever its columns say.

    Raises:
        TypeError: A value is of another type than its field.
    """
    for field in fields(record):  # type: ignore[arg-type]
        value = getattr(record, field.name)
        if not isinstance(value, _KINDS.get(str(field.type), object)):
            raise TypeError(f"{field.name}: {type(value).__name__}")
        for each in value if isinstance(value, tuple) else (value,):
            if is_dataclass(each):
                checked(each)
            elif isinstance(value, tuple) and not isinstance(each, str):
                raise TypeError(f"{field.name}: {type(each).__name__}")
    return record


@dataclass(frozen=True, slots=True)
class SuggestedConcept:
    """A concept that a term may mean."""

    concept: str
    """Id of the concept."""
    name: str = ""
    """Its preferred name."""
    score: float | None = None
    """Score of the linker; None if the mapping has none."""
    probability: float | None = None
    """Probability that it is right; None without a calibration."""


@dataclass(frozen=True, slots=True)
class ReviewTerm:
    """A term to be reviewed, as a mapping has it."""

    text: str
    """The term as its source has it."""
    code: str = ""
    """Its code in the source; empty if it has none."""
    context: str = ""
    """Further columns that belong to the term, such as ``unit: mg/dL``."""
    frequency: int = 1
    """Number of rows of the source with the term."""
    flag: str = ""
    """Reason why the suggestion needs care; empty: none."""
    candidates: tuple[SuggestedConcept, ...] = ()
    """Best first."""
    part: str = ""
    """Part of the text that the concept is of, where a term has several concepts: each of these is
    decided on its own."""
    reason: str = ""
    """Remark of the mapping on its suggestion, such as a number in which the two differ."""

    def folded(self) -> ReviewTerm:
        """Return the term with each of its texts on one line."""
        names = (replace(each, name=fold_lines(each.name)) for each in self.candidates)
        return replace(
            self,
            text=fold_lines(self.text),
            code=fold_lines(self.code),
            context=fold_lines(self.context),
            part=fold_lines(self.part),
            reason=fold_lines(self.reason),
            candidates=tuple(names),
        )

    @property
    def fault(self) -> str:
        """Why a review cannot have the term; empty if it can."""
        if not 0 < len(self.text.strip()) <= MAX_TEXT:
            return f"term: expected a text of 1 to {MAX_TEXT:,} characters"
        names = ("code", "context", "part", "reason")
        texts = {"term": self.text, **{name: getattr(self, name) for name in names}}
        faults = [f"{what}: {why}" for what, text in texts.items() if (why := name_fault(text))]
        faults += [
            f"concept {each.concept!r}: {why}"
            for each in self.candidates
            if (why := name_fault(each.concept) or name_fault(each.name))
        ]
        return next(iter(faults), "")

    @property
    def key(self) -> tuple[str, str, str]:
        """Identity of the term in a queue: text and part, code, context."""
        part = f"\t{term_key(self.part)}" if self.part else ""
        return f"{term_key(self.text)}{part}", self.code, self.context

    @property
    def doubt(self) -> float:
        """Doubt of the suggestion, from 0 to 1."""
        certainty = 0.0
        if self.candidates:
            first = self.candidates[0]
            value = first.score if first.probability is None else first.probability
            certainty = min(max(value or 0.0, 0.0), 1.0)
        if self.flag == NO_CONCEPT:
            return certainty  # the better the best candidate, the more doubtful that there is none
        if self.flag in _DOUBTFUL:
            return max(_DOUBTFUL[self.flag], 1 - certainty)
        return min(0.05, 1 - certainty) if self.flag == _EXACT else 1 - certainty

    @property
    def bulk_risk(self) -> str:
        """Why the suggestion is to be decided on its own, not with many others; empty if it is not.

        ``none``: there is no suggestion; ``flag``: its flag is doubtful; ``reason``: the mapping
        has a reason for doubt; ``acronym``: a short word of capitals, which means many things.
        """
        text = self.part or self.text
        if self.flag == NO_CONCEPT or not self.candidates:
            return "none"
        if self.flag not in _CERTAIN:
            return "flag"
        if self.reason:
            return "reason"
        letters = "".join(filter(str.isalpha, text))
        return "acronym" if letters.isupper() and len(letters) <= _MAX_ACRONYM else ""

    @property
    def priority(self) -> float:
        """The number of rows that a wrong suggestion is likely to spoil."""
        return self.frequency * self.doubt


@dataclass(frozen=True, slots=True)
class TermState:
    """Decision state of a term; undoing an event restores an earlier state."""

    status: str = OPEN
    action: str = ""
    concept: str | None = None
    name: str | None = None
    relation: str = "exact"
    """Relation of the concept to the term: exact, broad, narrow, close or related."""
    reviewer: str | None = None
    second_reviewer: str | None = None
    rejected: tuple[str, ...] = ()

    @property
    def opinion(self) -> tuple[str, str | None, str]:
        """Opinion of a reviewer: action, concept and relation."""
        return self.action, self.concept, self.relation

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TermState:
        """Read a state from plain values, or from a row that has them."""
        state = {field.name: values[field.name] for field in fields(cls)}
        return cls(**state | {"rejected": tuple(state["rejected"])})


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A term of a queue, with its suggestion and its decision."""

    id: int
    """Number of the term in the queue."""
    queue: str
    """Name of the queue."""
    version: int
    """Counts the changes; who decides names the version that was seen."""
    term: ReviewTerm
    """The term with its suggestions."""
    state: TermState
    """Decision so far, and who made it."""
    updated_at: str
    """Time of the last change, ISO 8601 in UTC."""
    is_blind: bool = False
    """Whether the second reviewer does not see what the first decided."""

    def seen_by(self, viewer: str | None) -> ReviewItem:
        """Return the term as a reviewer sees it: one that waits for a blind opinion is open.

        Args:
            viewer: Name of the reviewer; None sees all.
        """
        is_waiting = self.state.status in (OPEN, PROPOSED) and self.state.reviewer != viewer
        if viewer is None or not (self.is_blind and is_waiting):
            return self
        state = TermState(rejected=self.state.rejected)
        return replace(self, version=0, state=state, updated_at="")

    @property
    def suggestion(self) -> SuggestedConcept | None:
        """The best candidate that was not rejected; None means NIL, or nothing is left."""
        if self.term.flag == NO_CONCEPT:
            return None
        return self.next_candidate

    @property
    def next_candidate(self) -> SuggestedConcept | None:
        """The best candidate that was not rejected."""
        left = (c for c in self.term.candidates if c.concept not in self.state.rejected)
        return next(left, None)

    def to_json(self) -> dict[str, Any]:
        """Return the item as plain values."""
        suggestion = self.suggestion
        return {
            "id": self.id,
            "queue": self.queue,
            "version": self.version,
            **to_json(self.term),
            "doubt": round(self.term.doubt, 6),
            "suggestion": None if suggestion is None else suggestion.concept,
            **to_json(self.state),
            "updated_at": self.updated_at,
        }

    @property
    def last_change(self) -> str:
        """Return in brackets what was decided, by whom and when."""
        state = self.state
        who = (
            state.reviewer if state.status == DISPUTED else state.second_reviewer or state.reviewer
        )
        what = " ".join(filter(None, (state.status, state.concept)))
        return f" ({what}{f' by {who}' if who else ''} at {self.updated_at})"


@dataclass(frozen=True, slots=True)
class TermDecision:
    """A reviewer's decision about a term."""

    term_id: int
    """Number of the term in the queue."""
    action: str
    """The decision: ``approve``, ``reject`` or ``nil``."""
    reviewer: str
    """Name of the reviewer."""
    version: int | None = None
    """The version that was seen; None decides about what is there now."""
    concept: str | None = None
    """Id of the concept; None: the suggestion, or what was proposed."""
    name: str | None = None
    """New name to add; None: none."""
    relation: str = ""
    """Empty means exact, or what was proposed."""
    comment: str = ""
    """Remark of the reviewer."""
    time: str = ""
    """When it was decided, of a decision that was made elsewhere; empty: now."""

    def __post_init__(self) -> None:
        for field in ("reviewer", "concept", "name"):
            if fault := name_fault(getattr(self, field) or ""):
                raise ConfigError(f"{field}: {fault}")
        if fault := name_fault(self.comment, multiline=True):
            raise ConfigError(f"comment: {fault}")


@dataclass(frozen=True, slots=True)
class ReviewEvent:
    """One event of a review: reviewer, action, time and comment."""

    id: int
    term_id: int
    text: str
    batch: str
    at: str
    reviewer: str
    action: str
    comment: str
    before: TermState | None
    after: TermState | None
    undoes: int | None
    undone: bool

    def to_json(self) -> dict[str, Any]:
        """Return the event as plain values."""
        return to_json(self)


@dataclass(frozen=True, kw_only=True)
class ReviewFilter(Config):
    """Filter of the terms of a queue; omitted fields do not restrict."""

    status: Annotated[str | None, Choice(*STATUSES), Option("Terms of this status only.")] = None
    flag: Annotated[
        str | None,
        Option(
            "Terms with this flag only; none: those without one.",
            metavar="exact|ambiguous|nil|none",
        ),
    ] = None
    text: Annotated[str | None, Option("Terms with this text in them.", metavar="TEXT")] = None
    min_probability: Annotated[
        float | None,
        Range(min=0, max=1),
        Option("Terms whose suggestion has at least this probability.", metavar="P"),
    ] = None
    min_score: Annotated[
        float | None,
        Range(min=0, max=1),
        Option("Terms whose suggestion scores at least this.", metavar="S"),
    ] = None
    max_score: Annotated[
        float | None,
        Range(min=0, max=1),
        Option("Terms whose best candidate has at most this score.", metavar="S"),
    ] = None
    min_frequency: Annotated[
        int | None, AtLeast(1), Option("Terms in at least this many rows.", metavar="N")
    ] = None
    reviewer: Annotated[str | None, Doc("Reviewer who decided, first or second.")] = None
    waits_for: Annotated[
        str | None,
        Option(
            "Terms that this reviewer can decide: open ones, and those that another reviewer "
            "proposed.",
            metavar="NAME",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class BulkResult:
    """Result of a bulk decision."""

    batch: str
    """Id by which the decision can be undone."""
    n_changed: int
    """Number of terms that changed."""
    skipped: tuple[tuple[int, str], ...] = ()
    """Ids of terms that were left as they are, and why."""

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return {
            "batch": self.batch,
            "n_changed": self.n_changed,
            "n_skipped": len(self.skipped),
            "skipped": [{"id": id_, "why": why} for id_, why in self.skipped[:100]],
        }
