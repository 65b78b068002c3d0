"""``biograft probe similarity``: JSON, tables, baselines."""

import json

import pytest
import typer
from typer.testing import CliRunner

from biograft.errors import BiograftError, ConfigError, InputError, NotFoundError, StoreError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft_lab.commands.probe import app as probe
from biograft_lab.probing.similarity import (
    EncoderSimilarity,
    SimilarityConfig,
    SimilarityReport,
    build_queries,
    collect_names,
    judge,
)

NAMES = ["fever", "fevers", "feverish", "fever a", "fever b", "feverless", "fever c", "fevery"]


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alike")
    rows = [
        {"id": f"C{k}", "names": {"en": [name, f"hot {name}"]}, "relations": {"near": ["C0", "C1"]}}
        for k, name in enumerate(NAMES)
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


def test_the_results_are_those_of_the_report(call, kb, encoders):
    results = json.loads(call("--kb", kb, "--encoder", encoders[0], *FEW, "--json"))
    made = build_queries(KnowledgeBase.open(kb), SimilarityConfig(same_as=("same",), negatives=3))
    hits = judge(
        EncoderSimilarity.from_pretrained(str(encoders[0]))(collect_names(made.queries), None)
    )
    expected = SimilarityReport(made.queries).metrics(hits)
    [row] = results["models"]
    assert {part: row[part] for part in ("D1", "D2", "D3")} == expected
    assert row["D1"].keys() == {"acc@1", "n", "interval"}
    assert row["D1"]["n"] == results["n_queries"] == len(made.queries)
    assert row["D1"]["n"] > row["D2"]["n"] > 0
    assert row["D3"]["n"] == 0
    assert "--corpus" in row["D3"]["why"]
    found = (results["chance"], results["unit"], results["n_pairs"])
    assert found == (25.0, "percent", made.n_pairs)
    assert (results["n_left_out"], row["label"]) == (made.n_left_out, str(encoders[0]))


def test_further_models_are_compared_with_the_first(call, kb, encoders):
    options = ("--encoder", encoders[0], "--encoder", encoders[1], "--baseline", "lexical")
    rows = json.loads(call("--kb", kb, *options, *FEW, "--json"))["models"]
    assert [row["label"] for row in rows] == [*map(str, encoders), "lexical"]
    first, second, _ = rows
    assert "difference" not in first
    moved = second["D1"]["acc@1"] - first["D1"]["acc@1"]
    assert second["difference"]["D1"]["difference"] == pytest.approx(moved, abs=0.011)
    assert second["difference"]["D1"].keys() == {"difference", "interval", "p"}


def test_names_are_counted_in_a_corpus(call, kb, tmp_path):
    from biograft.artifacts import describe_files
    from biograft.text.shards import (
        SHARDS,
        AnnotatedDocument,
        LinkedSpan,
        shard_path,
        write_shard,
    )

    spans = tuple(LinkedSpan(6 * k, 6 * k + 5, "C0", 1.0) for k in range(3))
    document = AnnotatedDocument("a", "fever fever Fever", spans)
    corpus = tmp_path / "shards"
    corpus.mkdir()
    write_shard(shard_path(corpus, 0), [document], {})
    SHARDS.write(corpus, {"n_shards": 1, "n_documents": 1, "files": describe_files(corpus)})
    options = ("--baseline", "lexical", "--json", "--corpus", corpus)
    [row] = json.loads(call("--kb", kb, *FEW, *options))["models"]
    assert row["D3"]["n"] == row["D1"]["n"]  # one name of each pair at least is not there


def test_word_vectors_are_trained_on_text(call, kb, write):
    text = write("t.txt", "\n".join(["hot fever a fevers", "feverish hot b fever"] * 20))
    options = (
        "--baseline",
        "glove",
        "--baseline",
        "sgns",
        "--text",
        text,
        "--dim",
        8,
        "--epochs",
        2,
    )
    results = json.loads(call("--kb", kb, *FEW, *options, "--json"))
    assert [row["label"] for row in results["models"]] == ["glove", "sgns"]
    again = json.loads(call("--kb", kb, *FEW, *options, "--json"))
    assert [r["D1"] for r in again["models"]] == [r["D1"] for r in results["models"]]


def test_chinese_words_are_baselines_beside_characters(call, kb, write):
    pytest.importorskip("rjieba")
    text = write("t.txt", "\n".join(["hot fever a fevers", "feverish hot b fever"] * 20))
    options = ("--baseline", "glove", "--baseline", "glove-words", "--baseline", "sgns-words")
    trained = ("--text", text, "--dim", 8, "--epochs", 2)
    results = json.loads(call("--kb", kb, *FEW, *options, *trained, "--json"))
    labels = [row["label"] for row in results["models"]]
    assert labels == ["glove", "glove-words", "sgns-words"]
    with pytest.raises(ConfigError, match="trained on --text or --corpus"):
        call("--kb", kb, *FEW, "--baseline", "sgns-words")


def test_printed_table(call, kb, encoders):
    options = ("--encoder", encoders[0], "--baseline", "lexical")
    lines = call("--kb", kb, *options, *FEW, "--limit", 9).splitlines()
    assert "chance 25.00" in lines[0]
    assert " of 9 of " in lines[0]
    assert any(line.startswith("  D3 is empty: names were not counted") for line in lines)
    assert any(line.startswith(f"{encoders[0]}  ") for line in lines)
    assert any("(p " in line for line in lines)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ((), ConfigError, "expected --encoder or --baseline"),
        (("--baseline", "lexica"), ConfigError, "did you mean 'lexical'"),
        (("--encoder", "./nothing"), NotFoundError, "no such folder"),
        (("--baseline", "sgns"), ConfigError, "trained on --text or --corpus"),
        (("--baseline", "glove", "--text", "no.txt"), InputError, "no.txt: does not exist"),
        (("--baseline", "lexical", "--corpus", "none"), BiograftError, "none: "),
        (("--baseline", "lexical", "--same-as", "sane"), ConfigError, "did you mean 'same'"),
        (("--baseline", "lexical", "--negatives", 99), InputError, "none has 99 hard negatives"),
        (("--baseline", "lexical", "--lang", "fr"), ConfigError, "no names in 'fr'"),
    ],
)
def test_refused_in_one_line(call, kb, options, error, message):
    with pytest.raises(error, match=message) as raised:
        call("--kb", kb, *options)
    assert "\n" not in str(raised.value)


def test_a_missing_encoder_or_store_is_refused(call, kb, tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(StoreError, match="holds no encoder"):
        call("--kb", kb, "--encoder", tmp_path / "x")
    with pytest.raises(StoreError, match="x"):
        call("--kb", tmp_path / "x", "--baseline", "lexical")


def test_a_store_without_synonyms_is_refused(call, write, tmp_path):
    rows = "".join(json.dumps({"id": f"C{k}", "names": {"en": [f"n{k}"]}}) + "\n" for k in "ab")
    build_store(BuildConfig(sources=(SourceConfig(path=write("c.jsonl", rows)),)), tmp_path / "kb")
    with pytest.raises(InputError, match=r"of 0 pairs of names that mean the same.*--same-as"):
        call("--kb", tmp_path / "kb", "--baseline", "lexical")
    with pytest.raises(ConfigError, match="'same'; the store has none"):
        call("--kb", tmp_path / "kb", "--baseline", "lexical", "--same-as", "same")
