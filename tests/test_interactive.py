"""In a real browser interactive pages say what Python says, and notebooks leave pages alone."""

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import ModelReport, explain
from sklearn_clsattn.inspection.interactive import page_script
from sklearn_clsattn.inspection.page_space import excerpt
from sklearn_clsattn.inspection.pieces import Piece
from sklearn_clsattn.text import make_text_classifier

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
  const number = (doc) => doc.querySelector(".no").textContent;
  const shown = () => all(".doc").filter((doc) => !doc.hidden).map(number);
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
    some = [*range(4), 150]
    sets = explain(model, [written[at] for at in some]).counterfactual()
    for at, one in zip(some, sets, strict=True):
        said = answers[at][3]
        n = len(one.tokens)
        assert ("the token it" if n == 1 else f"these {n} tokens") in said or "No removal" in said
        assert str(one.after) in said


LOOK = """
const seen = {};
seen.all = shown();
const tables = () => all(".doc caption").map((caption) => caption.textContent);
seen.before = tables().slice(0, 2);
all(".doc .classes button")[1].click();
seen.chosen = [all(".doc .classes button")[1].textContent, ...tables().slice(0, 2)];
const row = one(".doc tr[data-term]");
row.dispatchEvent(new frame.MouseEvent("mouseover", {bubbles: true}));
seen.linked = all(".linked").map((made) => [made.tagName, made.textContent]);
seen.row = row.querySelector("bdi").textContent;
const [label, truth, order] = all(".toolbar select"), text = one(".toolbar input");
set(text, values.word);
seen.text = shown();
set(text, "");
set(label, values.label);
seen.label = shown();
set(label, "");
set(truth, "wrong");
seen.wrong = shown();
set(truth, "");
set(order, "sure");
seen.sure = shown();
set(order, "");
const [compare, theme] = all(".toolbar button");
compare.click();
all(".choose input").slice(1, 3).forEach((box) => box.click());
seen.pair = [shown(), all(".pair > .doc").length];
compare.click();
seen.after = shown();
const paper = () => frame.getComputedStyle(one(".clsattn")).backgroundColor;
const light = paper();
theme.click();
seen.themes = [light, paper()];
theme.click();
seen.back = paper() === light;
const saved = [];
frame.Blob = function (parts) { saved.push(parts.join("")); };
frame.URL.createObjectURL = () => "#";
all(".doc .tools button").slice(0, 2).forEach((button) => button.click());
seen.saved = saved;
const svg = new DOMParser().parseFromString(seen.saved[0], "image/svg+xml");
seen.svg = [svg.documentElement.tagName, svg.querySelector("parsererror") === null,
  svg.querySelectorAll("text").length];
return seen;
"""


@needs_chromium
def test_pages_answer_back(tmp_path):
    model, texts, labels = trained(3)
    wrong = ["class 0" if label != "class 0" else "class 1" for label in labels]
    true = [*labels[80:84], *wrong[84:90]]
    explanation = explain(model, texts[80:90], y_true=true)
    page = explanation.to_html(interactive=True)
    word, label = texts[82].split()[0], explanation.predicted.tolist()[4]
    seen = ask_browser(around(page, LOOK, word=word, label=label), tmp_path)
    assert isinstance(seen, dict), seen
    numbers = [f"Document {at}" for at in range(10)]
    assert seen["all"] == seen["after"] == numbers
    assert seen["chosen"][0].startswith("class 1")
    assert any("for class 1" in caption for caption in seen["chosen"][1:])
    assert [tag for tag, _ in seen["linked"]].count("TR") == 1
    assert any(
        seen["row"].split()[0] in text.lower() for tag, text in seen["linked"] if tag == "SPAN"
    )
    found = [at for at in range(10) if word.lower() in texts[80 + at].lower()]
    assert seen["text"] == [numbers[at] for at in found]
    predicted = explanation.predicted.tolist()
    assert seen["label"] == [numbers[at] for at in range(10) if predicted[at] == label]
    assert seen["wrong"] == [numbers[at] for at in range(10) if predicted[at] != true[at]]
    surest = np.argsort(-explanation.predicted_probability, kind="stable")
    assert seen["sure"] == [numbers[at] for at in surest]
    assert seen["pair"] == [numbers[1:3], 2]
    assert seen["themes"][0] != seen["themes"][1]
    assert seen["back"]
    assert seen["svg"][:2] == ["svg", True]
    assert seen["svg"][2] > 25
    saved = json.loads(seen["saved"][1])
    added = sum(token["contribution"] for token in saved["tokens"])
    assert abs(added + saved["intercept"] - saved["decision"]) < 1e-2  # rounded in the page
    assert saved["text"] == texts[80]


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


def frames(shown):
    model, texts, labels = trained(3)
    explanation = explain(model, texts[:2], y_true=labels[:2])
    if shown == "explanation":
        return explanation._repr_html_()
    if shown == "counterfactual":
        return explanation.counterfactual()._repr_html_()
    report = ModelReport.from_estimator(model, texts[80:], labels[80:], n_mistakes=1)
    return report._repr_html_()


def check_isolated(frame, wrapped, folder):
    """Require a frame in a foreign page to look as it does in an empty one of the same width."""
    (folder / "alone").mkdir()
    width = '<div style="width:800px">'
    alone = ask_browser(
        f"<!doctype html>{width}{frame}</div><script>{SIZES}</script>", folder / "alone"
    )
    among = ask_browser(wrapped, folder)
    (sizes, height, needed), (others, *_) = alone[0], among[0]
    assert len(sizes) > 50
    assert height >= needed  # nothing to be scrolled
    assert others == sizes


@needs_chromium
@pytest.mark.parametrize("shown", ["explanation", "counterfactual", "report"])
def test_no_rule_reaches_into_a_notebooks_page(shown, tmp_path):
    frame = frames(shown)
    rules = RULES.replace("*{", "body>div,body>div *{", 1)
    wide = "width:800px!important;display:block!important"
    wrapped = f"""<!doctype html>{rules}
<div class="jp-RenderedHTMLCommon" style="{wide}">{frame}</div>
<style>iframe{{float:none!important}}</style><script>{SIZES}</script>"""
    check_isolated(frame, wrapped, tmp_path)


@needs_chromium
@pytest.mark.parametrize("template", ["lab", "classic"])
def test_a_converted_notebook_shows_the_page_as_it_is(template, tmp_path):
    nbconvert = pytest.importorskip("nbconvert")
    from nbformat.v4 import new_code_cell, new_notebook, new_output

    frame = frames("report")
    output = new_output(
        "execute_result", data={"text/html": frame, "text/plain": ""}, execution_count=1
    )
    notebook = new_notebook(cells=[new_code_cell("report", outputs=[output], execution_count=1)])
    page, _ = nbconvert.HTMLExporter(template_name=template).from_notebook_node(notebook)
    page = re.sub(r"<script[^>]* src=.*?</script>", "", page, flags=re.DOTALL)  # no network
    fixed = "<style>iframe{width:800px!important}</style>"
    page = page.replace("</body>", f"{fixed}<script>{SIZES}</script></body>")
    check_isolated(frame, page, tmp_path)


def test_the_script_is_the_only_one_and_no_value_is_in_it():
    model, texts, labels = trained(2)
    hostile = "</script><script>alert(1)</script><!-- \u2028 \ud800 'good'"
    explanation = explain(model, [hostile, texts[0]], y_true=["<!--<script>", labels[0]])
    page = explanation.to_html(interactive=True, model=model, max_tokens=50)
    page.encode()
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL)
    assert [attributes for attributes, _ in scripts] == [
        ' type="application/json" id="clsattn-data"',
        "",
    ]
    digest = base64.b64encode(hashlib.sha256(scripts[1][1].encode()).digest()).decode()
    assert (
        f"script-src &#39;sha256-{digest}&#39;" in page or f"script-src 'sha256-{digest}'" in page
    )
    assert page_script().hash == f"sha256-{digest}"
    data = json.loads(scripts[0][1])
    assert len(data["model"]["tokens"]) == 50
    assert "alert(1)" in "".join(piece[0] for piece in data["documents"][0]["texts"][0][1])
    # What is shown without scripts is the page that is not interactive.
    plain = explanation.to_html()
    assert page[page.index("<section") : page.index('<script type="app')].strip() in plain


def test_interactive_needs_a_page():
    model, texts, _ = trained(3)
    explanation = explain(model, texts[:1])
    with pytest.raises(ValueError, match="page of its own"):
        explanation.to_html(interactive=True, fragment=True)
    with pytest.raises(ValueError, match="interactive=True"):
        explanation.to_html(model=model)
    with pytest.raises(ValueError, match="max_tokens is of model"):
        explanation.to_html(interactive=True, max_tokens=5)
    with pytest.raises(ValueError, match="other classes than the explanation"):
        explanation.to_html(interactive=True, model=trained(2)[0])
    with pytest.raises(ValueError, match="neither against nor every_class"):
        explanation.to_html(interactive=True, every_class=True)


def test_a_threshold_is_for_pages_without_scripts():
    model, texts, labels = trained(2)
    wrapped = FixedThresholdClassifier(FrozenEstimator(model), threshold=0.9).fit(texts, labels)
    with pytest.raises(ValueError, match="threshold of its own"):
        explain(wrapped, texts[:1]).to_html(interactive=True)


def test_a_thousand_documents_stay_small():
    model, texts, _ = trained(3)
    rng = np.random.default_rng(0)
    words = np.array(" ".join(texts).split())
    long = [" ".join(rng.choice(words, 120)) for _ in range(25)]
    explanation = explain(model, long, removal=False)[np.arange(1000) % 25]
    for interactive in (False, True):
        page = explanation.to_html(interactive=interactive)
        assert page.count("<section") == 1000
        assert len(page.encode()) < 2e6
    assert page.count("<details>") == 1000
    assert "Predicted: " in page


def test_excerpts_have_the_strongest_words_and_whole_words():
    words = [f"word{at}" for at in range(400)]
    pieces = []
    for at, word in enumerate(words):
        pieces += [
            Piece(word, (0,), float(at == 250) + 0.5 * (at == 20), 0.0, ()),
            Piece(" ", (), 0, 0, ()),
        ]
    shown = excerpt(pieces, 150)
    text = "".join(piece.text for piece in shown)
    assert "word250" in text
    assert "word20 " in text
    assert 100 < len(text) < 400
    assert set(text.split()) <= {"…", *words}
    assert [piece.text for piece in excerpt(pieces[:3], 1000)] == ["word0", " ", "word1"]
    assert excerpt([], 10) == []
