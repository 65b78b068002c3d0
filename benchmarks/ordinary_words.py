"""Write the lists of ordinary words and Chinese character pairs that biograft comes with.

Words are counted in data/text/english_abstracts.txt.gz and english_definitions.tsv.gz, pairs of
characters in chinese_medical.txt.gz; those of two texts or more are kept. Abstracts that stand in
BC5CDR or NCBI disease are left out, so that these sets still measure what is not known.

Chinese words, by which names in running text are told from parts of other words, are counted in
chinese_medical.txt.gz as rjieba splits it. Those of at most three characters and three occurrences
are kept, a line for each power of two of their counts. Words that a name may rightly cut are left
out: those of a prefix and a more frequent word (胃溃疡), with a negation or a side before (无创,
右肾), and with what follows any disease behind (病史, 病人, 癫痫病).

    python benchmarks/ordinary_words.py src/biograft/text/spelling src/biograft/text
"""

from __future__ import annotations

import gzip
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from script_options import add_data, start_parser

from biograft.kb.names import HAN
from biograft.text.chinese_words import WORDS as CHINESE_WORDS
from biograft.text.formats import read_documents
from biograft.text.spelling.corrections import PAIRS, WORDS
from biograft.text.tokens import simplify

MIN_TEXTS, MIN_WORDS, MAX_CHARACTERS = 2, 3, 3
_BEFORE, _BEHIND = "无有未不左右双两", "者史人情程例房区历患感量时"
_SAME = "病症药"
_WORD = re.compile(r"[a-z]{4,}")
_HAN_RUN = re.compile(f"[{HAN}]{{2,}}")
HELD_OUT = ("bc5cdr/pubtator", "ncbi_disease/original")
_KEY_LENGTH = 40
"""Letters by which an abstract is recognised: titles are at least as long, or nearly all."""


def main() -> None:
    """Write the lists into their folders."""
    parser = start_parser(__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("chinese", type=Path, help="folder of the Chinese words")
    add_data(parser)
    options = parser.parse_args()
    text = options.data / "text"
    held = _held_out(options.data)
    words = _count_words(_english(text, held))
    pairs = _count_pairs(_lines(text / "chinese_medical.txt.gz"))
    for name, counts in ((WORDS, words), (PAIRS, pairs)):
        kept = sorted(word for word, n in counts.items() if n >= MIN_TEXTS)
        data = gzip.compress("\n".join(kept).encode(), 9, mtime=0)
        (options.out / name).write_bytes(data)
        sys.stderr.write(f"{name}: {len(kept):,} of {len(counts):,}, {len(data):,} bytes\n")
    lines = _chinese_words(_lines(text / "chinese_medical.txt.gz"))
    data = gzip.compress("\n".join(lines).encode(), 9, mtime=0)
    (options.chinese / CHINESE_WORDS).write_bytes(data)
    sys.stderr.write(f"{CHINESE_WORDS}: {len(data):,} bytes\n")


def _chinese_words(texts: Iterable[str]) -> list[str]:
    """Return words with blanks between them: line k has those with 2**k occurrences or more."""
    import rjieba

    jieba, counts = rjieba.Jieba(), Counter[str]()
    for text in texts:
        for run in _HAN_RUN.findall(simplify(text)):
            counts.update(jieba.cut(run, hmm=False))
    lines: defaultdict[int, list[str]] = defaultdict(list)
    for word, n in counts.items():
        cuts = word[0] in _BEFORE or word[-1] in _BEHIND
        cuts |= len(word) == MAX_CHARACTERS and (
            word[-1] in _SAME or counts[word[1:]] >= max(n, MIN_WORDS)
        )
        if len(word) == 1 or (n >= MIN_WORDS and len(word) <= MAX_CHARACTERS and not cuts):
            lines[n.bit_length() - 1].append(word)
    return [" ".join(sorted(lines[k])) for k in range(max(lines) + 1)]


def _count_words(texts: Iterable[str]) -> Counter[str]:
    """Count the texts that have each word of four letters or more, in lower case."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(_WORD.findall(text.lower())))
    return counts


def _count_pairs(texts: Iterable[str]) -> Counter[str]:
    """Count the texts that have each pair of neighbouring Chinese characters."""
    counts: Counter[str] = Counter()
    for text in texts:
        runs = _HAN_RUN.findall(simplify(text))
        counts.update({run[k : k + 2] for run in runs for k in range(len(run) - 1)})
    return counts


def _english(text: Path, held: Counter[str]) -> Iterator[str]:
    for line in _lines(text / "english_abstracts.txt.gz"):
        if _key(line) not in held:
            yield line
    for line in _lines(text / "english_definitions.tsv.gz"):
        yield line.split("\t")[-1]


def _held_out(data: Path) -> Counter[str]:
    """Return the keys of the documents of the held-out sets, and of their abstracts alone."""
    held: Counter[str] = Counter()
    for folder in HELD_OUT:
        for path in sorted((data / "entity_linking" / folder).iterdir()):
            if "LICEN" in path.name or "README" in path.name:
                continue
            for document in read_documents(path, "pubtator"):
                held[_key(document.text)] += 1
                held.update(_key(document.text[each.start :]) for each in document.passages)
    return held


def _key(text: str) -> str:
    return re.sub(r"\W+", "", text.lower())[:_KEY_LENGTH]


def _lines(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from file


if __name__ == "__main__":
    main()
