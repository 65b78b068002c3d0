"""``biograft probe similarity``: whether synonyms are closer to each other than hard negatives."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import Json, OptionalKb, Overwrite, Quiet, print_json
from biograft.config import split_list
from biograft.errors import ConfigError, InputError, nearest
from biograft.kb.names import language_codes
from biograft.progress import Progress
from biograft_lab.commands.options import refuse_repeated

if TYPE_CHECKING:
    from biograft.metrics.linking import Flags
    from biograft_lab.probing.similarity import (
        EncoderSimilarity,
        SimilarityConfig,
        SimilarityQuery,
        SimilarityReport,
        WordVectorConfig,
    )
    from biograft_lab.probing.similarity.report import Similarity
    from biograft_lab.probing.similarity.word_vectors import TrainingText

BASELINES = ("lexical", "sgns", "glove", "sgns-words", "glove-words")
_TRAINED = frozenset(BASELINES[1:])
_PARTS = {
    "D1": "all queries",
    "D2": "same neighbours",
    "D3": "a rare name",
}


def similarity(
    kb: OptionalKb = None,
    encoders: Annotated[
        list[str] | None,
        typer.Option("--encoder", metavar="[LABEL=]DIR", help="Encoder to probe; repeatable."),
    ] = None,
    baselines: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline",
            metavar="lexical|sgns|glove|sgns-words|glove-words",
            help="Baseline to compare; repeatable. Chinese: vectors of characters, or -words.",
        ),
    ] = None,
    same_as: Annotated[
        list[str] | None,
        typer.Option(
            "--same-as",
            metavar="RELATION",
            help="Relation that joins concepts that are the same; repeatable.",
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
        bool, typer.Option("--across-languages", help="Also pair names of two languages.")
    ] = False,
    negatives: Annotated[int, typer.Option(metavar="N", help="Hard negatives per query.")] = 19,
    jaro_winkler: Annotated[
        float,
        typer.Option(
            "--jaro-winkler", metavar="X", help="Minimum similarity of a hard negative to the name."
        ),
    ] = 0.6,
    limit: Annotated[
        int, typer.Option(metavar="N", help="Number of pairs, sampled; 0: all of them.")
    ] = 0,
    corpus: Annotated[
        Path | None,
        typer.Option(metavar="SHARDS", help="Annotated text to count names in, for D3."),
    ] = None,
    rare: Annotated[
        int, typer.Option(metavar="N", min=0, help="Maximum count of a rare name, for D3.")
    ] = 200,
    pooling: Annotated[
        str,
        typer.Option(
            metavar="inner|mean|cls|own",
            help="Pooling; inner: the mean without special tokens; own: as saved.",
        ),
    ] = "inner",
    with_entities: Annotated[
        bool,
        typer.Option("--with-entities", help="Give entity-aware models the entities of the names."),
    ] = False,
    text: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Training text of sgns and glove; default: the corpus."),
    ] = None,
    dim: Annotated[int, typer.Option(metavar="N", help="Dimension of sgns and glove.")] = 100,
    epochs: Annotated[
        int, typer.Option(metavar="N", help="Epochs of sgns and glove; 0: 5 and 25.")
    ] = 0,
    seed: Annotated[
        int,
        typer.Option(metavar="N", help="Random seed of samples, intervals, sgns and glove."),
    ] = 0,
    write: Annotated[
        Path | None,
        typer.Option("-o", "--write-queries", metavar="FILE", help="Write queries as JSON lines."),
    ] = None,
    queries_from: Annotated[
        Path | None,
        typer.Option("--queries", metavar="FILE", help="Read what -o wrote; needs no --kb."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Probe whether encoders place a synonym closer than 19 hard negatives.

    The positive is another name of the concept, or of one that is the same; the negatives are
    similar-looking names of other concepts of its type. D1: all queries; D2: those whose concepts
    have the same neighbours; D3: those with a name that is rare in the corpus. Accuracy is in
    percent; ties are wrong.
    """
    from biograft.artifacts import new_file
    from biograft_lab.probing.similarity import (
        SimilarityConfig,
        SimilarityReport,
        WordVectorConfig,
        write_queries,
    )

    training = WordVectorConfig(dim=dim, epochs=epochs, seed=seed)
    options = _ModelOptions(pooling, with_entities, text or corpus, training)
    models = _SimilarityModels(
        tuple(encoders or ()), split_list(",".join(baselines or ())), options
    )
    config = SimilarityConfig(
        same_as=split_list(",".join(same_as or ())),
        pairs=pairs,
        languages=language_codes(languages),
        across_languages=across_languages,
        negatives=negatives,
        jaro_winkler=jaro_winkler,
        limit=limit,
        seed=seed,
    )
    _check_source(kb, queries_from, config)
    progress = Progress(enabled=not quiet)
    models.load()
    with ExitStack() as stack:
        file = stack.enter_context(new_file(write, overwrite=overwrite)) if write else None
        if queries_from is not None:
            queries = _read_queries(queries_from, corpus, progress)
        else:
            queries = _build_queries(kb, config, corpus, progress)
        if file is not None:
            write_queries(file, queries.queries, queries.made_of)
    report = SimilarityReport(queries.queries, rare, seed)
    results = {"unit": "percent"} | queries.to_json() | {"rare": rare, "pooling": pooling}
    results |= {"seed": seed, "with_entities": with_entities, **models.evaluate(report, progress)}
    if as_json:
        print_json(results)
    else:
        _print_similarity(results)


@dataclass(frozen=True, slots=True)
class _QuerySet:
    """Queries, and what they were made of."""

    queries: list[SimilarityQuery]
    made_of: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the counts to report."""
        n_negatives = len(self.queries[0].negatives)
        return {
            "chance": round(100 / (1 + n_negatives), 2),
            "n_queries": len(self.queries),
            **self.made_of,
        }


def _check_source(kb: Path | None, queries_from: Path | None, config: SimilarityConfig) -> None:
    """Queries are either built from a store, or read from a file as they are."""
    if queries_from is None:
        if kb is None:
            raise ConfigError("expected --kb, to build queries from, or --queries")
    elif kb is not None or config != type(config)(seed=config.seed):
        raise ConfigError(
            "--queries: its queries are complete; leave out --kb and the options that build queries"
        )


def _build_queries(
    kb: Path | None, config: SimilarityConfig, corpus: Path | None, progress: Progress
) -> _QuerySet:
    """Build the queries from a store, with the frequencies of their names in a corpus."""
    from biograft.kb import KnowledgeBase
    from biograft_lab.probing.similarity import build_queries

    counts = _count_names(corpus, progress)  # first, so that a bad corpus fails early
    base = KnowledgeBase.open(kb or Path())
    built = build_queries(base, config, progress)
    if not built.n_pairs:
        raise InputError(
            "has no two names that mean the same",
            path=base.folder,
            remedy="name relations that join concepts that are the same (--same-as), "
            "or take other languages (--lang, --across-languages)",
        )
    if not built.queries:
        raise InputError(
            f"none of {built.n_left_out:,} queries has {config.negatives} hard negatives",
            path=base.folder,
            remedy="ask for fewer (--negatives), or for less similar ones (--jaro-winkler)",
        )
    made_of = {
        "n_pairs": built.n_pairs,
        "n_pairs_sampled": built.n_sampled,
        "n_left_out": built.n_left_out,
        "settings": dataclasses.asdict(config),
    }
    return _QuerySet(_with_counts(built.queries, counts), made_of)


def _read_queries(path: Path, corpus: Path | None, progress: Progress) -> _QuerySet:
    """Read queries; with a corpus the frequencies of their names are counted anew."""
    from biograft_lab.probing.similarity import read_queries

    queries, made_of = read_queries(path)
    return _QuerySet(_with_counts(queries, _count_names(corpus, progress)), made_of)


def _count_names(corpus: Path | None, progress: Progress) -> Any:
    from biograft_lab.probing.similarity import count_names

    if corpus is None:
        return None
    progress.start("count names")
    counts = count_names(corpus, progress)
    progress.finish()
    return counts


def _with_counts(queries: Sequence[SimilarityQuery], counts: Any) -> list[SimilarityQuery]:
    from biograft_lab.probing.similarity import with_frequencies

    return list(queries) if counts is None else with_frequencies(queries, counts)


@dataclass(frozen=True, slots=True)
class _ModelOptions:
    """Options of reading encoders and training word vectors."""

    pooling: str
    with_entities: bool
    text: Path | None
    """Training text of the word vectors."""
    training: WordVectorConfig


@dataclass
class _SimilarityModels:
    """The models to compare, in the order given: encoders, then baselines."""

    encoders: tuple[str, ...]
    baselines: tuple[str, ...]
    options: _ModelOptions
    _loaded: dict[str, EncoderSimilarity] = field(init=False, default_factory=dict)
    _texts: dict[bool, TrainingText] = field(init=False, default_factory=dict)
    """The training text as characters, and as Chinese words."""

    def __post_init__(self) -> None:
        parsed = [_parse_encoder(given) for given in self.encoders]
        self.names = dict(parsed)
        for baseline in self.baselines:
            if baseline not in BASELINES:
                raise ConfigError(
                    f"--baseline: none is called {baseline!r}; {nearest(baseline, BASELINES)}"
                )
        labels = [*(label for label, _ in parsed), *self.baselines]
        if not labels:
            raise ConfigError("expected --encoder or --baseline, a model to probe; found none")
        refuse_repeated("LABEL", labels, "give encoders names (--encoder LABEL=DIR)")
        text = self.options.text
        if text is None and _TRAINED & set(self.baselines):
            raise ConfigError("--baseline: sgns and glove are trained on --text or --corpus")
        if text is not None and not text.exists():
            raise InputError("does not exist", path=text, remedy="check the path")

    def load(self) -> None:
        """Load the encoders, so that a bad one fails before the work."""
        if self.names:
            from biograft_lab.probing.similarity import EncoderSimilarity

            for label, name in self.names.items():
                self._loaded[label] = EncoderSimilarity.from_pretrained(
                    name, self.options.pooling, with_entities=self.options.with_entities
                )

    def evaluate(self, report: SimilarityReport, progress: Progress) -> dict[str, Any]:
        """Return the metrics: of one model at the top, of several in a list with differences."""
        from biograft_lab.probing.similarity import collect_names, judge

        names = collect_names(report.queries)
        rows: list[dict[str, Any]] = []
        first: Flags | None = None
        for label in (*self._loaded, *self.baselines):
            start = time.perf_counter()
            measure = self._measure(label, names.texts, progress)
            progress.start(f"query {label}")
            hits = judge(measure(names, progress))
            progress.finish()
            row = {"label": label, **report.metrics(hits)}
            row["seconds"] = round(time.perf_counter() - start, 3)
            if first is None:
                first = hits
            else:
                row["difference"] = {"than": rows[0]["label"], **report.compare(hits, first)}
            rows.append(row)
        return rows[0] if len(rows) == 1 else {"encoders": rows}

    def _measure(self, label: str, names: Sequence[str], progress: Progress) -> Similarity:
        from biograft_lab.probing.similarity import lexical_similarity, train_glove, train_sgns

        if label in self._loaded:
            return self._loaded[label]
        if label == "lexical":
            return lexical_similarity
        text = self._training_text(names if label.endswith("-words") else None, progress)
        progress.start(f"train {label}")
        if label.startswith("sgns"):
            return train_sgns(text, self.options.training)
        return train_glove(text, self.options.training, progress)

    def _training_text(self, names: Sequence[str] | None, progress: Progress) -> TrainingText:
        """Read the training text once as characters, and once as words, with names among these."""
        from biograft_lab.probing.similarity import read_training_text
        from biograft_lab.probing.similarity.word_vectors import ChineseWordTokenizer, tokenize

        words = names is not None
        if words not in self._texts:
            progress.start("read text")
            split = tokenize if names is None else ChineseWordTokenizer(names)
            path = self.options.text or Path()
            self._texts[words] = read_training_text(path, progress, split)
        return self._texts[words]


def _parse_encoder(given: str) -> tuple[str, str]:
    """Split ``LABEL=DIR``; an existing folder is taken as a whole."""
    label, equals, name = given.partition("=")
    if not equals or Path(given).is_dir():
        return given, given
    if not label or not name:
        raise ConfigError(f"--encoder: expected a folder, a name or LABEL=DIR, found {given!r}")
    return label, name


def _print_similarity(results: Mapping[str, Any]) -> None:
    """Print the accuracy of each encoder on each part, and the differences from the first."""
    pairs = ""
    if "n_pairs" in results:
        pairs = f" of {results['n_pairs_sampled']:,} of {results['n_pairs']:,} pairs"
    typer.echo(f"{results['n_queries']:,} queries{pairs}, chance {results['chance']:.2f}")
    if results.get("n_left_out"):
        n_negatives = results["settings"]["negatives"]
        typer.echo(f"  left out {results['n_left_out']:,}: fewer than {n_negatives} hard negatives")
    rows = results.get("encoders", [results])
    for part, meaning in _PARTS.items():
        if not rows[0][part]["n"]:
            typer.echo(f"  {part} is empty: {rows[0][part]['why']}")
        else:
            typer.echo(f"  {part}  {rows[0][part]['n']:,} queries: {meaning}")
    for row in rows:
        typer.echo(f"{row['label']}  {row['seconds']:.1f} s")
        _print_parts(row, "acc@1", "6.2f")
    for row in rows[1:]:
        typer.echo(f"{row['label']} vs {row['difference']['than']}")
        _print_parts(row["difference"], "difference", "+6.2f")


def _print_parts(row: Mapping[str, Any], key: str, form: str) -> None:
    for part in _PARTS:
        result = row.get(part, {"interval": None})
        if result["interval"] is not None:
            low, high = (f"{bound:{form}}" for bound in result["interval"])
            p = f"   p {result['p']:.4f}" if "p" in result else ""
            typer.echo(f"  {part}  {result[key]:{form}}   {low} to {high}{p}")
