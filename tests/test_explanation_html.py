"""The HTML shows every text and runs none, adds up, and is legible in light, dark and print."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from helpers import generated_texts
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pages import Page, in_notebook, page_of
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import sklearn_clsattn
from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn.inspection import explain

TEXTS = ["a terrific film", "a boring film", "terrific fun, not dull", "long, not fun and boring"]
LABELS = ["good", "bad", "good", "bad"]
MODEL = make_pipeline(
    CountVectorizer(ngram_range=(1, 2), token_pattern=r"\w+"), ClsAttentionClassifier()
).fit(TEXTS, LABELS)
HTML = explain(MODEL, TEXTS[:1]).to_html()


# What comes from outside

HOSTILE = "</b>\"'><script onclick='x'>&amp;\x00\x1b[31m"


@settings(max_examples=14)
@given(st.text(max_size=60), st.text(max_size=20), st.text(max_size=20))
@example(HOSTILE, HOSTILE, HOSTILE)
def test_any_text_name_and_label_is_shown_and_not_run(text, token, label):
    model = make_pipeline(CountVectorizer(token_pattern=r"\S+"), ClsAttentionClassifier(C=1.0))
    model.fit([f"{token} so good", "so bad"], [f"0{label}", f"1{label}"])
    explanation = explain(model, [f"{token} {text} good"])
    Page(explanation.to_html())
    explanation.to_text(color=True).encode()
    named = explain(model[-1], model[0].transform(["so bad"]))
    Page(named.to_html(fragment=True))


def test_no_character_acts_on_what_is_around_it():
    hostile = "<b>'\"&amp;\x00\x1b[31m\r\n\t\u202e\u2028\ud800</b></title>"
    page = Page(explain(MODEL, [hostile]).to_html())
    assert "<b>'\"&amp;\ufffd\ufffd[31m\n\t\ufffd\ufffd\ufffd</b></title>" in page.text
    characters = make_pipeline(CountVectorizer(analyzer="char"), ClsAttentionClassifier())
    explanation = explain(characters.fit(TEXTS, LABELS), TEXTS[:1])
    assert "␣" in explanation.to_text()
    assert "␣" in explanation.to_html()


def test_templates_never_turn_escaping_off():
    names = sorted(Path(sklearn_clsattn.__file__).parent.glob("inspection/templates/**/*.*"))
    assert names
    for name in names:
        source = name.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe|autoescape|@import|url\(|expression|<script", source)
        # A value without quotes could begin another attribute.
        assert not re.search(r"\w={{", source)


# Pages


def test_pages_are_whole_and_fragments_are_parts():
    explanation = explain(MODEL, TEXTS)
    page, fragment = page_of(explanation), Page(explanation.to_html(fragment=True))
    assert page.text.count("Explanation of 4 documents") == 2  # the title and the heading
    assert "Explanation of" not in fragment.text
    assert fragment.tags.count("section") == len(TEXTS)


def test_notebooks_show_some_and_say_how_many_more():
    explanation = explain(MODEL, TEXTS * 5)
    page = Page(in_notebook(explanation))
    assert page.tags.count("section") == 10
    assert "and 10 more documents" in page.text
    assert str(explanation).endswith("and 10 more: to_text() has all of them.")
    assert "No documents" in Page(in_notebook(explanation[:0])).text


def test_many_documents_stay_small():
    rng = np.random.default_rng(0)
    words = np.array(" ".join(TEXTS).split())
    long = [" ".join(rng.choice(words, 120)) for _ in range(25)]
    page = explain(MODEL, long)[np.arange(300) % 25].to_html()
    assert page.count("<section") == page.count("<details>") == 300
    assert len(page.encode()) < 6e5


def test_passages_of_a_long_text_have_the_strongest_words_and_their_place():
    words = np.random.default_rng(0).choice(["of", "in", "on", "at", "to"], 8_000).astype(object)
    words[[2000, 6000]] = ["boring", "long"]
    explanation = explain(MODEL, [" ".join(words)])
    page = explanation.to_html()
    assert "prediction becomes" not in page  # the search would take long
    on_page = re.findall(r'class="place">(\d+)%</span>(.*?)</div>', page, re.DOTALL)
    in_terminal = re.findall(r"^ *(\d+)%  (.*)", explanation.to_text(color=False), re.MULTILINE)
    for passages in (on_page, in_terminal):
        for place, word in (("25", "boring"), ("75", "long")):
            assert any(at == place and word in passage for at, passage in passages)


# Numbers


@cache
def of_classes(n_classes):
    texts, y = generated_texts(60, n_classes=n_classes, document_length=15, random_state=0)
    return make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(texts, y), texts, y


def number(shown):
    return float(shown.replace("\N{MINUS SIGN}", "-").replace("about 0", "0"))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("top", [0, 1, 30])
def test_what_is_shown_are_the_numbers_of_the_frame(n_classes, top):
    model, texts, y = of_classes(n_classes)
    explanation = explain(model, texts[:5], y_true=(y[:5] + np.arange(5)) % n_classes)
    for one, target in zip(explanation, (None, None, None, 1, 1), strict=True):
        frame = one.to_frame(target=target)
        terms = frame.query("kind == 'token'").set_index("token")["contribution"]
        intercept = frame["contribution"].sum() - terms.sum()
        expected = [frame["contribution"].sum(), intercept, terms[terms > 0].sum()]
        expected.append(terms[terms < 0].sum())
        end = "decision"
        if n_classes > 2:
            end = f"lead over class {frame['against'].iloc[0]}"
        page = Page(one.to_html(top=top, target=target))
        text = one.to_text(color=False, width=200, top=top, target=target)
        said = " ".join(text.split())
        assert end in page.words()
        pattern = rf"{end} (\S+) = (\S+) intercept, (\S+) for .*?, (\S+) for"
        assert [*map(number, re.search(pattern, said).groups())] == pytest.approx(
            expected, abs=0.01
        )
        listed = {row[0]: number(row[1]) for row in page.rows if row[0] != "token"}
        assert listed == pytest.approx(terms[list(listed)].to_dict(), abs=0.01)
        others = re.findall(r"other tokens? favours? .*? \((.*?)(?: in total)?\)", page.words())
        added = sum(listed.values()) + sum(map(number, others))
        assert intercept + added == pytest.approx(expected[0], abs=0.05)
        assert f'"{abs(terms).idxmax()}"' in said.partition("favour")[0]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_all_words_to_delete_are_named(n_classes):
    texts, y = generated_texts(
        90, n_classes=n_classes, document_length=35, flip_y=0.1, random_state=0
    )
    model = TextClassifier(C=1.0).fit(texts, y)
    explanation = explain(model, texts[1:4])
    for one, found in zip(explanation, explanation.counterfactual(), strict=True):
        html = Page(one.to_html()).words().partition("Details")[0]
        text = " ".join(one.to_text(color=False, width=200).split()).partition("Details")[0]
        for said in (html, text):
            assert all(f'"{word}"' in said for word in found.words[:12])
            assert (f"and {len(found.words) - 12} more." in said) == (len(found.words) > 12)


def test_what_to_delete_is_not_searched_for_many_documents():
    explanation = explain(MODEL, TEXTS * 6)
    for one, is_searched in ((explanation, False), (explanation[:20], True)):
        assert ("the prediction becomes" in one.to_html()) == is_searched
        assert ("the prediction becomes" in one.to_text()) == is_searched


# Colours


def test_colours_are_of_classes_on_all_pages():
    """Orange is for the first of two classes in an explanation, and for what keeps it predicted."""
    explanation = explain(MODEL, TEXTS[:2])
    assert explanation.predicted.tolist() == ["good", "bad"]
    for sets in (explanation.counterfactual(), explanation.sufficient()):
        html = sets.to_html()
        assert html.index('class="doc blue"') < html.index('class="doc orange"')


def test_signs_are_told_without_colour():
    for at in range(1, 6):
        assert re.search(rf"\.n{at}[,{{][^}}]*underline[^}}]*dotted", HTML)
        assert not re.search(rf"\.p{at}[,{{][^}}]*underline", HTML)


def luminance(color):
    parts = np.asarray(color) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("at", [0, 1], ids=["light", "dark"])
def test_text_has_contrast_on_every_shade(at):
    declared = re.findall(r"{(--paper[^}]*)}", HTML)[at]
    variables = re.findall(r"--([\w-]+):([\d.,]+)", declared)
    palette = {name: np.array(value.split(","), dtype=float) for name, value in variables}
    paper, ink = palette["paper"], palette["ink"]
    shades = [palette[f"s{level}"][0] for level in range(1, 6)]
    assert shades == sorted(set(shades))
    assert contrast(ink, paper) >= 7
    assert min(contrast(palette["muted"], palette[below]) for below in ("paper", "card")) >= 4.5
    for side in ("for", "against", "muted"):
        assert contrast(palette[side], paper) >= 3
        mixed = [alpha * palette[side] + (1 - alpha) * paper for alpha in shades]
        assert min(contrast(ink, below) for below in mixed) >= 4.5
    # Seen by those who lack one kind of cone, both colours still differ in blue.
    assert abs(palette["for"][2] - palette["against"][2]) > 120
