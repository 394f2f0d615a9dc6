"""What pyproject.toml cannot say: the README with addresses that work outside the repository."""

import re
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
SITE = re.search(r'_SITE = "(.*)"', (HERE / "sklearn_clsattn/__init__.py").read_text("utf-8"))[1]


def on_the_site(link):
    """Return a link of the README as the site has it: pages as HTML, pictures in one folder."""
    path, _, place = link[1].partition("#")
    page = Path(path)
    if page.suffix == ".png":
        return f"]({SITE}/_images/{page.name})"
    if page.suffix not in {".md", ".ipynb"}:
        raise ValueError(f"README.md links to {path}, which is no page or picture of the site")
    return f"]({SITE}/{page.with_suffix('.html').as_posix()}{'#' * bool(place)}{place})"


readme = (HERE / "README.md").read_text("utf-8")
readme = re.sub(r'="docs/images/([^"]+)"', rf'="{SITE}/_images/\1"', readme)
setup(
    long_description=re.sub(r"\]\((?!https?:|#)([^)]+)\)", on_the_site, readme),
    long_description_content_type="text/markdown",
)
