"""fetch_imdb: downloads that break off and wrong files, from a local server."""

import hashlib
import io
import tarfile
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import joblib
import numpy as np
import pytest

from sklearn_clsattn.datasets import _download, _imdb, fetch_imdb

RATINGS = {"neg": (1, 4), "pos": (7, 10)}


def review(subset, folder, i):
    return f"{subset} {folder} {i}: naïve<br />film {i * 7919}"


def members():
    """Yield the names and contents of a small archive of the real one's layout."""
    for other in ("README", "imdb.vocab", "train/labeledBow.feat", "train/unsup/0_0.txt"):
        yield f"aclImdb/{other}", b"something else"
    for subset in ("test", "train"):
        for folder, ratings in RATINGS.items():
            for i in (10, 9, 0):
                name = f"aclImdb/{subset}/{folder}/{i}_{ratings[i % 2]}.txt"
                yield name, review(subset, folder, i).encode()


def make_archive(extra=()):
    """Return an archive's bytes; `extra` are pairs of a TarInfo and its content."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        folder = tarfile.TarInfo("aclImdb/train")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        plain = [(tarfile.TarInfo(name), content) for name, content in members()]
        for info, content in [*plain, *extra]:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


class Server:
    """A server of one file that misbehaves as told."""

    def __init__(self):
        self.content = b""
        # For each request to come: how to answer it; "good" when there is nothing more.
        self.plan = []
        self.requests = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *args):
                pass

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.httpd.server_port}/archive.tar.gz"
        self.thread = threading.Thread(
            target=self.httpd.serve_forever, kwargs={"poll_interval": 0.01}
        )
        self.thread.start()

    def close(self):
        if self.thread.is_alive():
            self.httpd.shutdown()
            self.thread.join()
            self.httpd.server_close()

    def answer(self, handler):
        asked = handler.headers.get("Range")
        self.requests.append(asked)
        behaviour = self.plan.pop(0) if self.plan else "good"
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        if isinstance(behaviour, int):
            handler.send_error(behaviour)
            return
        if behaviour in ("login page", "endless", "ignores range"):
            asked, start = None, 0
        body = {"login page": b"login", "endless": self.content + b"and more"}.get(
            behaviour, self.content[start:]
        )
        handler.send_response(206 if asked else 200)
        if asked:
            shown = start + 1 if behaviour == "another range" else start
            end = len(self.content) - 1
            handler.send_header("Content-Range", f"bytes {shown}-{end}/{len(self.content)}")
        if behaviour != "endless":
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[:100] if behaviour == "breaks off" else body)


@pytest.fixture
def server(monkeypatch):
    server = Server()

    def serve(content):
        server.content = content
        remote = _download.RemoteFile(
            filename="aclImdb_v1.tar.gz",
            url=server.url,
            sha256=hashlib.sha256(content).hexdigest(),
            size=len(content),
        )
        monkeypatch.setattr(_imdb, "ARCHIVE", remote)

    server.serve = serve
    serve(make_archive())
    yield server
    server.close()


@pytest.fixture
def fetch(tmp_path):
    return partial(fetch_imdb, data_home=tmp_path, delay=0)


def kept(tmp_path):
    return sorted(path.name for path in tmp_path.rglob("*") if path.is_file())


CACHED = ["imdb_reviews_v1.pkz"]
PART = ["aclImdb_v1.tar.gz.part"]


def expected(*subsets):
    # As strings, "0_1" < "10_1" < "9_4".
    return [review(s, folder, i) for s in subsets for folder in RATINGS for i in (0, 10, 9)]


def test_published_archive():
    assert len(_imdb.ARCHIVE.sha256) == 64
    assert _imdb.ARCHIVE.size == 84125825


def test_reviews(server, fetch, tmp_path):
    bunch = fetch()
    assert bunch.data.tolist() == expected("train", "test")
    assert bunch.data.dtype == object
    np.testing.assert_array_equal(bunch.target, [0, 0, 0, 1, 1, 1] * 2)
    np.testing.assert_array_equal(bunch.rating, [1, 1, 4, 7, 7, 10] * 2)
    assert bunch.filenames[:3].tolist() == [
        "train/neg/0_1.txt",
        "train/neg/10_1.txt",
        "train/neg/9_4.txt",
    ]
    assert bunch.target_names == ["negative", "positive"]
    assert "Maas" in bunch.DESCR
    assert kept(tmp_path) == CACHED
    assert server.requests == [None]


def test_cache_needs_no_server(server, fetch):
    fetch()
    server.close()
    assert fetch(subset="train").data.tolist() == expected("train")
    data, target = fetch(subset="test", return_X_y=True, download_if_missing=False)
    assert data.tolist() == expected("test")
    np.testing.assert_array_equal(target, [0, 0, 0, 1, 1, 1])


def test_does_not_download_when_told_not_to(server, fetch, tmp_path):
    with pytest.raises(OSError, match="download_if_missing is False"):
        fetch(download_if_missing=False)
    assert server.requests == []
    assert kept(tmp_path) == []


def test_goes_on_in_the_same_call(server, fetch, tmp_path):
    server.plan = ["breaks off", "breaks off", "good"]
    assert fetch().data.tolist() == expected("train", "test")
    assert server.requests == [None, "bytes=100-", "bytes=200-"]
    assert kept(tmp_path) == CACHED


def test_goes_on_in_the_next_call(server, fetch, tmp_path):
    server.plan = ["breaks off"]
    with pytest.raises(OSError, match=r"ended after 100 of .* call again to resume"):
        fetch(n_retries=0)
    assert kept(tmp_path) == PART
    assert fetch().data.tolist() == expected("train", "test")
    assert server.requests == [None, "bytes=100-"]
    assert kept(tmp_path) == CACHED


@pytest.mark.parametrize(
    ("name", "change", "requests"),
    [
        (PART[0], lambda content: content, []),
        (PART[0], lambda content: content[:50], ["bytes=50-"]),
        (PART[0], lambda content: content + b"more", [None]),
        ("aclImdb_v1.tar.gz", lambda content: content, []),
        ("aclImdb_v1.tar.gz", lambda content: b"wrong", [None]),
    ],
)
def test_what_an_earlier_call_left(server, fetch, tmp_path, name, change, requests):
    (tmp_path / "imdb").mkdir()
    (tmp_path / "imdb" / name).write_bytes(change(server.content))
    assert len(fetch().data) == 12
    assert server.requests == requests
    assert kept(tmp_path) == CACHED


@pytest.mark.parametrize(
    ("behaviour", "requests"),
    [
        ("ignores range", [None, "bytes=100-"]),
        ("another range", [None, "bytes=100-", None]),
        (416, [None, "bytes=100-", None]),
    ],
)
def test_servers_that_do_not_go_on(server, fetch, behaviour, requests):
    server.plan = ["breaks off", behaviour]
    assert len(fetch().data) == 12
    assert server.requests == requests


@pytest.mark.parametrize("code", [500, 503, 429])
def test_temporary_errors_are_tried_again(server, fetch, code):
    server.plan = [code, code, "good"]
    assert len(fetch(n_retries=2).data) == 12


@pytest.mark.parametrize(("code", "n_requests"), [(500, 3), (404, 1)])
def test_gives_up(server, fetch, code, n_requests):
    server.plan = [code] * 10
    with pytest.raises(OSError, match=f"could not download {server.url} .*{code}"):
        fetch(n_retries=2)
    assert len(server.requests) == n_requests
    server.close()
    with pytest.raises(OSError, match="could not download"):
        fetch(n_retries=1)


@pytest.mark.parametrize("behaviour", ["login page", "endless"])
def test_another_file_is_refused(server, fetch, tmp_path, behaviour):
    server.plan = [behaviour]
    with pytest.raises(OSError, match=r"server (offers|sends)"):
        fetch()
    assert len(server.requests) == 1
    assert kept(tmp_path) == []


def test_wrong_hash_is_deleted(server, fetch, tmp_path):
    good = server.content
    server.content = good[:-1] + bytes([good[-1] ^ 1])
    with pytest.raises(OSError, match=r"SHA-256 .* expected .* deleted"):
        fetch()
    assert kept(tmp_path) == []
    server.content = good
    assert len(fetch().data) == 12


def test_damaged_cache_is_made_anew(server, fetch, tmp_path):
    fetch()
    cache = tmp_path / "imdb" / CACHED[0]
    cache.write_bytes(cache.read_bytes()[:50])
    with pytest.raises(OSError, match="download_if_missing"):
        fetch(download_if_missing=False)
    assert len(fetch().data) == 12
    joblib.dump({"something": "else"}, cache)
    assert len(fetch().data) == 12


def test_failure_while_caching_leaves_nothing_half_done(server, fetch, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(joblib, "dump", fail)
        with pytest.raises(OSError, match="no space left"):
            fetch()
    assert kept(tmp_path) == ["aclImdb_v1.tar.gz"]
    server.close()
    assert len(fetch().data) == 12


def test_mirror(server, fetch, tmp_path):
    mirror = tmp_path / "mirror.tar.gz"
    mirror.write_bytes(server.content)
    assert len(fetch(url=mirror.as_uri()).data) == 12
    assert server.requests == []


def test_parameters(fetch):
    with pytest.raises(ValueError, match="subset must be"):
        fetch(subset="unsup")
    with pytest.raises(ValueError, match="n_retries"):
        fetch(n_retries=-1)


def member(name, kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = link
    return info


@pytest.mark.parametrize(
    "name",
    [
        "/etc/aclImdb/train/pos/1_9.txt",
        "../aclImdb/train/pos/1_9.txt",
        "aclImdb/train/pos/../../../1_9.txt",
        "aclImdb/train/pos/1_9.txt/../../2_9.txt",
        "aclImdb/train/pos/1_11.txt",
        "aclImdb/train/pos/1_0.txt",
        "aclImdb/train/pos/1_9.txt\n",
        "aclImdb/train/pos/٣_9.txt",
        "aclImdb/train/pos/1_9.txt.exe",
        "AclImdb/train/pos/1_9.txt",
    ],
)
def test_other_names_are_passed_over(server, fetch, tmp_path, name):
    server.serve(make_archive([(member(name), b"hostile")]))
    assert fetch().data.tolist() == expected("train", "test")
    assert kept(tmp_path) == CACHED


KINDS = [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]


@pytest.mark.parametrize("kind", KINDS)
def test_links_and_devices_of_other_names_are_passed_over(server, fetch, tmp_path, kind):
    server.serve(make_archive([(member("aclImdb/elsewhere", kind, "/etc/passwd"), b"")]))
    assert len(fetch().data) == 12
    assert kept(tmp_path) == CACHED
