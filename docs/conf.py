"""The documentation site: ``make docs``.

The source folder is the repository, so that links between pages and measurements are the same on
the site as in a checkout. The tutorial, a notebook without outputs, is executed and shown
with them. Nothing is fetched while the site is built, and its pages load nothing from elsewhere:
formulas are MathML, which browsers show without a script, and ``inventories.txt`` lists the names
of other projects that pages link to. The page within the first page is of a model that is fitted
while the site is built.
"""

from __future__ import annotations

import os
import re
import sys
import zlib
from html import escape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

import sklearn_clsattn

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # gallery_style

project = "sklearn-clsattn"
author = "The sklearn-clsattn developers"
copyright = author
version = release = sklearn_clsattn.__version__

root_doc = "docs/index"
include_patterns = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "CODE_OF_CONDUCT.md",
    "SECURITY.md",
    "benchmarks/results/*.md",
    "docs/**",
]
exclude_patterns = [
    ".*",
    "build",
    "sklearn_clsattn",
    "tests",
    "docs/examples",
    "docs/_*",
    "docs/inventories.txt",
    "docs/**.py",
    "docs/auto_examples/**.ipynb",
    "**/GALLERY_HEADER.rst",
]
templates_path = [str(HERE / "_templates")]  # autosummary looks in the source folder
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
highlight_language = "python"

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's types are the readable ones
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
# The summary is a sentence of one line; parameters are those of the signature, and described.
numpydoc_validation_checks = {
    *("GL01", "GL03", "GL06", "GL08", "SS01", "SS02", "SS03", "SS04", "SS05", "SS06"),
    *("PR01", "PR02", "PR05", "PR06", "PR07", "PR09", "PR10", "RT03", "RT04"),
}
# Results, whose fields are attributes to those who read them, and what Python makes of these.
numpydoc_validation_exclude = {
    r"\.__init__$",
    r"\.Explanation$",
}

# Read the Docs has a site for each version. All read one list of versions, that of the newest.
LATEST = sklearn_clsattn._SITE.rsplit("/", 1)[0] + "/latest"
is_latest = os.environ.get("READTHEDOCS_VERSION", "latest") == "latest"
SWITCHER = "_static/switcher.json"

# Tables of results and the gallery have the place of a page's contents.
RESULTS = HERE.parent / "benchmarks" / "results"
WIDE_PAGES = [f"benchmarks/results/{page.stem}" for page in RESULTS.glob("*.md")]
WIDE_PAGES.append("docs/auto_examples/index")

html_theme = "pydata_sphinx_theme"
html_title = project
html_favicon = "_static/favicon.svg"
html_baseurl = sklearn_clsattn._SITE + "/"
html_static_path = ["_static"]
html_css_files = ["site.css"]
LIVE = HERE.parent / "build" / "live"
LIVE.mkdir(parents=True, exist_ok=True)
html_extra_path = ["_extra", str(LIVE)]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": {"**": ["page-toc"]} | {page: [] for page in WIDE_PAGES},
    "header_links_before_dropdown": 6,
    "logo": {"image_light": "_static/logo.svg", "image_dark": "_static/logo.svg", "text": project},
    "github_url": "https://github.com/sklearn-clsattn/sklearn-clsattn",
    "switcher": {
        "json_url": f"{LATEST}/{SWITCHER}" if "READTHEDOCS" in os.environ else SWITCHER,
        "version_match": "dev" if is_latest else release,
    },
    "check_switcher": False,  # nothing is fetched while the site is built
    "navbar_persistent": ["search-button"],
    "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {
    page: [] for page in ("docs/index", "CHANGELOG", "CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT")
}

sphinx_gallery_conf = {
    "examples_dirs": str(HERE / "examples"),
    "gallery_dirs": "docs/auto_examples",
    "doc_module": ("sklearn_clsattn",),
    "reference_url": {"sklearn_clsattn": None},
    "backreferences_dir": "docs/reference/backreferences",
    "abort_on_example_error": True,
    "within_subsection_order": "FileNameSortKey",
    "min_reported_time": 10,
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
    "reset_modules": ("matplotlib", "gallery_style.larger_letters"),
    "thumbnail_size": (880, 560),
}


def inventories(path: Path) -> dict[str, tuple[str, str]]:
    """Write an inventory for every project of the list and return where they are.

    A section begins with ``[name] address``; its lines are ``role name page``.
    """
    mapping: dict[str, tuple[str, str]] = {}
    entries: dict[str, list[str]] = {}
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            name, address = re.fullmatch(r"\[(\w+)\] (\S+)", line).groups()  # type: ignore[union-attr]
            file = HERE.parent / "build" / "inventories" / f"{name}.inv"
            mapping[name], entries[name] = (address, str(file)), []
        elif line and not line.startswith("#"):
            role, of, page = line.split()
            entries[name].append(f"{of} {role} 1 {page.replace('*', of)} -\n")
    for name, (_, written) in mapping.items():
        file = Path(written)
        file.parent.mkdir(parents=True, exist_ok=True)
        head = (
            f"# Sphinx inventory version 2\n# Project: {name}\n# Version: \n"
            "# The remainder of this file is compressed using zlib.\n"
        )
        file.write_bytes(head.encode() + zlib.compress("".join(entries[name]).encode()))
    return mapping


intersphinx_mapping = inventories(HERE / "inventories.txt")


def mathml(latex: str, display: str) -> str:
    """Return an element for a formula, with its source for those who copy it."""
    latex = latex.replace(r"\arg\min", r"\operatorname{arg\,min}").replace(
        r"\arg\max", r"\operatorname{arg\,max}"
    )
    element: str = convert(latex, display=display)
    return element.replace("<math ", f'<math alttext="{escape(latex)}" ', 1)


def visit_math(self: Any, node: Any) -> None:
    """Write a formula in a line."""
    from docutils import nodes

    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: Any) -> None:
    """Write a formula on its own."""
    from docutils import nodes

    self.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


html_math_renderer = "mathml"


MESSAGE = "The sofa is lovely, but I am not happy with the colour."


def write_page(app: Any) -> None:
    """Write the page on the first page, of a model of the package's generated messages."""
    from sklearn_clsattn import TextClassifier
    from sklearn_clsattn.datasets import load_requests

    texts, moods = load_requests(target="mood", return_X_y=True)
    model = TextClassifier().fit(texts, moods)
    examples = [MESSAGE, "No problem at all, thank you!", *texts[:2]]
    about = {"Trained on": "3,000 generated messages of customers"}
    model.to_page(LIVE / "moods.html", title="Moods", examples=examples, about=about, texts=texts)


def strip_examples(app: Any, doctree: Any) -> None:
    """Take away the blank line that ends an example: doctest needs it, readers do not."""
    from docutils import nodes

    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():  # neither highlighted nor marked up yet
            block.rawsource = block.rawsource.rstrip()
            block[:] = [nodes.Text(block.rawsource)]


def setup(app: Any) -> None:
    """Tell Sphinx how formulas and examples are written."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.connect("builder-inited", write_page)
    app.connect("doctree-read", strip_examples)
