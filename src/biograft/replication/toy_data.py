"""Toy data for smoke runs: files of the shape of the real ones, made on the spot."""

from __future__ import annotations

import gzip
import io
import tarfile
from dataclasses import replace
from pathlib import Path

from biograft.errors import ConfigError
from biograft.replication.runner import Job

NAMES = {
    "D1": ("breast cancer", "breast neoplasm", "mammary carcinoma"),
    "D2": ("ovarian cancer", "cancer of the ovary"),
    "D3": ("common cold", "acute coryza", "acute nasopharyngitis"),
    "D4": ("stomach ache", "gastric pain", "gastralgia"),
}
MENTIONS = {
    "train": (("breast tumour", "D1"), ("a cold", "D3"), ("ovary cancer", "D2")),
    "dev": (("breast cancers", "D1"), ("colds", "D3"), ("stomach pain", "D4")),
    "test": (("breast tumours", "D1"), ("cold", "D3"), ("aching stomach", "D4")),
}


def write_biosyn(folder: Path) -> None:
    """Write a set in the layout of BioSyn: a dictionary for each split, mentions in an archive."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{concept}||{name}\n" for concept, group in NAMES.items() for name in group]
    known = [f"{concept}||{text}\n" for s in ("train", "dev") for text, concept in MENTIONS[s]]
    for split in MENTIONS:
        with gzip.open(folder / f"{split}_dictionary.txt.gz", "wt", encoding="utf-8") as file:
            file.writelines([*names, *(known if split == "test" else ())])
    with tarfile.open(folder / "concept_files.tar.gz", "w:gz") as archive:
        for split, mentions in MENTIONS.items():
            for row, (text, concept) in enumerate(mentions):
                line = f"{row}||0|3||Disease||{text}||{concept}\n".encode()
                member = tarfile.TarInfo(f"processed_{split}/{row}.concept")
                member.size = len(line)
                archive.addfile(member, io.BytesIO(line))


def write_toy_linking(job: Job) -> Job:
    """Return a linking job on a toy set, with the variants that need no other input."""
    work = job.work / "smoke"
    write_biosyn(work / "data" / "entity_linking" / "ncbi_disease" / "biosyn")
    variants = {
        label: {**variant, "sets": ["ncbi-disease"], "splits": ["test"]}
        for label, variant in job.experiment.variants.items()
        if "encoder" not in variant
    }
    if not variants:
        raise ConfigError("--smoke: every variant of this experiment needs an encoder")
    settings = {**job.experiment.settings, "scratch_steps": 2, "scratch_width": 16}
    experiment = replace(
        job.experiment, sets=("ncbi-disease",), variants=variants, settings=settings
    )
    return replace(
        job,
        experiment=experiment,
        work=work,
        data=work / "data",
        out=work / job.out.name,
    )
