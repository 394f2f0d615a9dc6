"""one_step_embeddings: Lemma 4.1, the limit, and what is drawn.

The step itself is autograd's in tests/test_paper_text.py.
"""

import numpy as np
import pytest
import reference
from helpers import refused

from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.paper import one_step_embeddings

DIMENSIONS = np.array([256, 1024, 4096])
CLASSES = pytest.mark.parametrize("n_classes", [2, 3])


def documents(n_classes, n_documents=15):
    """Return counts of unequal lengths, without empty documents, and labels of unequal sizes."""
    X = reference.counts(0, n_documents=n_documents, n_tokens=8, mean=1.5, empty=False).toarray()
    X[np.arange(n_documents), np.arange(n_documents) % 8] += 1
    X[:3, 0] += [5, 11, 23]
    return X, np.minimum(np.arange(n_documents) % (n_classes + 1), n_classes - 1)


def test_a_token_that_nothing_moves_stays_where_it_is():
    X, y = documents(2)
    X[:, 5] = 0
    X[:, 4] += 1  # every document has a token
    step = one_step_embeddings(X, y, step_size=50, embedding_dim=2000, random_state=0)
    np.testing.assert_array_equal(step.embeddings[5], step.initial_embeddings[5])
    other = one_step_embeddings(X, y, step_size=50, embedding_dim=2000, random_state=4)
    assert np.abs(other.embeddings - step.embeddings).max() > 0.1


def slope(errors):
    """Return the log-log slope against d of errors of shape (n_seeds, len(DIMENSIONS))."""
    return np.polyfit(np.log(DIMENSIONS), np.log(np.asarray(errors)).mean(axis=0), 1)[0]


@pytest.mark.parametrize(("n_classes", "single"), [(2, False), (2, True), (3, False)])
def test_lemma_4_1_and_the_limit_to_the_order_of_one_over_the_root_of_d(n_classes, single):
    errors, kernel_errors = [], []
    for seed in range(12):
        X, y = make_token_classification(
            n_samples=60,
            n_classes=n_classes,
            n_relevant_per_class=3,
            n_irrelevant=12,
            document_length=15,
            single_relevant=single,
            delta=0 if single else 0.1,
            random_state=seed,
        )
        limit = one_step_embeddings(X, y, step_size=20.0).embeddings.toarray()
        steps = [
            one_step_embeddings(X, y, step_size=20.0, embedding_dim=int(d), random_state=seed)
            for d in DIMENSIONS
        ]
        errors.append([step.lemma_error().max() for step in steps])
        kernels = [step.embeddings @ step.embeddings.T for step in steps]
        kernel_errors.append([np.abs(kernel - limit @ limit.T).max() for kernel in kernels])
    assert -0.6 < slope(errors) < -0.4
    assert -0.6 < slope(kernel_errors) < -0.4
    assert np.mean(errors, axis=0)[-1] < 1.2e-3
    assert np.mean(kernel_errors, axis=0)[-1] < 6 / np.sqrt(DIMENSIONS[-1])


@CLASSES
def test_the_limit_is_one_basis(n_classes):
    X, y = documents(n_classes)
    step = one_step_embeddings(X, y, step_size=9.0)
    E = step.embeddings.toarray()
    np.testing.assert_allclose(E @ E.T, np.eye(8) + step.shifts @ step.shifts.T, atol=1e-14)
    np.testing.assert_array_equal(E @ step.output_vectors.T, step.shifts)
    np.testing.assert_array_equal(E @ step.cls_embedding, 0)
    np.testing.assert_array_equal(step.initial_embeddings @ step.output_vectors.T, 0)
    np.testing.assert_array_equal(step.lemma_error(), 0)


def test_what_is_drawn():
    X, y = documents(2)
    step = one_step_embeddings(X, y, step_size=50, embedding_dim=2000, random_state=0)
    E, p, v = step.initial_embeddings, step.cls_embedding, step.output_vectors
    assert (E.shape, p.shape, v.shape) == ((8, 2000), (2000,), (1, 2000))
    assert np.linalg.norm(p) == pytest.approx(1, abs=0.1)
    np.testing.assert_allclose(np.linalg.norm(E, axis=1), 1, atol=0.1)
    X, y = documents(3)
    v = one_step_embeddings(X, y, step_size=1, embedding_dim=4, random_state=0).output_vectors
    np.testing.assert_allclose(v @ v.T, np.eye(3), atol=1e-14)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"embedding_dim": 3, "y": np.arange(15) % 3}, "at least 4"),
        ({"y": np.arange(14) % 2}, "inconsistent numbers of samples"),
        ({"y": np.linspace(0, 1, 15)}, "continuous"),
        ({"X": np.full((15, 8), np.inf)}, "X contains infinity"),
    ],
)
def test_bad_input(change, message):
    X, y = documents(2)
    arguments = {"X": X, "y": y, "step_size": 1.0, "embedding_dim": 8, **change}
    refused(message, one_step_embeddings, **arguments)


def test_documents_without_tokens_count_as_documents():
    X, y = documents(2)
    expected = one_step_embeddings(X, y, step_size=15.0).shifts
    longer = one_step_embeddings(np.vstack([X, 0 * X]), [*y, *y], step_size=30.0)
    np.testing.assert_allclose(longer.shifts, expected)
