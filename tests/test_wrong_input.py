"""Input that pipelines go wrong with: the message names the cause and the cure."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from sklearn_clsattn import ClsAttentionClassifier, TokenImportanceTransformer
from sklearn_clsattn.datasets import load_reviews, make_token_classification
from sklearn_clsattn.paper import OneStepClassifier
from sklearn_clsattn.text import make_text_classifier

TEXTS, LABELS = make_token_classification(300, as_text=True, random_state=0)
X = CountVectorizer(max_features=60).fit_transform(TEXTS)
REVIEWS = Path(os.environ.get("REVIEWS", Path(__file__).parents[2] / "shared/data"))


@pytest.mark.parametrize(
    ("before", "message"),
    [
        (HashingVectorizer(), "HashingVectorizer.*alternate_sign=False"),
        (HashingVectorizer(norm=None), "HashingVectorizer.*alternate_sign=False"),
        (HashingVectorizer(norm=None, n_features=50), "HashingVectorizer.*alternate_sign=False"),
        (
            make_pipeline(CountVectorizer(), StandardScaler(with_mean=False), TruncatedSVD(20)),
            "TruncatedSVD.*counts that went into it",
        ),
    ],
)
@pytest.mark.parametrize("kind", [ClsAttentionClassifier, OneStepClassifier])
def test_negative_values_of_pipelines(before, message, kind):
    with pytest.raises(ValueError, match=f"Negative values in data passed to {kind.__name__}"):
        make_pipeline(before, kind()).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match=message):
        make_pipeline(before, kind()).fit(TEXTS, LABELS)


def test_scalers_are_told_apart():
    dense = X.toarray().astype(float)
    with pytest.raises(ValueError, match=r"StandardScaler.*MaxAbsScaler"):
        make_pipeline(StandardScaler(), ClsAttentionClassifier()).fit(dense, LABELS)
    model = make_pipeline(MinMaxScaler(), ClsAttentionClassifier(C=1.0)).fit(
        dense[:200] + 5, LABELS[:200]
    )
    with pytest.raises(ValueError, match=r"MinMaxScaler.*clip=True"):
        model.predict(dense[200:] + np.where(np.arange(60) % 20, 5.0, 4.8))
    model.set_params(minmaxscaler__clip=True)
    assert model.predict(dense[200:]).shape == (100,)
    with pytest.raises(ValueError, match="Use counts or TF-IDF"):
        ClsAttentionClassifier().fit(-dense, LABELS)


@pytest.mark.parametrize(
    "texts",
    [TEXTS, TEXTS.tolist(), pd.Series(TEXTS), pd.DataFrame({"text": TEXTS}), TEXTS.astype(str)],
)
def test_texts_in_place_of_counts(texts):
    message = r"X holds texts.*make_pipeline\(CountVectorizer\(\).*make_text_classifier"
    for estimator in (ClsAttentionClassifier(), TokenImportanceTransformer(), OneStepClassifier()):
        with pytest.raises(ValueError, match=message):
            estimator.fit(texts, LABELS)
    with pytest.raises(ValueError, match=message):
        ClsAttentionClassifier().partial_fit(texts, LABELS)
    with pytest.raises(ValueError, match=message):
        ClsAttentionClassifier(C=1.0).fit(X, LABELS).predict(texts)


@pytest.mark.parametrize("several", [np.eye(2, dtype=int)[LABELS], [(0, 1)] * 300, [{0, 1}] * 300])
def test_several_labels_per_document(several):
    with pytest.raises(ValueError, match=r"several labels.*MultiLabelBinarizer.*OneVsRest"):
        ClsAttentionClassifier().fit(X, several)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_labels(missing):
    names = np.array(["ham", "spam"], dtype=object)[LABELS]
    names[7] = missing
    for labels in (names, names.tolist(), pd.Series(names)):
        for estimator in (ClsAttentionClassifier(), TokenImportanceTransformer()):
            with pytest.raises(ValueError, match=r"1 missing labels.*position 7.*leave these out"):
                estimator.fit(X, labels)
    with pytest.raises(ValueError, match=r"classes=.*None or NaN"):
        ClsAttentionClassifier().partial_fit(X, LABELS, classes=[0, 1, missing])


@pytest.mark.parametrize("importance", ["log_odds", "signed_frequency", "posterior_difference"])
def test_the_transformer_before_the_classifier(importance):
    before = TokenImportanceTransformer(importance)
    model = make_pipeline(CountVectorizer(), before, ClsAttentionClassifier())
    assert model.fit(TEXTS[:200], LABELS[:200]).score(TEXTS[200:], LABELS[200:]) > 0.75
    assert (before.fit_transform(X, LABELS).data >= 0).all()
    assert (before.token_importance_ < 0).any()


def test_the_transformer_before_the_classifier_on_reviews():
    file = REVIEWS / "imdb_train.csv.gz"
    if not file.exists():
        pytest.skip(f"{file} is not here")
    reviews = load_reviews(file)
    chosen = np.random.default_rng(0).permutation(len(reviews.data))[:3000]
    counts = CountVectorizer(min_df=2).fit_transform(reviews.data[chosen])
    y = reviews.target[chosen]
    train, test = (counts[:2000], y[:2000]), (counts[2000:], y[2000:])
    pair = make_pipeline(TokenImportanceTransformer("log_odds"), ClsAttentionClassifier())
    assert pair.fit(*train).score(*test) > LogisticRegression(max_iter=500).fit(*train).score(*test)


def test_an_unknown_parameter_of_the_text_classifier():
    with pytest.raises(TypeError, match=r"'min_d': expected one of C, .*, lowercase, .*, min_df, "):
        make_text_classifier(min_d=3)


@pytest.mark.parametrize("context", [True, False])
@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (["a", "b", "a"], ["x", "y", None], r"1 missing labels.*position 2: leave these out"),
        (["a", "b", "a"], [0.0, 1.0, np.nan], r"1 missing labels.*position 2: leave these out"),
        (["a", "b", None], ["x", "y", "x"], r"position 2 is None: leave it out"),
        (["a", "b", np.nan], ["x", "y", "x"], r"position 2 is nan: leave it out"),
        (["a", "b"], ["x", "x"], r"one class only: 'x'\. Add documents of another class\.$"),
    ],
)
def test_the_text_classifier_names_what_is_missing(context, texts, labels, message):
    model = make_text_classifier(min_df=1, context=context)
    with pytest.raises(ValueError, match=message):
        model.fit(texts, labels)
