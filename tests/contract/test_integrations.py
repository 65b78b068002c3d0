"""spaCy, pandas, polars and Ray: the same findings as those of the command line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command_line import run_process

INPUTS = Path(__file__).parent / "commands" / "inputs"
TEXTS = [
    "No fever. Possible pneumonia.",
    "Mother had breast cancer.",
    "",
    "T2D since 2010, on metformin 500 mg daily.",
]


@pytest.mark.filterwarnings("ignore")
def test_the_spacy_factory_and_docbin(kb, golden):
    spacy = pytest.importorskip("spacy", reason="the extra `spacy` is not installed")
    from spacy.tokens import DocBin

    nlp = spacy.blank("en")
    nlp.add_pipe("biograft", config={"kb": str(kb)})
    stored = DocBin(store_user_data=True, docs=list(nlp.pipe(TEXTS))).to_bytes()
    docs = list(DocBin().from_bytes(stored).get_docs(nlp.vocab))
    for text, doc in zip(TEXTS, docs, strict=True):
        entities = [
            {
                "text": e.text,
                "start": e.start_char,
                "label": e.label_,
                "kb_id": e.kb_id_,
                "status": e._.status,
                "section": e._.section,
                "measurements": e._.measurements,
                "concepts": e._.concepts,
            }
            for e in doc.ents
        ]
        spans = [[s.start_char, s.end_char, s.kb_id_] for s in doc.spans["biograft"]]
        golden("integrations", f"spacy: {text}", {"entities": entities, "spans": spans})


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_accessor_of_data_frames(library, kb, golden):
    frames = pytest.importorskip(library)
    import biograft.linking.frames  # noqa: F401 - registers the accessor

    frame = frames.DataFrame({"text": TEXTS, "patient": list("abcd")})
    linked = frame.biograft.link("text", kb)
    rows = linked.to_dict("records") if library == "pandas" else linked.to_dicts()
    rows = [
        {key: None if str(value) == "nan" else value for key, value in row.items()} for row in rows
    ]
    golden("integrations", f"frame: {library}", {"columns": list(linked.columns), "rows": rows})


@pytest.mark.slow
def test_corpus_annotate_on_ray_writes_what_one_process_writes(kb, run, tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    monkeypatch.setenv("RAY_worker_niceness", "0")
    shutil.copy(INPUTS / "lines.txt", tmp_path)
    line = "corpus annotate --language en --quiet --json"
    local = run(line, kb, "lines.txt", "-o", "LOCAL")
    ray = run_process(f"{line} --engine ray --workers 2", kb, "lines.txt", "-o", "RAY")
    assert (local.status, ray.status) == (0, 0), ray
    assert {**ray.json, "folder": "", "seconds": 0} == {**local.json, "folder": "", "seconds": 0}
    written = [
        {path.name: path.read_bytes() for path in (tmp_path / folder).glob("*.parquet")}
        for folder in ("LOCAL", "RAY")
    ]
    assert written[0] == written[1]
