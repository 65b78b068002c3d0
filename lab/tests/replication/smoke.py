"""Smoke runs: an experiment on toy data, by the code of a real run, with all of its variants.

Only sizes are smaller. Every input is made as the experiment describes it, on toy data: stores,
annotated text, vectors, encoders trained for two updates. What another experiment pre-trains is
pre-trained as it says. All smoke runs in one folder share their toy data and inputs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from toy_files import (
    ALIAS,
    IDS_IN_SETS,
    RELATIONS,
    TOY_CONCEPTS,
    ToyWriter,
    write_toy_files,
)

from biograft.errors import ConfigError
from biograft.graph import PeprConfig
from biograft.graph.embedding import GraphRecipe, embed_graph
from biograft.graph.neighbours import build_neighbours
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking.annotation import AnnotationConfig, annotate
from biograft.linking.annotation.runner import ExecutionConfig
from biograft.text.segmentation import PhraseConfig, SegmentationConfig, build_segmentation
from biograft.training.pretraining.recipe import PretrainingRecipe, pretrain
from biograft_lab.replication.encoders import EncoderTasks
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.runner import TOY_PRETRAINING, ExperimentJob, load_kind

_N_DOCUMENTS, _N_SENTENCES = 120, 3
"""Enough for a held-out document."""
_N_TRIPLES = 200
_NEW = {
    "bert": ("new.width=16", "new.heads=2", "new.feed_forward=32", "new.n_tokens=600"),
    "bart": (
        "new.width=16",
        "new.heads=2",
        "new.feed_forward=32",
        "new.n_tokens=400",
        "new.layers=1",
    ),
}
_N_LAYERS = 6
"""As many as MiniLM has: experiments name the layer that a memory follows."""


def run_smoke(job: ExperimentJob) -> Path:
    """Run an experiment on toy data in the job's work folder, and return the result file."""
    load_kind(job)
    small = toy_job(job)
    load_kind(small).run(small)
    return small.out


def toy_job(job: ExperimentJob) -> ExperimentJob:
    """Return a job on toy data, with all inputs made."""
    folder, experiment = job.work / "smoke", job.experiment
    toy = ToyInputs(folder)
    write_toy_files(folder / "data")
    (folder / experiment.name).mkdir(parents=True, exist_ok=True)
    return replace(
        job,
        experiment=load_kind(job).small(experiment),
        work=folder / experiment.name,
        data=folder / "data",
        out=folder / job.out.name,
        inputs={name: toy.of(experiment, name) for name in experiment.inputs},
    )


@dataclass(frozen=True, slots=True)
class ToyInputs:
    """The inputs of experiments, made of toy data as their descriptions say, each once."""

    folder: Path

    def of(self, experiment: Experiment, name: str) -> Path:
        """Return an input of an experiment, making it if needed."""
        text = " ".join(experiment.inputs[name].replace("\\\n", " ").split())
        for pattern, make in _MAKERS.items():
            if match := re.search(pattern, text):
                return make(self, experiment, name, match)
        raise ConfigError(
            f"{experiment.name}: inputs.{name}: {text!r} is nothing that toy data have; describe "
            f"it by one of the patterns {', '.join(_MAKERS)}"
        )

    def store(self) -> KnowledgeBase:
        """Return the toy store: two types, names in two languages, a graph."""
        folder = self.folder / "kb"
        if not folder.exists():
            writer = ToyWriter(self.folder / "sources")
            rows = [
                {
                    "id": each.id,
                    "types": [each.type],
                    "ids": [IDS_IN_SETS[each.id]] if each.id in IDS_IN_SETS else [],
                    "names": {"en": list(each.english), "zh": list(each.chinese)},
                }
                for each in TOY_CONCEPTS
            ]
            writer.write("concepts.jsonl", [json.dumps(row, ensure_ascii=False) for row in rows])
            triples = [*writer.triples(_N_TRIPLES), ALIAS]
            writer.write("triples.tsv", ["head\trelation\ttail", *triples])
            sources = (
                SourceConfig(path=writer.folder / "concepts.jsonl", format="jsonl"),
                SourceConfig(path=writer.folder / "triples.tsv", format="triples"),
            )
            build_store(BuildConfig(sources=sources), folder)
        return KnowledgeBase.open(folder)

    def triples(self) -> Path:
        """Return the file of the graph of the toy store."""
        self.store()
        return self.folder / "sources" / "triples.tsv"

    def texts(self) -> Path:
        """Return the file of the toy documents."""
        writer = ToyWriter(self.folder / "sources")
        if not (writer.folder / "texts.txt").exists():
            writer.write("texts.txt", writer.documents(_N_DOCUMENTS, _N_SENTENCES))
        return writer.folder / "texts.txt"

    def corpus(self) -> Path:
        """Return the toy documents, annotated."""
        out = self.folder / "corpus"
        if not out.exists():
            execution = ExecutionConfig(workers=1)
            annotate(self.store().folder, [self.texts()], out, AnnotationConfig(), execution)
        return out

    def segmentation(self, language: str = "zh") -> Path:
        """Return the segmentation of the long names of a language."""
        out = self.folder / f"segmentation-{language}"
        if not out.exists():
            config = SegmentationConfig(language=language, phrases=PhraseConfig(min_count=4))
            build_segmentation(self.store(), [self.texts()], out, config)
        return out

    def vectors(self, model: str) -> Path:
        """Return graph embeddings by a recipe."""
        out = self.folder / f"vectors-{model}"
        if not out.exists():
            changes = ["training.epochs=1", "model.dim=8"]
            embed_graph(self.store(), GraphRecipe.load(model, changes), out)
        return out

    def neighbours(self, k: int) -> Path:
        """Return the best neighbours of each concept."""
        out = self.folder / f"neighbours-{k}"
        if not out.exists():
            build_neighbours(self.store(), out, PeprConfig(k=k))
        return out

    def wording(self) -> Path:
        """Return the file of the relations' words."""
        writer = ToyWriter(self.folder / "sources")
        writer.write("wording.tsv", [f"{relation}\tgoes with" for relation in RELATIONS])
        return writer.folder / "wording.tsv"

    def encoder(self) -> Path:
        """Return an encoder that stands for a published one."""
        from biograft.models.scratch_configs import NewBert
        from biograft.models.settings import EncoderSettings, write_settings

        out = self.folder / "encoder"
        if not out.exists():
            config = NewBert(width=16, heads=2, feed_forward=32, n_tokens=600, layers=_N_LAYERS)
            made = config.create(self.texts().read_text("utf-8").splitlines(), 0)
            made.model.save_pretrained(out)
            made.tokenizer.save_pretrained(out)
            write_settings(out, EncoderSettings(pooling="mean", max_length=64, lower=True))
        return out

    def trained(self, recipe: str, changes: tuple[str, ...], base: Path | None) -> Path:
        """Return the run of a recipe, from a base if the recipe makes none."""
        key = sha256(repr((recipe, changes, base)).encode()).hexdigest()[:8]
        out = self.folder / "trained" / f"{recipe}-{key}"
        if not (out / "done").exists():
            _, values = PretrainingRecipe.resolve(recipe)
            new = () if base else _NEW.get(values.get("new", {}).get("kind", ""), ())
            given = [*changes, *self._paths(values), *TOY_PRETRAINING, *new]
            made = PretrainingRecipe.load(recipe, given, encoder=str(base) if base else "")
            pretrain(made, self.store(), out)
            (out / "done").touch()
        return out

    def _paths(self, values: dict[str, dict[str, object]]) -> list[str]:
        """Return the changes of a recipe that name its inputs."""
        stream, knowledge = values["stream"], values.get("knowledge", {})
        paths = {}
        if stream.get("kind") == "annotated_text":
            paths["stream.shards"] = self.corpus()
        if "segmentation" in stream:
            paths["stream.segmentation"] = self.segmentation()
        if "vectors" in knowledge:
            paths["knowledge.vectors"] = self.vectors("transr")
        if "neighbours" in knowledge:
            paths["knowledge.neighbours"] = self.neighbours(10)
        return [f"{key}={json.dumps(str(path))}" for key, path in paths.items()]

    def work_of(self, name: str, *, finetuned: bool = False) -> Path:
        """Return the folder of an experiment that pre-trained, and maybe fine-tuned, its arms."""
        experiment = Experiment.load(name)
        given = ExperimentJob(
            experiment=experiment,
            work=self.folder.parent,
            data=self.folder / "data",
            out=self.folder / f"{name}.json",
        )
        job = toy_job(given)
        kind = EncoderTasks()
        (kind.run if finetuned else kind.pretrain)(job)
        return job.work


_Make = Callable[[ToyInputs, Experiment, str, re.Match[str]], Path]


def _train(toy: ToyInputs, experiment: Experiment, name: str, match: re.Match[str]) -> Path:
    base = experiment.base_of(name)
    changes = tuple(re.findall(r"--set (\S+)", match.string))
    start = toy.of(experiment, base) if base != name else None
    if start is None and "--encoder" in match.string:  # one that is no input
        start = toy.encoder()
    run = toy.trained(match[1], changes, start)
    return run / "encoder" if "of which" in match.string else run


def _start_of(toy: ToyInputs, experiment: Experiment, name: str, match: re.Match[str]) -> Path:
    return toy.of(Experiment.load(match[1]), "encoder")


def _of_which(toy: ToyInputs, of: Experiment, name: str, match: re.Match[str]) -> Path:
    return toy.work_of(match[1]) / match[2]


def _work_of(toy: ToyInputs, of: Experiment, name: str, match: re.Match[str]) -> Path:
    return toy.work_of(match[1], finetuned=match[2] == "fine-tunes")


_MAKERS: dict[str, _Make] = {
    r"biograft replicate run ([\w-]+), of which (?:the folder )?(\S+)": _of_which,
    r"^the folder \(--work\) of ([\w-]+), which (pre-trains|fine-tunes)": _work_of,
    r"chinese_base (?:text|tests)\b|replication\.objectives": lambda toy, *_: toy.texts(),
    r"chinese_base (?:graph|synonyms)": lambda toy, *_: toy.triples(),
    r"biograft pretrain ([\w.-]+)": _train,
    r"biograft corpus annotate|^the corpus of": lambda toy, *_: toy.corpus(),
    r"biograft corpus segment(?:.*--language (\w+))?": lambda toy, of, name, match: (
        toy.segmentation(match[1] or "zh")
    ),
    r"biograft graph embed .*--model ([\w-]+)": lambda toy, of, name, match: toy.vectors(match[1]),
    r"biograft graph neighbours .*-k (\d+)": lambda toy, of, name, match: toy.neighbours(
        int(match[1])
    ),
    r"biograft kb build|^the store": lambda toy, *_: toy.store().folder,
    r"^the encoder that ([\w-]+) .*starts? from": _start_of,
    r"^the folder of|^multilingual-e5-small": lambda toy, *_: toy.encoder(),
    r"^a file of relation, tab, words": lambda toy, *_: toy.wording(),
}
"""Maker of an input, by a pattern of its description; the first match counts."""
