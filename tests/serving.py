"""A model that is served without PyTorch: ``serving.py save FOLDER``, then ``check FOLDER``.

The first command needs the whole package; the second one, elsewhere, what docs/exporting.md lists.
"""

import resource
import sys
import time
from pathlib import Path

import numpy as np

from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.saving import load_model

TEXTS, TOPICS = load_requests(return_X_y=True)
NEW = list(TEXTS[600:700])


def save(folder: Path) -> None:
    """Save a model with its predictions."""
    from sklearn_clsattn import TextClassifier
    from sklearn_clsattn.saving import save_model

    model = TextClassifier().fit(TEXTS[:600], TOPICS[:600])
    save_model(model, folder / "model.skops")
    np.save(folder / "probabilities.npy", model.predict_proba(NEW))


def check(folder: Path) -> None:
    """Require the same predictions, and a page, without PyTorch."""
    model = load_model(folder / "model.skops")
    found = model.predict_proba(NEW)
    seconds = time.process_time()  # imports included
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    np.testing.assert_allclose(found, np.load(folder / "probabilities.npy"), rtol=0, atol=1e-9)
    model.to_page(folder / "page.html")
    assert "torch" not in sys.modules
    print(f"served without PyTorch; a first prediction after {seconds:.1f} s, {megabytes:.0f} MB")


if __name__ == "__main__":
    command, folder = sys.argv[1:]
    {"save": save, "check": check}[command](Path(folder))
