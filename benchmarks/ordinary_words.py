"""Write the lists of ordinary words, character pairs and similar characters that biograft ships.

- ``english_words``: words of SCOWL (``--words``: lists such as those of the Debian packages
  wamerican and wbritish), of larger lists that a text has (``--rare``: wamerican-large), of the
  names of MeSH, the Disease Ontology and ICD-10-CM, and of two texts or more of english_abstracts
  and english_definitions. A word that only names, rare lists or texts have is left out if it is
  one edit away from a word of far more texts: it is a misspelling there. So are plurals in *s*.
  Words that only SCOWL has come last.
- ``chinese_pairs``: pairs of neighbouring characters of two texts or more of
  chinese_medical.txt.gz, without those that have one character for another of the same sound or of
  similar shape in a pair that is far more frequent.
- ``chinese_word_pairs``: words of two characters that jieba's dictionary counts five times or more
  (``--jieba``: its dict.txt, MIT licence), a line for each first character.
- ``chinese_characters``, of biograft.kb: each character of these texts with its readings without
  tones, and the characters of similar shape: those whose Cangjie code, four-corner code, number of
  strokes and phonetic agree, by the Unihan database (``--unihan``: a folder with Unihan_*.txt).

Chinese words, by which names in running text are told from parts of other words, are counted in
chinese_medical.txt.gz as rjieba splits it. Those of at most three characters and three occurrences
are kept, a line for each power of two of their counts. Words that a name may rightly cut are left
out: those of a prefix and a more frequent word (胃溃疡), with a negation or a side before (无创,
右肾), and with what follows any disease behind (病史, 病人, 癫痫病).

Abstracts that stand in BC5CDR or NCBI disease are left out, so that these sets still measure what
is not known.

    python benchmarks/ordinary_words.py src/biograft/text/spelling src/biograft/text
        --words /usr/share/dict/*-english --rare /usr/share/dict/*-large --jieba dict.txt
        --unihan UCD
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from string import ascii_lowercase

from script_options import add_data, start_parser

from biograft.kb.names import HAN
from biograft.kb.similar_characters import CHARACTERS, similar_characters
from biograft.text.chinese_words import WORDS as CHINESE_WORDS
from biograft.text.formats import read_documents
from biograft.text.spelling.corrections import PAIRS, WORD_PAIRS, WORDS
from biograft.text.tokens import simplify

MIN_TEXTS, MIN_WORDS, MAX_CHARACTERS = 2, 3, 3
_BEFORE, _BEHIND = "无有未不左右双两", "者史人情程例房区历患感量时"
_SAME = "病症药眼儿"
_WORD = re.compile(r"[a-z]{4,}")
_HAN_RUN = re.compile(f"[{HAN}]{{2,}}")
_NAMES = (
    "entity_linking/mesh/mesh_descriptors_20*",
    "ontologies/obo/HumanDO_2015.obo.gz",
    "ontologies/obo/DO_*_slim.obo*",
    "ontologies/icd10cm/*.xml.gz",
)
"""Files of names: MeSH and ICD-10-CM are in the public domain, the Disease Ontology is CC0."""
_MISSPELT = frozenset({"dizzyness", "dessication"})
"""Misspellings that MeSH has as names."""
_FAR_MORE = 100
_MIN_COUNT = 5
"""The least count of a word of the dictionary of jieba."""
HELD_OUT = ("bc5cdr/pubtator", "ncbi_disease/original")
_KEY_LENGTH = 40
"""Letters by which an abstract is recognised: titles are at least as long, or nearly all."""
_MIN_SIMILAR, _MAX_SHAPES = 0.62, 14
"""The smallest similarity of characters of similar shape, and the most that are kept of each."""
_FIELDS = ("kTGHZ2013", "kCangjie", "kFourCornerCode", "kTotalStrokes", "kPhonetic")
_LAST = 0xA000
"""Characters behind are rare."""


def main() -> None:
    """Write the lists into their folders."""
    parser = start_parser(__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("chinese", type=Path, help="folder of the Chinese words")
    parser.add_argument(
        "--words", type=Path, nargs="*", help="lists of words; without: not written"
    )
    parser.add_argument("--rare", type=Path, nargs="*", default=(), help="larger lists of words")
    parser.add_argument("--jieba", type=Path, help="dictionary of jieba; without: not written")
    parser.add_argument("--unihan", type=Path, help="folder of Unihan; without: not written")
    add_data(parser)
    options = parser.parse_args()
    pairs = _count_pairs(_lines(options.data / "text/chinese_medical.txt.gz"))
    if options.words:
        _write(options.out / WORDS, _english_words(options))
    if options.jieba:
        _write(options.out / WORD_PAIRS, sorted(_word_pairs(options.jieba)))
    if options.unihan:
        used = {char for pair in pairs for char in pair}
        unihan = {c: f for c, f in _read_unihan(options.unihan).items() if c in used}
        _write(options.out.parents[1] / "kb" / CHARACTERS, sorted(_character_lines(unihan)))
    _write(options.out / PAIRS, sorted(_known_pairs(pairs)))
    words = _chinese_words(_lines(options.data / "text/chinese_medical.txt.gz"))
    _write(options.chinese / CHINESE_WORDS, words)


def _write(path: Path, lines: Iterable[str]) -> None:
    ordered = list(lines)
    data = gzip.compress("\n".join(ordered).encode(), 9, mtime=0)
    path.write_bytes(data)
    sys.stderr.write(f"{path.name}: {len(ordered):,} lines, {len(data):,} bytes\n")


# ---- English words


def _english_words(options: argparse.Namespace) -> list[str]:
    """Return the words of names and texts, an empty line, and the other words of dictionaries."""
    dictionary, names = _read_words(options.words), set[str]()
    for pattern in _NAMES:
        for path in sorted(options.data.glob(pattern)):
            names.update(word for line in _name_lines(path) for word in _WORD.findall(line.lower()))
    counts = _count_words(_english(options.data / "text", _held_out(options.data)))
    names |= _read_words(options.rare) & set(counts)
    names |= {word for word, n in counts.items() if n >= MIN_TEXTS}
    common = {word for word in names if word in dictionary or not _is_misspelling(word, counts)}
    for word in list(common):
        if word.endswith("ation"):  # medical verbs are in no list: intubated
            common.update(word.removesuffix("ion") + ending for ending in ("e", "ed", "ing"))
    common -= _MISSPELT
    rare = dictionary - common - _MISSPELT
    for words in (common, rare):
        words -= {f"{word}s" for word in common | rare}
    return [*sorted(common), "", *sorted(rare)]


def _read_words(paths: Iterable[Path]) -> set[str]:
    lines = (line for path in paths for line in _lines(path))
    return {word for line in lines if _WORD.fullmatch(word := line.strip().lower())}


def _name_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file that have names."""
    text = _lines(path)
    if ".obo" in path.name:
        yield from (line for line in text if line.startswith(("name:", "synonym:")))
    elif ".xml" in path.name:
        yield from (line for line in text if "<desc>" in line or "<note>" in line)
    else:
        yield from text


def _is_misspelling(word: str, counts: Counter[str]) -> bool:
    """Whether a word of few texts is one edit away from a word of far more."""
    n = max(counts[word], 1)
    ends = [(word[:k], word[k:]) for k in range(len(word) + 1)]
    near = {a + b[1:] for a, b in ends if b}
    near |= {a + b[1] + b[0] + b[2:] for a, b in ends if len(b) > 1}
    near |= {a + c + b[cut:] for a, b in ends for c in ascii_lowercase for cut in (0, 1)}
    return any(counts[each] >= _FAR_MORE * n for each in near - {word} if each in counts)


def _count_words(texts: Iterable[str]) -> Counter[str]:
    """Count the texts that have each word of four letters or more, in lower case."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(_WORD.findall(text.lower())))
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


# ---- Chinese characters


def _count_pairs(texts: Iterable[str]) -> Counter[str]:
    """Count the texts that have each pair of neighbouring Chinese characters."""
    counts: Counter[str] = Counter()
    for text in texts:
        runs = _HAN_RUN.findall(simplify(text))
        counts.update({run[k : k + 2] for run in runs for k in range(len(run) - 1)})
    return counts


def _known_pairs(counts: Counter[str]) -> Iterator[str]:
    """Yield the pairs of two texts or more, but for misspellings of far more frequent ones."""
    similar = {char: set(a + b) for char, (a, b) in similar_characters().items()}
    for pair, n in counts.items():
        near = {char + pair[1] for char in similar.get(pair[0], ())}
        near |= {pair[0] + char for char in similar.get(pair[1], ())}
        if n >= MIN_TEXTS and not any(
            counts[each] >= _FAR_MORE * n for each in near if each in counts
        ):
            yield pair


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


def _word_pairs(path: Path) -> Iterator[str]:
    """Yield the first character of words with their second ones."""
    seconds: defaultdict[str, str] = defaultdict(str)
    for line in _lines(path):
        word, count, *_ = line.split()
        if len(word) == 2 and _HAN_RUN.fullmatch(word) and int(count) >= _MIN_COUNT:
            seconds[word[0]] += word[1]
    for first, own in seconds.items():
        yield first + "".join(sorted(own))


def _read_unihan(folder: Path) -> dict[str, dict[str, str]]:
    """Read the fields of the characters of the list of standard characters (TGHZ 2013)."""
    fields: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for path in sorted(folder.glob("Unihan_*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.startswith("U+"):
                continue
            code, name, value = line.split("\t")
            if name in _FIELDS and int(code[2:], 16) < _LAST:
                fields[chr(int(code[2:], 16))][name] = value
    return {char: own for char, own in fields.items() if "kTGHZ2013" in own and "kCangjie" in own}


def _character_lines(unihan: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield a line for each character: itself, its readings, characters of similar shape."""
    for char, own in unihan.items():
        scores = [(_similarity(own, other), each) for each, other in unihan.items() if each != char]
        near = sorted((-score, each) for score, each in scores if score >= _MIN_SIMILAR)
        shapes = "".join(each for _, each in near[:_MAX_SHAPES])
        yield f"{char}\t{' '.join(_readings(own['kTGHZ2013']))}\t{shapes}"


def _readings(field: str) -> list[str]:
    """Return the readings of a character, without tones; ü is v.

    >>> _readings("473.090:zhēng 474.080:zhèng")
    ['zheng']
    """
    found: dict[str, None] = {}
    for part in field.split():
        for reading in part.partition(":")[2].split(","):
            letters = unicodedata.normalize("NFD", reading).replace("u\u0308", "v")
            found["".join(letter for letter in letters if letter.isascii())] = None
    return list(found)


def _similarity(one: Mapping[str, str], other: Mapping[str, str]) -> float:
    """Return how similar the shapes of two characters are, at most 1.1; 0 if they are not."""
    n, m = int(one["kTotalStrokes"].split()[0]), int(other["kTotalStrokes"].split()[0])
    phonetics = set(one.get("kPhonetic", "").split()) & set(other.get("kPhonetic", "").split())
    score = 0.25 * (1 - abs(n - m) / max(n, m)) + 0.1 * bool(phonetics)
    corners = [
        sum(x == y for x, y in zip(p[:4], q[:4], strict=False)) / 4
        for p in one.get("kFourCornerCode", "").split()
        for q in other.get("kFourCornerCode", "").split()
    ]
    score += 0.3 * max(corners, default=0.3)
    if score + 0.45 < _MIN_SIMILAR:
        return 0.0
    a, b = one["kCangjie"].split()[0], other["kCangjie"].split()[0]
    parts = 0.8 if sorted(a) == sorted(b) else 0.0
    return score + 0.45 * max(parts, 1 - _edits(a, b) / max(len(a), len(b)))


def _edits(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (letter != other))
    return row[-1]


def _lines(path: Path) -> Iterator[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        yield from file


if __name__ == "__main__":
    main()
