"""Tables of what is learned from annotated text, and from decisions about terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from biograft_lab.replication.tables import markdown

_SETS = {
    "ncbi-disease": "NCBI diseases",
    "bc5cdr-disease": "BC5CDR diseases",
    "gsc-plus": "GSC+ (`--overlaps all --reworded`)",
}

_TERMS = {
    "medic": "messy English terms, MEDIC",
    "mesh": "messy English terms, diseases of MeSH",
    "chinese": "messy Chinese terms, built-in knowledge base",
    "procedures": "Chinese procedures (dev)",
    "askapatient": "phrases of patients, AskAPatient",
}


def learn_terms(result: Mapping[str, Any]) -> str:
    """Return F1 of other terms before and after, the gain with its intervals, and the splits."""
    rows = []
    for name, title in _TERMS.items():
        of = result[name]
        splits, terms = (
            "{:+.1f} to {:+.1f}".format(*of[f"over_{by}"]) for by in ("splits", "terms")
        )
        gain = f"{of['gain']:+.1f} ({splits}; {terms})"
        applied = f"{of['applied']:.0%}"
        rows.append([title, f"{of['before']:.1f}", f"{of['after']:.1f}", gain, applied])
    heads = ("", "before", "after", "gain (over splits; over terms)", "splits with a part applied")
    return markdown(heads, rows)


_MAPPED = {
    "medic": "English, diseases of MEDIC",
    "mesh-diseases": "English, diseases of MeSH",
    "mesh": "English, all of MeSH",
    "chinese": "Chinese, built-in knowledge base",
    "full": "Chinese, with HPO in Chinese and a knowledge graph",
    "procedures": "Chinese procedures of several codes (dev)",
    "learned": "the same, learned from train",
    "folds": "train, in four folds",
}


def map_terms(result: Mapping[str, Any]) -> str:
    """Return how messy terms are mapped: answers, left alone, several targets, contrasts."""
    rows = []
    for name, title in _MAPPED.items():
        of = result[name]
        low, high = of["interval"]
        left, combined = ("{} of {}".format(*of[key]) for key in ("left", "combined"))
        n, total = of["accepted"]
        decorated = f"{of['decorated']['same']:.1f}" if "decorated" in of else ""
        contrasts = of.get("contrasts")
        over = f"{contrasts['over']} of {contrasts['n']:,}" if contrasts else ""
        top = f"{of['top1']:.1f} ({low:.1f}-{high:.1f}) / {of['top5']:.1f}"
        accepted = f"{n / total:.0%}, {of['right']:.1f}" if n else "0%"
        one = "{} of {}, {:.1f}".format(*of["marked"], of["marked_right"]) if "marked" in of else ""
        rows.append([title, top, left, combined, one, decorated, accepted, over])
    heads = (
        "",
        "top 1 / top 5",
        "left alone",
        "all targets right",
        "one target, with a mark: stays one, right",
        "same answer, decorated",
        "`exact`, `part` or `wording`, right",
        "opposites over 0.5",
    )
    return markdown(heads, rows)


def learned_forms(result: Mapping[str, Any]) -> str:
    """Return F1 before and after, the gain with its interval, and the forms of each set."""
    rows = []
    for name, title in _SETS.items():
        of = result["found"][name]
        low, high = of["interval"]
        learned = of["cross_validated"]
        forms = f"{learned['n_forms']} / {learned['n_no_mention']}"
        gain = f"{of['gain']:+.1f} ({low:+.1f} to {high:+.1f})"
        row = [title, f"{of['before']['f1']:.1f}", f"{of['after']['f1']:.1f}", gain, forms]
        if detector := of.get("detector"):
            low, high = detector["interval"]
            row.append(f"{detector['after']['f1']:.1f}")
            row.append(f"{detector['gain']:+.1f} ({low:+.1f} to {high:+.1f})")
        rows.append([*row, *["-"] * (7 - len(row))])
    heads = ("", "untrained", "learned", "gain", "forms with a concept / no mention")
    return markdown((*heads, "`--detector`", "gain of the detector"), rows)
