"""HTML as tests read it: well formed, harmless, and what it holds."""

import html as html_module
import re
from html.parser import HTMLParser

VOID = {"img", "meta", "wbr"}
ALLOWED = {
    *("html", "head", "meta", "title", "body", "style", "div", "p", "section", "span", "b", "bdi"),
    *("i", "em", "small", "pre", "h1", "h2", "h3", "h4", "ul", "ol", "li", "details", "summary"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "wbr", "img"),
}
ATTRIBUTES = {"class", "style", "title", "dir", "lang", "scope", "colspan", "src", "alt"}
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


class Page(HTMLParser):
    """Reads HTML, requires it to run nothing and to fetch nothing, and gathers what it has."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.rows = [], [], [], []
        self.text = self.title = ""
        self.declared = None
        self.feed(html)
        self.close()
        assert not self.open
        html.encode("utf-8")
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", html)
        assert set(self.tags) <= ALLOWED
        for _, name, value in self.attributes:
            assert name != "src" or value.startswith("data:image/svg+xml;base64,")

    def handle_decl(self, decl):
        self.declared = decl

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names))
        assert tag == "meta" or set(names) <= ATTRIBUTES
        self.attributes += [(tag, *pair) for pair in attrs]
        style = dict(attrs).get("style", "left:0")
        assert re.fullmatch(r"[a-z:;.%\d,()\- ]+", style)
        assert "url" not in style
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def refused(self, *_):
        raise AssertionError("there are neither comments nor instructions, which a text could end")

    handle_startendtag = handle_comment = handle_pi = unknown_decl = refused

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.text += data
        if self.open[-1:] == ["title"]:
            self.title += data
        if {"th", "td"} & set(self.open):
            self.rows[-1][-1] += data

    def words(self):
        return " ".join(self.text.split())

    def row(self, head):
        return next(row for row in self.rows if row[0] == head)


def in_notebook(shown):
    """Return the HTML of the page that a notebook's frame holds."""
    frame = shown._repr_html_()
    (page,) = re.findall(r' srcdoc="([^"]*)"', frame)
    assert frame.count("<") == 2
    assert 'sandbox="allow-same-origin"' in frame
    return html_module.unescape(page)


def page_of(shown):
    """Require what is shown to be a page, a part of one and a page in a frame; return the page."""
    html = shown.to_html()
    page, part = Page(html), Page(shown.to_html(fragment=True))
    assert (page.declared, part.declared) == ("doctype html", None)
    assert ("meta", "charset", "utf-8") in page.attributes
    assert ("meta", "content", POLICY) in page.attributes
    assert part.tags[0] == "div"
    assert not {"html", "head", "body", "meta"} & set(part.tags)
    assert not part.title
    assert in_notebook(shown) == html
    for outside in ("http:", "https:", "url(", "@import", "<script", "javascript:"):
        assert outside not in html
    for style in re.findall("<style>(.*?)</style>", html, re.DOTALL):
        assert style.count("{") == style.count("}")
    for rule in ("prefers-color-scheme:dark", "@media print"):
        assert rule in html
    return page
