"""load_reviews: every format, nothing lost, and errors that say what to do."""

import codecs
import gzip
import io
import json
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sklearn_clsattn.datasets import load_reviews

TEXTS = ['It\'s terrific, a "delight".', "null", "NA", "", "zwei\nZeilen", "naïve – 映画 🎬", " 7 "]
LABELS = [1, 0, 0, 1, 0, 1, 1]


@pytest.fixture
def frame():
    return pd.DataFrame({"id": range(len(TEXTS)), "text": TEXTS, "label": LABELS})


def write(frame, path, **kwargs):
    name = path.name
    if ".csv" in name:
        frame.to_csv(path, index=False, **kwargs)
    elif ".tsv" in name or ".tab" in name:
        frame.to_csv(path, index=False, sep="\t", **kwargs)
    elif ".json" in name or ".ndjson" in name:
        frame.to_json(path, orient="records", lines=True, force_ascii=False)
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress(frame.to_parquet(index=False)))
    else:
        frame.to_parquet(path, index=False)
    return path


def put(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "name",
    [
        *(
            "a.csv",
            "a.CSV",
            "a.csv.gz",
            "a.csv.bz2",
            "a.csv.xz",
            "a.csv.zip",
            "a.b.csv",
            "a.csv.tar",
            "a.jsonl.tar.gz",
        ),
        *("a.tsv", "a.tsv.gz", "a.tab", "a.jsonl", "a.jsonl.gz", "a.ndjson", "a.json"),
        *(
            "a.jsonl.bz2",
            "a.jsonl.xz",
            "a.jsonl.zip",
            "a.jsonl.tar.gz",
            "a.parquet",
            "a.parquet.gz",
            "a.pq",
        ),
    ],
)
def test_formats(frame, tmp_path, name):
    path = tmp_path / name
    if name == "a.CSV":
        frame.to_csv(path, index=False)
    else:
        write(frame, path)
    reviews = load_reviews(path)
    assert reviews.data.tolist() == TEXTS
    assert reviews.data.dtype == object
    assert all(type(text) is str for text in reviews.data)
    assert reviews.target.tolist() == LABELS
    assert reviews.target.dtype == np.int64
    assert (reviews.text_column, reviews.label_column) == ("text", "label")
    assert reviews.filename == str(path)
    data, target = load_reviews(str(path), return_X_y=True)
    np.testing.assert_array_equal(data, reviews.data)
    np.testing.assert_array_equal(target, reviews.target)


def test_json_array(tmp_path):
    records = [{"text": "one", "label": "a"}, {"text": "two", "label": "b"}]
    path = put(tmp_path / "a.json", json.dumps(records, indent=2))
    assert load_reviews(path).data.tolist() == ["one", "two"]
    put(path, json.dumps(records))
    assert load_reviews(path).target.tolist() == ["a", "b"]


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts=st.lists(TEXT, min_size=1, max_size=8), name=st.sampled_from(["a.csv", "a.jsonl"]))
def test_any_text_comes_back(tmp_path, texts, name):
    # One text is surely none that pandas could take for numbers.
    texts = ["surely text", *texts]
    path = write(pd.DataFrame({"text": texts, "label": ["x"] * len(texts)}), tmp_path / name)
    assert load_reviews(path).data.tolist() == texts


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
def test_encodings(tmp_path, name, encoding):
    text = "text,label\ncafé noir,1\nschön,0\n"
    if name == "a.tsv":
        text = text.replace(",", "\t")
    if name == "a.jsonl":
        text = '{"text": "café noir", "label": 1}\n{"text": "schön", "label": 0}\n'
    path = put(tmp_path / name, text.encode(encoding))
    data, target = load_reviews(path, encoding=encoding, return_X_y=True)
    assert data.tolist() == ["café noir", "schön"]
    assert target.tolist() == [1, 0]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_byte_order_mark_of_utf_8(tmp_path, name):
    content = 'text,label\n"a, b",1\n' if name == "a.csv" else '{"text": "a, b", "label": 1}'
    reviews = load_reviews(put(tmp_path / name, b"\xef\xbb\xbf" + content.encode()))
    assert (reviews.text_column, reviews.data.tolist()) == ("text", ["a, b"])


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        ([1, 5], np.int64),
        ([0.5, 1.0], np.float64),
        ([True, False], np.bool_),
        (["good", "NA"], object),
        (["1", "one"], object),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_types_of_labels(tmp_path, name, labels, dtype):
    path = write(pd.DataFrame({"text": ["a", "b"], "label": labels}), tmp_path / name)
    target = load_reviews(path).target
    assert target.tolist() == labels
    assert target.dtype == dtype


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        (pd.Series(["b", "a"], dtype="category"), object),
        (pd.Series([3, 1], dtype="category"), np.int64),
        (pd.Series([3, 1], dtype="Int64"), np.int64),
        (pd.Series([3, 1], dtype="int8"), np.int64),
        (pd.Series([True, False], dtype="boolean"), np.bool_),
        (pd.Series([0.5, 1], dtype="float32"), np.float64),
    ],
)
def test_types_of_parquet_labels(tmp_path, labels, dtype):
    path = write(pd.DataFrame({"text": ["a", "b"], "label": labels}), tmp_path / "a.parquet")
    target = load_reviews(path).target
    assert target.tolist() == labels.tolist()
    assert target.dtype == dtype


def test_mixed_ints_and_floats_are_floats(tmp_path):
    path = put(tmp_path / "a.jsonl", '{"text": "a", "label": 1}\n{"text": "b", "label": 1.5}\n')
    np.testing.assert_array_equal(load_reviews(path).target, [1.0, 1.5])


def test_choice_of_columns(tmp_path):
    path = put(tmp_path / "a.csv", "Rating,Review ,text2,sentiment\n5,a,b,pos\n1,c,d,neg\n")
    reviews = load_reviews(path)
    assert (reviews.text_column, reviews.label_column) == ("Review ", "sentiment")
    reviews = load_reviews(path, text="text2", label="Rating")
    assert reviews.data.tolist() == ["b", "d"]
    assert reviews.target.tolist() == [5, 1]


def test_without_labels(tmp_path):
    path = put(tmp_path / "a.csv", "text,label\na,\nb,1\n")
    reviews = load_reviews(path, label=False)
    assert reviews.data.tolist() == ["a", "b"]
    assert reviews.target is None
    assert reviews.label_column is None
    put(path, "review\nonly text\n")
    data, target = load_reviews(path, label=False, return_X_y=True)
    assert data.tolist() == ["only text"]
    assert target is None


def test_sep(tmp_path):
    path = put(tmp_path / "a.txt", "text;label\na, b;1\n")
    assert load_reviews(path, sep=";").data.tolist() == ["a, b"]
    with pytest.raises(ValueError, match="sep must be a single character"):
        load_reviews(path, sep=";;")


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz"])
@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
def test_separators_are_recognised(tmp_path, name, sep):
    rows = sep.join(["text", "label", '"a,b;c"']) + f'\n"x, y"{sep}1{sep}z\n'
    content = gzip.compress(rows.encode()) if name.endswith(".gz") else rows
    reviews = load_reviews(put(tmp_path / name, content))
    assert (reviews.data.tolist(), reviews.target.tolist()) == (["x, y"], [1])


def test_the_rows_below_the_header_tell_the_separator(tmp_path):
    path = put(tmp_path / "a.csv", "text,label (a;b;c;d|e)\nx,1\n")
    assert load_reviews(path, label="label (a;b;c;d|e)").target.tolist() == [1]


def test_one_column_is_not_cut(tmp_path):
    path = put(tmp_path / "a.csv", 'text\n"one; two"\n')
    assert load_reviews(path, label=False).data.tolist() == ["one; two"]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize("mark", [codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE])
def test_utf_16_is_recognised(tmp_path, name, mark):
    text = "text;label\ncafé;1\n" if name == "a.csv" else '{"text": "café", "label": 1}\n'
    order = "le" if mark == codecs.BOM_UTF16_LE else "be"
    content = mark + text.encode(f"utf-16-{order}")
    assert load_reviews(put(tmp_path / name, content)).data.tolist() == ["café"]
    assert load_reviews(io.BytesIO(content)).data.tolist() == ["café"]


@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.csv.gz", "a.jsonl.xz", "a.csv.zip"]
)
def test_streams_are_recognised_by_content(tmp_path, frame, name):
    content = write(frame, tmp_path / name).read_bytes()
    reviews = load_reviews(io.BytesIO(content))
    assert (reviews.data.tolist(), reviews.target.tolist()) == (TEXTS, LABELS)
    assert reviews.filename == "BytesIO"
    with pytest.raises(ValueError, match="BytesIO is empty"):
        load_reviews(io.BytesIO(b""))
    if name.endswith("z"):
        with pytest.raises(ValueError, match="BytesIO cannot be decompressed"):
            load_reviews(io.BytesIO(content[: len(content) // 2]))


def test_index_of_a_parquet_file_is_a_column(tmp_path):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"label": [1, 0]}, index=pd.Index(["a", "b"], name="text")).to_parquet(path)
    assert load_reviews(path).data.tolist() == ["a", "b"]


def test_blank_lines_are_not_rows(tmp_path):
    path = put(tmp_path / "a.csv", "text,label\r\na,1\r\n\r\nb,0\r\n\r\n")
    assert load_reviews(path).data.tolist() == ["a", "b"]
    path = put(tmp_path / "a.jsonl", '\n{"text": "a", "label": 1}\n\n')
    assert load_reviews(path).data.tolist() == ["a"]


def test_lone_surrogate_in_json_is_kept(tmp_path):
    path = put(tmp_path / "a.jsonl", '{"text": "a\\ud800b", "label": "x"}\n')
    assert load_reviews(path).data.tolist() == ["a\ud800b"]


def check_error(path, match, error=ValueError, **kwargs):
    with pytest.raises(error, match=match) as caught:
        load_reviews(path, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    if error is not ImportError:
        assert path.name in message


def test_no_such_file(tmp_path):
    check_error(tmp_path / "a.csv", "no file", FileNotFoundError)


def test_folder(tmp_path):
    check_error(tmp_path, "is a folder")


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
def test_empty_file(tmp_path, name):
    check_error(put(tmp_path / name, ""), "is empty")


@pytest.mark.parametrize("content", ["\n\n", "\ufeff"])
def test_nothing_but_blanks(tmp_path, content):
    check_error(put(tmp_path / "a.csv", content), "is empty")


def test_no_rows(tmp_path, frame):
    check_error(put(tmp_path / "a.csv", "text,label\n"), "no rows")
    check_error(write(frame.iloc[:0], tmp_path / "a.parquet"), "no rows")
    check_error(put(tmp_path / "a.json", "[]"), "is empty")


def test_missing_columns(tmp_path):
    path = put(tmp_path / "a.csv", "id,words,label\n1,a,1\n")
    check_error(path, "for the text; its columns are 'id', 'words', 'label': name one with text=")
    found = "its columns are 'id', 'words', 'label': name one with"
    check_error(path, f"no column 'text'; {found} text=", text="text")
    check_error(path, f"no column 'stars'; {found} label=", text="words", label="stars")
    put(path, "text,other\na,1\n")
    check_error(path, "for the label; its columns are 'text', 'other': name one with label=")
    check_error(path, "both column 'text'", label="text")


def test_other_separator_is_hinted_at(tmp_path):
    path = put(tmp_path / "a.csv", "text^label\na^1\n")
    check_error(path, r"name one with text=, or pass sep='\^' if that is several columns$")
    put(path, "text^label\na, b^1\n")
    check_error(path, r"cut at ','.* or pass sep='\^'$")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("text,label\na,1\nhello, you,0\n", "line 3 has 3 cells, where the first line has 2"),
        ("text,label\nhello, you,0\na,1\n", "a line has more cells than the first line, cut"),
        ("text;label\na;1\nyou; me;0\n", "line 3 has 3 cells, .* cut at ';': put texts with ';'"),
    ],
)
def test_rows_with_too_many_cells(tmp_path, content, said):
    check_error(put(tmp_path / "a.csv", content), said)


def test_no_header(tmp_path):
    path = put(tmp_path / "a.csv", "1," + "a long first review " * 50 + "\n2,b\n")
    check_error(path, r"'a long first review a long first revi\.\.\.'")


def test_numbers_are_not_texts(tmp_path, frame):
    path = write(frame, tmp_path / "a.csv")
    check_error(path, "'id' of .* holds int64 values, not text; name the column", text="id")
    path = put(tmp_path / "a.jsonl", '{"text": "a", "label": 1}\n{"text": 7, "label": 1}\n')
    check_error(path, "row 2 of .* has 7 in place of a text")
    path = put(tmp_path / "a.jsonl", '{"text": "a", "label": 1}\n{"label": 1}\n')
    check_error(path, "row 2 of .* has no text in column 'text'; 1 of 2 rows")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "text,label\na,1\nb,\nc, \n"),
        ("a.csv", "text,label\na,1\nb\nc\n"),
        ("a.jsonl", '{"text":"a","label":"x"}\n{"text":"b","label":null}\n{"text":"c"}\n'),
        ("a.jsonl", '{"text":"a","label":1}\n{"text":"b","label":NaN}\n{"text":"c"}\n'),
    ],
)
def test_missing_labels(tmp_path, name, content):
    match = "row 2 of .* has no label in column 'label'; 2 of 3 rows"
    check_error(put(tmp_path / name, content), match)


@pytest.mark.parametrize(
    "labels",
    [[1.0, None], pd.Series([1, None], dtype="Int64"), pd.Series(["a", None], dtype="category")],
)
def test_missing_parquet_labels(tmp_path, labels):
    path = write(pd.DataFrame({"text": ["a", "b"], "label": labels}), tmp_path / "a.parquet")
    check_error(path, "row 2 of .* has no label")


@pytest.mark.parametrize("other", ['"1"', "true", "[1]", "{}"])
def test_labels_of_several_types(tmp_path, other):
    path = put(tmp_path / "a.jsonl", f'{{"text":"a","label":1}}\n{{"text":"b","label":{other}}}')
    check_error(path, "labels of type .*expected all strings")


def test_labels_that_are_no_labels(tmp_path):
    dates = pd.DataFrame({"text": ["a"], "label": pd.to_datetime(["2020-01-01"])})
    check_error(write(dates, tmp_path / "a.parquet"), "labels of type Timestamp")
    path = put(tmp_path / "a.jsonl", '{"text":"a","label":123456789012345678901234567890}')
    check_error(path, "too large")


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_undecodable_bytes(tmp_path, name):
    content = "text,label\ncafé,1\n" if name == "a.csv" else '{"text": "café"}'
    check_error(put(tmp_path / name, content.encode("latin-1")), "encoding='latin-1'")


@pytest.mark.parametrize("encoding", ["klingon", "base64", "rot13"])
def test_unknown_encoding(tmp_path, encoding):
    path = put(tmp_path / "a.csv", "text,label\na,1\n")
    with pytest.raises(ValueError, match="encoding must be"):
        load_reviews(path, encoding=encoding)


@pytest.mark.parametrize(
    "content",
    [
        "text,label\na,1\nb,2,3\n",
        "text,label\na,1,3\nb,2,3\n",
        'text,label\n"a,1\nb,2\n',
    ],
)
def test_malformed_csv(tmp_path, content):
    check_error(put(tmp_path / "a.csv", content), "cannot be read: ")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ('{"text": "a"}\n{"text": \n', "line 2 is not JSON"),
        ('{"text": "a"}\n["a"]\n', "line 2 is not a JSON object"),
        ("7\n", "line 1 is not a JSON object"),
        ('[{"text": "a"},\n', "array from line 1 on is not JSON"),
        ('["a"]\n', "array of JSON objects"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_malformed_json(tmp_path, content, match):
    check_error(put(tmp_path / "a.jsonl", content), match)


def test_not_parquet(tmp_path):
    check_error(put(tmp_path / "a.parquet", "text,label\n"), "not a Parquet file")


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.bz2", "a.csv.xz", "a.jsonl.gz", "a.jsonl.bz2"])
def test_damaged_compression(tmp_path, frame, name):
    path = write(frame, tmp_path / name)
    content = path.read_bytes()
    check_error(put(path, content[: len(content) // 2]), "cannot be decompressed")
    check_error(put(path, b"no such thing at all"), "is not compressed as .* files are")


def test_zip_of_several_files(tmp_path):
    for name in ("a.csv.zip", "a.jsonl.zip"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("1", "text,label\n")
            archive.writestr("2", "text,label\n")
        check_error(tmp_path / name, "cannot be read")
    check_error(put(tmp_path / "a.csv.zip", "no zip"), "is not compressed as .zip files")


def test_unknown_format(tmp_path):
    check_error(put(tmp_path / "a.xlsx", "text"), "cannot tell the format")
    check_error(put(tmp_path / "reviews", "text"), "cannot tell the format")


def test_zst_without_its_library(tmp_path, monkeypatch):
    for module in ("zstandard", "compression", "compression.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    check_error(put(tmp_path / "a.parquet.zst", "x"), "zst", ImportError)


def test_parquet_without_pyarrow(tmp_path, frame, monkeypatch):
    path = write(frame, tmp_path / "a.parquet")

    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    check_error(path, r"pip install sklearn-clsattn\[parquet\]", ImportError)


def test_permission_is_the_systems_own_error(tmp_path, monkeypatch):
    path = put(tmp_path / "a.jsonl", "{}")

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", refuse)
        with pytest.raises(PermissionError):
            load_reviews(path)
