"""``biograft probe similarity``: JSON, what people read, queries kept and asked again, refusals."""

import json

import pytest
import typer
from typer.testing import CliRunner

from biograft.cli.probe import app as probe
from biograft.errors import BiograftError, ConfigError, InputError, NotFoundError, StoreError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.probing.similarity import (
    NameEncoder,
    SimilarityConfig,
    SimilarityReport,
    build_queries,
    gather,
    judge,
)
from biograft.sources import SourceConfig

SIGNS = ["fever", "fevers", "feverish", "fever a", "fever b", "feverless", "fever c", "fevery"]


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alike")
    rows = [
        {"id": f"C{k}", "names": {"en": [name, f"hot {name}"]}, "relations": {"near": ["C0", "C1"]}}
        for k, name in enumerate(SIGNS)
    ]
    rows[2]["relations"] = {"same": ["C3"], "near": ["C4", "C5", "C6"]}
    (folder / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    config = BuildConfig(sources=(SourceConfig(path=folder / "c.jsonl"),))
    build_store(config, folder / "kb")
    return folder / "kb"


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    from tiny_models import tiny_encoder_folder

    folder = tmp_path_factory.mktemp("encoders")
    return [
        tiny_encoder_folder(folder / n, ["hot fever a b c"], seed=k) for k, n in enumerate("xy")
    ]


@pytest.fixture
def call():
    app = typer.Typer()
    app.add_typer(probe, name="probe")

    def run(*arguments):
        result = CliRunner().invoke(app, ["probe", "similarity", *map(str, arguments), "-q"])
        if isinstance(result.exception, BiograftError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


FEW = ("--negatives", 3, "--same-as", "same")


def test_one_encoder_stands_at_the_top(call, kb, encoders):
    told = json.loads(call("--kb", kb, "--encoder", encoders[0], *FEW, "--json"))
    made = build_queries(KnowledgeBase.open(kb), SimilarityConfig(same_as=("same",), negatives=3))
    hits = judge(NameEncoder.from_pretrained(str(encoders[0]))(gather(made.queries), None))
    expected = SimilarityReport(made.queries).figures(hits)
    assert {part: told[part] for part in ("D1", "D2", "D3")} == expected
    assert told["D1"].keys() == {"acc@1", "n", "interval"}
    assert told["D1"]["n"] == told["n_queries"] == len(made.queries)
    assert told["D1"]["n"] > told["D2"]["n"] > 0
    assert told["D3"]["n"] == 0
    assert "--corpus" in told["D3"]["why"]
    assert (told["chance"], told["unit"], told["n_pairs"]) == (25.0, "percent", made.n_pairs)
    assert (told["n_left_out"], told["label"]) == (made.n_left_out, str(encoders[0]))
    assert "encoders" not in told


def test_several_are_compared_with_the_first(call, kb, encoders):
    given = ("--encoder", f"A={encoders[0]}", "--encoder", encoders[1], "--baseline", "letters")
    told = json.loads(call("--kb", kb, *given, *FEW, "--json"))
    assert [row["label"] for row in told["encoders"]] == ["A", str(encoders[1]), "letters"]
    first, second, _ = told["encoders"]
    assert "difference" not in first
    assert second["difference"]["than"] == "A"
    moved = second["D1"]["acc@1"] - first["D1"]["acc@1"]
    assert second["difference"]["D1"]["difference"] == pytest.approx(moved, abs=0.011)
    assert second["difference"]["D1"].keys() == {"difference", "interval", "p"}
    assert "D1" not in told
    alone = json.loads(call("--kb", kb, "--encoder", encoders[1], *FEW, "--json"))
    assert {part: alone[part] for part in ("D1", "D2", "D3")} == {
        part: second[part] for part in ("D1", "D2", "D3")
    }


def test_queries_are_kept_and_asked_again(call, kb, tmp_path):
    asked = ("--baseline", "letters", "--json")
    kept = tmp_path / "q.jsonl"
    told = json.loads(call("--kb", kb, *FEW, "--limit", 5, "-o", kept, *asked))
    again = json.loads(call("--queries-from", kept, *asked))
    assert told | {"seconds": 0} == again | {"seconds": 0}
    call("--kb", kb, *FEW, "--limit", 5, "-o", tmp_path / "r.jsonl", *asked)
    assert (tmp_path / "r.jsonl").read_bytes() == kept.read_bytes()
    with pytest.raises(BiograftError, match="exists already"):
        call("--kb", kb, *FEW, "-o", kept, *asked)
    with pytest.raises(ConfigError, match="--queries-from: holds queries as they were made"):
        call("--queries-from", kept, "--limit", 3, *asked)


def test_names_are_counted_in_a_corpus(call, kb, tmp_path):
    from biograft.artifacts import file_sizes
    from biograft.corpus.shards import SHARDS, AnnotatedDocument, Span, shard_path, write_shard

    spans = tuple(Span(6 * k, 6 * k + 5, "C0", 1.0) for k in range(3))
    document = AnnotatedDocument("a", "fever fever Fever", spans)
    corpus, kept = tmp_path / "shards", tmp_path / "q.jsonl"
    corpus.mkdir()
    write_shard(shard_path(corpus, 0), [document], {})
    SHARDS.write(corpus, {"n_shards": 1, "n_documents": 1, "files": file_sizes(corpus)})
    asked = ("--baseline", "letters", "--json", "--corpus", corpus)
    told = json.loads(call("--kb", kb, *FEW, *asked, "-o", kept))
    assert told["D3"]["n"] == told["D1"]["n"]  # one name of each pair at least is not there
    rows = [json.loads(line) for line in kept.read_text("utf-8").splitlines()[1:]]
    counts = {row["query"]: row["frequencies"][0] for row in rows}
    assert counts["fever"] == 3
    assert sum(counts.values()) == 3
    again = json.loads(call("--queries-from", kept, "--baseline", "letters", "--json"))
    assert again["D3"] == told["D3"]  # what was counted is kept


def test_vectors_are_trained_on_text(call, kb, write):
    text = write("t.txt", "\n".join(["hot fever a fevers", "feverish hot b fever"] * 20))
    given = ("--baseline", "glove", "--baseline", "sgns", "--text", text, "--dim", 8, "--epochs", 2)
    told = json.loads(call("--kb", kb, *FEW, *given, "--json"))
    assert [row["label"] for row in told["encoders"]] == ["glove", "sgns"]
    again = json.loads(call("--kb", kb, *FEW, *given, "--json"))
    assert [r["D1"] for r in again["encoders"]] == [r["D1"] for r in told["encoders"]]


def test_what_people_read(call, kb, encoders):
    given = ("--encoder", f"A={encoders[0]}", "--baseline", "letters")
    shown = call("--kb", kb, *given, *FEW, "--limit", 9).splitlines()
    assert shown[0].endswith("chance 25.00")
    assert " of 9 of " in shown[0]
    assert any(line.startswith("  D3 is empty: names were not counted") for line in shown)
    assert any(line.startswith("A  ") for line in shown)
    assert "letters against A" in shown
    assert "   p " in shown[-1]


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ((), ConfigError, "expected --encoder or --baseline"),
        (("--baseline", "letter"), ConfigError, "did you mean 'letters'"),
        (("--baseline", "letters,letters"), ConfigError, "'letters' stands there twice"),
        (("--encoder", "=x"), ConfigError, "LABEL=DIR"),
        (("--encoder", "./nothing"), NotFoundError, "no such folder"),
        (("--baseline", "sgns"), ConfigError, "trained on --text or --corpus"),
        (("--baseline", "glove", "--text", "no.txt"), InputError, "no.txt: does not exist"),
        (("--baseline", "letters", "--corpus", "none"), BiograftError, "none: "),
        (("--baseline", "letters", "--same-as", "sane"), ConfigError, "did you mean 'same'"),
        (("--baseline", "letters", "--negatives", 99), InputError, "has 99 look-alikes"),
        (("--baseline", "letters", "--lang", "fr"), ConfigError, "no names in 'fr'"),
    ],
)
def test_what_cannot_be_asked_is_told_in_a_line(call, kb, given, error, said):
    with pytest.raises(error, match=said) as raised:
        call("--kb", kb, *given)
    assert "\n" not in str(raised.value)


def test_what_is_no_encoder_or_store_is_told(call, kb, tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(StoreError, match="holds no encoder"):
        call("--kb", kb, "--encoder", tmp_path / "x")
    with pytest.raises(ConfigError, match="expected --kb"):
        call("--baseline", "letters")
    with pytest.raises(StoreError, match="x"):
        call("--kb", tmp_path / "x", "--baseline", "letters")


def test_a_store_without_equal_names_is_told(call, write, tmp_path):
    rows = "".join(json.dumps({"id": f"C{k}", "names": {"en": [f"n{k}"]}}) + "\n" for k in "ab")
    build_store(BuildConfig(sources=(SourceConfig(path=write("c.jsonl", rows)),)), tmp_path / "kb")
    with pytest.raises(InputError, match=r"no two names that mean the same.*--same-as"):
        call("--kb", tmp_path / "kb", "--baseline", "letters")
    with pytest.raises(ConfigError, match="'same'; the store has none"):
        call("--kb", tmp_path / "kb", "--baseline", "letters", "--same-as", "same")
