"""What ``biograft probe similarity`` is given: queries, and what answers them."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biograft.errors import ConfigError, InputError, nearest

if TYPE_CHECKING:
    from biograft.metrics.judgements import Flags
    from biograft.probing.similarity import (
        NameEncoder,
        SimilarityConfig,
        SimilarityQuery,
        SimilarityReport,
        TrainingConfig,
    )
    from biograft.probing.similarity.judging import Similarity
    from biograft.probing.similarity.word_vectors import TrainingText
    from biograft.progress import Progress

BASELINES = ("letters", "sgns", "glove")


@dataclass(frozen=True, slots=True)
class Asked:
    """Queries, what they were made of, and what there is to tell of that."""

    queries: list[SimilarityQuery]
    made_of: dict[str, Any]

    @property
    def told(self) -> dict[str, Any]:
        """Give what is told beside the figures."""
        n_negatives = len(self.queries[0].negatives)
        return {
            "chance": round(100 / (1 + n_negatives), 2),
            "n_queries": len(self.queries),
            **self.made_of,
        }


def refuse_unfit(kb: Path | None, queries_from: Path | None, config: SimilarityConfig) -> None:
    """Queries come either from a store or from a file, which has them as they are."""
    if queries_from is None:
        if kb is None:
            raise ConfigError("expected --kb, a store to make queries of, or --queries-from")
    elif kb is not None or config != type(config)(seed=config.seed):
        raise ConfigError(
            "--queries-from: holds queries as they were made; leave away --kb and the options "
            "that say which are made of it"
        )


def make_queries(
    kb: Path | None, config: SimilarityConfig, corpus: Path | None, progress: Progress
) -> Asked:
    """Make the queries of a store, with how often their names were found in a corpus."""
    from biograft.kb import KnowledgeBase
    from biograft.probing.similarity import build_queries

    counts = _counted(corpus, progress)  # first, so that what is wrong with it is told soon
    base = KnowledgeBase.open(kb or Path())
    made = build_queries(base, config, progress)
    if not made.n_pairs:
        raise InputError(
            "has no two names that mean the same",
            path=base.folder,
            remedy="name relations that join concepts that are the same (--same-as), "
            "or take other languages (--lang, --across-languages)",
        )
    if not made.queries:
        raise InputError(
            f"none of {made.n_left_out:,} queries has {config.negatives} look-alikes",
            path=base.folder,
            remedy="ask for fewer (--negatives), or for less alike ones (--jaro-winkler)",
        )
    made_of = {
        "n_pairs": made.n_pairs,
        "n_pairs_drawn": made.n_drawn,
        "n_left_out": made.n_left_out,
        "settings": dataclasses.asdict(config),
    }
    return Asked(_with_counts(made.queries, counts), made_of)


def read_asked(path: Path, corpus: Path | None, progress: Progress) -> Asked:
    """Read queries; a corpus, if one is given, tells anew how often their names are found."""
    from biograft.probing.similarity import read_queries

    queries, made_of = read_queries(path)
    return Asked(_with_counts(queries, _counted(corpus, progress)), made_of)


def _counted(corpus: Path | None, progress: Progress) -> Any:
    from biograft.probing.similarity import count_names

    if corpus is None:
        return None
    progress.start("count names")
    counts = count_names(corpus, progress)
    progress.finish()
    return counts


def _with_counts(queries: Any, counts: Any) -> list[SimilarityQuery]:
    from biograft.probing.similarity import with_frequencies

    return list(queries) if counts is None else with_frequencies(queries, counts)


@dataclass(frozen=True, slots=True)
class MeasureSettings:
    """How encoders are read and vectors trained."""

    pooling: str
    told: bool
    """Whether models that must be told are told which entities names are of."""
    text: Path | None
    """What vectors are trained on."""
    training: TrainingConfig


@dataclass
class Measures:
    """All that answers the queries, in the order told: encoders, then baselines."""

    encoders: tuple[str, ...]
    baselines: tuple[str, ...]
    settings: MeasureSettings
    _loaded: dict[str, NameEncoder] = field(init=False, default_factory=dict)
    _text: TrainingText | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.places = [_parted(given) for given in self.encoders]
        for name in self.baselines:
            if name not in BASELINES:
                raise ConfigError(
                    f"--baseline: none is called {name!r}; {nearest(name, BASELINES)}"
                )
        labels = [label for label, _ in self.places] + list(self.baselines)
        if not labels:
            raise ConfigError("expected --encoder or --baseline, something to ask; found none")
        for place, label in enumerate(labels):
            if label in labels[:place]:
                raise ConfigError(
                    f"{label!r} stands there twice; give encoders names (--encoder LABEL=DIR)"
                )
        if self.settings.text is None and {"sgns", "glove"} & set(self.baselines):
            raise ConfigError("--baseline: sgns and glove are trained on --text or --corpus")
        if self.settings.text is not None and not self.settings.text.exists():
            raise InputError("does not exist", path=self.settings.text, remedy="check the path")

    def load(self) -> None:
        """Load the encoders, so that one that is none is told before the work."""
        if self.places:
            from biograft.probing.similarity import NameEncoder

            for label, name in self.places:
                self._loaded[label] = NameEncoder.from_pretrained(
                    name, self.settings.pooling, told=self.settings.told
                )

    def tell(self, report: SimilarityReport, progress: Progress) -> dict[str, Any]:
        """Give the figures of all: of one at the top, of several in a list with differences."""
        from biograft.probing.similarity import gather, judge

        names = gather(report.queries)
        rows: list[dict[str, Any]] = []
        first: Flags | None = None
        for label in (*self._loaded, *self.baselines):
            start = time.perf_counter()
            measure = self._measure(label, progress)
            progress.start(f"ask {label}")
            hits = judge(measure(names, progress))
            progress.finish()
            row = {"label": label, **report.figures(hits)}
            row["seconds"] = round(time.perf_counter() - start, 3)
            if first is None:
                first = hits
            else:
                row["difference"] = {"than": rows[0]["label"], **report.compare(hits, first)}
            rows.append(row)
        return rows[0] if len(rows) == 1 else {"encoders": rows}

    def _measure(self, label: str, progress: Progress) -> Similarity:
        from biograft.probing.similarity import letter_similarity, train_glove, train_sgns

        if label in self._loaded:
            return self._loaded[label]
        if label == "letters":
            return letter_similarity
        text = self._training_text(progress)
        progress.start(f"train {label}")
        if label == "sgns":
            return train_sgns(text, self.settings.training)
        return train_glove(text, self.settings.training, progress)

    def _training_text(self, progress: Progress) -> TrainingText:
        """Read the text to train on, once for all."""
        from biograft.probing.similarity import read_training_text

        if self._text is None:
            progress.start("read text")
            self._text = read_training_text(self.settings.text or Path(), progress)
        return self._text


def _parted(given: str) -> tuple[str, str]:
    """Take ``LABEL=DIR`` apart; what is a folder as it stands is one."""
    label, equals, name = given.partition("=")
    if not equals or Path(given).is_dir():
        return given, given
    if not label or not name:
        raise ConfigError(f"--encoder: expected a folder, a name or LABEL=DIR, found {given!r}")
    return label, name
