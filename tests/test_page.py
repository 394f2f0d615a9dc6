"""The page of a model: what is in the file, and what somebody can do with it in a browser."""

import base64
import hashlib
import html
import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from helpers import refused
from sklearn.exceptions import NotFittedError
from web_answers import needs

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.cli import main
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.saving import save_model

try:
    import playwright.sync_api as playwright
except ImportError:
    playwright = None

TEXTS, MOODS = load_requests(target="mood", return_X_y=True)
_, TOPICS = load_requests(return_X_y=True)
TEXTS = list(TEXTS)
EVIL = "</script><img src=x onerror=alert(1)>"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
SOFA = "The sofa is lovely, but a cushion was missing and nobody helped me."


@pytest.fixture(scope="module")
def model():
    return TextClassifier().fit(TEXTS[:300], MOODS[:300])


def written(model, path, **options):
    model.to_page(path, **options)
    return path.read_text("utf-8")


# The file.


def test_the_page_allows_its_own_script_and_style_alone(model, tmp_path):
    page = written(model, tmp_path / "page.html")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    hashes = {}
    for name in ("script", "style"):
        pattern = r"<style>(.*?)</style>"
        if name == "script":
            pattern = r'<script type="module" id="script">(.*?)</script>'
        (content,) = re.findall(pattern, page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        hashes[f"{name}-src"] = f"'sha256-{digest}'"
    assert rules == {"default-src": "'none'", "worker-src": "blob:", **hashes}
    outside = re.sub(
        r'<script type="text/plain" id="model">.*?</script>', "", page, flags=re.DOTALL
    )
    assert "http://" not in outside
    assert "https://" not in outside
    assert "style=" not in outside.split("<script", 1)[0]


def test_texts_and_names_close_no_element(tmp_path):
    labels = np.where(np.array(MOODS[:200]) == MOODS[0], EVIL, "<b>other</b>")
    model = TextClassifier().fit(TEXTS[:200], labels)
    page = written(model, tmp_path / "page.html", title=EVIL, examples=[EVIL], about={EVIL: EVIL})
    assert EVIL not in page
    assert page.count("</script>") == 3
    assert html.escape(EVIL) in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    assert data["examples"] == [EVIL]
    assert data["about"][EVIL] == EVIL


def test_nothing_is_said_of_the_training_texts_unless_the_caller_does(model, tmp_path):
    page = written(model, tmp_path / "page.html", about={"Trained on": "600 messages"})
    about = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])["about"]
    assert about.pop("Trained on") == "600 messages"
    assert list(about) == ["2 classes", "It knows", "Precision"]
    assert about["Precision"].startswith("that of Python")


def test_a_page_in_sixteen_bits_says_so(model, tmp_path):
    page = written(model, tmp_path / "page.html", texts=TEXTS[600:650])
    points = re.search(r"rounded: .* differ by at most ([0-9.]+) percentage points", page)[1]
    assert 0 < float(points) <= 0.1
    assert len(page) < len(written(model, tmp_path / "page.html"))


def test_what_a_page_cannot_have(tmp_path):
    path = tmp_path / "page.html"
    model = TextClassifier(tokenizer=str.split).fit(TEXTS[:50], MOODS[:50])
    refused("default tokens", lambda: model.to_page(path))
    model = TextClassifier(stop_words=[re.compile(r"\d+")]).fit(TEXTS[:50], MOODS[:50])
    refused("no patterns", lambda: model.to_page(path))
    with pytest.raises(NotFittedError):
        TextClassifier().to_page(path)
    model = TextClassifier().fit(TEXTS[:50], MOODS[:50])
    refused("one text", lambda: model.to_page(path, examples="one text"))
    assert not path.exists()


# The page in a browser.

needs_browser = needs(CHROMIUM is not None and playwright is not None, "Chromium or playwright")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "moods.html"
    examples = [SOFA, "Great service, thank you!", EVIL]
    model.to_page(path, title="Moods", examples=examples, about={"Made for": "a test"})
    return path


@pytest.fixture
def opened(browser, file):
    """Return a function that opens the page; at the end, nothing may have gone wrong in it."""
    mishaps = []
    pages = []

    def open_page(path=file, **options):
        page = browser.new_page(**options)
        page.on("pageerror", lambda error: mishaps.append(str(error)))
        page.on("console", lambda message: mishaps.append(message.text))
        page.on("dialog", lambda dialog: mishaps.append(dialog.message))
        page.on("request", lambda request: mishaps.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("#app:not([hidden])")
        pages.append(page)
        return page

    yield open_page
    asked = [one for one in mishaps if not one.startswith(("file://", "blob:"))]
    assert not asked
    for page in pages:
        page.close()


def expect(locator):
    return playwright.expect(locator)


def percent_of(model, text):
    return f"{model.predict_proba([text]).max():.1%}"


def texts_of(page):
    return {name: page.inner_text(f"#{name}") for name in ("prediction", "reasons", "deletion")}


@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_the_page_says_what_python_says(opened, model, width, scheme):
    page = opened(viewport={"width": width, "height": 900}, color_scheme=scheme)
    explanation = explain(model, [SOFA])
    expect(page.locator("#deletion")).to_have_text(explanation.counterfactual().statement(0))
    said = texts_of(page)
    said["prediction"] = " ".join(said["prediction"].split())
    (predicted,) = model.predict([SOFA])
    assert said["prediction"] == f"Predicted {predicted} with probability {percent_of(model, SOFA)}"
    (sentence,) = re.findall(r'^".*\.$', explanation.to_text(color=False), re.MULTILINE)
    assert said["reasons"] == sentence
    # Nothing is wider than the page.
    page.click("summary")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@needs_browser
def test_a_word_is_struck_out_and_put_back(opened, model):
    page = opened()
    before = page.inner_text("#prediction")
    word = page.locator(".w", has_text="missing")
    word.hover()
    assert "missing ×" in page.inner_text("#word")
    word.click()
    without = SOFA.replace(" missing", "")
    assert word.get_attribute("aria-pressed") == "true"
    assert percent_of(model, without) in page.inner_text("#prediction")
    assert percent_of(model, SOFA) in page.inner_text("#edited")
    page.locator(".w", has_text="nobody").click()
    word.click()  # back
    page.click("#undo")
    page.click("#undo")
    assert percent_of(model, without) in page.inner_text("#prediction")
    page.click("#undo")
    assert page.inner_text("#prediction") == before
    assert not page.is_visible("#edited")
    assert page.evaluate("document.activeElement.className").startswith("w ")
    # Two words, then the text without them in the box.
    word.click()
    page.locator(".w", has_text="nobody").click()
    edited = without.replace(" nobody", "")
    assert percent_of(model, edited) in page.inner_text("#prediction")
    page.click("#keep")
    assert page.input_value("#text") == edited
    assert percent_of(model, edited) in page.inner_text("#prediction")


@needs_browser
def test_the_fewest_words_are_struck_out(opened, model):
    page = opened()
    (found,) = explain(model, [SOFA]).counterfactual()
    page.click("#strike")
    struck = page.locator('.w[aria-pressed="true"]').all_inner_texts()
    assert sorted(struck) == sorted(found.words)
    assert str(found.after) in page.inner_text("#prediction")
    assert not page.is_visible("#strike")
    page.click("#undo")  # of all of them
    assert page.is_visible("#strike")
    page.click("#strike")
    page.click("#restore")
    assert not page.locator('.w[aria-pressed="true"]').count()


@needs_browser
def test_typing_and_examples(opened, model):
    page = opened()
    page.fill("#text", "")
    page.locator("#text").press_sequentially("thank you", delay=5)
    assert percent_of(model, "thank you") in page.inner_text("#prediction")
    page.get_by_role("button", name="Great service").click()
    assert page.input_value("#text") == "Great service, thank you!"
    page.fill("#text", " ")
    assert not page.is_visible("#result")
    page.fill("#text", "где моя посылка 包裹")
    assert page.inner_text("#known").startswith("The model knows none of the")
    page.fill("#text", SOFA)
    assert not page.inner_text("#known")


@needs_browser
def test_the_keyboard_alone(opened):
    page = opened()
    page.focus("#text")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className").startswith("w"):
            break
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    struck = page.locator('.w[aria-pressed="true"]')
    assert struck.all_inner_texts() == ["sofa"]
    assert page.evaluate("document.activeElement.textContent") == "sofa"
    page.keyboard.press(" ")
    assert not struck.count()


@needs_browser
def test_a_screen_reader_finds_names_and_states(opened):
    page = opened()
    assert page.get_by_role("textbox", name="Text to classify").count() == 1
    assert page.get_by_role("group", name="The words of the text").count() == 1
    assert page.get_by_role("heading", name="Moods").count() == 1
    assert page.get_by_role("region", name="A table of texts").count() == 1
    assert page.get_by_role("region", name="Prediction").count() == 1
    assert page.get_by_role("group", name="Examples:").count() == 1
    assert page.get_by_role("button", name="sofa", pressed=False, exact=True).count() == 1
    word = page.locator(".w", has_text="lovely")
    description = word.get_attribute("aria-description")
    assert re.fullmatch(r"speaks for content \(\d\.\d+\)", description)
    expect(page.locator("#announced")).to_have_text(re.compile("^Predicted"))
    word.click()
    expect(page.locator("#announced")).to_have_text(re.compile("^Without the struck words"))


@needs_browser
def test_texts_are_shown_and_not_run(opened, tmp_path):
    labels = np.where(np.array(MOODS[:200]) == MOODS[0], EVIL, "<b>other</b>")
    model = TextClassifier().fit([f"{text} {EVIL}" for text in TEXTS[:200]], labels)
    path = tmp_path / "evil.html"
    model.to_page(path, title=EVIL, examples=[EVIL], about={EVIL: EVIL})
    page = opened(path)
    assert page.inner_text("h1") == EVIL
    assert page.locator("img").count() == 0
    assert page.inner_text("#words") == EVIL
    expect(page.locator("#deletion")).to_have_text(re.compile(r"^(No words|Remov)"))
    page.set_input_files("#file", files=[_csv(pd.DataFrame({EVIL: [EVIL]}))])
    expect(page.locator("#tablestate")).to_contain_text("1 row below")
    assert page.locator("img").count() == 0


def _csv(table, name="table.csv", **options):
    content = table.to_csv(index=False, **options).encode(options.get("encoding", "utf-8"))
    return {"name": name, "mimeType": "text/csv", "buffer": content}


def saved_table(page, **options):
    with page.expect_download() as download:
        page.click("#tablestate a")
    return download.value.suggested_filename, pd.read_csv(
        download.value.path(), dtype=str, keep_default_na=False, **options
    )


@needs_browser
def test_a_table_comes_back_with_predictions(opened, model):
    page = opened()
    texts = [*TEXTS[600:610], 'He said "no", twice', "two\nlines", ""]
    table = pd.DataFrame({"id": [f"{n:03}" for n in range(len(texts))], "message": texts})
    page.set_input_files("#file", files=[_csv(table, "in.csv", sep=";", encoding="utf-8-sig")])
    expect(page.locator("#tablestate")).to_contain_text(f"in.csv: {len(texts)} rows below")
    assert page.input_value("#column") == "1"
    page.check("#withwords")
    page.click("#classify")
    done = f"Done, {len(texts)} rows by the column “message”: save in_classified.csv."
    expect(page.locator("#tablestate")).to_have_text(done)
    name, result = saved_table(page, sep=";", encoding="utf-8-sig")
    assert name == "in_classified.csv"
    assert result[["id", "message"]].equals(table)
    assert result["prediction"].tolist() == model.predict(texts).tolist()
    columns = [f"probability_{label}" for label in model.classes_]
    found = result[columns].astype(float).to_numpy()
    assert np.abs(found - model.predict_proba(texts)).max() < 2e-6
    assert (result["words"] != "").sum() >= len(texts) - 2


@needs_browser
def test_tables_that_cannot_be_classified(opened):
    page = opened()
    state = page.locator("#tablestate")
    bad = {"name": "bad.csv", "mimeType": "text/csv", "buffer": "text\nHändler\n".encode("latin-1")}
    page.set_input_files("#file", files=[bad])
    expect(state).to_contain_text("no CSV in UTF-8")
    taken = pd.DataFrame({"text": ["a"], "prediction": ["b"]})
    page.set_input_files("#file", files=[_csv(taken)])
    page.click("#classify")
    expect(state).to_contain_text("has columns named prediction already")
    page.set_input_files("#file", files=[_csv(pd.DataFrame({"text": ["thank you"]}))])
    page.click("#classify")
    expect(state).to_contain_text("Done")


@needs_browser
def test_the_same_file_is_chosen_again(opened):
    page = opened()
    for content, says in (('text\n"open', "not closed"), ("text\nthank you\n", "1 row below")):
        # A browser reports no choice of the file that is chosen already.
        assert page.locator("#file").evaluate("input => (input.click(), input.value)") == ""
        file = {"name": "table.csv", "mimeType": "text/csv", "buffer": content.encode()}
        page.set_input_files("#file", files=[file])
        expect(page.locator("#tablestate")).to_contain_text(says)
    page.click("#classify")
    expect(page.locator("#tablestate a")).to_have_text("table_classified.csv")
    page.check("#withwords")
    assert page.inner_text("#tablestate") == ""  # the file was without them


@needs_browser
def test_texts_may_be_dropped_into_the_box_and_tables_anywhere(opened):
    page = opened()
    prevented = page.evaluate(
        """() => {
            const transfer = new DataTransfer();
            transfer.setData("text/plain", "thank you");
            const options = { dataTransfer: transfer, bubbles: true, cancelable: true };
            return !document.getElementById("text").dispatchEvent(new DragEvent("drop", options));
        }"""
    )
    assert not prevented
    page.evaluate(
        """() => {
            const transfer = new DataTransfer();
            transfer.items.add(new File(["text,n\\nthank you,1\\n"], "dropped.csv"));
            const event = new DragEvent("drop", { dataTransfer: transfer, bubbles: true });
            document.body.dispatchEvent(event);
        }"""
    )
    expect(page.locator("#tablestate")).to_contain_text("dropped.csv: 1 row below")


@needs_browser
def test_a_long_text_says_what_is_not_searched(opened):
    page = opened()
    page.fill("#text", "thank you " * 1_001)
    expect(page.locator("#deletion")).to_contain_text("more than 2,000 words and signs")


@needs_browser
def test_a_class_is_chosen_to_be_explained(opened, tmp_path):
    model = TextClassifier().fit(TEXTS[:300], TOPICS[:300])
    path = tmp_path / "topics.html"
    model.to_page(path, examples=[TEXTS[700]])
    page = opened(path)
    (predicted,) = model.predict([TEXTS[700]])
    other = next(label for label in model.classes_ if label != predicted)
    page.locator(".w").first.click()
    page.get_by_role("button", name=re.compile(f"^{other}")).click()
    assert page.locator('.w[aria-pressed="true"]').count() == 1  # stays
    assert page.get_by_role("button", name=re.compile(f"^{other}"), pressed=True).count() == 1
    assert page.inner_text("#classes .shown .name").startswith(str(predicted))
    view_sentence = explain(model, [TEXTS[700]]).to_text(target=other, color=False)
    assert page.inner_text("#reasons") in view_sentence.replace("\n", " ")
    assert page.evaluate("document.activeElement.textContent").startswith(other)


@needs_browser
def test_a_page_of_several_labels(opened, tmp_path):
    labels = np.column_stack([np.array(TOPICS) == "billing", np.array(MOODS) == "upset"])[:300]
    table = pd.DataFrame(labels.astype(int), columns=["billing", "upset"])
    model = TextClassifier().fit(TEXTS[:300], table)
    path = tmp_path / "labels.html"
    model.to_page(path, examples=[SOFA, "zzz"])
    page = opened(path)
    has_label = model.predict([SOFA])[0] > 0
    named = [str(label) for label in model.classes_[has_label]]
    said = " ".join(page.inner_text("#prediction").split())
    assert said == f"Predicted {', '.join(named) or 'none of the labels'}"
    expect(page.locator("#deletion")).to_have_text(re.compile(r"^(No words|Remov)"))
    page.get_by_role("button", name=re.compile("^billing")).click()
    assert "billing" in page.inner_text("#reasons")


@needs_browser
def test_a_damaged_page_says_so(browser, file, tmp_path):
    content = file.read_text("utf-8")
    start = content.index('id="model">') + 11
    path = tmp_path / "damaged.html"
    path.write_text(content[:start] + content[start + 400 :], "utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    expect(page.locator("#state")).to_contain_text("This page cannot be read")
    page.close()


def test_the_command_writes_a_page(model, tmp_path):
    save_model(model, tmp_path / "model.skops")
    (tmp_path / "texts.csv").write_text(pd.DataFrame({"text": TEXTS[:40]}).to_csv(index=False))
    out = tmp_path / "page.html"
    arguments = ["page", str(tmp_path / "model.skops"), "-o", str(out), "--title", "Moods"]
    assert main([*arguments, "--examples", str(tmp_path / "texts.csv")]) == 0
    page = out.read_text("utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    assert data["examples"] == TEXTS[:5]
    assert "<title>Moods</title>" in page
    assert main(arguments) != 0  # the file exists
