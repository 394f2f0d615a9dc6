"""No template can forget to escape a value or to take its control characters."""

import os
import re
import shutil
import subprocess
import sys
import unicodedata
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from sklearn_clsattn.inspection import pages
from sklearn_clsattn.inspection.formatting import visible

TEMPLATES = Path(pages.__file__).parent / "templates"
HOSTILE = "<b>'\"&amp;\x00\x1b[31m\r\n\t\u202e\u2028\ud800\uffff</b></title>"
SHOWN = "<b>'\"&amp;␀␛[31m\n\t[U+202E]\n\ufffd\ufffd</b></title>"
EXPLAINS = """
import sys
import sklearn_clsattn
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn_clsattn.inspection import explain
print(sklearn_clsattn.__file__, flush=True)
model = make_pipeline(CountVectorizer(), sklearn_clsattn.ClsAttentionClassifier())
page = explain(model.fit(["fine fun", "dull"], ["good", "bad"]), ["fine"]).to_html()
sys.stdout.buffer.write(page.encode())
"""


def filled(source, **context):
    return pages._environment().from_string(source).render(context)


class Reader(HTMLParser):
    """Gathers the tags, attributes and text of HTML."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize(
    "slot",
    [
        "{{ x }}",
        "{{ x|string }}",
        "{{ x ~ '' }}",
        "{{ [x]|join }}",
        "{{ x|e }}",  # which is markup before it is finalized
        "{{ x|e|trim|e }}",
        "{{ '%s'|format(x) }}",
        "{% macro one(y) %}{{ y }}{% endmacro %}{{ one(x) }}",
        "{% macro one() %}{{ caller() }}{% endmacro %}{% call one() %}{{ x }}{% endcall %}",
        "{% set y %}{{ x }}{% endset %}{{ y }}",
        "{% for y in [x] %}{{ y }}{% endfor %}",
        "{{ x if true else '' }}",
    ],
)
def test_hostile_text_is_shown_in_elements_and_attributes(slot):
    for source in ("<i>{}</i>", '<i title="{}"></i>', "<i title='{}'></i>"):
        html = filled(source.replace("{}", slot), x=HOSTILE)
        html.encode()
        page = Reader(html)
        assert page.tags == ["i"]
        assert [page.text, *(value for _, value in page.attributes)].count(SHOWN) == 1


def test_values_that_are_no_text_are_treated_alike():
    class Label:
        def __str__(self):
            return HOSTILE

    assert Reader(filled("{{ x }}", x=Label())).text == SHOWN
    assert filled("{{ x }}", x=0.5) == "0.5"


def test_markup_passes_once():
    assert filled("{{ x }}", x=Markup("<b>&amp;</b>")) == "<b>&amp;</b>"
    assert filled("{{ x }}", x=Markup("<b>\x1b</b>")) == "<b>␛</b>"


def test_what_is_missing_is_an_error():
    for source in ("{{ x }}", "{% if x %}{% endif %}", "{{ one.nothing }}"):
        with pytest.raises(UndefinedError):
            filled(source, one=1)


def test_templates_never_turn_escaping_off():
    names = sorted(TEMPLATES.rglob("*.*"))
    assert names
    for name in names:
        source = name.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe|autoescape|@import|url\(|expression", source)
        if name.suffix == ".js":  # a file of ours, which no value is put into
            assert not re.search(
                r"innerHTML|insertAdjacent|document\.write|eval\(|fetch\(|</script|<!--", source
            )
            continue
        scripts = re.findall(r"<script.*", source)
        assert scripts == {
            "page.html": ["<script>{{ script.code }}</script>"],
            "explanation.html": [
                '<script type="application/json" id="clsattn-data">{{ data }}</script>'
            ],
        }.get(name.name, [])
        # A value without quotes could begin another attribute.
        assert not re.search(r"\w={{", source)
        pages._environment().get_template(name.relative_to(TEMPLATES).as_posix())


def test_every_character_is_made_visible():
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        text = visible(character, keep_lines=True)
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp"):
            noncharacter = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
            turns = 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069
            assert text == ("\ufffd" if noncharacter else f"[U+{code:04X}]" if turns else character)
        else:
            assert len(text) == 1
            assert unicodedata.category(text) == "So" or text in "\n"
        assert visible(text, keep_lines=True) == text
        assert "\n" not in visible(character)


def test_an_installed_wheel_has_its_templates(tmp_path):
    source = tmp_path / "source"
    root = Path(__file__).parents[1]
    shutil.copytree(root / "sklearn_clsattn", source / "sklearn_clsattn")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(root / name, source)
    build = ["-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    run(*build, "--wheel-dir", tmp_path, source, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    (metadata,) = (tmp_path / "installed").glob("*.dist-info/METADATA")
    links = re.findall(r"\]\(([^)]+)\)", metadata.read_text("utf-8"))  # of the README
    assert links
    assert all(link.startswith("https://") for link in links)
    assert all(link.endswith((".html", ".png")) for link in links)
    installed = {
        path.relative_to(tmp_path / "installed/sklearn_clsattn/inspection/templates")
        for path in (tmp_path / "installed").rglob("templates/**/*.*")
    }
    assert installed == {path.relative_to(TEMPLATES) for path in TEMPLATES.rglob("*.*")}
    page = run("-c", EXPLAINS, cwd=tmp_path, env={**os.environ, "PYTHONPATH": "installed"})
    assert "installed" in page.splitlines()[0]
    assert "<b><bdi>good</bdi></b> with probability" in page


def run(*arguments, **options):
    """Return what Python writes, run in another process."""
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, check=True, encoding="utf-8", **options
    ).stdout
