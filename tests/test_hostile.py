"""What comes from elsewhere, and what leaves the program: terminals, spreadsheets, files."""

import ast
import csv
import errno
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest

import sklearn_clsattn
from sklearn_clsattn._core import backend
from sklearn_clsattn._writing import written_whole
from sklearn_clsattn.cli import main
from sklearn_clsattn.cli.commands import guarded_cell
from sklearn_clsattn.cli.saying import say
from sklearn_clsattn.datasets import _files, load_reviews
from sklearn_clsattn.inspection import explain, page_space
from sklearn_clsattn.text import make_text_classifier

ROOT = Path(sklearn_clsattn.__file__).parent
TITLE = "\x1b]0;owned\x07"  # sets a terminal's title
LABELS = [f"{TITLE}good", "=HYPERLINK(bad)"]
POSIX = pytest.mark.skipif(os.name != "posix", reason="a POSIX system is needed")


@pytest.fixture
def folder(tmp_path):
    """Return a folder whose name, labels and texts are hostile; it has data.csv and its model."""
    folder = tmp_path / f"{TITLE}folder"
    folder.mkdir()
    texts = [f"a good film {TITLE}", "a bad film"] * 10
    frame = pd.DataFrame({"text": texts, "label": LABELS * 10})
    frame.to_csv(folder / "data.csv", index=False)
    assert main(["fit", str(folder / "data.csv"), "-o", str(folder / "model"), "--quiet"]) == 0
    return folder


def test_everything_is_printed_by_one_function():
    printing = [
        (path.name, ast.unparse(node))
        for path in (ROOT / "cli").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("print", "sys.stdout.write", "sys.stderr.write")
    ]
    assert [name for name, _ in printing] == ["saying.py"]


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        ("fit {f}/data.csv -o {f}/other", 0),
        ("fit {f}/none.csv -o {f}/other", 2),
        ("fit {f}/data.csv -o {f}/model", 2),
        ("compare {f}/data.csv --top 3", 0),
        ("predict {f}/model {f}/none.csv", 2),
        ("predict {f}/data.csv {f}/data.csv", 2),
        ("explain {f}/model {f}/data.csv --limit 2", 0),
        ("explain {f}/model {f}/data.csv --limit 2 -o {f}/page.html", 0),
        ("explain {f}/model --say {t} --target {t}", 2),
        ("explain {f}/model {f}/data.csv --text {t}", 2),
        ("report {f}/data.csv -o {f}/report.html", 0),
        ("{t}", 2),
        ("fit {f}/data.csv -o {f}/other --{t}", 2),
    ],
)
def test_no_escape_reaches_the_terminal(argv, code, folder, capsys):
    capsys.readouterr()
    words = [word.format(f=folder, t=TITLE) for word in argv.split()]
    assert main(words) == code
    out, err = capsys.readouterr()
    assert not set(out + err) & {"\x1b", "\x07"}
    assert "owned" in out + err


def test_predictions_on_a_terminal_have_no_escapes(folder, capsys, monkeypatch):
    argv = ["predict", str(folder / "model"), str(folder / "data.csv")]
    capsys.readouterr()
    assert main(argv) == 0
    assert TITLE in capsys.readouterr().out  # a file has the labels
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(argv) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_styles_are_kept_and_nothing_else(capsys):
    say(f"\x1b[1mbold\x1b[0m {TITLE}", styled=True)
    assert capsys.readouterr().out == "\x1b[1mbold\x1b[0m ␛]0;owned␇\n"
    say("\x1b[1mbold")
    assert capsys.readouterr().out == "␛[1mbold\n"


@pytest.mark.parametrize(
    ("label", "cell"),
    [
        *((one, f"'{one}") for one in ("=1+1", "@SUM(A1)", "+1+1", "-1+1", "\t=1", " =1", "\r=1")),
        *((one, one) for one in ("good", "", "-1", "+3.5", "1e-5", "a=b")),
        (-1, "-1"),
        (True, "True"),
    ],
)
def test_cells_that_would_be_formulas(label, cell):
    assert guarded_cell(label) == cell


@pytest.mark.parametrize("option", [[], ["--raw-labels"]])
def test_predictions_are_no_formulas(folder, option, capsys):
    out = folder / "out.csv"
    argv = ["predict", str(folder / "model"), str(folder / "data.csv"), "-o", str(out), *option]
    assert main(argv) == 0
    with out.open(newline="") as file:
        rows = list(csv.reader(file))
    found = {row[2] for row in rows[1:]}
    assert found == ({LABELS[0], LABELS[1]} if option else {LABELS[0], "'" + LABELS[1]})
    assert {row[1] for row in rows[1:]} == set(LABELS)  # the file's own
    assert all(cell.startswith("probability_") for cell in rows[0][3:])


# Files


@POSIX
def test_modes_are_kept_and_planted_links_are_not_followed(tmp_path):
    victim, path = tmp_path / "victim", tmp_path / "out"
    victim.write_text("mine")
    for number in (os.getpid(), 0):
        (tmp_path / f".out.{number}.part").symlink_to(victim)
    for mode in (0o600, 0o640):
        path.write_text("before")
        path.chmod(mode)
        with written_whole(path, text=True) as file:
            file.write("after")
        assert path.read_text() == "after"
        assert stat.S_IMODE(path.stat().st_mode) == mode
    assert victim.read_text() == "mine"
    path.unlink()
    mask = os.umask(0o027)
    try:
        with written_whole(path, text=True):
            pass
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    path = tmp_path / "out"

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(OSError, match=r"No space left on device: '.*out'"),
        written_whole(path, text=True) as file,
    ):
        file.write("x")
    assert list(tmp_path.iterdir()) == []
    with (
        pytest.raises(OSError, match="No space left on device: '/dev/full'"),
        written_whole(Path("/dev/full"), text=True) as file,
    ):
        file.write("x" * 100_000)


def test_only_one_place_writes_files():
    writing = re.compile(
        r"""\.write_text\(|\.write_bytes\(|open\([^)]*["'](w|wb|a|x)["']|to_csv\("""
    )
    found = {
        path.name
        for path in ROOT.rglob("*.py")
        for line in path.read_text().splitlines()
        if writing.search(line) and ">>>" not in line and "..." not in line
    }
    # Downloads go on where they stopped; the command line opens the null device; a folder of
    # chunks says that it is not whole until it is.
    assert found <= {"_writing.py", "_download.py", "__init__.py", "_chunked_counts.py"}


WRITE = """
import sys, time
from pathlib import Path
from sklearn_clsattn._writing import written_whole
from sklearn_clsattn.cli import _terminated_cleanly, _Terminated
try:
    with _terminated_cleanly(), written_whole(Path(sys.argv[1]), text=True) as file:
        print("writing", flush=True)
        time.sleep(60)
except _Terminated:
    sys.exit(143)
"""


@POSIX
def test_termination_leaves_nothing(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", WRITE, str(tmp_path / "out")], stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    assert list(tmp_path.iterdir()) == []


@POSIX
def test_closed_standard_output(folder):
    model, data = str(folder / "model"), str(folder / "data.csv")
    for argv, code in ((["predict", model, data], 2), (["fit", data, "-o", model, "--force"], 0)):
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "sklearn_clsattn", *argv],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert done.returncode == code
        assert "Traceback" not in done.stderr
        assert ("standard output is closed" in done.stderr) == (code == 2)


# Sizes


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("compression", ["gz", "bz2", "xz", "zip", "tar.gz", "tar.xz", "zst"])
def test_a_file_that_unpacks_to_far_too_much(tmp_path, monkeypatch, kind, compression):
    monkeypatch.setattr(_files, "_LEAST_LIMIT", 10**6)
    path = tmp_path / f"bomb.{kind}.{compression}"
    try:
        pd.DataFrame({"text": [" " * 5_000_000], "label": [1]}).to_csv(path)
    except ImportError:
        pytest.skip(f"pandas cannot write .{compression} here")
    with pytest.raises(ValueError, match=r"bomb.*unpacks to more than 1 MB, over 100 times"):
        load_reviews(path)


def test_a_page_has_the_whole_of_as_many_texts_as_it_takes(monkeypatch):
    texts = ["a good film", "a bad film"] * 10
    model = make_text_classifier(characters=None).fit(texts, [1, 0] * 10)
    monkeypatch.setattr(page_space, "LARGEST_PAGE", 2500)
    page = explain(model, ["good " * 400, "bad! " * 400]).to_html()
    assert page.count("All of it") == 1
    assert page.count("The parts that matter most, of 2,000 characters") == 2


# Processes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_during_a_fit_does_not_hang_the_child():
    with backend._lock:
        child = os.fork()
        if child == 0:
            done = threading.Event()

            def enter():
                with backend.ThreadShare():
                    done.set()

            threading.Thread(target=enter, daemon=True).start()
            os._exit(0 if done.wait(30) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
