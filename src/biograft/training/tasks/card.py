"""The model card of a task model: its labels, its results over seeds, and how to load it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from biograft.models.model_card import ModelCard

_PIPELINES = {"ner": "token-classification", "ranking": "text-ranking"}
_USE = """\
```python
from biograft.models.tasks import open_task

open_task("FOLDER").predict([{example}])
```
"""
_OPENS = """
```python
from transformers import pipeline

pipeline("{pipeline}", "FOLDER"{options})
```
"""
_CLOSED = """
transformers has no class for its head, and does not open this folder; it opens `encoder/`."""
_CRF = """
transformers gives the scores of tags without the transitions of the CRF: some entities differ."""
_EXAMPLES = {
    "ner": '"a text"',
    "classification": '"a text"',
    "ranking": '{"query": "a question", "candidates": [{"text": "an answer"}]}',
    "relation": '{"text": ..., "first": {...}, "second": {...}}',
}


def task_card(model: Path, manifest: Mapping[str, Any], results: Mapping[str, Any]) -> ModelCard:
    """Return the card of the model of a run.

    Args:
        model: Folder of the model.
        manifest: Its manifest.
        results: Content of ``results.json``.
    """
    task, config = str(manifest["task"]), manifest["config"]
    pipeline = _PIPELINES.get(task, "text-classification")
    opens = (model / "config.json").exists()
    use = _USE.format(example=_EXAMPLES.get(task, '("first text", "second text")'))
    grouped = ', aggregation_strategy="first"' if task == "ner" else ""
    of_hub = "text-classification" if task == "ranking" else pipeline
    use += _OPENS.format(pipeline=of_hub, options=grouped) if opens else _CLOSED
    use += _CRF if config.get("head") == "crf" else ""
    if named := [label for label in manifest["labels"] if label]:
        use += f"\nLabels: {', '.join(f'`{label}`' for label in named)}."
    splits = [split for split in ("dev", "test") if split in results]
    seeds = ", ".join(map(str, results["seeds"]))
    row = results["seeds"].index(results["best_seed"])
    return ModelCard(
        base_model=str(results["recipe"]["encoder"]["name"]),
        method=f"Fine-tuned for {task} (recipe {results['recipe']['name']})",
        data={
            **{f"examples of {name}": n for name, n in results["n_examples"].items()},
            **{f"sha256 of {name}": digest[:12] for name, digest in results["data"].items()},
        },
        metrics={
            f"{split} {name}": _spread(values)
            for split in splits
            for name, values in results[split].items()
        },
        about_metrics=f"Means and standard deviations over the seeds {seeds}. The weights are "
        f"those of seed {results['best_seed']}, the best on dev; the front matter has them.",
        languages=results.get("languages", ()),
        data_sets=results.get("data_sets", {}),
        scores={
            split: {name: values["values"][row] for name, values in results[split].items()}
            for split in splits
        },
        title="Named entity recognition" if task == "ner" else task.capitalize(),
        use=use,
        library="transformers" if opens else "biograft",
        pipeline=pipeline,
        tags=(task,),
    )


def _spread(values: Mapping[str, Any]) -> str:
    deviation = values["deviation"]
    return f"{values['mean']:.4f}" + (f" ± {deviation:.4f}" if deviation is not None else "")
