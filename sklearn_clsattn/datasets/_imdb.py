"""The Large Movie Review Dataset, from its home page."""

import os
import re
import tarfile
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Literal, cast, overload

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import get_data_home
from sklearn.utils import Bunch, check_scalar

from .._writing import written_whole
from ._download import RemoteFile, download

ARCHIVE = RemoteFile(
    filename="aclImdb_v1.tar.gz",
    url="https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
    sha256="c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
    size=84_125_825,
)

_CACHE_NAME = "imdb_reviews_v1.pkz"
_SUBSETS = ("train", "test")
_TARGET_NAMES = ("negative", "positive")
_FOLDERS = {"neg": 0, "pos": 1}
_REVIEW_NAME = re.compile(
    r"aclImdb/(?P<subset>train|test)/(?P<folder>neg|pos)/(?P<name>[0-9]{1,6}_(?P<rating>10|[1-9])\.txt)"
)

_DESCR = """\
Large Movie Review Dataset v1.0
-------------------------------

50,000 reviews of films from imdb.com, 25,000 to train and 25,000 to test on. Half of each are
positive (7 stars or more of 10) and half are negative (4 stars or fewer); there is none in between.
No film has more than 30 reviews, and no film has reviews in both parts. Texts are as they were
written, HTML line breaks included.

Collected by A. L. Maas, R. E. Daly, P. T. Pham, D. Huang, A. Y. Ng and C. Potts ("Learning Word
Vectors for Sentiment Analysis", ACL 2011), who ask to be cited; for research use.
Home page: https://ai.stanford.edu/~amaas/data/sentiment/
"""


@overload
def fetch_imdb(
    *,
    data_home: str | os.PathLike[str] | None = ...,
    subset: Literal["all", "train", "test"] = ...,
    download_if_missing: bool = ...,
    n_retries: int = ...,
    delay: float = ...,
    return_X_y: Literal[False] = ...,
    url: str | None = ...,
) -> Bunch: ...


@overload
def fetch_imdb(
    *,
    data_home: str | os.PathLike[str] | None = ...,
    subset: Literal["all", "train", "test"] = ...,
    download_if_missing: bool = ...,
    n_retries: int = ...,
    delay: float = ...,
    return_X_y: Literal[True],
    url: str | None = ...,
) -> tuple[NDArray[np.object_], NDArray[np.int64]]: ...


def fetch_imdb(
    *,
    data_home: str | os.PathLike[str] | None = None,
    subset: Literal["all", "train", "test"] = "all",
    download_if_missing: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
    return_X_y: bool = False,
    url: str | None = None,
) -> Bunch | tuple[NDArray[np.object_], NDArray[np.int64]]:
    """Load the 50,000 film reviews of the Large Movie Review Dataset, downloading them if needed.

    The first call downloads 80 MiB and checks their SHA-256; later calls read a cache of about
    30 MiB. An interrupted download is resumed, in the same call or in the next.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder for the cache. If None, scikit-learn's, ``~/scikit_learn_data``.
    subset : {"all", "train", "test"}, default="all"
        Which part of the original split. "all" is train, then test.
    download_if_missing : bool, default=True
        If False, raise an OSError where the reviews are not in the cache, and download nothing.
    n_retries : int, default=3
        Number of further attempts when a download is interrupted.
    delay : float, default=1.0
        Seconds between attempts.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    url : str, default=None
        Another URL of the same archive: a mirror, or a ``file://`` address. If None, the home
        page of the data set. The SHA-256 is checked in any case.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        With these fields, where n_samples is 50,000 or, for one part, 25,000:

        data : ndarray of str objects of shape (n_samples,)
            The reviews, negative before positive in each part, in the order of `filenames`. They
            are not shuffled.
        target : ndarray of int of shape (n_samples,)
            1 for positive reviews and 0 for negative ones.
        rating : ndarray of int of shape (n_samples,)
            Stars, 1 to 4 and 7 to 10.
        filenames : ndarray of str objects of shape (n_samples,)
            Names of the reviews in the archive, such as ``train/neg/0_3.txt``, sorted as strings
            within each folder.
        target_names : list of str
            Names of the two classes.
        DESCR : str
            Description of the data set.
    (data, target) : tuple
        Returned instead if `return_X_y` is True.

    Raises
    ------
    OSError
        If the reviews are not cached and `download_if_missing` is False, if the download fails, or
        if the archive is not the one expected.
    TypeError, ValueError
        If a parameter has the wrong type or an unknown value.

    See Also
    --------
    load_reviews : Load texts and labels from a file.
    make_token_classification : Generate synthetic documents.

    References
    ----------
    .. [1] A. L. Maas, R. E. Daly, P. T. Pham, D. Huang, A. Y. Ng and C. Potts, "Learning Word
       Vectors for Sentiment Analysis", ACL 2011.

    Examples
    --------
    >>> from sklearn_clsattn.datasets import fetch_imdb
    >>> train = fetch_imdb(subset="train")  # doctest: +SKIP
    >>> train.data.shape, train.target_names  # doctest: +SKIP
    ((25000,), ['negative', 'positive'])
    """
    if subset not in ("all", *_SUBSETS):
        raise ValueError(f"subset must be 'all', 'train' or 'test', got {subset!r}")
    check_scalar(n_retries, "n_retries", Integral, min_val=0)
    check_scalar(delay, "delay", Real, min_val=0)
    folder = Path(get_data_home(data_home)) / "imdb"
    reviews = _read_cache(folder / _CACHE_NAME)
    if reviews is None:
        if not download_if_missing:
            raise OSError(
                f"the IMDB reviews are not in {folder} and download_if_missing is False; "
                "pass True, or a data_home that holds them"
            )
        folder.mkdir(parents=True, exist_ok=True)
        remote = ARCHIVE if url is None else replace(ARCHIVE, url=url)
        archive = download(remote, folder, n_retries=n_retries, delay=delay)
        reviews = _read_archive(archive)
        with written_whole(folder / _CACHE_NAME, text=False) as file:
            joblib.dump(reviews, file, compress=("zlib", 3))
        archive.unlink()

    parts = _SUBSETS if subset == "all" else (subset,)
    rows = [row for part in parts for row in reviews[part]]
    data = np.empty(len(rows), dtype=object)
    data[:] = [text for _, text in rows]
    filenames = np.array([name for name, _ in rows], dtype=object)
    matches = [cast("re.Match[str]", _REVIEW_NAME.fullmatch(f"aclImdb/{n}")) for n in filenames]
    target = np.array([_FOLDERS[match["folder"]] for match in matches], dtype=np.int64)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        rating=np.array([int(match["rating"]) for match in matches], dtype=np.int64),
        filenames=filenames,
        target_names=list(_TARGET_NAMES),
        DESCR=_DESCR,
    )


# A part's reviews in order: their names in the archive and their texts.
_Reviews = dict[str, list[tuple[str, str]]]


def _read_archive(path: Path) -> _Reviews:
    """Return pairs of name and text for "train" and "test", in the order of their names."""
    texts: dict[str, str] = {}
    with tarfile.open(path, mode="r|gz") as tar:
        for member in tar:
            if _REVIEW_NAME.fullmatch(member.name):
                file = tar.extractfile(member)
                assert file is not None
                texts[member.name.removeprefix("aclImdb/")] = file.read().decode("utf-8")
    return {
        subset: [(name, texts[name]) for name in sorted(texts) if name.startswith(subset)]
        for subset in _SUBSETS
    }


def _read_cache(path: Path) -> _Reviews | None:
    """Return the cached reviews; None if there are none, or none that can be read."""
    if not path.exists():
        return None
    try:
        reviews = joblib.load(path)
        return {subset: reviews[subset] for subset in _SUBSETS}
    except Exception:  # a damaged pickle can raise anything; the cache is then written again
        return None
