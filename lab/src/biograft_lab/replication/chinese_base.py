"""The text and the encoder that the Chinese experiments start from.

``text`` writes the text to train on: the medical questions and the pages of the disease graph,
without near-duplicates of any text of the test sets. ``encoder`` cuts the vocabulary of an encoder
down to the tokens of that text, which makes training several times cheaper. ``graph`` splits the
triples of the disease graph: a tenth of the pairs of neighbours are its test split, which nothing
that learns from the graph reads. ``synonyms`` writes the synonyms that come with the graph.

    python -m biograft_lab.replication.chinese_base graph graph
    biograft kb build graph/train.tsv graph/test.tsv --language zh --same-as alias -o KB
    python -m biograft_lab.replication.chinese_base text texts
    python -m biograft_lab.replication.chinese_base encoder E5 --text texts/text.txt -o e5-zh
    biograft corpus annotate KB texts/text.txt --language zh -o corpus
    biograft pretrain bert-zh-e5-cpu --encoder e5-zh --corpus corpus -o zh
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from biograft.artifacts import new_file, new_folder
from biograft.cli.fields import CommandGroup
from biograft.cli.options import Folder
from biograft.kb.names import HAN_CHARACTER
from biograft.text.near_duplicates import NearDuplicateConfig, NearDuplicates
from biograft_lab.places import data_folder, run_commands
from biograft_lab.replication.runner import missing_data

_TESTS = (
    "chineseblue/cEHRNER/test.json",
    "chineseblue/cMedIC/test.txt",
    "chineseblue/cMedIR/test.json",
    "chineseblue/cMedQA/test.txt",
    "chineseblue/cMedQANER/test.json",
    "chineseblue/cMedQQ/test.txt",
    "chineseblue/cMedTC/test.txt",
    "cmdd/test.jsonl",
    "cmeee_v2/CMeEE-V2_dev.json",  # its labels are what experiments test on
    "cmeee_v2/CMeEE-V2_test_unlabelled.json",
)
_QUESTIONS, _PAGES = "text/chinese_medical.txt", "zh/medical_kg/diseases.jsonl"
_TRIPLES = "zh/medical_kg/triples_derived.tsv"
_SYNONYMS = "zh/medical_kg/synonym.json"
_ALIAS = "alias"
"""The relation that joins two names of one entity."""
_TEST_RATIO = 0.1
_MIN_TEXT = 6
"""Characters below which a string of a test file is a label, not a text."""
_PARAGRAPH = 200
"""Characters that a document made of the lines of a page has at least, if it has so many."""
_FIRST_TOKENS = 5
"""Tokens for special purposes, at the start of a vocabulary."""


def write_text(data: Path, out: Path, config: NearDuplicateConfig | None = None) -> dict[str, Any]:
    """Write ``text.txt``, one document a line, and ``removed.json``; return the counts."""
    tests = NearDuplicates(read_test_texts(data), config)
    counts: dict[str, Counter[str]] = {}
    with new_folder(out) as work, (work / "text.txt").open("w", encoding="utf-8") as file:
        for name, texts in (("questions", _lines(data / _QUESTIONS)), ("pages", _pages(data))):
            count = counts.setdefault(name, Counter())
            for text in texts:
                removed = tests.matches(text)
                count["removed" if removed else "kept"] += 1
                count["removed_characters" if removed else "kept_characters"] += len(text)
                if not removed:
                    file.write(f"{text}\n")
        report = {"test_texts": len(tests), **{name: dict(count) for name, count in counts.items()}}
        (work / "removed.json").write_text(f"{json.dumps(report, indent=1)}\n", encoding="utf-8")
    return report


def read_test_texts(data: Path) -> Iterator[str]:
    """Read every string of the test sets that is long enough to be a text.

    Long mentions are among them, so that a page with the name of a test mention of eight characters
    or more is removed, too.
    """
    for name in _TESTS:
        for line in _lines(data / "zh" / name):
            if line.startswith(("{", "[")) and name.endswith(("json", "jsonl")):
                yield from (text for text in _strings(json.loads(line)) if len(text) >= _MIN_TEXT)
            else:
                yield from (cell for cell in line.split("\t") if len(cell) >= _MIN_TEXT)


def write_synonyms(data: Path, out: Path) -> int:
    """Write the synonyms that come with the graph as triples; return their number."""
    content = json.loads("".join(_lines(data / _SYNONYMS)))
    n = 0
    with new_file(out) as file:
        file.write(b"head\trelation\ttail\n")
        for head, synonyms in content.items():
            for synonym in dict.fromkeys(synonyms):
                if synonym != head:
                    file.write(f"{head}\t{_ALIAS}\t{synonym}\n".encode())
                    n += 1
    return n


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)


def _pages(data: Path) -> Iterator[str]:
    """Read the fields of the pages; the lines of a field are joined to documents."""
    for line in _lines(data / _PAGES):
        for field in _strings(json.loads(line)):
            held = ""
            for part in field.splitlines():
                held += part.strip()
                if len(held) >= _PARAGRAPH:
                    yield held
                    held = ""
            if len(held) >= _PARAGRAPH // 4:
                yield held


def _lines(path: Path) -> Iterator[str]:
    """Read the lines of a file, compressed or not; a JSON list over several lines is one."""
    packed = path.with_name(f"{path.name}.gz")
    if not path.exists() and not packed.exists():
        raise missing_data(path)
    binary = path.open("rb") if path.exists() else gzip.GzipFile(packed)
    with TextIOWrapper(binary, encoding="utf-8") as file:
        if path.suffix == ".json" and file.read(1) == "[":
            file.seek(0)
            yield json.dumps(json.load(file), ensure_ascii=False)
            return
        file.seek(0)
        yield from (stripped for line in file if (stripped := line.strip()))


def split_graph(data: Path, out: Path) -> dict[str, int]:
    """Write the triples of the disease graph as ``train.tsv`` and ``test.tsv``; return the counts.

    A pair of entities is in one of them with all its triples, in both directions. Aliases are names
    and stay in the training split.
    """
    lines = _lines(data / _TRIPLES)
    header, rng = next(lines), np.random.default_rng(0)
    is_test: dict[frozenset[str], bool] = {}
    counts = dict.fromkeys(("train", "test"), 0)
    with new_folder(out) as work, ExitStack() as stack:
        files = {
            split: stack.enter_context((work / f"{split}.tsv").open("w", encoding="utf-8"))
            for split in counts
        }
        for file in files.values():
            file.write(f"{header}\n")
        for line in lines:
            head, relation, tail = line.split("\t")[:3]
            pair = frozenset((head, tail))
            if pair not in is_test:
                is_test[pair] = bool(rng.random() < _TEST_RATIO)
            split = "test" if is_test[pair] and relation != _ALIAS else "train"
            counts[split] += 1
            files[split].write(f"{line}\n")
    return counts


def cut_vocabulary(encoder: Path, texts: Iterable[str], out: Path, min_count: int = 5) -> int:
    """Write an encoder with the tokens of texts and all Chinese characters; return their number.

    It has no dropout: the text is read once, and dropout takes two fifths of the time of an update.
    """
    from torch import nn

    from biograft.models.pretrained import load_parts, save_tokenizer

    model, tokenizer = load_parts(encoder)
    backend, counts = tokenizer.backend_tokenizer, Counter[int]()
    for text in texts:
        counts.update(backend.encode(text, add_special_tokens=False).ids)
    kept = [
        (row, token)
        for token, row in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
        if row < _FIRST_TOKENS or counts[row] >= min_count or _is_character(token)
    ]
    weights = model.get_input_embeddings().weight.detach()[[row for row, _ in kept]].clone()
    n_tokens, dim = weights.shape
    model.set_input_embeddings(nn.Embedding(n_tokens, dim, padding_idx=0, _weight=weights))
    model.config.vocab_size = len(kept)
    model.config.hidden_dropout_prob = model.config.attention_probs_dropout_prob = 0.0
    tokens = json.loads(backend.to_str())
    tokens["model"]["vocab"] = {token: row for row, (_, token) in enumerate(kept)}
    tokenizer._tokenizer = type(backend).from_str(json.dumps(tokens))
    with new_folder(out) as work:
        model.save_pretrained(work)
        save_tokenizer(tokenizer, work)
        load_parts(work)  # what was written can be read
    return len(kept)


def _is_character(token: str) -> bool:
    """Whether a token is one character: Chinese, or ASCII at the start of a word or within it."""
    character = token.removeprefix("##")
    return len(character) == 1 and bool(character.isascii() or HAN_CHARACTER.match(character))


app = CommandGroup("Write the text, the graph or the encoder that Chinese experiments start from.")
Data = Annotated[Path | None, "DIR"]


@app.command()
def text(out: Annotated[Path, typer.Argument()], data: Data = None) -> None:
    """Write the text without the texts of tests.

    Args:
        out: Folder of the text.
        data: Folder of real data; default: BIOGRAFT_DATA.
    """
    write_text(data or data_folder(), out)


@app.command()
def graph(out: Annotated[Path, typer.Argument()], data: Data = None) -> None:
    """Split the triples of the disease graph.

    Args:
        out: Folder of train.tsv and test.tsv.
        data: Folder of real data; default: BIOGRAFT_DATA.
    """
    split_graph(data or data_folder(), out)


@app.command()
def synonyms(out: Annotated[Path, typer.Argument()], data: Data = None) -> None:
    """Write the synonyms of the graph as triples.

    Args:
        out: File to write.
        data: Folder of real data; default: BIOGRAFT_DATA.
    """
    write_synonyms(data or data_folder(), out)


@app.command()
def encoder(
    model: Annotated[Path, typer.Argument()], text: Annotated[Path, "FILE"], out: Folder
) -> None:
    """Cut down the vocabulary of an encoder.

    Args:
        model: Folder of a BERT with a token a character.
        text: Text, a document a line.
        out: Folder to write.
    """
    cut_vocabulary(model, _lines(text), out)


if __name__ == "__main__":
    run_commands(app)
