"""A download that continues where the last one stopped and checks what came."""

import hashlib
import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 18
_TIMEOUT = 60.0
# Answers that mean "later", unlike the other 4xx, which the next attempt would get again.
_TEMPORARY = {408, 425, 429}


@dataclass(frozen=True)
class RemoteFile:
    """A file somewhere else, and how to know it.

    Attributes
    ----------
    filename : str
        Its name here.
    url : str
        Where it is.
    sha256 : str
        SHA-256 of its bytes, in hexadecimal digits.
    size : int
        Its size in bytes.
    """

    filename: str
    url: str
    sha256: str
    size: int


def download(remote: RemoteFile, folder: Path, *, n_retries: int, delay: float) -> Path:
    """Bring a file into a folder, unless it is there already.

    Bytes go to a file ``<filename>.part``, which stays where the download fails, so that the next
    attempt or the next call asks the server for the rest alone.

    Parameters
    ----------
    remote : RemoteFile
        What to bring.
    folder : Path
        Where to; it exists.
    n_retries : int
        How often to try again after the first attempt.
    delay : float
        Seconds between attempts.

    Returns
    -------
    path : Path
        The file, whose size and SHA-256 are those of `remote`.

    Raises
    ------
    OSError
        If the file cannot be downloaded, or is not the one that `remote` describes; a wrong file is
        deleted.
    """
    path = folder / remote.filename
    part = folder / f"{remote.filename}.part"
    if path.exists():
        if path.stat().st_size == remote.size and _sha256(path) == remote.sha256:
            return path
        path.unlink()

    for attempt in range(n_retries + 1):
        if attempt:
            time.sleep(delay)
        try:
            _continue(remote, part)
            break
        except (OSError, http.client.HTTPException) as error:
            temporary = not isinstance(error, _WrongFileError) and not (
                isinstance(error, urllib.error.HTTPError)
                and 400 <= error.code < 500
                and error.code not in _TEMPORARY
            )
            if temporary and attempt < n_retries:
                continue
            raise OSError(
                f"could not download {remote.url} ({error}); "
                f"{_size(part)} of {remote.size} bytes are here, call again to go on from there"
            ) from error

    found = _sha256(part)
    if found != remote.sha256:
        part.unlink()
        raise OSError(
            f"{remote.url} has SHA-256 {found}, expected {remote.sha256}: the download was damaged "
            "or the file has changed; it has been deleted, call again to download it anew"
        )
    part.replace(path)
    return path


class _WrongFileError(OSError):
    """What the server sends cannot be the file that was asked for."""


def _continue(remote: RemoteFile, part: Path) -> None:
    """Download the bytes that `part` still lacks; raise OSError if some still lack afterwards."""
    if _size(part) > remote.size:
        part.unlink()
    have = _size(part)
    if have == remote.size:
        return
    # Without "identity", a server may compress what it sends, and bytes would not add up.
    headers = {"User-Agent": "sklearn-clsattn", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    request = urllib.request.Request(remote.url, headers=headers)
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and have:
            # The server's file ends before our part does, so the part is of another file.
            part.unlink()
            raise ConnectionError("the server refused to go on, starting anew") from error
        raise
    with response:
        if have and not _goes_on_from(response, part):
            have = 0
        offered = response.headers.get("Content-Length", "")
        if offered.isdecimal() and have + int(offered) != remote.size:
            # A login page, most often, which must not become the beginning of our part.
            raise _WrongFileError(
                f"the server offers {have + int(offered)} bytes, expected {remote.size}"
            )
        with part.open("ab" if have else "wb") as file:
            while chunk := response.read(_CHUNK):
                have += len(chunk)
                if have > remote.size:
                    break
                file.write(chunk)
    if have > remote.size:
        part.unlink()
        raise _WrongFileError(f"the server sends more than the {remote.size} bytes expected")
    if have < remote.size:
        raise ConnectionError(f"the connection ended after {have} of {remote.size} bytes")


def _goes_on_from(response: http.client.HTTPResponse, part: Path) -> bool:
    """Whether a response is the rest of `part`, and not the whole file again."""
    if response.status != 206:
        return False
    content_range = response.headers.get("Content-Range", "")
    if not content_range.startswith(f"bytes {_size(part)}-"):
        # Without the part, the next attempt asks for the whole file.
        part.unlink()
        raise ConnectionError(f"the server sent another range, {content_range!r}")
    return True


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
