"""The HTML shows every text and runs none, adds up, and is legible in light, dark and print."""

import re
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from pages import Page, in_notebook, page_of
from rich.style import Style
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import explain, pages
from sklearn_clsattn.inspection.formatting import aligned, count_column, level, token_text, visible
from sklearn_clsattn.inspection.pages import render
from sklearn_clsattn.inspection.terminal import AGAINST, BLUE, FOR, ORANGE
from sklearn_clsattn.inspection.token_positions import Segment, strongest_passages
from sklearn_clsattn.inspection.view import N_SHADES, _others, views
from sklearn_clsattn.text import make_text_classifier

TEXTS = ["a terrific film", "a boring film", "terrific fun, not dull", "long, not fun and boring"]
LABELS = ["good", "bad", "good", "bad"]
MODEL = make_pipeline(
    CountVectorizer(ngram_range=(1, 2), token_pattern=r"\w+"), ClsAttentionClassifier()
).fit(TEXTS, LABELS)
STYLE = render("explanation.css")


@settings(max_examples=80)
@given(st.text(max_size=60), st.text(max_size=20), st.text(max_size=20))
def test_any_text_name_and_label_is_shown_and_not_run(text, token, label):
    model = make_pipeline(CountVectorizer(token_pattern=r"\S+"), ClsAttentionClassifier(max_iter=1))
    model.set_params(clsattentionclassifier__tol=1e9)
    model.fit([f"{token} so good", "so bad"], [f"0{label}", f"1{label}"])
    explanation = explain(model, [f"{token} {text} good"])
    Page(explanation.to_html())
    explanation.to_text(color=True).encode()
    named = explain(model[-1], model[0].transform(["so bad"]))
    Page(named.to_html(fragment=True))


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
    assert "No documents" in Page(in_notebook(explanation[:0])).text


def test_signs_are_told_without_colour():
    for at in range(1, N_SHADES + 1):
        assert f".p{at}{{background:rgba(var(--for),var(--s{at}))}}" in STYLE
        assert f".n{at}{{background:rgba(var(--against),var(--s{at}))}}" in STYLE
        assert re.search(rf"\.n{at}[,{{][^}}]*underline[^}}]*dotted", STYLE)
        assert not re.search(rf"\.p{at}[,{{][^}}]*underline", STYLE)


@pytest.mark.parametrize("listed", [0, 1, 8])
def test_sides_add_up_to_the_decision(listed):
    explanation = explain(MODEL, ["terrific fun, not boring film", "", "long fun"])
    for one in explanation:
        seen = views(one, None, listed)[0]
        assert_allclose(seen.start + seen.plus.total + seen.minus.total, seen.end, atol=1e-12)
        of_tokens = [token.contribution for token in seen.listed]
        more = [side.more_total for side in seen.sides]
        assert_allclose(seen.start + sum(of_tokens) + sum(more), seen.end, atol=1e-12)
        for side in seen.sides:
            assert len(side.tokens) <= listed
            assert side.sign * side.total >= 0
            assert side.sign * side.more_total >= -1e-12


def test_two_of_several_classes_are_compared():
    texts, y = make_token_classification(60, n_classes=4, as_text=True, random_state=0)
    model = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(texts, y)
    explanation = explain(model, texts[:1])
    page = Page(explanation.to_html(fragment=True))
    assert page.tags.count("li") == 4
    (predicted,) = explanation.predicted.tolist()
    second = int(explanation.decision[0].argsort()[-2])
    sentence = rf"favours? class {predicted} over class {second}[.;]"
    assert re.search(sentence, page.words())
    assert re.search(sentence, explanation.to_text(width=200))
    assert f"lead over class {second} =" in page.text
    other = next(label for label in range(4) if label != predicted)
    seen = Page(explanation.to_html(target=other))
    assert f"For class {predicted} token" in seen.words()
    assert f"For class {other} token" in seen.words()
    alone = Page(explain(model, texts[:1], target=other).to_html())
    assert f"shown for {other}" in alone.text


def test_numbers_and_names_as_text():
    assert aligned([1.234, -0.05]) == ["+1.23", "-0.05"]
    assert aligned([0.0123, -0.00051], "\N{MINUS SIGN}") == ["+0.012", "\N{MINUS SIGN}0.001"]
    assert aligned([12345.6, -1.0]) == ["+12346", "-1"]
    assert aligned([]) == []
    assert aligned([0.0, None, 0.5]) == ["+0.00", "–", "+0.50"]
    assert aligned([1e9, -1e-9]) == ["+1e+09", "-1e-09"]
    assert [level(size, 1.0, 5) for size in (0, 0.09, 0.11, 0.5, 1.0)] == [0, 0, 1, 3, 5]
    assert level(1.0, 0.0, 5) == 0
    names = (" ing ", "a film", "  ", "a\n", "")
    assert list(map(token_text, names)) == ["␣ing␣", "a film", "␣␣", "a␣", ""]


def luminance(color):
    parts = np.asarray(color) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def palettes():
    """Return the colours, and the opacities of shades, of light and of dark pages."""
    for declared in re.findall(r"{(--[^}]*)}", render("palette.css")):
        variables = re.findall(r"--([\w-]+):([\d.,]+)", declared)
        values = {name: np.array(value.split(","), dtype=float) for name, value in variables}
        yield values, [values.pop(f"s{at}")[0] for at in range(1, N_SHADES + 1)]


@pytest.mark.parametrize(("palette", "shades"), list(palettes()), ids=["light", "dark"])
def test_text_has_contrast_on_every_shade(palette, shades):
    paper, ink = palette["paper"], palette["ink"]
    assert shades == sorted(set(shades))
    assert contrast(ink, paper) >= 7
    for below in (paper, palette["card"]):
        assert contrast(palette["muted"], below) >= 4.5
    for side in ("for", "against", "muted"):
        assert contrast(palette[side], paper) >= 3
        mixed = [alpha * palette[side] + (1 - alpha) * paper for alpha in shades]
        assert min(contrast(ink, below) for below in mixed) >= 4.5
        # Where a token's name stands on a bar, so may the name of its vectorizer.
        assert contrast(palette["muted"], mixed[1]) >= 4.5
    # Seen by those who lack one kind of cone, both colours still differ in blue.
    assert abs(palette["for"][2] - palette["against"][2]) > 120
    assert contrast(0.38 * ink + 0.62 * paper, paper) >= 2


def test_colours_of_terminals_have_contrast():
    black, white = (0, 0, 0), (255, 255, 255)
    assert FOR[1] == BLUE
    assert AGAINST[1].split()[-1] == ORANGE
    for color in (BLUE, ORANGE):
        ink = Style.parse(color).color.get_truecolor()
        assert min(contrast(ink, black), contrast(ink, white)) >= 4.5
    for written in FOR[2:] + AGAINST[2:]:
        style = Style.parse(written)
        assert contrast(style.color.get_truecolor(), style.bgcolor.get_truecolor()) >= 4.5
    assert all(Style.parse(written).underline for written in AGAINST[1:])
    assert not any(Style.parse(written).underline for written in FOR[1:])


# Templates escape every value, and take its control characters.

TEMPLATES = Path(pages.__file__).parent / "templates"
HOSTILE_VALUE = "<b>'\"&amp;\x00\x1b[31m\r\n\t\u202e\u2028\ud800\uffff</b></title>"
SHOWN = "<b>'\"&amp;␀␛[31m\n\t[U+202E]\n\ufffd\ufffd</b></title>"


def filled(source, **context):
    return pages._environment().from_string(source).render(context)


def test_hostile_text_is_shown_in_elements_and_attributes():
    for slot in [
        "{{ x }}",
        "{{ x ~ '' }}",
        "{{ x|e }}",  # which is markup before it is finalized
        "{% macro one(y) %}{{ y }}{% endmacro %}{{ one(x) }}",
        "{% macro one() %}{{ caller() }}{% endmacro %}{% call one() %}{{ x }}{% endcall %}",
        "{% set y %}{{ x }}{% endset %}{{ y }}",
        "{% for y in [x] %}{{ y }}{% endfor %}",
    ]:
        for source in ("<i>{}</i>", '<i title="{}"></i>', "<i title='{}'></i>"):
            html = filled(source.replace("{}", slot), x=HOSTILE_VALUE)
            page = Page(html)
            assert page.tags == ["i"]
            assert [page.text, *(value for *_, value in page.attributes)].count(SHOWN) == 1


def test_templates_never_turn_escaping_off():
    names = sorted(TEMPLATES.rglob("*.*"))
    assert names
    for name in names:
        source = name.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe|autoescape|@import|url\(|expression", source)
        assert "<script" not in source
        # A value without quotes could begin another attribute.
        assert not re.search(r"\w={{", source)
        pages._environment().get_template(name.relative_to(TEMPLATES).as_posix())


def test_every_character_is_made_visible():
    given, expected = [], []
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp"):
            noncharacter = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
            turns = 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069
            given.append(character)
            text = "\ufffd" if noncharacter else f"[U+{code:04X}]" if turns else character
            expected.append(text)
        else:
            text = visible(character, keep_lines=True)
            assert len(text) == 1
            assert unicodedata.category(text) == "So" or text in "\n"
            assert visible(text, keep_lines=True) == text
            assert visible(character) != "\n"
    shown = visible("".join(given), keep_lines=True)
    assert shown == "".join(expected)
    assert visible(shown, keep_lines=True) == shown
    assert "\n" not in visible(shown)


def test_a_thousand_documents_stay_small():
    rng = np.random.default_rng(0)
    words = np.array(" ".join(TEXTS).split())
    long = [" ".join(rng.choice(words, 120)) for _ in range(25)]
    explanation = explain(MODEL, long)[np.arange(1000) % 25]
    page = explanation.to_html()
    assert page.count("<section") == 1000
    assert len(page.encode()) < 2e6
    assert page.count("<details>") == 1000
    assert "Predicted: " in page


def test_passages_have_the_strongest_words_whole_words_and_their_place():
    words = [f"word{at}" for at in range(400)]
    segments = []
    for at, word in enumerate(words):
        segments += [
            Segment(word, (0,), float(at == 250) + 0.5 * (at == 20)),
            Segment(" "),
        ]
    whole = "".join(segment.text for segment in segments)
    passages = strongest_passages(segments, 150)
    texts = ["".join(segment.text for segment in passage.segments) for passage in passages]
    assert [word in text for word in ("word20 ", "word250 ") for text in texts].count(True) == 2
    assert 100 < sum(map(len, texts)) < 400
    for passage, text in zip(passages, texts, strict=True):
        assert set(text.split()) <= set(words)
        assert whole.startswith(text, round(passage.place * len(whole)))
    (first,) = strongest_passages(segments[:3], 1000)
    assert [segment.text for segment in first.segments] == ["word0", " ", "word1"]
    assert strongest_passages([], 10) == []


# What comes first: a sentence, the shaded text, and what to delete


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def reviewed(request):
    """Return a text classifier, texts and labels of named classes."""
    names = np.array(["bad", "fair", "good"])[-request.param :]
    texts, y = make_token_classification(
        90, n_classes=request.param, as_text=True, flip_y=0.1, random_state=0
    )
    return make_text_classifier(C=1.0).fit(texts, names[y]), texts, names[y]


def test_the_simple_comes_first(reviewed):
    model, texts, labels = reviewed
    for one in explain(model, texts[:6], y_true=labels[:6]):
        sets = one.counterfactual("words")
        page = Page(one.to_html())
        said = page.words()
        simple, _, details = said.partition("Details")
        terminal = " ".join(one.to_text(color=False, width=200).split())
        plain, _, tables = terminal.partition("Details")
        sentence = f"predicted {one.predicted[0]} with probability"
        for first in (simple, plain):
            # Marks around words, of a terminal without colours, are no part of the text.
            places = [
                re.sub(r"\[[+-](.*?)\]", r"\1", first).find(part)
                for part in (
                    sentence,
                    f"{one.predicted[0]} over " if len(one.targets) > 1 else "favour",
                    " ".join(one.texts[0][0].text.split()),
                    re.split(" and the prediction |, ", sets.statement(0))[0],
                )
            ]
            assert places == sorted(places)
            assert places[0] >= 0
            assert "intercept" not in first
        assert "intercept" in details
        assert "intercept" in tables
        assert page.tags.index("details") < page.tags.index("table")


def test_the_sentence_names_the_strongest_tokens_of_each_side(reviewed):
    model, texts, _ = reviewed
    for shown in views(explain(model, texts[:10]), None, 8):
        assert [reason.sign for reason in shown.reasons] == list(
            dict.fromkeys(reason.sign for reason in shown.reasons)
        )
        for reason in shown.reasons:
            sizes = [reason.sign * token.contribution for token in reason.tokens]
            assert 1 <= len(sizes) <= 3
            assert sizes == sorted(sizes, reverse=True)
            assert sizes[-1] >= 0.1 * shown.largest
            every = [reason.sign * token.contribution for token in shown.tokens]
            assert sizes[0] == max(every)
            words = [word for token in reason.tokens for word in set(token.term.split())]
            assert len(set(words)) == len(words)
            assert reason.verb == ("favours" if len(sizes) == 1 else "favour")
        assert shown.reasons[0].label.startswith(shown.predicted)


def test_all_words_to_delete_are_named(reviewed):
    model, texts, _ = reviewed
    joined = [" ".join(texts[:30]), *texts[:5]]
    explanation = explain(model, joined)
    sets = explanation.counterfactual("words")
    for one, found in zip(explanation, sets, strict=True):
        html = Page(one.to_html()).words().partition("Details")[0]
        text = " ".join(one.to_text(color=False, width=200).split()).partition("Details")[0]
        for said in (html, text):
            assert all(f'"{word}"' in said for word in found.tokens[:12])
            assert (f"and {len(found.tokens) - 12} more." in said) == (len(found.tokens) > 12)
            if 3 < len(found.tokens) <= 12:
                listed = '", "'.join(found.tokens[:-1])
                n = len(found.tokens)
                assert f'Remove these {n} words: "{listed}" and "{found.tokens[-1]}". The' in said


def test_counts_to_set_to_0_stand_where_there_is_no_text():
    X = MODEL[0].transform(TEXTS[:1])
    explanation = explain(MODEL[-1], X)
    sets = explanation.counterfactual()
    removal, result = sets.statement(0).split(" and the prediction ")
    first, second, third = sets[0].tokens
    statement = f'{removal}: "{first}", "{second}" and "{third}". The prediction {result}'
    assert statement in Page(explanation.to_html()).words()
    assert statement in " ".join(explanation.to_text(width=200).split())


def test_tokens_that_add_next_to_nothing_are_said_to():
    X = MODEL[0].transform(TEXTS[:1])
    (shown,) = views(explain(MODEL[-1], X), None, 8)
    largest = max(abs(token.contribution) for token in shown.tokens)
    few = shown.plus._replace(more=1, more_total=1e-5 * largest)
    many = shown.plus._replace(more=3, more_total=0.5 * largest)
    assert _others(few, largest, "-") == "1 other token favours good (about 0)"
    assert "3 other tokens favour good (+" in _others(many, largest, "-")


def test_weights_in_a_column_have_equally_many_decimals():
    assert count_column([1.7, 0.844, 1.0]) == ["1.70", "0.84", "1.00"]
    assert count_column([1.0, 2.0]) == ["1", "2"]
    assert count_column([0.5, 0.003, 0.0]) == ["0.50", "0.003", "0.00"]
    assert count_column([]) == []


def test_colours_are_of_classes_on_all_pages():
    """Orange is for the first of two classes in an explanation, and for what keeps it predicted."""
    good, bad = TEXTS[0], TEXTS[1]
    explanation = explain(MODEL, [good, bad])
    assert explanation.predicted.tolist() == ["good", "bad"]
    for sets in (explanation.counterfactual("words"), explanation.sufficient()):
        html = sets.to_html()
        assert html.index('class="doc blue"') < html.index('class="doc orange"')


def test_what_to_delete_is_not_searched_for_many_documents():
    explanation = explain(MODEL, TEXTS * 6)
    assert "the prediction becomes" not in explanation.to_html() + explanation.to_text()
    assert "the prediction becomes" in explanation[:20].to_html()
    assert "the prediction becomes" in explanation[:20].to_text()


def test_passages_of_a_long_text_have_their_place():
    rng = np.random.default_rng(0)
    words = ["terrific", "boring", "fun", "long", "and", "not", "a", "of", "in", "on", "at", "to"]
    text = " ".join(rng.choice(words, 6_000))
    explanation = explain(MODEL, [text])
    page = explanation.to_html()
    assert "prediction becomes" not in page  # the search would take long
    places = [int(found) for found in re.findall(r'class="place">(\d+)%<', page)]
    n = len(places) // 2  # also of the text by attention
    assert n > 1
    assert places == [*sorted(places[:n])] * 2
    said = explanation.to_text(color=False, width=100)
    assert f"where they start in the {len(text):,} characters" in " ".join(said.split())
    assert len(re.findall(r"^ *\d+%  ", said, re.M)) > 1
