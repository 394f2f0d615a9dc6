"""A real browser shows explanations on a phone without anything beside the screen."""

import html
import re
import shutil
import subprocess

import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.text import make_text_classifier

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# The pages have no scripts; the page around them measures what stands beside the screen.
MEASURE = """<script>
addEventListener("load", () => {
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument.documentElement;
    const shown = frame.contentDocument.querySelectorAll("section").length;
    const beside = page.scrollWidth - page.clientWidth;
    document.body.append(`[${frame.width}: ${shown} documents, ${beside} beside]`);
  }
});
</script>"""


def pages():
    texts = ["a terrific film", "a boring film", "terrific fun, not dull", "not fun and boring"]
    labels = ["good", "bad", "good", "bad"]
    model = make_pipeline(CountVectorizer(ngram_range=(1, 2)), ClsAttentionClassifier())
    model.fit(texts, labels)
    hostile = ["terrific " + "a" * 500 + " boring", "<b>terrific</b> \u202eboring " * 20, "", "fun"]
    yield explain(model, [*texts, *hostile], y_true=[*labels, "<i>" + "x" * 80, *labels[:3]])
    yield explain(model[-1], model[0].transform(texts), token_names=None)
    long_names = CountVectorizer(token_pattern=r"\S+").fit(["w" * 90, "v" * 90])
    named = make_pipeline(long_names, ClsAttentionClassifier()).fit(["w" * 90, "v" * 90], [0, 1])
    yield explain(named, ["w" * 90])
    long_labels = make_pipeline(CountVectorizer(), ClsAttentionClassifier())
    texts, y = make_token_classification(60, n_classes=8, as_text=True, random_state=0)
    long_labels.fit(texts, [f"{label}{'_name' * 12}" for label in y])
    yield explain(long_labels, texts[:2])
    characters = make_text_classifier().fit(texts, y)
    for change in ("tokens", "words", "add"):
        yield explain(characters, [texts[0], *hostile]).counterfactual(change, time_limit=1)
    yield explain(characters, texts[:3]).sufficient(smallest=False)
    yield explain(characters, [texts[0].replace(" ", "_") + " " + texts[1], *texts[2:4]])
    columns = make_column_transformer(*((CountVectorizer(), [0, 1][at]) for at in range(2)))
    table = [[text, text] for text in texts[:20]]
    yield explain(make_pipeline(columns, ClsAttentionClassifier()).fit(table, y[:20]), table[:2])


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_pages_are_no_wider_than_a_phone(tmp_path):
    explanations = list(pages())
    frames = [
        f'<iframe width="{width}" height="800" srcdoc="{html.escape(page)}"></iframe>'
        for page in [explanation.to_html() for explanation in explanations]
        for width in (320, 390)
    ]
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><body>{''.join(frames)}{MEASURE}", encoding="utf-8")
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    ran = subprocess.run(
        [CHROMIUM, *FLAGS, profile, "--dump-dom", page.as_uri()],
        capture_output=True,
        timeout=60,
        check=True,
    )
    measured = re.findall(r"\[(\d+): (\d+) documents, (\d+) beside\]", ran.stdout.decode())
    assert [tuple(map(int, one)) for one in measured] == [
        (width, len(explanation), 0) for explanation in explanations for width in (320, 390)
    ]
