"""The command ``report``."""

import datetime
import shlex
import sys
from argparse import Namespace
from typing import Any

from sklearn_clsattn._writing import written_whole
from sklearn_clsattn.cli.arguments import PROGRAM
from sklearn_clsattn.cli.reading import split_texts
from sklearn_clsattn.cli.saying import say
from sklearn_clsattn.cli.tables import of_models, progress_shown
from sklearn_clsattn.cli.writing import check_output, shown_size
from sklearn_clsattn.inspection import ModelReport


def run_report(arguments: Namespace) -> None:
    """Fit models on texts and write a page on them."""
    inputs = [arguments.data, arguments.test]
    check_output(arguments.output, overwrite=arguments.force, inputs=inputs)
    parts, source = split_texts(arguments)
    with progress_shown(quiet=arguments.quiet) as tell:
        report = ModelReport.from_texts(
            *parts,
            ngram_range=(1, arguments.ngrams),
            min_df=arguments.min_df,
            n_top=arguments.top,
            n_mistakes=arguments.mistakes,
            n_disagreements=(arguments.mistakes + 1) // 2,
            title="Model report" + ("" if arguments.data is None else f": {arguments.data.name}"),
            source=source,
            made={"Command": _command(arguments), "Made on": datetime.date.today().isoformat()},
            progress=of_models(tell),
        )
    page = report.to_html()
    with written_whole(arguments.output, text=True) as file:
        file.write(page)
    if not arguments.quiet:
        measured = ", ".join(f"{one.name} {one.accuracy:.3f}" for one in report.models)
        say(
            f"accuracy on {report.data.n_test:,} test texts: {measured}\n"
            f"{arguments.output}: {shown_size(len(page.encode()))}",
            sys.stderr,
        )


def _command(arguments: Namespace) -> str:
    """Return the command line that makes the same page."""
    words = [PROGRAM, "report"]
    if arguments.data is not None:
        words.append(str(arguments.data))
    if arguments.test is not None:
        words += ["--test", str(arguments.test)]
    usual: dict[str, Any] = {"text": None, "label": None, "sep": None, "encoding": "utf-8"}
    usual |= {"ngrams": 2, "min_df": "auto", "top": 10, "mistakes": 10}
    for name, value in usual.items():
        if getattr(arguments, name) != value:
            words += [f"--{name.replace('_', '-')}", str(getattr(arguments, name))]
    return shlex.join([*words, "-o", str(arguments.output)])
