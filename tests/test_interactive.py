"""In a real browser interactive pages say what Python says, and notebooks leave pages alone."""

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import ModelReport, explain
from sklearn_clsattn.inspection._page_model import javascript_pattern, model_values
from sklearn_clsattn.inspection.pages import TEMPLATES
from sklearn_clsattn.paper import AttentionNetworkClassifier
from sklearn_clsattn.text import (
    WORDS_AND_PUNCTUATION,
    ContextVectorizer,
    TokenVectorizer,
    make_text_classifier,
)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]


def ask_browser(page, folder):
    """Return what a page writes into its element `answer`, as JSON."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    flags = [*FLAGS, f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=20000"]
    ran = subprocess.run(
        [CHROMIUM, *flags, "--dump-dom", path.as_uri()],
        capture_output=True,
        timeout=300,
        check=True,
    )
    answer = re.search(r'<pre id="answer">(.*?)</pre>', ran.stdout.decode(), re.DOTALL)
    assert answer, ran.stderr.decode()[-2000:]
    return json.loads(html.unescape(answer[1]))


def around(page, script, **values):
    """Return a page that has another in a frame, and runs a script on its document."""
    return f"""<!doctype html><body>
<iframe width="900" height="700" srcdoc="{html.escape(page)}"></iframe>
<script>
const values = {json.dumps(values)};
addEventListener("load", () => {{
  const frame = document.querySelector("iframe").contentWindow, page = frame.document;
  const one = (name) => page.querySelector(name), all = (name) => [...page.querySelectorAll(name)];
  const set = (node, value) => {{
    node.value = value;
    node.dispatchEvent(new frame.Event(node.tagName === "SELECT" ? "change" : "input"));
  }};
  let answer;
  try {{ answer = (() => {{ {script} }})(); }} catch (error) {{ answer = String(error.stack); }}
  const made = document.createElement("pre");
  made.id = "answer";
  made.textContent = JSON.stringify(answer);
  document.body.append(made);
}});
</script>"""


def trained(n_classes):
    texts, y = make_token_classification(120, n_classes=n_classes, as_text=True, random_state=0)
    labels = [f"class {label}" for label in y]
    texts = [" ".join(text.split()[:25]) for text in texts]
    if n_classes == 2:
        model = make_text_classifier(dtype=np.float64)
    else:
        model = make_pipeline(CountVectorizer(ngram_range=(1, 2)), ClsAttentionClassifier())
    return model.fit(texts[:80], labels[:80]), texts, labels


TYPE = """
return values.texts.map((text) => {
  const box = one("textarea");
  set(box, text);
  const decision = JSON.parse(one(".whatif .head").dataset.decision);
  const says = (name) => one(name) ? one(name).textContent : "";
  const parts = [".prediction b", ".text", "> p.soft"];
  return [decision, ...parts.map((name) => says(".whatif " + name))];
});
"""


@needs_chromium
@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_if_says_what_python_says(n_classes, tmp_path):
    model, texts, _ = trained(n_classes)
    rng = np.random.default_rng(0)
    mixed = ["! ".join(rng.choice(" ".join(texts).split(), 12)) for _ in range(79)]
    odd = ["", "Nothing_known?", "İstanbul ΣΑΣ 😀 e\u0301te\u0301", " \n ", "<b>&amp;</b>"]
    written = [*texts[:116], *mixed, *odd]
    assert len(written) == 200
    page = explain(model, texts[:3]).to_html(interactive=True, model=model)
    answers = ask_browser(around(page, TYPE, texts=written), tmp_path)
    decision = model.decision_function(written).reshape(200, -1)
    assert np.abs(np.array([answer[0] for answer in answers]) - decision).max() < 1e-9
    assert [answer[1] for answer in answers] == model.predict(written).tolist()
    assert all(answer[2] == text for answer, text in zip(answers, written, strict=True))
    some = [*range(2), 150]
    sets = explain(model, [written[at] for at in some]).counterfactual()
    for at, one in zip(some, sets, strict=True):
        said = answers[at][3]
        n = len(one.tokens)
        assert ("the token it" if n == 1 else f"these {n} tokens") in said or "No removal" in said
        assert "it is class" in said or not one.found  # of classes that take as many, any


LOOK = """
const seen = {};
const captions = () => all(".whatif caption").map((caption) => caption.textContent);
seen.before = captions();
const another = one('.whatif .classes button[aria-pressed="false"]');
seen.label = another.querySelector("bdi").textContent;
another.click();
seen.chosen = captions();
set(one(".whatif select"), values.rival);
seen.rival = captions();
const row = one(".whatif tr[data-term]");
row.dispatchEvent(new frame.MouseEvent("mouseover", {bubbles: true}));
seen.linked = all(".linked").map((made) => [made.tagName, made.textContent]);
seen.row = row.querySelector("bdi").textContent;
all(".doc .tools button")[2].click();
seen.edited = one("textarea").value;
const paper = () => frame.getComputedStyle(one(".clsattn")).backgroundColor;
seen.papers = [0, 1, 2].map(() => {
  one(".toolbar button").click();
  return paper();
});
return seen;
"""


@needs_chromium
def test_pages_answer_back(tmp_path):
    model, texts, _ = trained(3)
    explanation = explain(model, texts[80:84])
    predicted = explanation.predicted[0]
    page = explanation.to_html(interactive=True, model=model)
    label = "class 0" if predicted != "class 0" else "class 1"  # the first that is not predicted
    rival = 3 - int(label[-1]) - int(predicted[-1])
    seen = ask_browser(around(page, LOOK, rival=rival), tmp_path)
    assert isinstance(seen, dict), seen
    assert seen["before"][0] == f"+ for {predicted}"
    assert seen["label"] == label
    assert {f"+ for {label}", f"− for {predicted}"} == {
        caption.removesuffix(": no token") for caption in seen["chosen"]
    }
    assert any(f"for class {rival}" in caption for caption in seen["rival"])
    tags = [tag for tag, _ in seen["linked"]]
    assert tags.count("TR") == 1
    assert tags.count("SPAN") > 0
    assert any(seen["row"].split()[0] in text.lower() for _, text in seen["linked"])
    assert seen["edited"] == texts[82]
    assert seen["papers"][0] == seen["papers"][2] != seen["papers"][1]


# Rules that reach every element and every class of ours, as those of notebooks reach some.
RULES = """<style>
*{font-size:31px!important;float:left!important;line-height:3!important;letter-spacing:2px}
.row,.mark,.t,.doc,table,td,th,dl,dt,dd,ul,li,p,h1,h2{display:flex!important;width:50px!important;
color:red!important;background:lime!important;border:5px solid!important}
.jp-RenderedHTMLCommon td{max-width:1px;white-space:nowrap}
</style>"""
SIZES = """
const sizes = (page) => [...page.body.querySelectorAll("*")].map((one) => {
  const {x, y, width, height} = one.getBoundingClientRect();
  return [one.tagName, Math.round(x), Math.round(y), Math.round(width), Math.round(height)];
});
addEventListener("load", () => setTimeout(() => {
  const answer = [...document.querySelectorAll("iframe")].map((frame) =>
    [sizes(frame.contentDocument), Math.round(frame.getBoundingClientRect().height),
     frame.contentDocument.documentElement.scrollHeight]);
  const made = document.createElement("pre");
  made.id = "answer";
  made.textContent = JSON.stringify(answer);
  document.body.append(made);
}, 1000));
"""


@needs_chromium
@pytest.mark.parametrize("shown", ["explanation", "report"])
def test_no_rule_reaches_into_a_notebooks_page(shown, tmp_path):
    model, texts, labels = trained(3)
    given = explain(model, texts[:2], y_true=labels[:2])
    if shown == "report":
        given = ModelReport.from_estimator(model, texts[80:], labels[80:], n_mistakes=1)
    frame = given._repr_html_()
    rules = RULES.replace("*{", "body>div,body>div *{", 1)
    wide = "width:800px!important;display:block!important"
    pages = (
        f"""<div style="width:800px">{frame}</div>""",
        f"""{rules}
<div class="jp-RenderedHTMLCommon" style="{wide}">{frame}</div>
<style>iframe{{float:none!important}}</style>""",
    )
    seen = []
    for number, page in enumerate(pages):
        folder = tmp_path / str(number)
        folder.mkdir()
        seen += ask_browser(f"<!doctype html>{page}<script>{SIZES}</script>", folder)
    (sizes, height, needed), (others, *_) = seen
    assert len(sizes) > 50
    assert height >= needed  # nothing to be scrolled
    assert others == sizes


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


def wide_pages():
    hostile = ["terrific " + "a" * 500 + " boring", "<b>fun</b> \u202eboring " * 20, ""]
    texts, y = make_token_classification(60, n_classes=8, as_text=True, random_state=0)
    labels = [f"{label}{'_name' * 12}" for label in y]
    model = make_pipeline(CountVectorizer(ngram_range=(1, 2)), ClsAttentionClassifier())
    model.fit(texts, labels)
    yield explain(
        model, [*texts[:2], *hostile], y_true=[*labels[:2], "<i>" + "x" * 80, *labels[:2]]
    )
    yield explain(model[-1], model[0].transform(texts[:2]))
    long_names = CountVectorizer(token_pattern=r"\S+").fit(["w" * 90, "v" * 90])
    named = make_pipeline(long_names, ClsAttentionClassifier()).fit(["w" * 90, "v" * 90], [0, 1])
    yield explain(named, ["w" * 90])
    characters = make_text_classifier().fit(texts, y)
    yield explain(characters, [texts[0], *hostile]).counterfactual("words", time_limit=1)
    columns = make_column_transformer(*((CountVectorizer(), [0, 1][at]) for at in range(2)))
    table = [[text, text] for text in texts[:20]]
    yield explain(make_pipeline(columns, ClsAttentionClassifier()).fit(table, y[:20]), table[:2])


@needs_chromium
def test_pages_are_no_wider_than_a_phone(tmp_path):
    explanations = list(wide_pages())
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


# The model in JavaScript.

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")
READ = """
const [values, texts] = JSON.parse(require("fs").readFileSync(0));
const model = new AttentionModel(values);
process.stdout.write(JSON.stringify(texts.map((text) => model.explain(text))));
"""
ODD = [
    "",
    "  ",
    "Ünïcödé ÅNGSTRÖM, İstanbul ΣΑΣ ﬁne",
    "e\u0301te\u0301 cafe\u0301",
    "don't DON’T l'été rock'n'roll ''quoted''",
    "a.b.c!! ... ?; \n new line\x85next\u3000wide\ufeffmark\x1cseparator",
    "好 电影 很好 ½ ² Ⅷ ٣",
    "😀😀 good 😀 film 𝐛𝐨𝐥𝐝",
    "x_y __init__ a-b-c",
]


def documents(n_classes=2):
    """Return 200 texts that are generated, changed at random or odd, and labels of the first."""
    texts, labels = make_token_classification(
        260, n_classes=n_classes, as_text=True, random_state=0
    )
    rng = np.random.default_rng(0)
    marks = np.array([" ", ". ", ", ", "\n", " é", "'s ", "! "], dtype=object)
    mixed = [
        "".join(
            f"{word}{mark}" for word, mark in zip(words[:30], rng.choice(marks, 30), strict=False)
        )
        for words in map(str.split, texts)
    ]
    names = [f"class {label}" for label in labels]
    odd = [f"{one} {text}" for one, text in zip(ODD, mixed, strict=False)]
    return mixed[:60] + odd, names[:60] + names[: len(odd)], [*mixed[80:260], *odd, *ODD, *odd[:2]]


def read_by_javascript(model, texts, max_tokens=None):
    given = json.dumps([model_values(model, max_tokens), texts]).encode()
    script = (TEMPLATES / "reader.js").read_text(encoding="utf-8") + READ
    ran = subprocess.run([NODE, "-e", script], input=given, capture_output=True, check=True)
    return json.loads(ran.stdout)


MODELS = {
    "words": CountVectorizer(),
    "n-grams": TokenVectorizer(token_pattern=WORDS_AND_PUNCTUATION, ngram_range=(1, 3)),
    "binary": CountVectorizer(binary=True, stop_words=["the", "token1"], lowercase=False),
    "class": CountVectorizer(token_pattern=r"[^\d\s]+|\d"),
    "group": CountVectorizer(token_pattern=r"(\w+)(?:\S|\s)"),
    "characters": TokenVectorizer(analyzer="char_wb", ngram_range=(1, 4), min_df=2),
    "context": ContextVectorizer(dtype=np.float64),
    "words alone": ContextVectorizer(characters=None, ngram_range=(2, 3), dtype=np.float64),
    "own pattern": ContextVectorizer(token_pattern=r"\w+", dtype=np.float64, characters=(3, 3)),
    "no context": ContextVectorizer(context=False, lowercase=False, dtype=np.float64),
}


@needs_node
@pytest.mark.parametrize(
    ("name", "n_classes"), [*((name, 2) for name in MODELS), ("words", 3), ("context", 3)]
)
def test_javascript_says_what_python_says(name, n_classes):
    texts, labels, held_out = documents(n_classes)
    assert len(held_out) == 200
    context = isinstance(MODELS[name], ContextVectorizer)
    classifier = ClsAttentionClassifier(
        C=1.0, sublinear_counts=not context, attend_cls=name != "binary"
    )
    model = make_pipeline(MODELS[name], classifier)
    model.fit(texts, labels)
    read = read_by_javascript(model, held_out)

    decision = model.decision_function(held_out).reshape(len(held_out), -1)
    assert np.abs(np.array([one["decision"] for one in read]) - decision).max() < 1e-9
    proba = model.predict_proba(held_out)
    assert np.abs(np.array([one["probabilities"] for one in read]) - proba).max() < 1e-9
    predicted = [model.classes_[one["predicted"]] for one in read]
    assert predicted == model.predict(held_out).tolist()
    names = model[0].get_feature_names_out()
    X = model[0].transform(held_out)
    contributions = model[1].contributions(X)
    for terms in [contributions] if n_classes == 2 else [contributions[0]]:
        terms = terms.tocsr()
        for i, one in list(enumerate(read))[::10]:
            row = {int(j): term for j, term in zip(*_row(terms, i), strict=True)}
            assert {token["column"] for token in one["tokens"]} == set(row)
            for token in one["tokens"]:
                assert abs(token["contributions"][0] - row[token["column"]]) < 1e-9
                assert token["name"] == names[token["column"]]


def _row(X, i):
    return X.indices[X.indptr[i] : X.indptr[i + 1]], X.data[X.indptr[i] : X.indptr[i + 1]]


@needs_node
def test_a_model_is_cut_to_its_strongest_tokens():
    texts, labels, held_out = documents()
    search = GridSearchCV(make_text_classifier(), {"classifier__C": [1.0]}, cv=2)
    search.fit(texts, labels)
    read = read_by_javascript(search, held_out, max_tokens=50)
    assert max(len(one["tokens"]) for one in read) <= 50
    agree = search.classes_[[one["predicted"] for one in read]] == search.predict(held_out)
    assert np.mean(agree) > 0.6  # as a model of 50 tokens would
    values = model_values(search, 50)
    n_tokens = len(search.best_estimator_[1].attention_scores_)
    assert (len(values["tokens"]), values["n_tokens"]) == (50, n_tokens)


PATTERNS = [
    r"(?u)\b\w\w+\b",
    r"[\w'-]+",
    r"#\w+|[\d.,]+\b",
    r"(?:ab|a b)+",
    r"\S+\W\D",
]
REFUSED = [
    r".\d",
    r"a{2}",
    r"\w+\B",
    r"\w+$",
    r"[^\W_]+",
    r"ca{,2}b",
    r"[]a]",
    r"b|}",
    r"(?i)a",
    r"(a)(b)",
    r"a*",
    r"(?P<a>b)",
    r"a*+b",
    r"a{2}+b",
    r"(?s:.)b",
    r"\Ab",
    r"\x41",
]


@needs_node
@pytest.mark.parametrize("pattern", [*PATTERNS, WORDS_AND_PUNCTUATION])
def test_patterns_find_the_same_in_javascript(pattern):
    texts = [*ODD, "a]b-c^d} aaa bbb{2} ab a.b a b", *documents()[2][:5]]
    carried = javascript_pattern(pattern)
    script = """const [pattern, texts] = JSON.parse(require("fs").readFileSync(0));
    const find = (text) => [...text.matchAll(new RegExp(pattern, "gu"))].map((one) => one[0]);
    process.stdout.write(JSON.stringify(texts.map(find)));"""
    ran = subprocess.run(
        [NODE, "-e", script], input=json.dumps([carried, texts]).encode(), capture_output=True
    )
    assert json.loads(ran.stdout) == [re.findall(pattern, text) for text in texts]


@pytest.mark.parametrize("pattern", REFUSED)
def test_patterns_that_javascript_has_not_are_refused(pattern):
    with pytest.raises(ValueError, match="token_pattern"):
        javascript_pattern(pattern)


@pytest.mark.filterwarnings("ignore:Training stopped")
@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([CountVectorizer(tokenizer=str.split, token_pattern=None)], "vectorizer's tokenizer"),
        ([CountVectorizer(preprocessor=str.lower)], "vectorizer's preprocessor"),
        ([CountVectorizer(analyzer="char")], "vectorizer's analyzer='char'"),
        ([CountVectorizer(strip_accents="unicode")], "vectorizer's strip_accents"),
        ([TfidfVectorizer()], "vectorizer's TF-IDF"),
        ([CountVectorizer(), MaxAbsScaler()], "anything but a Pipeline"),
        ([CountVectorizer(), "two layers"], "attention of AttentionNetworkClassifier"),
    ],
)
def test_what_a_page_cannot_carry_over_is_refused(steps, message):
    classifier = ClsAttentionClassifier()
    if steps[-1] == "two layers":
        classifier = AttentionNetworkClassifier(n_layers=2, embedding_dim=8, max_iter=2)
        steps = steps[:1]
    texts, labels = ["good fun", "bad film"] * 5, [0, 1] * 5
    model = make_pipeline(*steps, classifier).fit(texts, labels)
    with pytest.raises(ValueError, match=f"a page cannot carry over .*{message}"):
        explain(model, texts[:1]).to_html(interactive=True, model=model)
