"""The command line's reader: every format, nothing lost, and errors that say what to do."""

import gzip
import io
import json
import sys

import numpy as np
import pandas as pd
import pytest
from helpers import put, refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sklearn_clsattn.cli.reader import read_reviews, read_texts

TEXTS = ['It\'s terrific, a "delight".', "null", "NA", "", "zwei\nZeilen", "naïve – 映画 🎬", " 7 "]
LABELS = [1, 0, 0, 1, 0, 1, 1]


@pytest.fixture
def frame():
    return pd.DataFrame({"id": range(len(TEXTS)), "text": TEXTS, "label": LABELS})


def write(frame, path):
    name = path.name.lower()
    if ".csv" in name:
        frame.to_csv(path, index=False)
    elif ".tsv" in name or ".tab" in name:
        frame.to_csv(path, index=False, sep="\t")
    elif "json" in name:
        frame.to_json(path, orient="records", lines=True, force_ascii=False)
    else:
        content = frame.to_parquet()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


@pytest.mark.parametrize(
    "name",
    [
        *("a.csv", "a.CSV", "a.b.csv", "a.tsv", "a.tab", "a.jsonl", "a.json", "a.parquet", "a.pq"),
        *("a.csv.gz", "a.csv.bz2", "a.csv.xz", "a.csv.zip", "a.csv.tar", "a.tsv.gz"),
        *("a.jsonl.gz", "a.ndjson.zip", "a.jsonl.tar.gz", "a.parquet.gz"),
    ],
)
def test_formats(frame, tmp_path, name):
    path = write(frame, tmp_path / name)
    reviews = read_reviews(str(path))
    assert reviews.texts.tolist() == TEXTS
    assert reviews.texts.dtype == object
    assert all(type(text) is str for text in reviews.texts)
    assert reviews.labels.tolist() == LABELS
    assert reviews.labels.dtype == np.int64
    assert (reviews.text_column, reviews.label_column) == ("text", "label")
    assert reviews.file == str(path)
    if path.suffix in (".csv", ".jsonl", ".parquet"):
        stream = read_reviews(io.BytesIO(path.read_bytes()))
        assert (stream.texts.tolist(), stream.labels.tolist()) == (TEXTS, LABELS)
        assert stream.file == "BytesIO"


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts=st.lists(TEXT, min_size=1, max_size=8), name=st.sampled_from(["a.csv", "a.jsonl"]))
def test_any_text_comes_back(tmp_path, texts, name):
    # One text is surely none that pandas could take for numbers.
    texts = ["surely text", *texts]
    path = write(pd.DataFrame({"text": texts, "label": ["x"] * len(texts)}), tmp_path / name)
    assert read_reviews(path).texts.tolist() == texts


def test_json_as_it_is_written(tmp_path):
    records = [{"text": "one", "label": "a"}, {"text": "two\ud800", "label": "b"}]
    path = tmp_path / "a.json"
    lines = "\n\n".join(map(json.dumps, records))
    for content in (json.dumps(records, indent=2), json.dumps(records), f"\n{lines}\n"):
        assert read_reviews(put(path, content)).texts.tolist() == ["one", "two\ud800"]
        assert read_reviews(io.BytesIO(content.encode())).labels.tolist() == ["a", "b"]
    put(path, '{"text": "a", "label": 1}\n{"text": "b", "label": 1.5}\n')
    np.testing.assert_array_equal(read_reviews(path).labels, [1.0, 1.5])


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_encodings(tmp_path, name, encoding):
    text = "text,label\ncafé noir,1\nschön,0\n"
    if name == "a.jsonl":
        text = '{"text": "café noir", "label": 1}\n{"text": "schön", "label": 0}\n'
    path = put(tmp_path / name, text.encode(encoding))
    asked = [encoding]
    if encoding.startswith("utf"):  # recognised by their marks
        asked.append("utf-8")
        assert read_reviews(io.BytesIO(path.read_bytes())).text_column == "text"
    for one in asked:
        reviews = read_reviews(path, encoding=one)
        assert reviews.texts.tolist() == ["café noir", "schön"]
        assert reviews.labels.tolist() == [1, 0]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize(
    ("labels", "kind", "dtype"),
    [
        ([1, 5], "int8", np.int64),
        ([3, 1], "Int64", np.int64),
        ([0.5, 1.0], "float32", np.float64),
        ([True, False], "boolean", np.bool_),
        (["good", "NA"], "category", object),
        (["1", "one"], object, object),
    ],
)
def test_types_of_labels(tmp_path, name, labels, kind, dtype):
    table = pd.DataFrame({"text": ["a", "b"], "label": pd.Series(labels, dtype=kind)})
    table = table.set_index("text") if name == "a.parquet" else table  # which is a column, too
    target = read_reviews(write(table, tmp_path / name)).labels
    assert target.tolist() == labels
    assert target.dtype == dtype


def test_choice_of_columns(tmp_path):
    path = put(tmp_path / "a.csv", "Rating,Review ,text2,sentiment\n5,a,b,\n1,c,d,neg\n")
    reviews = read_reviews(path, text="text2", label="Rating")
    assert reviews.texts.tolist() == ["b", "d"]
    assert reviews.labels.tolist() == [5, 1]
    assert read_reviews(path, label="Rating").text_column == "Review "
    refused("column 'sentiment'", read_reviews, path)
    put(path, "Text,text,label\na,b,1\n")
    assert read_reviews(path).text_column == "Text"  # the first of two
    put(path, "text,label,,\na,1,,\n")  # spreadsheets add columns without names
    assert read_reviews(path).labels.tolist() == [1]
    path = tmp_path / "a.parquet"
    pd.DataFrame({"text": ["a"], "label": [1]}).rename_axis(index=7).to_parquet(path)
    assert read_reviews(path).texts.tolist() == ["a"]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
def test_separators_are_recognised(tmp_path, name, sep):
    rows = sep.join(["text", "label", '"a,b;c"']) + f'\r\n\r\n"x, y"{sep}1{sep}z\r\n\r\n'
    reviews = read_reviews(put(tmp_path / name, rows))
    assert (reviews.texts.tolist(), reviews.labels.tolist()) == (["x, y"], [1])


def test_a_separator_cuts_rows_alike(tmp_path):
    path = put(tmp_path / "a.csv", "text (title, body, tags);label\n\na;1\n")
    assert read_reviews(path, text="text (title, body, tags)").texts.tolist() == ["a"]


@pytest.mark.parametrize("name", ["a.txt", "a.json", "a.parquet", "a.csv", "a"])
def test_a_separator_that_is_given_is_the_format(tmp_path, name):
    path = put(tmp_path / name, "text;label\na, b;1\n")
    assert read_reviews(path, sep=";").texts.tolist() == ["a, b"]
    assert read_texts(path, text=None, sep=";", encoding="utf-8")[1].tolist() == ["a, b"]


def test_long_texts_and_long_files(tmp_path):
    long = "x" * 200_000
    path = put(tmp_path / "a.csv", f"text,label\n{long},1\n")
    assert read_reviews(path).texts.tolist() == [long]
    # pandas would read many cells in parts, with numbers in the first ones.
    empty = "," * 300
    put(path, f"text,label{empty}\n" + f"a,1{empty}\n" * 4000 + f"b,two{empty}\n")
    assert set(read_reviews(path).labels) == {"1", "two"}


def test_texts_one_a_line(tmp_path):
    path = put(tmp_path / "a.txt", b"one\r\n\r\n two, three \rfour\n")
    texts = read_texts(path, text=None, sep=None, encoding="utf-8")[1]
    assert texts.tolist() == ["one", " two, three ", "four"]


def check_error(path, match, error=ValueError, **kwargs):
    with pytest.raises(error, match=match) as caught:
        read_reviews(path, **kwargs)
    assert "\n" not in str(caught.value)
    assert path.name in str(caught.value) or "sep" in kwargs


ONE = "text,label\n"
CHARACTERS = '{"text": "a", "label": 1}\n'


def test_files_that_cannot_be_read(tmp_path):
    for name, content, match, parameters in [
        *(
            (name, "text", "format is unknown; expected a name", {})
            for name in ("a.xlsx", "a.txt", "a")
        ),
        *((f"a{kind}", "", "is empty", {}) for kind in (".csv", ".tsv", ".jsonl", ".parquet")),
        *(("a.csv", content, "is empty", {}) for content in ("\n\n", "\ufeff", ONE)),
        ("a.json", "[]", "is empty", {}),
        ("a.csv", ONE + "a,1\n", "no column 'b'; .* choose one with text=", {"text": "b"}),
        ("a.csv", ONE + "a,1\n", "no column 'b'; .* choose one with label=", {"label": "b"}),
        ("a.csv", "text,other\na,1\n", "for the label; its columns are 'text', 'other'", {}),
        ("a.csv", ONE + "a,1\n", "both column 'text'", {"label": "text"}),
        ("a.csv", "a long text " * 9 + "\nb\n", "'a long text a long text a long text a l:", {}),
        ("a.csv", ONE + "a,1\nhello, you,0\n", "line 3, saw 3 .* quote texts that contain ','", {}),
        ("a.csv", ONE + "hello, you,0\na,1\n", "rows are longer .* split at ',': quote texts", {}),
        ("a.csv", "text;label\na;1\nyou; me;0\n", "line 3, saw 3 .* split at ';'", {}),
        ("a.csv", ONE + '"a,1\nb,2\n', "cannot be read: ", {}),
        ("a.csv", ONE + "1,1\n2,0\n", "row 1 of .* has 1 instead of a text .*2 of 2 rows", {}),
        ("a.jsonl", CHARACTERS + '{"text": 7}', "row 2 of .* has 7 instead of a text", {}),
        ("a.jsonl", CHARACTERS + '{"label": 1}', "row 2 of .* has nan instead.*1 of 2", {}),
        ("a.jsonl", '{"text":"a","label":123456789012345678901234567890}', "up to 64 bits", {}),
        ("a.jsonl", CHARACTERS + '{"text": \n', "line 3 column 1", {}),
        ("a.jsonl", CHARACTERS + '["a"]\n', "record 2 is not a JSON object", {}),
        ("a.json", '[{"text": "a"},\n', "cannot be read: .* line 2", {}),
        ("a.json", "[" * 100_000, "cannot be read: .*recursion", {}),
        ("a.csv", ONE + "a,1\nb,\nc, \n", "row 2 of .* has no label in .*; 2 of 3 rows", {}),
        ("a.jsonl", CHARACTERS + '{"text": "b", "label": null}', "row 2 of .* has no label", {}),
        ("a.parquet", ONE, "cannot be read: .*Parquet", {}),
        ("a.csv", "text\nb", "sep must be a single", {"sep": ";;"}),
        *(
            (name, content.encode("latin-1"), match, {"encoding": encoding})
            for name, content in (("a.csv", "text\ncafé\n"), ("a.jsonl", '{"text": "café"}'))
            for encoding, match in (
                ("utf-8", "encoding='latin-1'"),
                ("klingon", "encoding must be a Python encoding"),
                ("base64", "encoding must be a Python encoding"),
            )
        ),
        ("a.csv", "text,text,label\na,b,1\nb,c,2\n", "2 columns .* 'text'", {}),
        ("a.tsv", "text\tlabel\tlabel\na\t1\t1\n", "2 columns .* 'label'", {}),
        ("a.jsonl", '{"text": "a", "text": "b", "label": 1}', "2 columns .* 'text'", {}),
        ("a.csv", ONE + "a,1\nb\0c,2\n", "row 2 of .* has the character NUL", {}),
        ("a.jsonl", '{"text": "\\u0000", "label": 1}', "row 1 .* character NUL", {}),
        *(
            ("a.csv", f"{ONE}{text},1\n".encode(form), f"UTF-16 .*encoding='{form}'", {})
            for form in ("utf-16-le", "utf-16-be")
            for text in ("fine", "schön", "хорошо")
        ),
        *((f"a.csv{kind}", "no such", "cannot be read: ", {}) for kind in (".gz", ".bz2", ".zip")),
    ]:
        check_error(put(tmp_path / name, content), match, **parameters)


def test_labels_that_are_no_labels(tmp_path):
    path = tmp_path / "a.jsonl"
    for other in ('"1"', "true", "[1]", "{}"):
        put(path, f'{{"text":"a","label":1}}\n{{"text":"b","label":{other}}}')
        check_error(path, "labels of type .*expected all strings")
    dates = pd.DataFrame({"text": ["a"], "label": pd.to_datetime(["2020-01-01"])})
    check_error(write(dates, tmp_path / "a.parquet"), "labels of type Timestamp")


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.bz2", "a.jsonl.xz", "a.csv.zip"])
def test_damaged_compression(tmp_path, frame, name):
    path = write(frame, tmp_path / name)
    content = path.read_bytes()
    check_error(put(path, content[: len(content) // 2]), "cannot be read: ")


def test_pyarrow_is_not_installed(tmp_path, frame, monkeypatch):
    path = write(frame, tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused("pyarrow is required", read_reviews, path, error=ImportError)


def test_errors_of_the_system_are_its_own(tmp_path):
    refused("there is no file", read_reviews, tmp_path / "a.csv", error=FileNotFoundError)
    (tmp_path / "b.csv").mkdir()
    refused(None, read_reviews, tmp_path / "b.csv", error=IsADirectoryError)
