"""``biograft probe``: what models know (cloze, similarity), and what they attend to (attention)."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from biograft.artifacts import new_file
from biograft.cli.fields import CommandGroup, Offered
from biograft.cli.options import (
    Json,
    Kb,
    OptionalKb,
    Overwrite,
    Quiet,
    open_kb,
    print_json,
    warn_left_out,
)
from biograft.errors import ConfigError, InputError, nearest
from biograft.progress import Progress
from biograft_lab.probing.config import (
    AttentionConfig,
    DecodingConfig,
    QueryConfig,
    SimilarityConfig,
    SubstituteConfig,
    WordVectorConfig,
)

BASELINES = ("lexical", "sgns", "glove", "sgns-words", "glove-words")

app = CommandGroup("Probe what models know, and what they attend to.")


@app.command()
def cloze(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL...")],
    kb: Kb,
    chosen: Annotated[QueryConfig, Offered()],
    decoding: Annotated[DecodingConfig, Offered(lengths="1-10")],
    wording: Annotated[Path | None, "FILE"] = None,
    examples: Annotated[Path | None, "FILE"] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Probe masked language models with cloze queries made of triples.

    A query is right if one of the best answers, with any number of masks, is a name of a right
    concept. Recall is in percent, averaged over relations, with 95 % intervals by a bootstrap
    over relations. Type 1: the query contains the answer's name; type 2: it does not.

    Args:
        models: Folders of masked language models.
        wording: Phrases of relations: lines of name, tab, words.
        examples: Write the best answers to each query as JSON lines.
    """
    from biograft.models.masked_lm import MaskedLanguageModel
    from biograft_lab.probing import (
        ClozeReport,
        answer_queries,
        build_queries,
        cloze_gold,
        example_answers,
        read_wording,
    )

    _refuse_repeated("MODEL", models)
    base, progress = open_kb(kb), Progress(enabled=not quiet)
    built = build_queries(base, chosen, read_wording(wording) if wording else None)
    if not built.queries:
        raise InputError(
            "no triple joins two concepts with names in the chosen languages",
            path=base.folder,
            remedy="choose others with --lang, or other relations",
        )
    gold = [cloze_gold(base, query, chosen.languages) for query in built.queries]
    report, answers, rows = ClozeReport(built.queries, gold, chosen.seed), [], []
    for model in [MaskedLanguageModel.from_pretrained(model) for model in models]:
        start = time.perf_counter()
        progress.start(f"query {Path(model.name).name}")
        answers.append(answer_queries(model, built.queries, gold, decoding, progress))
        progress.finish()
        rows.append(report.to_json(answers[-1]) | {"seconds": _since(start)})
        if len(answers) > 1:
            rows[-1]["difference"] = report.differences(answers[-1], answers[0])
    if examples is not None:
        with new_file(examples, overwrite=overwrite) as file:
            for n, (query, right) in enumerate(zip(built.queries, gold, strict=True)):
                content = {
                    "prompt": query.prompt,
                    "relation": query.relation,
                    "type": 1 if right.contains_answer else 2,
                    "answers": [{"id": each, "name": base[each].name} for each in query.answers],
                    "models": {a.model: example_answers(a.answers[n], right) for a in answers},
                }
                file.write((json.dumps(content, ensure_ascii=False) + "\n").encode())
    results = {
        "n_queries": len(built.queries),
        "n_different": built.n_different,
        "n_triples": built.n_triples,
        "n_nameless": built.n_nameless,
        "unit": "percent",
        "order": decoding.order,
        "beam": decoding.beam,
        "lengths": list(decoding.lengths),
        "models": rows,
    }
    if as_json:
        print_json(results)
        return
    typer.echo(f"{results['n_queries']:,} queries of {rows[0]['all']['n_relations']} relations")
    _print_models(rows, "model", "recall")
    for of_models in zip(*(row["relations"] for row in rows), strict=True):
        cells = "  ".join(f"{each['all']['recall']:6.2f}" for each in of_models)
        typer.echo(f"  {of_models[0]['relation']}  n={of_models[0]['all']['n']:<6,} {cells}")


@app.command()
def similarity(
    chosen: Annotated[SimilarityConfig, Offered()],
    training: Annotated[WordVectorConfig, Offered()],
    kb: Kb,
    encoder: Annotated[list[str], "DIR"] = [],  # noqa: B006 - typer copies it
    baseline: Annotated[list[str], "|".join(BASELINES)] = [],  # noqa: B006
    corpus: Annotated[Path | None, "SHARDS"] = None,
    rare: Annotated[int, "N"] = 200,
    with_entities: bool = False,
    text: Annotated[Path | None, "FILE"] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Probe whether encoders place a synonym closer than 19 hard negatives.

    Args:
        encoder: Encoder to probe; repeatable.
        baseline: Baseline to compare; repeatable. Chinese: vectors of characters, or -words.
        corpus: Annotated text to count names in, for D3.
        rare: Maximum count of a rare name, for D3.
        with_entities: Give entity-aware models the entities of the names.
        text: Training text of sgns and glove; default: the corpus.
    """
    from biograft_lab.probing.similarity import (
        EncoderSimilarity,
        SimilarityReport,
        build_queries,
        collect_names,
        count_names,
        judge,
        train_baseline,
        with_frequencies,
    )

    for name in baseline:
        if name not in BASELINES:
            raise ConfigError(f"--baseline: none is called {name!r}; {nearest(name, BASELINES)}")
    if (text or corpus) is None and {*baseline} - {"lexical"}:
        raise ConfigError("--baseline: sgns and glove are trained on --text or --corpus")
    if text is not None and not text.exists():
        raise InputError("does not exist", path=text, remedy="check the path")
    _refuse_repeated("--encoder", encoder)
    if not encoder and not baseline:
        raise ConfigError("expected --encoder or --baseline, a model to probe; found none")
    progress = Progress(enabled=not quiet)
    counts = None if corpus is None else count_names(corpus, progress)
    base = open_kb(kb)
    measures = {
        name: EncoderSimilarity.from_pretrained(name, with_entities=with_entities)
        for name in encoder
    }
    built = build_queries(base, chosen, progress)
    if not built.queries:
        raise InputError(
            f"of {built.n_pairs:,} pairs of names that mean the same, none has {chosen.negatives} "
            "hard negatives",
            path=base.folder,
            remedy="name relations that join concepts that are the same (--same-as), "
            "ask for fewer negatives (--negatives), or for less similar ones (--jaro-winkler)",
        )
    queries = built.queries if counts is None else with_frequencies(built.queries, counts)
    report, names = SimilarityReport(queries, rare, chosen.seed), collect_names(queries)
    rows: list[dict[str, Any]] = []
    first = None
    for label in (*measures, *baseline):
        start = time.perf_counter()
        progress.start(f"query {label}")
        measure = measures.get(label) or train_baseline(
            label, text or corpus or Path(), names.texts, training, progress
        )
        hits = judge(measure(names, progress))
        progress.finish()
        rows.append({"label": label, **report.metrics(hits), "seconds": _since(start)})
        if first is not None:
            rows[-1]["difference"] = report.compare(hits, first)
        first = hits if first is None else first
    results = {
        "n_queries": len(queries),
        "n_pairs": built.n_pairs,
        "n_pairs_sampled": built.n_sampled,
        "n_left_out": built.n_left_out,
        "unit": "percent",
        "chance": round(100 * report.chance, 2),
        "settings": asdict(chosen),
        "models": rows,
    }
    if as_json:
        print_json(results)
        return
    typer.echo(
        f"{len(queries):,} queries of {built.n_sampled:,} of {built.n_pairs:,} pairs, "
        f"chance {results['chance']:.2f}, left out {built.n_left_out:,}"
    )
    _print_models(rows, "label", "acc@1")


@app.command()
def attention(
    config: Annotated[AttentionConfig, Offered()],
    substitutes: Annotated[SubstituteConfig, Offered()],
    text: Annotated[str, typer.Argument(metavar="TEXT")] = "",
    encoder: Annotated[list[str], "DIR"] = [],  # noqa: B006
    entity: Annotated[str, "NAME"] = "",
    replaced: Annotated[bool, "--replace"] = False,
    synonym: Annotated[str, "NAME"] = "",
    random: Annotated[str, "NAME"] = "",
    kb: OptionalKb = None,
    file: Annotated[Path | None, "FILE"] = None,
    form: Annotated[str, "--format", "F"] = "",
    limit: Annotated[int, "N"] = 200,
    png: Annotated[Path | None, "FILE"] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the attention of encoders around an entity, or among its tokens.

    With --replace: curves of the attention between each other token and the entity, its synonym
    and a random entity in the same sentence, and the mean distance of the last two curves from
    the first. Without it: attention among the entity's own tokens. An encoder without layer 11
    (10) is read at its last layer but one.

    Args:
        text: A sentence.
        encoder: Encoder, a folder or name; repeatable.
        entity: The entity, as written in the sentence.
        replaced: Also replace the entity by a synonym and a random name.
        synonym: Synonym of the entity; default: sampled.
        random: Name of another entity; default: sampled.
        file: With --replace: summarise the sentences of these documents.
        form: Format of --file; default: detect.
        limit: Sentences of the file, sampled; 0: all.
        png: Write a picture of one sentence.
    """
    from biograft.kb.sources.log import ReadLog
    from biograft_lab.probing.attention import (
        AttentionReader,
        ReplacedSentence,
        Substitutes,
        compare_many,
        compare_names,
        find_entity,
        look_inside,
        read_sentences,
    )

    if not encoder:
        raise ConfigError("--encoder: expected the folder or the name of an encoder, found none")
    _refuse_repeated("--encoder", encoder)
    if not replaced and (file or kb or synonym or random):
        raise ConfigError("--file, --kb, --synonym and --random need --replace")
    if file is not None and (text or entity or png):
        raise ConfigError("--file: takes the place of TEXT and --entity, and has no --png")
    if replaced and kb is None and not (synonym and random):
        raise ConfigError("--replace needs --synonym and --random, or --kb to sample them from")
    fill = Substitutes(open_kb(kb), substitutes).fill if kb else None
    if file is not None:
        log, progress = ReadLog(file), Progress(enabled=not quiet)
        sentences = read_sentences(file, form, limit=limit, seed=substitutes.seed, log=log)
        warn_left_out(log.rejected.counts, "rows", f"{file}: ")
        readers = list(map(AttentionReader.from_pretrained, encoder))
        results = compare_many(readers, sentences, config, fill, progress)
    else:
        whole = text or entity
        sentence = ReplacedSentence(whole, *find_entity(whole, entity), synonym, random)
        sentence = fill(sentence) if replaced and fill else sentence
        readers = list(map(AttentionReader.from_pretrained, encoder))
        found: Sequence[Any] = [
            compare_names(reader, sentence, config)
            if replaced
            else look_inside(reader, whole, (sentence.start, sentence.end), config)
            for reader in readers
        ]
        results = {"text": whole, "entity": sentence.entity}
        results |= {"start": sentence.start, "end": sentence.end}
        results |= {"synonym": sentence.synonym, "random": sentence.random} if replaced else {}
        results["models"] = [each.to_json() for each in found]
        if png is not None:
            from biograft_lab.probing.attention import draw_curves, draw_insides

            picture = (
                draw_curves(found, sentence, config.around) if replaced else draw_insides(found)
            )
            with new_file(png, overwrite=overwrite) as out:
                out.write(picture)
    for reader, model in zip(readers, results["models"], strict=True):
        model |= {"n_layers": reader.n_layers, "n_heads": reader.n_heads}
    results |= {"head": config.head or "all", "direction": config.direction}
    if as_json:
        print_json(results)
        return
    for model in results["models"]:
        typer.echo(f"{model['encoder']}  layer {model['layer']} of {model['n_layers']}")
        _print_attention(model, results)


def _print_attention(model: Mapping[str, Any], results: Mapping[str, Any]) -> None:
    """Print the numbers of an encoder: a summary, curves, or a heat map, a token a line."""
    if "sentences" in results:
        n_sentences = results["n_sentences"]
        for name in ("synonym", "random"):
            typer.echo(f"  {name:8} mean absolute difference {model[name]['mean']:.4f}")
        typer.echo(f"  the synonym is closer in {model['n_synonym_nearer']:,} of {n_sentences:,}")
        return
    columns = model.get("weights") or [*zip(*model["curves"].values(), strict=True)]
    for token, values in zip(model["tokens"], columns, strict=True):
        typer.echo(f"  {token:12}" + "".join(f"{value:10.4f}" for value in values))
    for name, value in model.get("differences", {"others": model.get("to_others")}).items():
        typer.echo(f"  {name}: {value:.4f}")


def _print_models(rows: Sequence[Mapping[str, Any]], label: str, metric: str) -> None:
    """Print a metric of each model by part of the queries, and its difference to the first."""
    for row in rows:
        typer.echo(f"{row[label]}  {row['seconds']:.1f} s")
        for part, values in row.items():
            if isinstance(values, dict) and values.get("interval"):
                low, high = values["interval"]
                line = f"  {part:6} {values[metric]:6.2f}   {low:6.2f} to {high:6.2f}"
                if more := row.get("difference", {}).get(part):
                    line += f"   {more['difference']:+6.2f} (p {more['p']:.4f})"
                typer.echo(line)
            elif isinstance(values, dict) and "why" in values:
                typer.echo(f"  {part} is empty: {values['why']}")


def _refuse_repeated(what: str, values: Sequence[object]) -> None:
    """Refuse a value that is given twice."""
    for position, value in enumerate(values):
        if value in values[:position]:
            raise ConfigError(f"{what}: {value} is given twice; name each once")


def _since(start: float) -> float:
    return round(time.perf_counter() - start, 3)
