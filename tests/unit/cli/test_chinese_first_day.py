"""A Chinese engineer's first day: the terminology tutorial, and what goes wrong."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from biograft.kb import build_starter

PAGE = Path(__file__).parents[3] / "docs" / "zh" / "terminology.md"
LITERAL = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\S*[/\\]\S*|ICD\S+|biograft [a-z ]+")
BLOCK = r"(?ms)(?:`([^`\n]+\.\w+)`[^`]*)?```(csv|tsv|json|sh)\n(.*?)^```"
ENGLISH = re.compile(r"(?<![\w.-])[A-Za-z]{2,} [a-z]{2,}(?![\w.=-])")
CHINESE = re.compile("[\u4e00-\u9fff]")


@pytest.fixture(autouse=True)
def chinese(monkeypatch, tmp_path):
    monkeypatch.setenv("BIOGRAFT_LANG", "zh")
    monkeypatch.chdir(tmp_path)


def english(text):
    """Return the lines with an English sentence in them."""
    return [line for line in text.splitlines() if ENGLISH.search(LITERAL.sub(" ", line))]


def run_page(run_main, page):
    """Write the files of a page, run its commands, and return what they print."""
    text, shown = page.read_text("utf-8"), []
    for name, kind, block in re.findall(BLOCK, text):
        if kind != "sh":
            Path(name).write_text(block, encoding="utf-8")
            continue
        for line in block.splitlines():
            done = run_main(*shlex.split(line)[1:])
            assert done.code == 0, (line, done.err)
            shown += [*done.out.splitlines(), *done.err.splitlines()]
    return "\n".join(shown)


def test_the_terminology_tutorial_runs_and_all_its_output_is_chinese(run_main, tmp_path):
    assert english(run_page(run_main, PAGE)) == []
    mapped = (tmp_path / "医保映射.sssom.tsv").read_text("utf-8")
    assert {"ICD10YB:E11.200", "ICD10YB:I10.x00"} <= set(re.findall(r"ICD10YB:\S+", mapped))
    rows = [line.split(",") for line in (tmp_path / "新映射.csv").read_text("utf-8").splitlines()]
    flags = {row[0]: row[5] for row in rows}
    assert (flags["冠心病"], flags["高血压病2级"]) == ("seen", "retired")


@pytest.mark.parametrize("name", ["tutorial.md", "mapping.md", "review.md"])
def test_the_commands_of_a_chinese_page_run_and_their_output_is_chinese(run_main, tmp_path, name):
    if name == "tutorial.md":
        build_starter(tmp_path / "KB")
    shown = run_page(run_main, PAGE.parent / name)
    names = "Diabetes Mellitus|Coronary Artery Disease|Myocardial Infarction"  # as they are stored
    assert english(re.sub(names, "", shown)) == []


@pytest.fixture
def files(tmp_path):
    build_starter(tmp_path / "KB")
    contents = {
        "a.csv": "编号,术语\n1,心梗\n".encode(),
        "empty.csv": b"",
        "head.csv": "编号,术语\n".encode(),
        "gb.csv": "编号,术语\n1,心梗\n".encode("gb18030"),
        "u16.csv": "编号,术语\n1,心梗\n".encode("utf-16"),
        "bad.json": b'[{"id": 1,',
        "bad.jsonl": b'{"id": "1"\n',
        "bad.toml": b"kind = \n",
        "twice.csv": "术语,术语\n心梗,心衰\n".encode(),
        "binary.bin": bytes(range(256)) * 8,
        "gold.jsonl": b'{"id": "1"}\n',
        "review.db": b"not a database, but long enough to be read as one" * 30,
        "ids.txt": b"\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    return tmp_path


FAULTS = """
kb build none.csv -o X
kb build empty.csv -o X
kb build folder -o X
kb build a.csv -o KB
kb build a.csv --format nope -o X
kb build a.csv --columns nope=术语 -o X
kb build a.csv --columns id=无,name=术语 -o X
kb build bad.json --format obograph -o X
kb build head.csv --columns id=编号,name=术语 -o X
kb build binary.bin -o X
kb build KB -o X
kb info folder
kb info none
kb show KB 无此编号
kb search KB
kb export KB -o a.csv
kb export KB --format nope -o X
kb diff KB none
link 心梗
link 心梗 --kb none
link 心梗 --kb KB --nope
link none.txt --kb KB --column 术语
link a.csv --kb KB --column 无
link a.csv --kb KB --format nope
link a.csv --kb KB --column 术语 --encoding nope
link twice.csv --kb KB --column 术语
link 心梗 --kb KB --to nope
link 心梗 --kb KB --types 无
link 心梗 --kb KB --index none
link 心梗 --kb KB --nil-below 3
link 心梗 --kb KB --lang fr
link 心梗 --kb KB --llm-url http://example.org/v1 --llm-model m
link 心梗 --kb KB -k x
link a.csv --kb KB --column 术语 -o a.csv
map a.csv --column 无 --kb KB -o m.csv
map a.csv --column 术语 --kb KB -o m.docx
map head.csv --column 术语 --kb KB -o m.csv
map a.csv --column 术语 --kb KB -o m.csv --apply a.csv
map a.csv --column 术语 --kb KB -o a.csv
map a.csv --column 术语 --kb KB -o m.csv --out-encoding nope
map a.csv --column 术语 --kb KB
review import none.csv --review r.db
review import a.csv --review r.db
review list --review none.db
review list --review review.db
review approve --review none.db
mapping chain none.tsv a.csv -o o.tsv
verify none.csv --kb KB
verify a.csv --kb KB --to nope
verify a.csv --kb KB --columns id=无
evaluate link --kb KB --gold none.jsonl --format sample
evaluate link --kb KB --gold gold.jsonl --format sample
evaluate link --kb KB --gold gold.jsonl --format nope
evaluate text --kb KB --gold gold.jsonl
recipe show nope
recipe show bad.toml
pretrain nope --kb KB -o R
pretrain sapbert --kb KB --set nope=1 -o R
pretrain sapbert --kb KB --set training.nope=1 -o R
pretrain sapbert --kb KB --set training.steps=x -o R
finetune nope -o R
serve --kb KB --host 0.0.0.0
serve --kb none
demo nope
demo notes --language fr
check none
doctor --index none
nope
kb nope
"""


@pytest.mark.parametrize("line", FAULTS.split("\n")[1:-1])
def test_an_error_of_the_first_day_is_chinese(run_main, files, line):
    done = run_main(*shlex.split(line))
    assert done.code in (1, 2), done.out
    assert CHINESE.search(done.err.replace(line, "")), done.err
    assert english(done.err) == []
