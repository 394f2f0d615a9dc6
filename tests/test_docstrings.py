"""Public docstrings say what numpydoc asks for: every parameter, what comes back, an example."""

import inspect
import re

import pandas as pd
import pytest

import sklearn_clsattn
from sklearn_clsattn import comparison, datasets, importance, inspection, metrics, theory

MODULES = (sklearn_clsattn, comparison, datasets, importance, inspection, metrics, theory)
PUBLIC = list(
    dict.fromkeys(  # some are public in two places
        getattr(module, name)
        for module in MODULES
        for name in module.__all__
        if callable(getattr(module, name))  # no numbers
    )
)
METHODS = [
    getattr(kind, name)
    for kind in (
        getattr(home, name) for home in (sklearn_clsattn, inspection) for name in home.__all__
    )
    if inspect.isclass(kind)
    for name, method in vars(kind).items()
    if inspect.isroutine(method) and not name.startswith("_")
]


def name_of(thing):
    return getattr(thing, "__qualname__", str(thing))


def section(doc, title):
    """Return the text of a numpydoc section, or ''."""
    match = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", doc, re.M | re.S)
    return match.group(1) if match else ""


def documented(doc):
    """Return the names of the parameters and attributes of a dataclass that a docstring has."""
    text = section(doc, "Parameters") + section(doc, "Attributes")
    names = re.findall(r"^(\*{0,2}[A-Za-z_][\w, *]*)(?: :|$)", text, re.M)
    return {name.strip().lstrip("*") for line in names for name in line.split(",")}


def parameters(thing):
    return [name for name in inspect.signature(thing).parameters if name != "self"]


@pytest.mark.parametrize("thing", PUBLIC + METHODS, ids=name_of)
def test_every_parameter_is_documented(thing):
    doc = inspect.getdoc(thing)
    assert doc
    assert doc.split("\n")[0].endswith("."), "the summary is a sentence of one line"
    missing = [name for name in parameters(thing) if name not in documented(doc)]
    assert not missing


@pytest.mark.parametrize("estimator", sklearn_clsattn.__all__[:2])
def test_defaults_in_the_docstring_are_those_of_the_signature(estimator):
    estimator = getattr(sklearn_clsattn, estimator)
    text = section(inspect.getdoc(estimator), "Parameters")
    for name, parameter in inspect.signature(estimator).parameters.items():
        stated = re.search(rf"^{name} :[^\n]*default=(.*)$", text, re.M)
        assert stated, name
        assert eval(stated.group(1)) == parameter.default, name


def is_plain_data_or_exception(thing):
    is_exception = inspect.isclass(thing) and issubclass(thing, Exception)
    return is_exception or hasattr(thing, "__dataclass_fields__")


@pytest.mark.parametrize(
    "thing", [thing for thing in PUBLIC if not is_plain_data_or_exception(thing)], ids=name_of
)
def test_functions_and_estimators_have_an_example(thing):
    assert ">>>" in section(inspect.getdoc(thing), "Examples")


TRAININGS = {
    "joint": {},
    "one_step": {"training": "one_step"},
    "letter": {"training": "one_step", "fit_output": False, "attend_cls": False},
    "frozen": {"training": "frozen", "embedding_dim": 8},
    "adam": {"solver": "adam", "max_iter": 2},
    "mlp": {"solver": "adam", "embedding_dim": 8, "mlp": True, "max_iter": 2},
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "trainings"),
    [
        ("ClsAttentionClassifier", TRAININGS),
        ("TokenImportanceTransformer", {"": {}}),
    ],
)
def test_fitted_attributes_are_documented(name, trainings):
    X, y = datasets.make_token_classification(60, n_classes=3, random_state=0)
    X = pd.DataFrame(X.toarray()).add_prefix("token ")  # for their names
    kind = getattr(sklearn_clsattn, name)
    fitted = {key for key, value in vars(kind).items() if isinstance(value, property)}
    for parameters in trainings.values():
        fitted |= set(vars(kind(**parameters).fit(X, y)))
    fitted = {key for key in fitted if key.endswith("_") and not key.startswith("_")}
    stated = re.findall(r"^([\w, ]+) :", section(inspect.getdoc(kind), "Attributes"), re.M)
    assert fitted == {key.strip() for line in stated for key in line.split(",")}
