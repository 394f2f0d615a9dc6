"""one_step_embeddings: the exact step against autograd, Lemma 4.1, and the limit."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
import torch

from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.theory import one_step_embeddings
from sklearn_clsattn.theory._token_embeddings import ExplicitEmbeddings

DIMENSIONS = np.array([256, 1024, 4096, 16384])


def documents(n_classes, seed=0, n_documents=15):
    """Return counts of unequal lengths, without empty documents, and labels of unequal sizes."""
    X = reference.counts(seed, n_documents=n_documents, n_tokens=8, mean=1.5, empty=False).toarray()
    X[np.arange(n_documents), np.arange(n_documents) % 8] += 1
    X[:3, 0] += [5, 11, 23]
    y = np.minimum(np.arange(n_documents) % (n_classes + 1), n_classes - 1)
    return X, y


def autograd_step(X, y, step, sample_weight):
    """Return E^1 from E^0, p^0 and v by autograd on padded sequences."""
    E = torch.from_numpy(step.initial_embeddings).clone().requires_grad_()
    p, v = torch.from_numpy(step.cls_embedding), torch.from_numpy(step.output_vectors)
    f = reference.outputs(
        reference.PaddedDocuments.from_counts(X), E, p, v, cls_weight=0, cls_score=0, intercept=0
    )
    targets = torch.from_numpy(2.0 * y - 1.0 if len(v) == 1 else y)
    loss = reference.mean_loss(f, targets, torch.from_numpy(np.asarray(sample_weight, float)))
    (gradient,) = torch.autograd.grad(loss, E)
    return (E - step.step_size * gradient).detach().numpy()


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_step_is_that_of_padded_autograd(n_classes, weighted, centred):
    X, y = documents(n_classes)
    weights = np.random.default_rng(1).uniform(0.2, 3, len(y)) if weighted else np.ones(len(y))
    step = one_step_embeddings(
        X,
        y,
        step_size=7.5,
        embedding_dim=16,
        sample_weight=weights if weighted else None,
        centred=centred,
        random_state=0,
    )
    if centred:
        weights = weights / np.bincount(y, weights)[y]
    expected = autograd_step(X, y, step, weights)
    np.testing.assert_allclose(step.embeddings, expected, rtol=0, atol=1e-12)
    assert np.abs(step.embeddings - step.initial_embeddings).max() > 0.1  # it is a step


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("embedding_dim", [None, 12])
def test_a_weight_is_repetition(n_classes, embedding_dim):
    X, y = documents(n_classes)
    weights = np.random.default_rng(2).integers(0, 4, len(y))
    parameters = {"step_size": 3.0, "embedding_dim": embedding_dim, "random_state": 0}
    for centred in (False, True):
        one = one_step_embeddings(X, y, sample_weight=weights, centred=centred, **parameters)
        repeated = one_step_embeddings(
            np.repeat(X, weights, axis=0), np.repeat(y, weights), centred=centred, **parameters
        )
        np.testing.assert_allclose(one.shifts, repeated.shifts, atol=1e-14)
        if embedding_dim:
            np.testing.assert_allclose(one.embeddings, repeated.embeddings, atol=1e-13)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_the_lemma_predicts_the_step_with_zero_scores_and_values_exactly(n_classes):
    """At E^0 = 0 no product is random, and the step is what the lemma says to the last digit."""
    X, y = documents(n_classes)
    step = one_step_embeddings(X, y, step_size=4.0, embedding_dim=9, centred=True, random_state=0)
    step.initial_embeddings[:] = 0
    expected = autograd_step(X, y, step, 1 / np.bincount(y)[y])
    np.testing.assert_allclose(step.shifts @ step.output_vectors, expected, atol=1e-14)
    # By the definition of the importance, document by document.
    shares = X / X.sum(axis=1, keepdims=True)
    indicator = (y[:, None] == np.arange(n_classes)) / (n_classes * np.bincount(y))
    by_class = shares.T @ indicator
    if n_classes == 2:
        alpha = by_class[:, 1] - by_class[:, 0]
        np.testing.assert_allclose(step.shifts[:, 0], 4.0 / 2 * alpha, atol=1e-14)
    else:
        alpha = by_class - by_class.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(step.shifts, 4.0 * alpha, atol=1e-14)


def slope(errors):
    """Return the log-log slope against d of errors of shape (n_seeds, len(DIMENSIONS))."""
    return np.polyfit(np.log(DIMENSIONS), np.log(np.asarray(errors)).mean(axis=0), 1)[0]


def data(n_classes, kind, seed):
    return make_token_classification(
        n_samples=60,
        n_classes=n_classes,
        n_relevant_per_class=3,
        n_irrelevant=12,
        document_length=15,
        length_spread=0.0 if kind == "equal" else 0.8,
        single_relevant=kind == "single",
        delta=0 if kind == "single" else 0.1,
        random_state=seed,
    )


@pytest.mark.parametrize(
    ("n_classes", "kind"), [(2, "equal"), (2, "unequal"), (2, "single"), (3, "unequal")]
)
def test_lemma_4_1_and_the_limit_kernel_to_the_order_of_one_over_the_root_of_d(n_classes, kind):
    errors, kernel_errors = [], []
    for seed in range(20):
        X, y = data(n_classes, kind, seed)
        errors.append([])
        kernel_errors.append([])
        for d in DIMENSIONS:
            step = one_step_embeddings(
                X, y, step_size=20.0, embedding_dim=int(d), random_state=100 + seed
            )
            errors[-1].append(step.lemma_error().max())
            kernel = step.embeddings @ step.embeddings.T
            kernel_errors[-1].append(np.abs(kernel - step.limit_kernel()).max())
    assert -0.6 < slope(errors) < -0.4
    assert -0.6 < slope(kernel_errors) < -0.4
    assert np.mean(errors, axis=0)[-1] < 6e-4
    assert np.mean(kernel_errors, axis=0)[-1] < 6 / np.sqrt(DIMENSIONS[-1])


def test_lemma_error_is_the_row_norm():
    X, y = documents(3)
    step = one_step_embeddings(X, y, step_size=2.0, embedding_dim=5, random_state=0)
    rest = step.embeddings - step.initial_embeddings
    for k, v in enumerate(step.output_vectors):
        rest = rest - 2.0 * step.importance[k][:, None] * v
    np.testing.assert_allclose(step.lemma_error(), np.sqrt((rest**2).sum(axis=1)) / 2.0)
    assert not one_step_embeddings(X, y, step_size=2.0).lemma_error().any()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_limit_is_one_basis(n_classes):
    X, y = documents(n_classes)
    step = one_step_embeddings(X, y, step_size=9.0)
    assert step.embeddings is None
    assert step.initial_embeddings is None
    n_outputs = 1 if n_classes == 2 else n_classes
    E = step.limit.scores(torch.eye(8 + n_outputs, dtype=torch.float64)).numpy()
    np.testing.assert_allclose(E @ E.T, step.limit_kernel(), atol=1e-14)
    np.testing.assert_array_equal(E @ step.output_vectors.T, step.shifts)
    np.testing.assert_array_equal(E @ step.cls_embedding, 0)
    assert step.cls_embedding.shape == (step.limit.dimension,)
    # Explicit embeddings know the same limit.
    explicit = one_step_embeddings(X, y, step_size=9.0, embedding_dim=6, random_state=0)
    np.testing.assert_array_equal(explicit.limit_kernel(), step.limit_kernel())
    maps = ExplicitEmbeddings(torch.from_numpy(explicit.embeddings))
    assert maps.dimension == 6


def test_every_form_of_input_is_the_same_and_left_alone():
    X, y = documents(2)
    expected = one_step_embeddings(X, y, step_size=5.0, embedding_dim=7, random_state=3)
    mirrored = sp.csr_matrix(X[:, ::-1])
    unsorted = sp.csr_matrix((mirrored.data, 7 - mirrored.indices, mirrored.indptr), shape=X.shape)
    assert not unsorted.has_sorted_indices
    before = unsorted.indices.copy()
    forms = [X.tolist(), X.astype(np.float32), X.astype(int), unsorted]
    forms += [make(X) for make in (sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_matrix)]
    for form in forms:
        step = one_step_embeddings(form, y, step_size=5.0, embedding_dim=7, random_state=3)
        np.testing.assert_allclose(step.embeddings, expected.embeddings, atol=1e-13)
    np.testing.assert_array_equal(unsorted.indices, before)
    other = one_step_embeddings(X, y, step_size=5.0, embedding_dim=7, random_state=4)
    assert np.abs(other.embeddings - expected.embeddings).max() > 0.1


def test_labels_and_what_is_drawn():
    X, y = documents(2)
    named = one_step_embeddings(
        X, np.array(["bad", "good"])[y], step_size=1, embedding_dim=2000, random_state=0
    )
    assert named.classes.tolist() == ["bad", "good"]
    E, p, v = named.initial_embeddings, named.cls_embedding, named.output_vectors
    assert (E.shape, p.shape, v.shape) == ((8, 2000), (2000,), (1, 2000))
    assert np.linalg.norm(v) == pytest.approx(1)
    assert np.linalg.norm(p) == pytest.approx(1, abs=0.1)
    np.testing.assert_allclose(np.linalg.norm(E, axis=1), 1, atol=0.1)
    X, y = documents(3)
    v = one_step_embeddings(X, y, step_size=1, embedding_dim=4, random_state=0).output_vectors
    np.testing.assert_allclose(v @ v.T, np.eye(3), atol=1e-14)


def test_a_token_never_seen_does_not_move():
    X, y = documents(2)
    X[:, 5] = 0
    X[:, 4] = X[:, 4].max() + X[:, 3]  # every document keeps a token
    step = one_step_embeddings(X, y, step_size=50.0, embedding_dim=30, random_state=0)
    np.testing.assert_array_equal(step.embeddings[5], step.initial_embeddings[5])
    assert step.importance[5] == 0


def replaced(X, value):
    X = X.copy()
    X[0, 0] = value
    return X


def without_tokens(X, *rows):
    X = X.copy()
    X[list(rows)] = 0
    return X


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda X, y: {"step_size": 0}, ValueError, "step_size == 0, must be > 0"),
        (lambda X, y: {"step_size": -1.0}, ValueError, "step_size"),
        (lambda X, y: {"step_size": np.nan}, ValueError, "step_size must be finite"),
        (lambda X, y: {"step_size": "1"}, TypeError, "step_size"),
        (lambda X, y: {"embedding_dim": 1}, ValueError, "embedding_dim == 1, must be >= 2"),
        (lambda X, y: {"embedding_dim": 2.5}, TypeError, "embedding_dim"),
        (
            lambda X, y: {"embedding_dim": 3, "y": np.arange(len(y)) % 3},
            ValueError,
            "embedding_dim must be at least 4",
        ),
        (lambda X, y: {"y": y[1:]}, ValueError, r"y must have shape \(15,\)"),
        (lambda X, y: {"y": np.ones(15, int)}, ValueError, "at least 2 classes, got only"),
        (lambda X, y: {"sample_weight": [1.0]}, ValueError, "sample_weight must have shape"),
        (lambda X, y: {"sample_weight": -np.ones(15)}, ValueError, "not negative"),
        (lambda X, y: {"sample_weight": np.where(y, 1.0, 0)}, ValueError, r"\[0\] has none"),
        (lambda X, y: {"X": X[0]}, ValueError, "X must have shape"),
        (lambda X, y: {"X": replaced(X, -1)}, ValueError, "minimum of -1"),
        (lambda X, y: {"X": replaced(X, np.nan)}, ValueError, "nan"),
        (lambda X, y: {"X": replaced(X, np.inf)}, ValueError, "infinite"),
        (lambda X, y: {"X": without_tokens(X, 3, 7)}, ValueError, r"2 have none \(rows 3, 7\)"),
        (lambda X, y: {"X": X[:0], "y": y[:0]}, ValueError, "no rows"),
    ],
    ids=range(18),
)
def test_bad_input(change, error, message):
    X, y = documents(2)
    for embedding_dim in (None, 8):
        parameters = {"X": X, "y": y, "step_size": 1.0, "embedding_dim": embedding_dim}
        with pytest.raises(error, match=message):
            one_step_embeddings(**{**parameters, **change(X, y)})


def test_an_empty_document_of_no_weight_is_left_out():
    X, y = documents(2)
    X = without_tokens(X, 3)
    weights = np.ones(len(y))
    weights[3] = 0
    parameters = {"step_size": 1.0, "embedding_dim": 4, "random_state": 0}
    left_out = one_step_embeddings(X, y, sample_weight=weights, **parameters)
    removed = one_step_embeddings(np.delete(X, 3, axis=0), np.delete(y, 3), **parameters)
    np.testing.assert_allclose(left_out.embeddings, removed.embeddings, atol=1e-14)
