"""Subjects of documents, in Annif: ``python -m benchmarks.hosts.annif_subjects FOLDER``.

FOLDER is ``tests/corpora/archaeology`` of Annif's repository: Finnish titles with subjects. Of the
titles three quarters, drawn at random, are for training. ``annif eval`` judges a backend of our
classifier beside Annif's: tf-idf, SVC, which learns one random subject a document, and Omikuji,
where that is installed. Annif's analyzers read a package of NLTK's data, punkt_tab.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import annif.backend
import numpy as np
from annif.backend.backend import AnnifBackend
from annif.cli import cli
from annif.suggestion import SuggestionBatch
from scipy.sparse import csr_array

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.saving import load_model, save_model

from .. import pages

MEASURES = "F1@5", "NDCG@5", "Precision@1"
BACKENDS = {
    "tf-idf": "backend=tfidf",
    "SVC": "backend=svc",
    "SVC, words and pairs": "backend=svc\nngram=2",
    "Omikuji, Parabel": "backend=omikuji",
    "Omikuji, Bonsai": "backend=omikuji\ncluster_balanced=False\ncluster_k=100\nmax_depth=3",
    "TextClassifier": "backend=clsattn",
}
PROJECT = "[{name}]\nlanguage=fi\nanalyzer=snowball(finnish)\nvocab=subjects\n{backend}\n"


class ClsAttentionBackend(AnnifBackend):
    """A backend of Annif that learns all subjects of a document."""

    model: Any = None

    def initialize(self, parallel: bool = False) -> None:
        """Load the model."""
        if self.model is None:
            self.model = load_model(Path(self.datadir) / "model.skops")

    def _train(self, corpus: Any, params: dict[str, Any], jobs: int = 0) -> None:
        """Learn from the documents that have subjects."""
        documents = [document for document in corpus.documents if document.subject_set]
        size = len(self.project.subjects)
        subjects = np.array([document.subject_set.as_vector(size) for document in documents])
        texts = [document.text for document in documents]
        self.model = TextClassifier().fit(texts, subjects.astype(int))
        save_model(self.model, Path(self.datadir) / "model.skops")

    def _suggest_batch(self, documents: list[Any], params: dict[str, Any]) -> SuggestionBatch:
        """Return the probabilities of the likeliest subjects."""
        probabilities = self.model.predict_proba([document.text for document in documents])
        return SuggestionBatch(csr_array(probabilities)).filter(limit=int(params["limit"]))


def run(*arguments: str) -> float:
    """Run a command of Annif, and return its seconds of processor time."""
    started = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        cli.main([*arguments, "--verbosity", "ERROR"], standalone_mode=False)
    return time.process_time() - started


def main(arguments: list[str] | None = None) -> int:
    """Train and judge the backends, and print the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hosts.annif_subjects")
    parser.add_argument("folder", type=Path, help="tests/corpora/archaeology of Annif")
    source = parser.parse_args(arguments).folder.resolve()
    annif.backend._backend_fns["clsattn"] = lambda: ClsAttentionBackend  # noqa: SLF001
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        # 1) the files of Annif
        lines = (source / "documents.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
        is_test = np.random.default_rng(0).random(len(lines)) < 0.25
        for name, chosen in (("train.tsv", ~is_test), ("test.tsv", is_test)):
            text = "".join(line for line, here in zip(lines, chosen, strict=True) if here)
            Path(name).write_text(text, encoding="utf-8")
        titles = [one for one in BACKENDS if "omikuji" not in BACKENDS[one] or find_spec("omikuji")]
        names = {title: f"project{i}" for i, title in enumerate(titles)}
        projects = [PROJECT.format(name=names[one], backend=BACKENDS[one]) for one in titles]
        Path("projects.cfg").write_text("\n".join(projects), encoding="utf-8")
        run("load-vocab", "subjects", "--language", "fi", str(source / "subjects.tsv"))
        # 2) train and judge
        rows = []
        for title, name in names.items():
            seconds = run("train", name, "train.tsv")
            run("eval", name, "test.tsv", "--limit", "10", "--metrics-file", "measures.json")
            measures = json.loads(Path("measures.json").read_text())
            rows.append([title, *(f"{measures[one]:.3f}" for one in MEASURES), f"{seconds:.1f}"])
    n = np.array([len(line.split("\t")[1].split()) for line in lines])[is_test]  # subjects
    best = np.mean(2 * np.minimum(n, 5) / (n + 5))
    notes = f"{(~is_test).sum():,} titles for training, {len(n):,} to judge, with {n.mean():.1f} "
    notes += f"subjects on average: F1@5, of five suggestions, is at most {best:.3f}."
    table = pages.table(["", *MEASURES, "to train, CPU s"], rows)
    pages.publish(None, "Subjects, in Annif", "hosts.annif_subjects FOLDER", notes, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
