"""What ``biograft probe similarity`` prints for people."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import Json, OptionalKb, Overwrite, Quiet, split_languages, split_list
from biograft.errors import ConfigError, InputError, nearest

if TYPE_CHECKING:
    from biograft.metrics.metric import Flags
    from biograft.probing.similarity import (
        NameEncoder,
        SimilarityConfig,
        SimilarityQuery,
        SimilarityReport,
        TrainingConfig,
    )
    from biograft.probing.similarity.report import Similarity
    from biograft.probing.similarity.word_vectors import TrainingText
    from biograft.progress import Progress

_PARTS = {
    "D1": "all queries",
    "D2": "same neighbours",
    "D3": "a rare name",
}


def print_similarity(told: Mapping[str, Any]) -> None:
    """Print accuracy on each part of each encoder, and how much better each is than the first."""
    made = ""
    if "n_pairs" in told:
        made = f" of {told['n_pairs_drawn']:,} of {told['n_pairs']:,} pairs"
    typer.echo(f"{told['n_queries']:,} queries{made}, chance {told['chance']:.2f}")
    if told.get("n_left_out"):
        n_negatives = told["settings"]["negatives"]
        typer.echo(f"  left out {told['n_left_out']:,}: fewer than {n_negatives} look-alikes")
    rows = told.get("encoders", [told])
    for part, meaning in _PARTS.items():
        if not rows[0][part]["n"]:
            typer.echo(f"  {part} is empty: {rows[0][part]['why']}")
        else:
            typer.echo(f"  {part}  {rows[0][part]['n']:,} queries: {meaning}")
    for row in rows:
        typer.echo(f"{row['label']}  {row['seconds']:.1f} s")
        _print_row(row)
    for row in rows[1:]:
        typer.echo(f"{row['label']} against {row['difference']['than']}")
        for part in _PARTS:
            if part in row["difference"]:
                found = row["difference"][part]
                low, high = found["interval"]
                typer.echo(
                    f"  {part}  {found['difference']:+6.2f}   {low:+6.2f} to {high:+6.2f}"
                    f"   p {found['p']:.4f}"
                )


def _print_row(row: Mapping[str, Any]) -> None:
    for part in _PARTS:
        if row[part]["n"]:
            low, high = row[part]["interval"]
            typer.echo(f"  {part}  {row[part]['acc@1']:6.2f}   {low:6.2f} to {high:6.2f}")


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


def similarity(
    kb: OptionalKb = None,
    encoders: Annotated[
        list[str] | None,
        typer.Option("--encoder", metavar="[LABEL=]DIR", help="Encoder to ask; may come again."),
    ] = None,
    baselines: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline", metavar="letters|sgns|glove", help="Compare this, too; may come again."
        ),
    ] = None,
    same_as: Annotated[
        list[str] | None,
        typer.Option(
            "--same-as",
            metavar="RELATION",
            help="Relation that joins concepts that are the same; may come again.",
        ),
    ] = None,
    pairs: Annotated[
        str,
        typer.Option(
            metavar="all|names|relations",
            help="Pair names of one concept, of two joined by --same-as, or all.",
        ),
    ] = "all",
    languages: Annotated[
        str,
        typer.Option("--lang", metavar="en,zh", help="Pair names in these only; default: any."),
    ] = "",
    across_languages: Annotated[
        bool, typer.Option("--across-languages", help="Pair names of two languages, too.")
    ] = False,
    negatives: Annotated[
        int, typer.Option(metavar="N", help="Look-alikes beside each right name.")
    ] = 19,
    jaro_winkler: Annotated[
        float,
        typer.Option(
            "--jaro-winkler", metavar="X", help="Look-alikes are more alike than this to it."
        ),
    ] = 0.6,
    limit: Annotated[
        int, typer.Option(metavar="N", help="Pairs, drawn at random; 0: all of them.")
    ] = 0,
    corpus: Annotated[
        Path | None,
        typer.Option(metavar="SHARDS", help="Annotated text to count names in, for D3."),
    ] = None,
    rare: Annotated[
        int, typer.Option(metavar="N", min=0, help="D3: a name is found at most so often.")
    ] = 200,
    pooling: Annotated[
        str,
        typer.Option(
            metavar="inner|mean|cls|own",
            help="From tokens to a vector; inner: the mean but special tokens; own: as saved.",
        ),
    ] = "inner",
    told: Annotated[
        bool,
        typer.Option(
            "--told", help="Tell models that must be told which entities the names are of."
        ),
    ] = False,
    text: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Train sgns and glove on this; default: the corpus."),
    ] = None,
    dim: Annotated[int, typer.Option(metavar="N", help="Width of sgns and glove.")] = 100,
    epochs: Annotated[
        int, typer.Option(metavar="N", help="Epochs of sgns and glove; 0: 5 and 25.")
    ] = 0,
    seed: Annotated[
        int,
        typer.Option(metavar="N", help="Seed of what is drawn, of intervals, of sgns and glove."),
    ] = 0,
    write: Annotated[
        Path | None,
        typer.Option("-o", "--write-queries", metavar="FILE", help="Write queries as JSON lines."),
    ] = None,
    queries_from: Annotated[
        Path | None,
        typer.Option(
            "--queries-from", "--queries", metavar="FILE", help="Ask what -o wrote; needs no --kb."
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask encoders which of 20 names means the same as a given one.

    The right name is another name of the concept, or of one that is the same; the others are
    names of other concepts of its type that look like it. D1: all queries; D2: those whose
    concepts have the same neighbours; D3: those with a name that is rare in the corpus. Accuracy
    is in percent; a name must be alone the nearest, ties are wrong.
    """
    from biograft.artifacts import new_file
    from biograft.probing.similarity import (
        SimilarityConfig,
        SimilarityReport,
        TrainingConfig,
        write_queries,
    )
    from biograft.progress import Progress

    training = TrainingConfig(dim=dim, epochs=epochs, seed=seed)
    settings = MeasureSettings(pooling, told, text or corpus, training)
    measures = Measures(tuple(encoders or ()), split_list(",".join(baselines or ())), settings)
    config = SimilarityConfig(
        same_as=split_list(",".join(same_as or ())),
        pairs=pairs,
        languages=split_languages(languages),
        across_languages=across_languages,
        negatives=negatives,
        jaro_winkler=jaro_winkler,
        limit=limit,
        seed=seed,
    )
    refuse_unfit(kb, queries_from, config)
    progress = Progress(enabled=not quiet)
    measures.load()
    with ExitStack() as stack:
        file = stack.enter_context(new_file(write, overwrite=overwrite)) if write else None
        if queries_from is not None:
            asked = read_asked(queries_from, corpus, progress)
        else:
            asked = make_queries(kb, config, corpus, progress)
        if file is not None:
            write_queries(file, asked.queries, asked.made_of)
    report = SimilarityReport(asked.queries, rare, seed)
    found = {"unit": "percent"} | asked.told | {"rare": rare, "pooling": pooling, "seed": seed}
    found |= {"told": told, **measures.tell(report, progress)}
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
    else:
        print_similarity(found)
