"""Downloads that can be resumed and are verified."""

import hashlib
import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 18
_TIMEOUT = 60.0
# The other 4xx are permanent.
_TEMPORARY = {408, 425, 429}


@dataclass(frozen=True)
class RemoteFile:
    """A file to download: its local name, URL, SHA-256 in hexadecimal digits and size in bytes."""

    filename: str
    url: str
    sha256: str
    size: int


def download(remote: RemoteFile, folder: Path, *, n_retries: int, delay: float) -> Path:
    """Download a file into an existing folder, unless it exists, and return its path.

    What was received is kept if the download fails, and the next attempt requests only the rest.
    Raises OSError, also if size or SHA-256 are wrong; a wrong file is deleted.
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
                f"{_size(part)} of {remote.size} bytes are here, call again to resume"
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
    """The response cannot be the file that was requested."""


def _continue(remote: RemoteFile, part: Path) -> None:
    """Download the bytes that `part` lacks; raise OSError if some are missing afterwards."""
    if _size(part) > remote.size:
        part.unlink()
    have = _size(part)
    if have == remote.size:
        return
    # Without "identity", the server may compress the file, and byte ranges would be wrong.
    headers = {"User-Agent": "sklearn-clsattn", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    request = urllib.request.Request(remote.url, headers=headers)
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and have:
            # The server's file is shorter than our part, which is of another file.
            part.unlink()
            raise ConnectionError("the server refused to resume, starting again") from error
        raise
    with response:
        if have and not _is_rest_of(response, part):
            have = 0
        offered = response.headers.get("Content-Length", "")
        if offered.isdecimal() and have + int(offered) != remote.size:
            # Often a login page, which must not become the beginning of our part.
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


def _is_rest_of(response: http.client.HTTPResponse, part: Path) -> bool:
    """Return whether a response is the rest of `part`, and not the whole file."""
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
