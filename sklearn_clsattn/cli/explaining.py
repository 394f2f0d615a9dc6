"""The command ``explain``."""

import sys
import warnings
from argparse import Namespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_clsattn._writing import written_whole
from sklearn_clsattn.cli.reading import load_model, read_reviews
from sklearn_clsattn.cli.saying import say
from sklearn_clsattn.cli.writing import check_output, shown_size
from sklearn_clsattn.inspection import Explanation, MinimalSets, explain


def run_explain(arguments: Namespace) -> None:
    """Explain a saved model's predictions for texts, in the terminal or as a page."""
    if arguments.data is None and arguments.say is None:
        raise ValueError("pass texts to explain: either a file DATA, or --say TEXT")
    if arguments.data is not None and arguments.say is not None:
        raise ValueError("pass either a file DATA or --say TEXT to explain, not both")
    if arguments.data is None:
        for name in ("text", "label", "sep"):
            if getattr(arguments, name) is not None:
                raise ValueError(f"--{name} needs a file of texts: explain MODEL DATA --{name} ...")
    output = None if str(arguments.output) == "-" else arguments.output
    if output is not None:
        inputs = [arguments.model, arguments.data]
        check_output(output, overwrite=arguments.force, inputs=inputs)
    model = load_model(arguments.model)
    classes = {str(label): label for label in model.classes_.tolist()}
    for name in ("target", "against"):
        label = getattr(arguments, name)
        if label is not None and label not in classes:
            raise ValueError(
                f"--{name} must be one of the model's classes, {', '.join(classes)}; got {label!r}"
            )
    target = classes.get(arguments.target)
    texts, labels, n_all = _texts(arguments)
    if labels is not None:
        # Classes that are names for the model may be numbers in the file.
        unknown = sorted({str(label) for label in labels.tolist()} - set(classes))
        if unknown:
            warnings.warn(
                f"column {arguments.label!r} has labels that the model does not know, such as "
                f"{unknown[0]!r}; its classes are {', '.join(classes)}",
                stacklevel=2,
            )
        labels = np.array(
            [classes.get(str(label), label) for label in labels.tolist()], dtype=object
        )
    change = arguments.counterfactual
    if change is not None and (arguments.against is not None or arguments.every_class):
        raise ValueError("--counterfactual goes to --target: leave out --against, --every-class")
    shown: dict[str, Any] = {"top": arguments.top}
    try:
        answer: Explanation | MinimalSets
        if change is not None:
            answer = explain(model, texts, removal=False).counterfactual(change, to=target)
        else:
            of_one = target if len(classes) == 2 else None  # of more, two are compared
            answer = explain(model, texts, target=of_one, y_true=labels)
            shown["target"], shown["every_class"] = target, arguments.every_class
            shown["against"] = classes.get(arguments.against)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"the model in {arguments.model} cannot be explained ({type(error).__name__}: {error})"
        ) from error
    if output is None:
        say(answer.to_text(**shown), styled=True)
    else:
        text = answer.to_html(**shown)
        with written_whole(output, text=True) as file:
            file.write(text)
        say(f"{output}: {shown_size(len(text.encode()))}", sys.stderr)
    if n_all > len(texts):
        say(f"The first {len(texts):,} of {n_all:,} texts; --limit N explains more.", sys.stderr)


def _texts(arguments: Namespace) -> tuple[NDArray[Any], NDArray[Any] | None, int]:
    """Return the texts to explain, their true classes or None, and the number of all texts."""
    if arguments.data is None:
        texts = np.array(arguments.say, dtype=object)
        return texts, None, len(texts)
    label = False if arguments.label is None else arguments.label
    reviews = read_reviews(arguments.data, arguments, label=label)
    first = slice(arguments.limit)
    labels = None if reviews.target is None else reviews.target[first]
    return reviews.data[first], labels, len(reviews.data)
